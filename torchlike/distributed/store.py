"""Key-value stores through which the processes of a program find each other: in memory, in a file, in front of another one, or of a program's own class."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta

from ._frames import packed, unpacked

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt
    fcntl = None

__all__ = ["DistError", "DistNetworkError", "DistStoreError", "FileStore", "HashStore", "PrefixStore", "QueueEmptyError", "Store"]

TIMEOUT = timedelta(seconds=300)
_POLL = 0.01  # seconds between two looks into a file


class DistError(RuntimeError):
    """What went wrong between processes."""


class DistStoreError(DistError):
    """A store that did not answer in time."""


class DistNetworkError(DistError):
    """A connection that could not be made, or that broke."""


class QueueEmptyError(DistStoreError):
    """Nothing is in a queue that nobody waits for."""


for _error in (DistError, DistStoreError, DistNetworkError, QueueEmptyError):
    _error.__module__ = "torch.distributed"


def _bytes(value: str | bytes) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"incompatible function arguments: keys and values of a store are str or bytes, not {type(value).__name__}")


_PURE = {"add": "add", "wait": "wait", "check": "check", "delete_key": "deleteKey", "num_keys": "getNumKeys"}  # names in C++ of what each store has


class Store:
    """Keys are text, values bytes. What waits raises DistStoreError after `timeout`.

    A store here gives `_call(command, arguments, seconds)`: bytes for bytes, None where a wait took too long. A program's own class gives these methods:
    then `append`, `multi_get` and `multi_set` are made of the others.
    """

    _timeout = TIMEOUT
    _extended = False  # whether it has `append`, `multi_get` and `multi_set` by itself

    def __init__(self, timeout: timedelta = TIMEOUT) -> None:
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    def _call(self, command: str, arguments: list[bytes], seconds: float) -> list[bytes] | None:
        if command in _PURE:
            raise RuntimeError(f'Tried to call pure virtual function "::c10d::Store::{_PURE[command]}"')
        if command == "list_keys":
            raise NotImplementedError("listKeys support is not implemented.")
        raise NotImplementedError("queue support is not implemented.") if command.startswith("queue") else RuntimeError("Not implemented.")

    def _ask(self, command: str, *arguments: str | bytes, timeout: timedelta | None = None) -> list[bytes]:
        limit = self._timeout if timeout is None else timeout
        made = self._call(command, [_bytes(a) for a in arguments], limit.total_seconds())
        if made is None:
            raise self._late(command, [_bytes(a).decode(errors="replace") for a in arguments], int(limit.total_seconds() * 1000))
        return made

    def _late(self, command: str, keys: list[str], ms: int) -> RuntimeError:
        """What a wait ends with that took too long."""
        return DistStoreError(f"wait timeout after {ms}ms, keys: " + ", ".join(f"/{key}" for key in keys))

    def set(self, key: str, value: str | bytes) -> None:
        """Let `key` hold `value`."""
        self._ask("set", key, value)

    def get(self, key: str) -> bytes:
        """The value of `key`, as soon as it has one."""
        return self._ask("get", key)[0]

    def add(self, key: str, amount: int) -> int:
        """Count `amount` up, from 0 for a new key: the sum."""
        return int(self._ask("add", key, str(amount))[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Add to the end of a value."""
        if self._extended:
            self._ask("append", key, value)
            return
        value = _bytes(value)
        there = self.compare_set(key, b"", value)
        wanted = value
        while there != wanted:  # somebody else may write in between
            wanted = there + value
            there = self.compare_set(key, there, wanted)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set if the value is the expected one (or there is none and "" is expected); the value afterwards."""
        return self._ask("compare_set", key, expected_value, desired_value)[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Until every key has a value."""
        self._ask("wait", *keys, timeout=timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether every key has a value."""
        return self._ask("check", *keys)[0] == b"1"

    def delete_key(self, key: str) -> bool:
        """Forget a key: whether it was there."""
        return self._ask("delete_key", key)[0] == b"1"

    def num_keys(self) -> int:
        """How many keys have a value, the store's own among them."""
        return int(self._ask("num_keys")[0])

    def list_keys(self) -> list[str]:
        """The keys that have a value."""
        return [k.decode() for k in self._ask("list_keys")]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, as soon as they have one."""
        return self._ask("get", *keys) if self._extended else [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Let each key hold its value."""
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are more than the other methods."""
        return self._extended

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Add a value to the end of a queue. Queues and values have names of their own."""
        self._ask("queue_push", key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take a queue's first value, as soon as there is one; QueueEmptyError where there is none, without `block`."""
        found = self._ask("queue_pop" if block else "queue_take", key)
        if not found:
            raise QueueEmptyError("queue is empty")
        return found[0]

    def queue_len(self, key: str) -> int:
        """How many values wait in a queue."""
        return int(self._ask("queue_len", key)[0])

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Until `world_size` callers have come, each with this key."""
        if self.add(f"{key}/num_members", 1) >= world_size:
            self.set(f"{key}/last_member", "here")
        self.wait([f"{key}/last_member"], self.timeout if timeout is None else timeout)

    def clone(self) -> Store:
        """Another object for the same store, for another thread."""
        raise RuntimeError('Tried to call pure virtual function "::c10d::Store::clone"')


class Table:
    """The keys and values themselves, for the threads of one process."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, list[bytes]] = {}
        self.changed = threading.Condition()

    def call(self, command: str, arguments: list[bytes], seconds: float) -> list[bytes] | None:
        with self.changed:
            if command in ("get", "wait"):
                if not self.changed.wait_for(lambda: all(k in self.values or k in self.queues for k in arguments), seconds):
                    return None
                return [self.values.get(k, b"") for k in arguments] if command == "get" else []
            if command.startswith("queue"):
                return self._queue(command, arguments, seconds)
            if command == "check":
                return [b"%d" % all(k in self.values or k in self.queues for k in arguments)]
            made = _answer(self.values, command, arguments)
            self.changed.notify_all()
            return made

    def _queue(self, command: str, arguments: list[bytes], seconds: float) -> list[bytes] | None:
        key = arguments[0]
        if command == "queue_len":
            return [b"%d" % len(self.queues.get(key, ()))]
        if command == "queue_push":
            self.queues.setdefault(key, []).append(arguments[1])
            self.changed.notify_all()
            return []
        if command == "queue_pop" and not self.changed.wait_for(lambda: key in self.queues, seconds):
            return None
        if key not in self.queues:
            return []
        first = self.queues[key].pop(0)
        if not self.queues[key]:
            del self.queues[key]
        return [first]


def _answer(values: dict[bytes, bytes], command: str, arguments: list[bytes]) -> list[bytes]:
    """A command that need not wait."""
    key = arguments[0] if arguments else b""
    if command == "set":
        values[key] = arguments[1]
    elif command == "append":
        values[key] = values.get(key, b"") + arguments[1]
    elif command == "add":
        values[key] = b"%d" % (int(values.get(key, b"0")) + int(arguments[1]))
        return [values[key]]
    elif command == "compare_set":
        if values.get(key, b"") == arguments[1]:
            values[key] = arguments[2]
        return [values.get(key, arguments[1])]
    elif command == "check":
        return [b"%d" % all(k in values for k in arguments)]
    elif command == "delete_key":
        return [b"%d" % (values.pop(key, None) is not None)]
    elif command == "num_keys":
        return [b"%d" % len(values)]
    elif command == "list_keys":
        return list(values)
    elif command.startswith("queue"):
        raise NotImplementedError("queue support is not implemented.")
    else:
        raise DistError(f"a store has no command {command!r}")
    return []


class HashStore(Store):
    """A store for the threads of one process."""

    _extended = True

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()

    def _call(self, command, arguments, seconds):
        return self._table.call(command, arguments, seconds)

    def _late(self, command, keys, ms):
        return DistStoreError("Wait timeout")

    def clone(self) -> HashStore:
        return self


class PrefixStore(Store):
    """Another store, with `prefix/` in front of every key."""

    def __init__(self, prefix: str, store: Store) -> None:
        if store is None:
            raise ValueError("store argument cannot be None")
        if not isinstance(store, Store):
            raise TypeError("__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                            f"    (prefix: str, store: Store)\n\nInvoked with: {prefix!r}, {store!r}")
        self._prefix, self._store = _bytes(prefix).decode(), store

    @property
    def underlying_store(self) -> Store:
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{_bytes(key).decode()}"

    def set(self, key, value):
        self._store.set(self._key(key), _bytes(value))

    def get(self, key):
        return self._store.get(self._key(key))

    def add(self, key, amount):
        return self._store.add(self._key(key), amount)

    def append(self, key, value):
        self._store.append(self._key(key), _bytes(value))

    def compare_set(self, key, expected_value, desired_value):
        return self._store.compare_set(self._key(key), _bytes(expected_value), _bytes(desired_value))

    def wait(self, keys, timeout=None):
        keys = [self._key(key) for key in keys]
        self._store.wait(keys) if timeout is None else self._store.wait(keys, timeout)

    def check(self, keys):
        return self._store.check([self._key(key) for key in keys])

    def delete_key(self, key):
        return self._store.delete_key(self._key(key))

    def num_keys(self):
        return self._store.num_keys()

    def list_keys(self):
        start = f"{self._prefix}/"
        return [key[len(start):] for key in self._store.list_keys() if key.startswith(start)]

    def multi_get(self, keys):
        return self._store.multi_get([self._key(key) for key in keys])

    def multi_set(self, keys, values):
        self._store.multi_set([self._key(key) for key in keys], [_bytes(value) for value in values])

    def has_extended_api(self):
        return self._store.has_extended_api()

    def queue_push(self, key, value):
        self._store.queue_push(self._key(key), _bytes(value))

    def queue_pop(self, key, block=True):
        return self._store.queue_pop(self._key(key), block)

    def queue_len(self, key):
        return self._store.queue_len(self._key(key))

    def clone(self) -> PrefixStore:
        return PrefixStore(self._prefix, self._store.clone())


class FileStore(Store):
    """A store in a file that all processes see; the last of `world_size` to close it removes it."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path, self._world_size = file_name, world_size
        self._call("add", [_USERS, b"1"], 0)
        self.close = weakref.finalize(self, _leave, file_name, world_size, os.getpid())  # called, or as the store is forgotten

    def _call(self, command, arguments, seconds):
        end = time.monotonic() + seconds
        while True:
            made = _in_file(self.path, command, arguments)
            if made is not None:
                return made
            if time.monotonic() > end:
                return None
            time.sleep(_POLL)

    def _late(self, command, keys, ms):
        return RuntimeError(f"Timeout waiting for key: {keys[0]} after {ms} ms" if command == "get" else "Wait timeout")

    def num_keys(self) -> int:
        return len(self.list_keys()) + 1  # one of the store's own

    def list_keys(self) -> list[str]:
        return [k for k in super().list_keys() if k[0] != "\0"]

    def clone(self) -> FileStore:
        return FileStore(self.path, self._world_size)


_USERS, _CLOSED = b"\0users", b"\0closed"


def _leave(path: str, world_size: int, process: int) -> None:
    """A user of a file is through with it. It is removed once nobody uses it and as many have used it as there are to be."""
    if os.path.exists(path) and os.getpid() == process:
        closed = int(_in_file(path, "add", [_CLOSED, b"1"])[0])
        if int(_in_file(path, "add", [_USERS, b"-1"])[0]) == 0 and 0 <= world_size <= closed:
            os.remove(path)


def _in_file(path: str, command: str, arguments: list[bytes]) -> list[bytes] | None:
    """What a command finds in a file; None where values are wanted that are not there yet."""
    with _opened(path) as file:
        values = unpacked(file.read())
        if command in ("get", "wait"):
            if not all(k in values for k in arguments):
                return None
            return [values[k] for k in arguments] if command == "get" else []
        made = _answer(values, command, arguments)
        if command not in ("check", "num_keys", "list_keys"):
            file.seek(0)
            file.truncate()
            file.write(packed([x for item in values.items() for x in item]))
        return made


@contextlib.contextmanager
def _opened(path: str):
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        else:
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # the first byte, until the file is closed
        yield file
