"""What the Python of a traced call reads and does outside of this library.

While the call runs, each line of its functions is looked at before it runs: variables and attributes that the line names, and which
were there before the call, become guards of its replays (`_guarded.py`). A call that changes one of them, or that calls what has an
effect or another answer every time (printing, clocks, Python's and NumPy's random numbers), cannot be replayed.
"""
from __future__ import annotations

import dis
import functools
import gc
import inspect
import logging
import os
import random
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from ._core import history
from ._core.rng import Generator
from ._guarded import CONTAINERS, LONG, MISSING, PLAIN, content, held_by, identity, value_at
from ._tensor import Tensor
from ._tracing import objects_of, tensor_classes
from .nn.modules.module import Module
from .optim.optimizer import Optimizer

_HERE = os.path.dirname(__file__) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_LIBRARIES = tuple(os.path.dirname(os.path.dirname(np.__file__)) + os.sep + name + os.sep for name in ("numpy", "jax", "jaxlib", "pallas_kernels"))
_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)
_EFFECTS = frozenset(["time", "_io", "io", "posix", "nt", "_socket", "datetime"])  # C functions of these modules
_BUILTIN_EFFECTS = frozenset(["print", "input", "open"])
_STARTS = {"LOAD_GLOBAL": "global", "LOAD_NAME": "global", "STORE_GLOBAL": "global", "DELETE_GLOBAL": "global", "LOAD_DEREF": "cell",
           "STORE_DEREF": "cell", "LOAD_FAST": "local", "LOAD_FAST_CHECK": "local", "LOAD_FAST_BORROW": "local"}
_PAIRS = {"LOAD_FAST_LOAD_FAST": 2, "LOAD_FAST_BORROW_LOAD_FAST_BORROW": 2, "STORE_FAST_LOAD_FAST": 1}  # how many of the two variables they read, from Python 3.13 on
_ATTRIBUTES = frozenset(["LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"])
_BY_NAME = frozenset(["getattr", "hasattr", "setattr", "vars", "map", "filter", "sorted", "max", "min", "operator"])
_BETWEEN = frozenset(["COPY", "PUSH_NULL", "NOP", "PRECALL", "CACHE", "EXTENDED_ARG"])
_COMPUTED = (property, GetSetDescriptorType)

Chain = tuple[str, str, tuple[tuple[str, Any], ...]]  # where a variable lies, its name, and the attributes and constant items taken of it


@functools.cache
def _is_library(file: str) -> bool:
    return (file.startswith((_HERE, "<frozen", *_LIBRARIES))
            or file.startswith(_STANDARD) and "site-packages" not in file and "dist-packages" not in file)


def _is_package(x: Any) -> bool:
    """Whether x is a module that nobody edits while a program runs."""
    return isinstance(x, ModuleType) and _is_library(getattr(x, "__file__", None) or "<frozen")


@functools.lru_cache(4096)
def _lines(code: CodeType) -> dict[int, list[Chain]] | None:
    """The chains `x.a.b["c"]` of each line of a function; None for the functions of libraries."""
    if _is_library(code.co_filename):
        return None
    found: dict[int, dict[Chain, None]] = {}
    start: tuple[str, str, int] | None = None
    path: list[tuple[str, Any]] = []
    constant: Any = MISSING

    def finish() -> None:
        nonlocal start
        if start is not None:
            found.setdefault(start[2], {})[start[0], start[1], tuple(path)] = None
        start = None
        path.clear()

    for i in dis.get_instructions(code):
        line = i.positions.lineno or code.co_firstlineno
        if i.opname in _STARTS:
            finish()
            start = _STARTS[i.opname], i.argval, line
        elif i.opname in _PAIRS:
            for name in i.argval[-_PAIRS[i.opname]:]:
                finish()
                start = "local", name, line
        elif start is not None and i.opname in _ATTRIBUTES:
            path.append(("attribute", i.argval))
        elif start is not None and i.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constant = i.argval
            continue
        elif start is not None and constant is not MISSING and (i.opname == "BINARY_SUBSCR" or i.opname == "BINARY_OP" and i.argrepr == "[]"):
            path.append(("item", constant))
        elif i.opname not in _BETWEEN:
            finish()
        constant = MISSING
    finish()
    return {line: list(chains) for line, chains in found.items()}


def _random_states() -> tuple:
    return random.getstate(), np.random.get_state()[1:3]


def _same_states(a: tuple, b: tuple) -> bool:
    return a[0] == b[0] and a[1][1] == b[1][1] and np.array_equal(a[1][0], b[1][0])


def _containers(x: Any) -> Iterator[Any]:
    if isinstance(x, CONTAINERS):
        yield x
        for y in x.values() if isinstance(x, dict) else x:
            yield from _containers(y)


