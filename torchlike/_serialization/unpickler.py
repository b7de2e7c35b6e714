"""A pickle machine that builds data and calls nothing but what its resolver hands out.

Python's own ``pickle.Unpickler`` calls whatever object lies on its stack. Here each name in the file goes to a
resolver, which answers with a :class:`Resolved` (what the name stands for, and what may be done with it) or refuses;
only those callables are called, only those classes are instantiated, and only their instances receive state.
"""

import _compat_pickle
import collections
import dataclasses
import pickle
import struct
import types
from collections.abc import Callable
from typing import IO, Any


@dataclasses.dataclass(frozen=True)
class Resolved:
    """What a global name of a pickle stands for.

    ``call`` runs for REDUCE, ``new`` for NEWOBJ; None forbids it. ``state`` says that instances take state (BUILD):
    "dict" writes it into ``__dict__`` and slots, "method" hands it to ``__setstate__`` where the class has one.
    """

    value: Any
    call: Callable[..., Any] | None = None
    new: Callable[..., Any] | None = None
    state: str | None = None


class Unpickler:
    """``resolve(module, name)`` gives a :class:`Resolved` or raises; ``persistent_load(pid)`` answers storages."""

    def __init__(
        self,
        stream: IO[bytes],
        resolve: Callable[[str, str], Resolved],
        persistent_load: Callable[[Any], Any],
        encoding: str = "utf-8",
        errors: str = "strict",
    ) -> None:
        self._stream, self._resolve, self._persistent_load = stream, resolve, persistent_load
        self._encoding, self._errors = encoding, errors
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._protocol = 0
        self._resolved: dict[int, Resolved] = {}  # by id of the value; the values are kept alive here

    def load(self) -> Any:
        """One object; EOFError where the stream ends before it, UnpicklingError where it is no (allowed) pickle."""
        code = self._stream.read(1)
        if not code:
            raise EOFError("Ran out of input")
        while code != pickle.STOP:
            if code == pickle.BINPERSID:  # outside of the try: it runs the caller's own map_location
                self._push(self._persistent_load(self._top()))
            else:
                self._step(code)
            code = self._read(1)
        return self._top()

    def _step(self, code: bytes) -> None:
        handler = _HANDLERS.get(code)
        if handler is None:
            raise pickle.UnpicklingError(f"Unsupported operand {code[0]}")
        try:
            handler(self)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise pickle.UnpicklingError(f"not a valid pickle: {type(error).__name__}: {error}") from error

    def _top(self) -> Any:
        if not self._stack:
            raise pickle.UnpicklingError("not a valid pickle: its stack is empty")
        return self._stack.pop()

    def _read(self, count: int) -> bytes:
        data = self._stream.read(count)
        if len(data) != count:
            raise EOFError("pickle data was truncated")
        return data

    def _line(self) -> bytes:
        line = bytearray()
        while (byte := self._read(1)) != b"\n":
            line += byte
        return bytes(line)

    def _unpack(self, layout: str) -> Any:
        return struct.unpack(layout, self._read(struct.calcsize(layout)))[0]

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _named(self, module: str, name: str) -> tuple[str, str]:
        """Python 3's names: protocols up to 2 are written with those of Python 2."""
        if self._protocol >= 3:
            return module, name
        renamed = _compat_pickle.NAME_MAPPING.get((module, name))
        return renamed or (_compat_pickle.IMPORT_MAPPING.get(module, module), name)

    def _push_global(self, module: str, name: str) -> None:
        module, name = self._named(module, name)
        resolved = self._resolve(module, name)
        self._resolved[id(resolved.value)] = resolved
        self._push(resolved.value)

    def _allowed(self, value: Any) -> Resolved:
        """What may be done with ``value``, which must be what a name of this pickle stands for."""
        resolved = self._resolved.get(id(value))
        if resolved is None or resolved.value is not value:
            raise pickle.UnpicklingError(f"Trying to call {_describe(value)}, which the file did not name")
        return resolved

    def _text(self, data: bytes) -> Any:
        return data if self._encoding == "bytes" else data.decode(self._encoding, self._errors)

    # -- operations -----------------------------------------------------------------------------------------------

    def _proto(self) -> None:
        self._protocol = self._read(1)[0]
        if self._protocol > pickle.HIGHEST_PROTOCOL:
            raise pickle.UnpicklingError(f"unsupported pickle protocol: {self._protocol}")

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

    def _int_line(self) -> None:
        line = self._line()
        self._push({b"00": False, b"01": True}[line] if line in (b"00", b"01") else int(line))

    def _list_of_mark(self) -> None:
        self._push(self._pop_mark())

    def _tuple_of(self, count: int) -> None:
        if len(self._stack) < count:
            raise IndexError("stack underflow")
        self._stack[-count:] = [tuple(self._stack[-count:])]

    def _dict_of_mark(self) -> None:
        items = self._pop_mark()
        self._push(dict(zip(items[::2], items[1::2], strict=True)))

    def _frozenset_of_mark(self) -> None:
        self._push(frozenset(self._pop_mark()))

    def _append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, (list, collections.deque)):
            raise pickle.UnpicklingError(f"Can only append to a list, not to {_describe(target)}")
        # The classes' own methods: a subclass in the file's hands must not get to run its overrides.
        (list if isinstance(target, list) else collections.deque).extend(target, values)

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise pickle.UnpicklingError(f"Can only set items of a dict, not of {_describe(target)}")
        store = collections.OrderedDict if isinstance(target, collections.OrderedDict) else dict
        for key, value in zip(items[::2], items[1::2], strict=True):
            store.__setitem__(target, key, value)

    def _one_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set_items([key, value])

    def _add_items(self) -> None:
        items = self._pop_mark()
        target = self._stack[-1]
        if not isinstance(target, set):
            raise pickle.UnpicklingError(f"Can only add items to a set, not to {_describe(target)}")
        set.update(target, items)

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise pickle.UnpicklingError("STACK_GLOBAL requires str")
        self._push_global(module, name)

    def _reduce(self) -> None:
        args, function = self._stack.pop(), self._stack.pop()
        allowed = self._allowed(function)
        if allowed.call is None:
            raise pickle.UnpicklingError(_not_allowed(function, "called"))
        self._push(allowed.call(*args))

    def _new_object(self, keywords: bool = False) -> None:
        named = self._stack.pop() if keywords else {}
        args, cls = self._stack.pop(), self._stack.pop()
        allowed = self._allowed(cls)
        if allowed.new is None:
            raise pickle.UnpicklingError(_not_allowed(cls, "made an instance of"))
        self._push(allowed.new(*args, **named))

    def _build(self) -> None:
        state, instance = self._stack.pop(), self._stack[-1]
        known = [self._resolved.get(id(base)) for base in type(instance).__mro__]
        allowed = next((found for found in known if found is not None and found.state is not None), None)
        if allowed is None:
            raise pickle.UnpicklingError(_not_allowed(type(instance), "given a state"))
        if allowed.state == "method" and hasattr(instance, "__setstate__"):
            instance.__setstate__(state)
            return
        attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        if attributes:
            instance.__dict__.update(attributes)
        for name, value in (slots or {}).items():
            if not isinstance(getattr(type(instance), name, None), types.MemberDescriptorType):
                raise pickle.UnpicklingError(f"{_describe(type(instance))} has no slot {name!r}")
            object.__setattr__(instance, name, value)


