"""torch.compile: a call traced once, then replayed without its Python.

The second call with the same guards is traced: it is recorded as usual, into a program of its own, which becomes a `Replay`
(`_replay.py`). Later calls record that as one operation. A call that observes a value, or that keeps new tensors where the
trace cannot see them, is not replayed: it stays recorded eager, and `torchlike.explain()` says why.
"""
from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, overload

import numpy as np

from . import _autocast, _leaves, _plainly
from ._core import dtype as dt
from ._core import history, precision, program
from ._core.device import default_device
from ._core.garbage import all_known
from ._core.grad_mode import mode
from ._core.graph import AccumulateGrad
from ._core.layout import Layout, contiguous
from ._core.traces import is_clean
from ._guarded import Guards, sameness, tensors_at
from ._replay import Replay, flatten, unflatten
from ._tensor import Tensor, _new
from ._tracing import Before, Boundary, CallCapture, NotReplayable, Outdated, SharedMemory, holder_of, objects_of, tensor_classes
from ._watch import Watch
from .nn.modules.module import Module

BACKENDS = ("cudagraphs", "inductor", "openxla", "tvm")  # those of torch's that programs choose; XLA serves them all
FOR_DEBUGGING = ("eager", "eager_noexcept", "eager_debug", "aot_eager", "aot_eager_decomp_partition", "aot_eager_default_partitioner", "pre_dispatch_eager",
                  "aot_ts", "ts", "openxla_eval", "invoke_subgraph")
_Called = TypeVar("_Called", bound=Callable)
_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
MOST_ENTRIES = 8  # different guards of one function, as torch's recompile limit


class _Running(threading.local):
    depth = 0  # compiled functions whose Python runs now: torch.compiler.is_compiling


class _Stance:
    name = "default"  # torch.compiler.set_stance
    disabled = os.environ.get("TORCH_COMPILE_DISABLE") == "1"  # torch._dynamo.config.disable


running, stance = _Running(), _Stance()
ALL: weakref.WeakSet[Compiled] = weakref.WeakSet()  # torch.compiler.reset forgets their replays


_NO_ARGUMENTS = flatten(((), {}), [])


def _lies(layout: Layout | None) -> Layout | None:
    """A layout without the place where it begins: calls on one batch of a tensor after the other are the same call."""
    if layout is None:
        return None
    own = contiguous(layout.shape)
    return None if layout.strides == own.strides else layout._replace(offset=0)


def _guard_of(x, offset: bool = False):
    if isinstance(x, Tensor):
        if x._sparse:
            raise NotReplayable("a sparse tensor")
        x._current()
        if x._unplaced:
            x._find_place()
        return (x._value.aval, x.requires_grad, x._layout if offset else _lies(x._layout), x.__class__)
    if isinstance(x, np.ndarray):
        raise NotReplayable("a NumPy array as an argument")
    return sameness(x)


def _guards_of(leaves: list, offset: bool) -> tuple:
    return (*[_guard_of(x, offset) for x in leaves], _sharing(leaves)) if leaves else ()


def _sharing(leaves: list) -> tuple | None:
    """Which arguments share memory with one before them; None where all have their own."""
    holders = [id(holder_of(x)) for x in leaves if isinstance(x, Tensor)]
    return None if len(set(holders)) == len(holders) else tuple(map(holders.index, holders))


def _somebody_follows() -> bool:
    """Whether a mode or a hook of this thread wants to see each operation."""
    return bool(_plainly.state.modes or _leaves.state.stack or mode.saved_hooks or mode.watchers)


# -- the compiled function -----------------------------------------------------------------------------------------------


class Refusal(str):
    """Why a call cannot be replayed, of a function that has to be."""