def _function_of(x: Any) -> FunctionType | None:
    """The function that is a method, or computes a property; of others Python makes a new object whenever somebody asks."""
    f = x.fget if isinstance(x, property) else x
    return f if isinstance(f, FunctionType) else None


def _holds(x: Any) -> bool:
    """Whether x is an object with a state of its own, other than those whose changes replays repeat."""
    return getattr(x, "__dict__", None).__class__ is dict and not isinstance(x, (Module, Tensor, Optimizer, Generator, FunctionType, ModuleType, type))


class Watch:
    """Watches the calling thread inside of a `with` block, where the collector knows no object that was there before."""

    def __init__(self, arguments: Any, functions: list[FunctionType]) -> None:
        self.old: dict[int, Any] = {}  # objects that were there before for certain
        self.given = set(map(id, _containers(arguments)))  # others at each call
        self.places: dict[tuple, tuple] = {}  # by identity: places, and what was there
        self.held: dict[int, tuple] = {}  # objects whose methods may change them, and what they held
        self.modules: dict[int, Module] = {}
        self.functions: dict[CodeType, list[FunctionType]] = defaultdict(list)  # the program's own
        for f in functions:
            if not _is_library(f.__code__.co_filename):
                self.functions[f.__code__].append(f)
        self.entered: set[tuple[type, CodeType]] = set()  # classes and functions of theirs that were called
        self.tensors: list[Tensor] = []  # once the call is over: the new ones
        self.reason: str | None = None
        self.loose = False

    def __enter__(self) -> Watch:
        self._states = _random_states()
        gc.freeze()  # what gc.get_objects() gives from here on is new
        self._outer = sys.gettrace(), sys.getprofile()
        sys.setprofile(self._profile)
        sys.settrace(self._trace)
        return self

    def __exit__(self, *exc: object) -> None:
        trace, profile = self._outer
        sys.settrace(trace)
        sys.setprofile(profile)
        try:
            gc.collect(1)  # what is garbage is nobody's
            self.tensors = objects_of(tensor_classes())[0]
        finally:
            gc.unfreeze()
        self.old.clear()
        self.functions.clear()
        self.entered.clear()
        if not _same_states(self._states, _random_states()):
            self._refuse("it draws Python's or NumPy's random numbers")
        for place, was in self.places.values():
            if value_at(place) != was:
                self._refuse(f"it changes {_named(place)}")
        for x, was in self.held.values():
            if content(vars(x)) != was:
                self._refuse(f"it changes a {type(x).__name__}")

    def reads(self) -> Iterable[tuple]:
        """The places that replays go by."""
        return [place for place, _ in self.places.values() if not (place[0] == "content" and id(place[1]) in self.given)]

    def _existed(self, x: Any) -> bool:
        """Whether x was there before."""
        if id(x) not in self.old:
            if not gc.is_tracked(x) or any(x is y for y in gc.get_objects()):
                return False
            if not isinstance(x, Tensor):  # a reference to a tensor would keep its results alive
                self.old[id(x)] = x
        return True

    def _refuse(self, reason: str, frame: FrameType | None = None) -> None:
        where = "" if frame is None else f" at {history.shown((frame.f_code.co_filename, frame.f_lineno))}"
        self.reason = self.reason or reason + where

    # -- events of the interpreter -----------------------------------------------------------------------------------------

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code is logging.Logger.callHandlers.__code__:
            self._refuse("it logs")
        if _lines(frame.f_code) is None:
            return None
        if event == "call" and self.reason is None:
            self._enter(frame)
        return self._line

    def _enter(self, frame: FrameType) -> None:
        """A function of the program begins: it may be exchanged, as may what it consists of."""
        code = frame.f_code
        for f in self.functions.get(code, ()):
            self._add(("attribute", f, "__code__"))
            for name in ("__defaults__", "__kwdefaults__"):
                if getattr(f, name) is not None:
                    self._add(("attribute", f, name))
            if f.__kwdefaults__:
                self._add(("content", f.__kwdefaults__))
        if code.co_argcount and (x := frame.f_locals.get(code.co_varnames[0], MISSING)) is not MISSING:
            cls = x if isinstance(x, type) else type(x)
            if (cls, code) not in self.entered:
                self.entered.add((cls, code))
                for name in {name for c in cls.__mro__ for name, found in vars(c).items() if getattr(_function_of(found), "__code__", None) is code}:
                    self._method(cls, name)

    def _method(self, cls: type, name: str) -> None:
        """A method or property that the program wrote, and may write anew."""
        f = _function_of(inspect.getattr_static(cls, name, None))
        if f is not None and _lines(f.__code__) is not None and self._existed(cls):
            self._add(("attribute", cls, name))

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and self.reason is None:
            chains = (_lines(frame.f_code) or {}).get(frame.f_lineno, ())
            # then objects may be asked for other attributes than those that the line names
            self.loose = any(kind == "local" and name not in frame.f_locals or kind == "global" and name in _BY_NAME for kind, name, _ in chains)
            for kind, name, path in chains:
                self._follow(frame, kind, name, path)
        return self._line

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call" and self.reason is None and _lines(frame.f_code) is not None:
            owner = getattr(arg, "__self__", None)
            module = owner.__name__ if isinstance(owner, ModuleType) else getattr(owner if isinstance(owner, type) else type(owner), "__module__", "")
            if module in _EFFECTS or module == "builtins" and isinstance(owner, ModuleType) and arg.__name__ in _BUILTIN_EFFECTS:
                self._refuse(f"it calls {arg.__qualname__}", frame)

    # -- what a line reads -------------------------------------------------------------------------------------------------

    def _follow(self, frame: FrameType, kind: str, name: str, path: tuple) -> None:
        if kind == "global":
            if name not in frame.f_globals:
                return
            x = frame.f_globals[name]
            if _is_package(x):
                return
            outside = True
            self._add(("name", frame.f_globals, name))
        else:
            x = frame.f_locals.get(name, MISSING)
            cells = [c for c in self._cells(frame.f_code, name) if held_by(c) is x] if kind == "cell" else []
            for cell in cells:
                self._add(("cell", cell))
            outside = bool(cells) or self._existed(x) or id(x) in self.given
        for step, key in path:
            if not outside or x.__class__ in PLAIN or isinstance(x, Tensor):
                return
            self._meet(x, frame)
            x = self._attribute(x, key) if step == "attribute" else self._item(x, key)
        if outside:
            self._meet(x, frame)

    def _cells(self, code: CodeType, name: str) -> list:
        """The closure variables of that name of functions that were there before the call."""
        if name not in code.co_freevars:
            return []
        return [f.__closure__[code.co_freevars.index(name)] for f in self.functions.get(code, ()) if f.__closure__]

    def _meet(self, x: Any, frame: FrameType) -> None:
        """An object from outside that a line names."""
        if isinstance(x, Module):
            self.modules[id(x)] = x
        elif isinstance(x, np.ndarray) and x.size > LONG:
            self._refuse("it reads a NumPy array from outside", frame)
        elif isinstance(x, (*CONTAINERS, np.ndarray)):
            self._add(("content", x))
            if self.loose and isinstance(x, CONTAINERS) and len(x) <= LONG:
                for y in x.values() if isinstance(x, dict) else x:
                    self._meet_all_of(y)
        elif isinstance(x, _GENERATORS):
            self._refuse("it draws random numbers that are not torch's", frame)
        elif hasattr(type(x), "__next__"):
            self._refuse("it goes on with an iterator from outside", frame)
        elif self.loose or isinstance(x, Collection) and _is_library(getattr(sys.modules.get(type(x).__module__), "__file__", None) or "<frozen"):
            self._meet_all_of(x)  # what looks into it is not followed
        elif _holds(x):
            self.held.setdefault(id(x), (x, content(vars(x))))

    def _meet_all_of(self, x: Any) -> None:
        """What an object from outside holds, whatever it is asked for."""
        if _holds(x):
            self._add(("content", vars(x)))

    def _add(self, place: tuple) -> None:
        key = identity(place)
        if key not in self.places:
            self.places[key] = place, value_at(place)

    def _attribute(self, x: Any, name: str) -> Any:
        """x.name, where that is stored and not computed; MISSING else."""
        if _is_package(x):
            return MISSING
        of_class = inspect.getattr_static(x if isinstance(x, type) else type(x), name, MISSING)
        if isinstance(of_class, (property, FunctionType)):
            self._method(x if isinstance(x, type) else type(x), name)
        if isinstance(of_class, _COMPUTED):
            return MISSING
        own = None if isinstance(x, type) else getattr(x, "__dict__", None)
        places = (own, x._parameters, x._buffers, x._modules) if isinstance(x, Module) else (own,) if own.__class__ is dict else ()
        for d in places:
            if name in d:
                self._add(("name", d, name))
                return d[name]
        if of_class is MISSING:  # its class computes it, or the line is about to store it
            if places:
                self._add(("name", own, name))
                if not isinstance(x, Module):
                    self._add(("content", own))
        elif isinstance(of_class, MemberDescriptorType) or not (callable(of_class) or hasattr(type(of_class), "__get__")):
            self._add(("attribute", x, name))
            return getattr(x, name, MISSING)
        return MISSING

    def _item(self, x: Any, key: Any) -> Any:
        if x.__class__ in (list, tuple, dict):
            try:
                return x[key]
            except (LookupError, TypeError):
                return MISSING
        return MISSING


def _named(place: tuple) -> str:
    kind, *where = place
    if kind == "name":
        return f"'{where[1]}'"
    if kind == "attribute":
        return f"'{where[1]}' of a {type(where[0]).__name__}"
    return "a variable from outside" if kind == "cell" else f"a {type(where[0]).__name__} from outside"
