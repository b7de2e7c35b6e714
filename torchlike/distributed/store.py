"""Key-value stores through which the processes of a program find each other: in memory, in a file, or at one process over TCP."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Sequence
from datetime import timedelta

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt
    fcntl = None

__all__ = ["DistError", "DistNetworkError", "DistStoreError", "FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_TIMEOUT = timedelta(seconds=300)
_POLL = 0.01  # seconds between two looks into a file


class DistError(RuntimeError):
    """What went wrong between processes."""


class DistStoreError(DistError):
    """A store that did not answer in time."""


class DistNetworkError(DistError):
    """A connection that could not be made, or that broke."""


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Keys are text, values bytes. What waits raises DistStoreError after `timeout`.

    A subclass gives `_call(command, arguments, seconds)`: bytes for bytes, None where a wait took too long.
    """

    def __init__(self, timeout: timedelta = _TIMEOUT) -> None:
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    def _call(self, command: str, arguments: list[bytes], seconds: float) -> list[bytes] | None:
        raise NotImplementedError

    def _ask(self, command: str, *arguments: str | bytes, timeout: timedelta | None = None) -> list[bytes]:
        limit = self._timeout if timeout is None else timeout
        made = self._call(command, [_bytes(a) for a in arguments], limit.total_seconds())
        if made is None:
            keys = ", ".join(_bytes(a).decode(errors="replace") for a in arguments)
            raise DistStoreError(f"wait timeout after {int(limit.total_seconds() * 1000)}ms, keys: /{keys}")
        return made

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
        self._ask("append", key, value)

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
        return int(self._ask("num_keys")[0])

    def list_keys(self) -> list[str]:
        return [k.decode() for k in self._ask("list_keys")]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, as soon as they have one."""
        return self._ask("get", *keys)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` work."""
        return True


class _Table:
    """The keys and values themselves, for the threads of one process."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.changed = threading.Condition()

    def call(self, command: str, arguments: list[bytes], seconds: float) -> list[bytes] | None:
        with self.changed:
            if command in ("get", "wait"):
                if not self.changed.wait_for(lambda: all(k in self.values for k in arguments), seconds):
                    return None
                return [self.values[k] for k in arguments] if command == "get" else []
            made = _answer(self.values, command, arguments)
            self.changed.notify_all()
            return made


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
    else:
        raise DistError(f"a store has no command {command!r}")
    return []


class HashStore(Store):
    """A store for the threads of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._table = _Table()

    def _call(self, command, arguments, seconds):
        return self._table.call(command, arguments, seconds)


class PrefixStore(Store):
    """Another store, with `prefix/` in front of every key."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        return self._store

    def _call(self, command, arguments, seconds):
        values = {"set": 1, "append": 1, "add": 1, "compare_set": 2}.get(command, 0)
        keys = len(arguments) - values
        return self._store._call(command, [f"{self._prefix}/".encode() + a if i < keys else a for i, a in enumerate(arguments)], seconds)


class FileStore(Store):
    """A store in a file that all processes see; the last of `world_size` to close it removes it."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path, self._world_size = file_name, world_size
        self._call("add", [b"\0users", b"1"], 0)

    def _call(self, command, arguments, seconds):
        end = time.monotonic() + seconds
        while True:
            with self._opened() as file:
                values = _unpacked(file.read())
                if command not in ("get", "wait"):
                    made = _answer(values, command, arguments)
                    if command not in ("check", "num_keys", "list_keys"):
                        file.seek(0)
                        file.truncate()
                        file.write(_packed([x for item in values.items() for x in item]))
                    return made
            if all(k in values for k in arguments):
                return [values[k] for k in arguments] if command == "get" else []
            if time.monotonic() > end:
                return None
            time.sleep(_POLL)

    @contextlib.contextmanager
    def _opened(self):
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            else:
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # the first byte, until the file is closed
            yield file

    def has_extended_api(self) -> bool:
        return False  # as torch's says, although it has them

    def num_keys(self) -> int:
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        return [k for k in super().list_keys() if k[0] != "\0"]

    def close(self) -> None:
        """Called once by each process that is through with it."""
        if os.path.exists(self.path) and int(self._call("add", [b"\0closed", b"1"], 0)[0]) == self._world_size:
            os.remove(self.path)