class Compiled:
    """A function with its replays by guards."""

    def __init__(self, function: Callable, name: str, owner: Module | None, fullgraph: bool):
        self.function, self.name, self.fullgraph = function, name, fullgraph
        self.entries: dict = {}
        self.guards: list[Guards] = []  # each trace adds what the earlier ones did not read
        self.modules = [m for m in (owner, getattr(function, "__self__", None)) if isinstance(m, Module)]
        if self.modules:
            self.guards.append(Guards())
            self.guards[0].add_modules(self.modules)
        self.offsets = False  # whether a call asked where in its memory a tensor begins
        self.reason = ""  # why the last call that stayed eager did
        self.watched_grads: list[Tensor] = []  # those whose `.grad` being there or not decides what a call does
        ALL.add(self)

    def _state(self) -> tuple:
        """What lies outside the arguments and the traces took for granted."""
        autocast = tuple(_autocast.state.enabled.items()) if _autocast.active[0] else ()
        modes = mode.enabled, mode.inference, mode.anomaly, autocast, dt.get_default_dtype(), default_device(), precision.permitted
        return *modes, *[g.key() for g in self.guards]

    def __call__(self, *args, **kwargs):
        if stance.disabled and self.fullgraph and stance.name != "force_eager":
            raise RuntimeError(f"torch.compile with fullgraph=True found no compiled frames. Skipped frames:\n  - {self.name}: Dynamo tracing is disabled")
        if program.state.capture is not None or not is_clean() or stance.disabled or stance.name == "force_eager" or _somebody_follows():
            return self.function(*args, **kwargs)
        leaves: list = []
        structure = flatten((args, kwargs), leaves) if args or kwargs else _NO_ARGUMENTS
        try:
            key = (structure, _guards_of(leaves, self.offsets), self._state(), tuple([t._grad is None for t in self.watched_grads]) if self.watched_grads else ())
        except NotReplayable as e:
            self._stays_eager(str(e), self.fullgraph)
            return self._called(args, kwargs)
        try:
            entry = self.entries.get(key)
        except TypeError:  # an unhashable key of a dictionary argument
            return self._called(args, kwargs)
        if isinstance(entry, Replay):
            if not entry.meets(leaves):
                try:
                    return entry(leaves)
                except Outdated as e:
                    self.entries[key] = "seen"
                    history.fallback(self.name, str(e))
                    return self._called(args, kwargs)
            history.fallback(self.name, "an argument shares memory with a tensor from outside")
        elif entry == "seen":
            return self._trace(key, structure, leaves)
        elif entry.__class__ is Refusal:
            self._stays_eager(entry, True)
        elif entry is None:
            if self.entries and stance.name != "default":
                if stance.name == "fail_on_recompile":
                    raise RuntimeError("Detected recompile when torch.compile stance is 'fail_on_recompile'. "
                                       f"function name: '{self.name}'; its guards:\n{key[1:]}")
                return self.function(*args, **kwargs)
            if len(self.entries) < MOST_ENTRIES:
                self.entries[key] = "seen"
            else:
                history.fallback(self.name, f"more than {MOST_ENTRIES} different guards")
        return self._called(args, kwargs)

    def _called(self, args: tuple, kwargs: dict) -> Any:
        """The function's own Python, as part of a compiled call."""
        running.depth += 1
        try:
            return self.function(*args, **kwargs)
        finally:
            running.depth -= 1

    def trace(self, args: tuple, kwargs: dict) -> Replay | str:
        """Call the function, traced at once: its replay, or the reason why there is none."""
        leaves: list = []
        structure = flatten((args, kwargs), leaves) if args or kwargs else _NO_ARGUMENTS
        try:
            key = (structure, _guards_of(leaves, self.offsets), self._state(), ())
        except NotReplayable as e:
            self._called(args, kwargs)
            return str(e)
        self._trace(key, structure, leaves)
        return next((made for made in self.entries.values() if isinstance(made, Replay)), self.reason)

    @all_known()
    def _trace(self, key, structure, leaves: list):
        program.flush("torch.compile")
        tensors, functions = objects_of(tensor_classes(), [FunctionType])
        before = Before(tensors)
        program.flush("torch.compile")
        shown = [self._bounded(x) for x in leaves]
        args, kwargs = unflatten(structure, iter(shown))
        watch = Watch((args, kwargs), functions)
        del tensors, functions  # and what their closures hold
        capture = program.state.capture = CallCapture()
        capture.seal(before.values())
        prog, limit = program.state.program, program.state.limit
        program.state.limit = 1 << 30
        refuse = self.fullgraph
        try:
            with watch:
                result = self._called(args, kwargs)
            if watch.reason is None and self._state() != key[2]:
                watch.reason = "it changes what it goes by"
            capture.reason = capture.reason or watch.reason
            if capture.reason is None:
                replay = Replay(self.name, leaves, shown, before, watch.tensors, result, capture, prog)
                replay.boundary = {x._edge: i for i, x in enumerate(shown) if isinstance(x, Tensor) and isinstance(x._edge, (Boundary, AccumulateGrad))}
                if capture.reason is not None:
                    raise NotReplayable(capture.reason)
                self._refuse_shared(leaves, watch, replay)
                if capture.offsets and not self.offsets:  # what was traced before did not go by that
                    self.offsets, key = True, (key[0], _guards_of(leaves, True), *key[2:])
                    self.entries.clear()
                key = self._learned(key, watch, replay, before)
                replay.named = [*(x for x in leaves if not isinstance(x, Tensor)), *(x for g in self.guards for x in g.objects())]
                self.entries[key] = replay
        except NotReplayable as e:
            capture.reason, refuse = str(e), self.fullgraph and not isinstance(e, SharedMemory)
        finally:
            program.state.capture, program.state.limit = None, limit
            capture.unseal()
        for x, bounded in zip(leaves, shown):
            if bounded is not x and bounded._written:
                capture.reason, refuse = "an in-place write to an argument that is part of a graph", False
                x._assign(bounded)
        if capture.reason is not None:
            self.entries[key] = Refusal(capture.reason) if refuse else "eager"
            self._stays_eager(capture.reason, refuse)
        return result

    def _refuse_shared(self, leaves: list, watch: Watch, replay: Replay) -> None:
        """Where an argument is a tensor from outside as well, nobody knows which of the two the call meant."""
        given = {id(holder_of(x)) for x in leaves if isinstance(x, Tensor)}
        if not given:
            return
        outside = [t for place in watch.reads() for t in tensors_at(place)]
        outside += [t for m in (*self.modules, *watch.modules.values()) for t in (*m.parameters(), *m.buffers())]
        outside += [t for step in replay.steps for t in step.updated]
        if any(id(holder_of(t)) in given for t in outside) or replay.meets(leaves):
            raise SharedMemory("an argument shares memory with a tensor from outside")

    def _learned(self, key: tuple, watch: Watch, replay: Replay, before: Before) -> tuple:
        """The key of this call, where it turned out that more matters: what its Python read, which tensors it read, and whether some have
        a `.grad`. Earlier traces went by none of that, so they hold for what is there now."""
        learned = Guards()
        known = set().union(*(g.known for g in self.guards))
        learned.add_modules(watch.modules.values(), known)
        for place in watch.reads():
            learned.add(place, known)
        learned.add_tensors([x for kind, x in replay.inputs if kind == "tensor"], known)
        states = ()
        if learned.known:
            self.guards.append(learned)
            states = learned.key(),
        asked = set(map(id, self.watched_grads))
        new = [t for t in replay.watched if id(t) not in asked]
        self.watched_grads += new
        absent = tuple([before.grads[id(t)] is None for t in new])

        def extended(k: tuple) -> tuple:
            return *k[:2], k[2] + states, k[3] + absent
        self.entries = {extended(k): entry for k, entry in self.entries.items()}
        return extended(key)

    def _stays_eager(self, reason: str, refuse: bool) -> None:
        self.reason = reason
        history.fallback(self.name, reason)
        if refuse:
            raise RuntimeError(f"torch.compile(fullgraph=True) of {self.name}: {reason}")

    @staticmethod
    def _bounded(x):
        if not isinstance(x, Tensor) or x._edge is None or isinstance(x._edge, AccumulateGrad):
            return x
        out = _new(Tensor)
        out._value, out._layout, out._edge = x._current(), x._layout, Boundary(x)
        return out


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