class Skimmer(Unpickler):
    """Runs through a pickle without making anything of it: collects the names and the persistent ids it mentions."""

    def __init__(
        self, stream: IO[bytes], known: dict[str, Any], encoding: str = "utf-8", errors: str = "strict"
    ) -> None:
        super().__init__(stream, self._no_resolve, self._note, encoding, errors)
        self._known = known
        self.names: dict[str, None] = {}  # "module.name", in order
        self.persistent_ids: list[Any] = []

    def _no_resolve(self, module: str, name: str) -> Resolved:
        raise AssertionError("a skimmer resolves nothing")

    def _note(self, pid: Any) -> None:
        self.persistent_ids.append(pid)

    def _push_global(self, module: str, name: str) -> None:
        module, name = self._named(module, name)
        self.names[f"{module}.{name}"] = None
        self._push(self._known.get(f"{module}.{name}"))

    def _reduce(self) -> None:
        self._stack[-2:] = [None]

    def _new_object(self, keywords: bool = False) -> None:
        self._stack[-3 if keywords else -2 :] = [None]

    def _build(self) -> None:
        self._stack.pop()

    def _append(self, values: list[Any]) -> None:
        pass

    def _set_items(self, items: list[Any]) -> None:
        pass

    def _add_items(self) -> None:
        self._pop_mark()


def _describe(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(named, '__module__', '?')}.{named.__qualname__}"


def _not_allowed(value: Any, what: str) -> str:
    name = _describe(value)
    return (
        f"GLOBAL {name} is not allowed to be {what} by a file. If you trust this class/function, use "
        f"`torch.serialization.add_safe_globals([{name}])`."
    )


def _constant(value: Any) -> Callable[[Unpickler], None]:
    return lambda machine: machine._push(value)


def _fresh(make: Callable[[], Any]) -> Callable[[Unpickler], None]:
    return lambda machine: machine._push(make())


def _number(layout: str) -> Callable[[Unpickler], None]:
    return lambda machine: machine._push(machine._unpack(layout))


def _counted(layout: str, make: Callable[[Unpickler, bytes], Any]) -> Callable[[Unpickler], None]:
    """A value behind its own length."""
    return lambda machine: machine._push(make(machine, machine._read(machine._unpack(layout))))


def _parsed_line(make: Callable[[Unpickler, bytes], Any]) -> Callable[[Unpickler], None]:
    return lambda machine: machine._push(make(machine, machine._line()))