def _packed(parts: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("!I", len(p)) + p for p in parts)


def _parts(data: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(data):
        n = struct.unpack_from("!I", data, at)[0]
        parts.append(data[at + 4:at + 4 + n])
        at += 4 + n
    return parts


def _unpacked(data: bytes) -> dict[bytes, bytes]:
    parts = _parts(data)
    return dict(zip(parts[::2], parts[1::2]))


def send_frame(connection: socket.socket, parts: Sequence[bytes]) -> None:
    """One message: some pieces of bytes."""
    data = _packed(parts)
    connection.sendall(struct.pack("!Q", len(data)) + data)


def receive_exactly(connection: socket.socket, n: int) -> bytearray:
    """n bytes; EOFError where the other side closed the connection."""
    data = bytearray(n)
    view, at = memoryview(data), 0
    while at < n:
        got = connection.recv_into(view[at:])
        if not got:
            raise EOFError
        at += got
    return data


def receive_frame(connection: socket.socket) -> list[bytes]:
    return _parts(bytes(receive_exactly(connection, struct.unpack("!Q", receive_exactly(connection, 8))[0])))


def connected(host: str, port: int, seconds: float) -> socket.socket:
    """A connection to a server that may start later than this process; DistNetworkError after some seconds."""
    end = time.monotonic() + seconds
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(1.0, end - time.monotonic()))
        except OSError as error:
            if time.monotonic() > end:
                raise DistNetworkError(f"The client socket has failed to connect to {host}:{port}: {error}") from None
            time.sleep(0.05)
            continue
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class _Server:
    """Answers for a table, one thread per connection."""

    def __init__(self, port: int) -> None:
        self.table, self.joined = _Table(), threading.Semaphore(0)
        try:
            self.socket = socket.create_server(("", port), backlog=2048)
        except OSError as error:
            raise DistNetworkError("The server socket has failed to listen on any local network address. "
                                   f"port: {port}, code: -{error.errno}, message: {error.strerror}") from None
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True, name="torchlike store").start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection = self.socket.accept()[0]
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.joined.release()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, EOFError):
            while True:
                command, seconds, *arguments = receive_frame(connection)
                made = self.table.call(command.decode(), arguments, float(seconds))
                send_frame(connection, [b"late"] if made is None else [b"ok", *made])

    def close(self) -> None:
        with contextlib.suppress(OSError):  # macOS: not connected
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread in `accept`, which held the port open
        self.socket.close()


class TCPStore(Store):
    """A store that one process serves (`is_master`) and the others reach over TCP. Port 0 lets the system choose one."""

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False, timeout: timedelta = _TIMEOUT,
                 wait_for_workers: bool = True, multi_tenant: bool = False, master_listen_fd: int | None = None, use_libuv: bool = True) -> None:
        super().__init__(timeout)
        self._server = _Server(port) if is_master else None
        self._host, self._port = host_name, self._server.port if is_master else port
        self._connection = connected(host_name, self._port, timeout.total_seconds())
        self._lock = threading.Lock()
        if is_master and wait_for_workers and world_size is not None:
            end = time.monotonic() + timeout.total_seconds()
            for i in range(world_size):
                if not self._server.joined.acquire(timeout=max(0.0, end - time.monotonic())):
                    raise DistStoreError(f"Timed out after {timeout.total_seconds():g} seconds waiting for clients. {i}/{world_size} clients joined.")

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        return self._port

    def _call(self, command, arguments, seconds):
        with self._lock:
            try:
                send_frame(self._connection, [command.encode(), repr(seconds).encode(), *arguments])
                answer, *made = receive_frame(self._connection)
            except (OSError, EOFError):
                raise DistNetworkError(f"the store at {self._host}:{self._port} closed the connection") from None
        return None if answer == b"late" else made

    def close(self) -> None:
        self._connection.close()
        if self._server is not None:
            self._server.close()