def _check_choice(backend: Any, mode: str | None, options: dict | None) -> None:
    """A misspelled choice is an error, although all lead to the same compiler."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if backend == "inductor" and mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if isinstance(backend, str) and backend not in BACKENDS + FOR_DEBUGGING:
        from ._dynamo.exc import InvalidBackend
        raise InvalidBackend(backend)


@overload
def compile(model: _Called, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor", mode: str | None = None,
            options: dict | None = None, disable: bool = False) -> _Called: ...
@overload
def compile(model: None = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor", mode: str | None = None,
            options: dict | None = None, disable: bool = False) -> Callable[[_Called], _Called]: ...
def compile(model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "inductor", mode: str | None = None,
            options: dict | None = None, disable: bool = False) -> Any:
    """A function or module whose calls are traced once and replayed while their guards hold.

    Guards: shapes, dtypes and requires_grad of tensor arguments, other arguments by value, grad mode, and the
    variables, attributes and containers that the call's Python read, training flags of modules among them. `fullgraph=True` raises where a call cannot be
    replayed. The other options of torch.compile choose among its back ends; XLA is the only one here. With TORCHDYNAMO_DISABLE=1 in the
    environment the function or module itself is returned, with TORCH_COMPILE_DISABLE=1 calls run as they are.
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable)
    if disable:
        return model
    _check_choice(backend, mode, options)
    switched_off = os.environ.get("TORCHDYNAMO_DISABLE") == "1"
    if isinstance(model, Module):
        return model if switched_off else OptimizedModule(model, fullgraph)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if switched_off:
        return model
    compiled = Compiled(model, getattr(model, "__name__", "function"), None, fullgraph)

    @functools.wraps(model)
    def run(*args, **kwargs):
        return compiled(*args, **kwargs)
    run.compiled, run._torchdynamo_orig_callable = compiled, model  # the second is where libraries look for the function
    return run
