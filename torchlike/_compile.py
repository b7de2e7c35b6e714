"""torch.compile: a call traced once, then replayed without its Python.

The second call with the same guards is traced: it is recorded as usual, into a program of its own, which becomes a `Replay`
(`_replay.py`). Later calls record that as one operation. A call that observes a value, or that keeps new tensors where the
trace cannot see them, is not replayed: it stays recorded eager, and `torchlike.explain()` says why.
"""
from __future__ import annotations

import dis
import functools
import operator
import threading
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from ._core import dtype as dt
from ._core import history, program
from ._core.grad_mode import mode
from ._core.graph import AccumulateGrad
from ._replay import Replay, flatten, unflatten
from ._tensor import Tensor, _new
from ._tracing import Before, Boundary, Capture, NotReplayable
from .nn.modules.module import Module

MOST_ENTRIES = 8  # different guards of one function, as torch's recompile limit


class _Running(threading.local):
    depth = 0  # compiled functions whose Python runs now: torch.compiler.is_compiling


class _Stance:
    name = "default"  # torch.compiler.set_stance


running, stance = _Running(), _Stance()
ALL: weakref.WeakSet[Compiled] = weakref.WeakSet()  # torch.compiler.reset forgets their replays


_NO_ARGUMENTS = flatten(((), {}), [])
_NUMBERS = (int, float, bool, str)
_PLAIN = (*_NUMBERS, complex, bytes, type(None), dt.dtype)


def _guard_of(x):
    if isinstance(x, Tensor):
        if x._sparse:
            raise NotReplayable("a sparse tensor")
        x._current()
        return (x._value.aval, x.requires_grad, x._layout, x.__class__)
    return (x.__class__, x) if isinstance(x, _PLAIN) else id(x)


# -- the compiled function -----------------------------------------------------------------------------------------------