def _put(index: Callable[[Unpickler], int]) -> Callable[[Unpickler], None]:
    def handler(machine: Unpickler) -> None:
        machine._memo[index(machine)] = machine._stack[-1]

    return handler


def _get(index: Callable[[Unpickler], int]) -> Callable[[Unpickler], None]:
    return lambda machine: machine._push(machine._memo[index(machine)])


def _unicode(machine: Unpickler, data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _long(machine: Unpickler, data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _quoted(machine: Unpickler, line: bytes) -> Any:
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in b"\"'":
        raise pickle.UnpicklingError("the STRING opcode argument must be quoted")
    return machine._text(line[1:-1].decode("ascii").encode("ascii").decode("unicode_escape").encode("latin-1"))


def _global_line(machine: Unpickler) -> None:
    module, name = machine._line().decode("utf-8"), machine._line().decode("utf-8")
    machine._push_global(module, name)


def _byte(machine: Unpickler) -> int:
    return machine._read(1)[0]


def _word(machine: Unpickler) -> int:
    return machine._unpack("<I")


def _line_index(machine: Unpickler) -> int:
    return int(machine._line())


_HANDLERS: dict[bytes, Callable[[Unpickler], None]] = {
    pickle.PROTO: Unpickler._proto,
    pickle.FRAME: lambda machine: machine._read(8) and None,
    pickle.MARK: Unpickler._mark,
    pickle.POP: Unpickler._pop,
    pickle.POP_MARK: lambda machine: machine._pop_mark() and None,
    pickle.DUP: lambda machine: machine._push(machine._stack[-1]),
    pickle.NONE: _constant(None),
    pickle.NEWTRUE: _constant(True),
    pickle.NEWFALSE: _constant(False),
    pickle.INT: Unpickler._int_line,
    pickle.LONG: _parsed_line(lambda machine, line: int(line.rstrip(b"L"))),
    pickle.FLOAT: _parsed_line(lambda machine, line: float(line)),
    pickle.BININT: _number("<i"),
    pickle.BININT1: _number("<B"),
    pickle.BININT2: _number("<H"),
    pickle.BINFLOAT: _number(">d"),
    pickle.LONG1: _counted("<B", _long),
    pickle.LONG4: _counted("<I", _long),
    pickle.STRING: _parsed_line(_quoted),
    pickle.BINSTRING: _counted("<I", Unpickler._text),
    pickle.SHORT_BINSTRING: _counted("<B", Unpickler._text),
    pickle.UNICODE: _parsed_line(lambda machine, line: line.decode("raw-unicode-escape")),
    pickle.BINUNICODE: _counted("<I", _unicode),
    pickle.SHORT_BINUNICODE: _counted("<B", _unicode),
    pickle.BINUNICODE8: _counted("<Q", _unicode),
    pickle.BINBYTES: _counted("<I", lambda machine, data: data),
    pickle.SHORT_BINBYTES: _counted("<B", lambda machine, data: data),
    pickle.BINBYTES8: _counted("<Q", lambda machine, data: data),
    pickle.BYTEARRAY8: _counted("<Q", lambda machine, data: bytearray(data)),
    pickle.EMPTY_LIST: _fresh(list),
    pickle.EMPTY_DICT: _fresh(dict),
    pickle.EMPTY_SET: _fresh(set),
    pickle.EMPTY_TUPLE: _constant(()),
    pickle.LIST: Unpickler._list_of_mark,
    pickle.DICT: Unpickler._dict_of_mark,
    pickle.FROZENSET: Unpickler._frozenset_of_mark,
    pickle.TUPLE: lambda machine: machine._push(tuple(machine._pop_mark())),
    pickle.TUPLE1: lambda machine: machine._tuple_of(1),
    pickle.TUPLE2: lambda machine: machine._tuple_of(2),
    pickle.TUPLE3: lambda machine: machine._tuple_of(3),
    pickle.APPEND: lambda machine: machine._append([machine._stack.pop()]),
    pickle.APPENDS: lambda machine: machine._append(machine._pop_mark()),
    pickle.SETITEM: Unpickler._one_item,
    pickle.SETITEMS: lambda machine: machine._set_items(machine._pop_mark()),
    pickle.ADDITEMS: lambda machine: machine._add_items(),
    pickle.PUT: _put(_line_index),
    pickle.BINPUT: _put(_byte),
    pickle.LONG_BINPUT: _put(_word),
    pickle.MEMOIZE: _put(lambda machine: len(machine._memo)),
    pickle.GET: _get(_line_index),
    pickle.BINGET: _get(_byte),
    pickle.LONG_BINGET: _get(_word),
    pickle.GLOBAL: _global_line,
    pickle.STACK_GLOBAL: lambda machine: machine._stack_global(),
    pickle.REDUCE: lambda machine: machine._reduce(),
    pickle.NEWOBJ: lambda machine: machine._new_object(),
    pickle.NEWOBJ_EX: lambda machine: machine._new_object(keywords=True),
    pickle.BUILD: lambda machine: machine._build(),
}