class Compiled:
    """A function with its replays by guards."""

    def __init__(self, function: Callable, name: str, owner: Module | None, fullgraph: bool):
        self.function, self.name, self.fullgraph = function, name, fullgraph
        self.entries: dict = {}
        f = getattr(function, "__wrapped__", function)
        code = getattr(f, "__code__", None)
        self.names, self.globals, self.cells = ((), {}, ()) if code is None else (_global_names(code), f.__globals__, f.__closure__ or ())
        seen = [m for m in (owner, getattr(f, "__self__", None), *self._outside()) if isinstance(m, Module)]
        modules = [m for top in seen for m in top.modules()]
        self.attributes = [d for m in modules for d in (m.__dict__, m._parameters, m._buffers)]  # what the function may read there
        # how many attributes each module has; where the plain ones are, their names, their values, and these as a key
        self.watched: tuple[list[int], list[dict], list[str], list, tuple] = [], [], [], [], ()
        self.watched_grads: list[Tensor] = []  # those whose `.grad` being there or not decides what a call does
        ALL.add(self)

    def _outside(self) -> list:
        """The variables from outside that the function's code names."""
        try:
            held = [c.cell_contents for c in self.cells]
        except ValueError:  # some have no value yet
            held = [c.cell_contents for c in self.cells if _filled(c)]
        return [*map(self.globals.get, self.names), *held]

    def _state(self) -> tuple:
        """What lies outside the arguments and the trace took for granted: numbers, and which objects have those names."""
        outside = tuple([v if v.__class__ in _NUMBERS else id(v) for v in self._outside()])
        return mode.enabled, dt.get_default_dtype(), outside, self._flags()

    def _flags(self) -> tuple:
        """The modules' plain attributes and which tensors they have, compared by identity first: they seldom change."""
        sizes, owners, names, before, flags = self.watched
        if sizes != list(map(len, self.attributes)):
            plain = [(own, k) for own in self.attributes for k, v in own.items() if v.__class__ in _PLAIN or isinstance(v, Tensor)]
            sizes, owners, names, before = list(map(len, self.attributes)), [own for own, _ in plain], [k for _, k in plain], []
        now = list(map(dict.get, owners, names))
        if len(now) != len(before) or not all(map(operator.is_, now, before)):
            flags = tuple([x if x.__class__ in _PLAIN else id(x) for x in now])
        self.watched = sizes, owners, names, now, flags
        return flags

    def __call__(self, *args, **kwargs):
        if program.state.capture is not None or stance.name == "force_eager":
            return self.function(*args, **kwargs)
        compiling = running.depth
        running.depth = compiling + 1
        try:
            return self._guarded(args, kwargs)
        finally:
            running.depth = compiling

    def _guarded(self, args: tuple, kwargs: dict):
        leaves: list = []
        structure = flatten((args, kwargs), leaves) if args or kwargs else _NO_ARGUMENTS
        try:
            key = (structure, tuple(map(_guard_of, leaves)), self._state(), tuple([t._grad is None for t in self.watched_grads]))
        except NotReplayable as e:
            self._stays_eager(str(e))
            return self.function(*args, **kwargs)
        try:
            entry = self.entries.get(key)
        except TypeError:  # an unhashable key of a dictionary argument
            return self.function(*args, **kwargs)
        if isinstance(entry, Replay):
            return entry(leaves)
        if entry is None and self.entries and stance.name != "default":
            if stance.name == "fail_on_recompile":
                raise RuntimeError("Detected recompile when torch.compile stance is 'fail_on_recompile'. "
                                   f"function name: '{self.name}'; its guards:\n{key[1:]}")
            running.depth -= 1
            return self.function(*args, **kwargs)
        if entry is None and len(self.entries) >= MOST_ENTRIES:
            history.fallback(self.name, f"more than {MOST_ENTRIES} different guards")
            return self.function(*args, **kwargs)
        if entry == "seen":
            return self._trace(key, structure, leaves)
        self.entries.setdefault(key, "seen")
        return self.function(*args, **kwargs)

    def _trace(self, key, structure, leaves: list):
        program.flush("torch.compile")
        before = Before()
        program.flush("torch.compile")
        shown = [self._bounded(x) for x in leaves]
        args, kwargs = unflatten(structure, iter(shown))
        capture = program.state.capture = Capture()
        prog, limit = program.state.program, program.state.limit
        program.state.limit = 1 << 30
        try:
            result = self.function(*args, **kwargs)
            if capture.reason is None:
                replay = Replay(self.name, leaves, shown, before, result, capture, prog)
                replay.boundary = {x._edge: i for i, x in enumerate(shown) if isinstance(x, Tensor) and isinstance(x._edge, Boundary)}
                if capture.reason is not None:
                    raise NotReplayable(capture.reason)
                key = self._watching(key, replay.watched, before)
                self.entries[key] = replay
        except NotReplayable as e:
            capture.reason = str(e)
        finally:
            program.state.capture, program.state.limit = None, limit
        for x, bounded in zip(leaves, shown):
            if bounded is not x and bounded._version:
                capture.reason = "an in-place write to an argument that is part of a graph"
                x._assign(bounded)
        if capture.reason is not None:
            self.entries[key] = "eager"
            self._stays_eager(capture.reason)
        return result

    def _watching(self, key: tuple, watched: list[Tensor], before: Before) -> tuple:
        """The key of this call, where it turned out that more tensors' `.grad` being there or not matters."""
        known = set(map(id, self.watched_grads))
        new = [t for t in watched if id(t) not in known]
        if not new:
            return key
        self.watched_grads += new
        self.entries.clear()
        return *key[:-1], tuple([before.grads[id(t)] is None for t in self.watched_grads])

    def _stays_eager(self, reason: str) -> None:
        history.fallback(self.name, reason)
        if self.fullgraph:
            raise RuntimeError(f"torch.compile(fullgraph=True) of {self.name}: {reason}")

    @staticmethod
    def _bounded(x):
        if not isinstance(x, Tensor) or x._edge is None or isinstance(x._edge, AccumulateGrad):
            return x
        out = _new(Tensor)
        out._value, out._layout, out._edge = x._current(), x._layout, Boundary(x)
        return out


def _global_names(code: CodeType) -> tuple[str, ...]:
    return tuple(dict.fromkeys(i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"))


def _filled(cell) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that has no value yet
        return False


class OptimizedModule(Module):
    """A compiled module: the original's parameters and attributes, calls through the compiled forward."""

    def __init__(self, module: Module, fullgraph: bool):
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = Compiled(module.__call__, type(module).__name__, module, fullgraph)

    def forward(self, *args, **kwargs):
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str):
        return super().__getattr__(name) if name == "_orig_mod" else getattr(self._orig_mod, name)

    def train(self, mode: bool = True):
        self._orig_mod.train(mode)
        return super().train(mode)


def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor", mode: str | None = None,
            options: dict | None = None, disable: bool = False) -> Any:
    """A function or module whose calls are traced once and replayed while their guards hold.

    Guards: shapes, dtypes and requires_grad of tensor arguments, other arguments by value, grad mode, training flags and
    plain numbers of the modules and variables the function refers to. `fullgraph=True` raises where a call cannot be
    replayed. The other options of torch.compile choose among its back ends; XLA is the only one here.
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable)
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    compiled = Compiled(model, getattr(model, "__name__", "function"), None, fullgraph)

    @functools.wraps(model)
    def run(*args, **kwargs):
        return compiled(*args, **kwargs)
    run.compiled = compiled
    return run
