"""Checkpoints without a backward of their own: what a region saves is forgotten, and when a node asks for it, the region runs again and
saves it once more, in the same order (saved_tensors_hooks twice).

So the region's results and its other arguments may be of any kind, gradients flow through the graph of the first run, and
autocast and random numbers are as they were then.
"""
from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from torchlike import _autocast
from torchlike._core.grad_mode import mode
from torchlike._core.registry import Op
from torchlike._tensor import Tensor, apply
from torchlike.autograd.grad_mode import enable_grad
from torchlike.autograd.graph import packed_tensor, saved_tensors_hooks
from torchlike.ops.random import get_rng_state, set_rng_state


class CheckpointError(RuntimeError):
    """The second run of a region was not the first one again."""


class _Enough(BaseException):
    """Ends a second run that has saved all that the first one did; no business of the region's own handlers."""


class _Place:
    """Stands for a saved tensor in the graph."""

    __slots__ = ("tensor", "__weakref__")


_early_stop: list[bool] = []  # what blocks of set_checkpoint_early_stop say, the innermost last
_debug: list[bool | None] = []  # likewise of set_checkpoint_debug_enabled


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether second runs of the checkpoints made inside end as soon as all is there that was asked for, whatever `early_stop=` says."""
    _early_stop.append(enable)
    try:
        yield
    finally:
        _early_stop.pop()


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Whether errors of the checkpoints made inside list what ran, whatever `debug=` says; with None it is up to that."""
    _debug.append(enabled)
    try:
        yield
    finally:
        _debug.pop()


def _barrier(xp, *arrays):
    """The inputs again, in a way that XLA cannot see through: else it would undo the recomputation by sharing it."""
    import numpy as np
    if xp is np:
        return list(arrays)
    from jax import lax
    return list(lax.optimization_barrier(arrays))


BARRIER = Op("checkpoint_barrier", _barrier, shape=lambda *avals: [(a.shape, a.dtype) for a in avals], vjp=False)


@contextlib.contextmanager
def as_then(autocast: dict, random_state: Tensor | None) -> Iterator[None]:
    """Autocast and, where there is a state of it, the random numbers of another time."""
    before, numbers = _autocast.state.enabled, None if random_state is None else get_rng_state()
    _autocast.set_enabled(autocast)
    try:
        if random_state is not None:
            set_rng_state(random_state)
        yield
    finally:
        if numbers is not None:
            set_rng_state(numbers)
        _autocast.set_enabled(before)


def _kept(t: Tensor) -> Callable[[], Tensor]:
    """A tensor argument until the second run; an outer checkpoint or other hooks may keep it in their way."""
    return packed_tensor(t) if mode.saved_hooks else functools.partial(_same, t)


def _same(t: Tensor) -> Tensor:
    return t


def _afresh(tensors: list[Tensor]) -> list[Tensor]:
    """The arguments of a second run, each as much a leaf as it was."""
    if not tensors:
        return []
    made = apply(BARRIER, [t.detach() for t in tensors])
    for new, t in zip(made, tensors):
        if t.requires_grad and t.is_leaf:
            new.requires_grad_()
        elif t.requires_grad:
            new._edge, new._out = t._edge, t._out
    return made


def _facts(t: Tensor) -> dict[str, Any]:
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


_CHECKS: dict[str, Callable | None] = {"default": _facts, "none": None}


class _Region:
    """A checkpointed call."""

    def __init__(self, run: Callable, args: tuple, during: Any, check: Callable | None, early: bool, preserve: bool, debug: bool) -> None:
        self.run, self.during, self.check, self.early = run, during, check, early
        self.operations: list[str] | None = [] if debug else None  # of the first run
        self.ended = False  # whether the first run did: it may itself ask for gradients of what it saved
        self.places: list[weakref.ref] = []
        self.facts: list = []
        self.autocast, self.random_state = _autocast.state.enabled, get_rng_state() if preserve else None
        self.where = [i for i, a in enumerate(args) if isinstance(a, Tensor) and not a._sparse]
        self.tensors = [_kept(args[i]) for i in self.where]
        self.rest = [None if i in self.where else a for i, a in enumerate(args)]

    def pack(self, t: Tensor) -> _Place:
        place = _Place()
        self.places.append(weakref.ref(place))
        if self.check is not None:
            self.facts.append(self.check(t))
        return place

    def unpack(self, place: _Place) -> Tensor:
        if not hasattr(place, "tensor"):
            self.run_again()
            if not hasattr(place, "tensor"):
                raise CheckpointError("torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.")
        t = place.tensor
        del place.tensor  # a second backward computes it a third time
        return t

    def run_again(self) -> None:
        args = list(self.rest)
        for i, t in zip(self.where, _afresh([kept() for kept in self.tensors])):
            args[i] = t
        found: list = []
        operations: list[str] | None = None if self.operations is None else []

        def pack(t: Tensor) -> Tensor:
            t = t.detach()
            if len(found) == len(self.places):
                if not self.ended:
                    return t
                self._fail("torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass.", operations)
            place = self.places[len(found)]()
            if place is not None:
                place.tensor = t
            found.append(None if self.check is None else self.check(t))
            if self.early and len(found) == len(self.places):
                raise _Enough
            return t
        with (as_then(self.autocast, self.random_state), saved_tensors_hooks(pack, _same), enable_grad(), _listing(operations), self.during,
              contextlib.suppress(_Enough)):
            self.run(*args)
        self._compare(found, operations)

    def _compare(self, found: list, operations: list[str] | None) -> None:
        if len(found) != len(self.places):
            self._fail("torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                       f"Number of tensors saved during forward: {len(self.places)}\n"
                       f"Number of tensors saved during recomputation: {len(found)}.", operations)
        if self.check is None:
            return
        differ = [f"tensor at position {i}:\nsaved metadata: {before}\nrecomputed metadata: {now}"
                  for i, (before, now) in enumerate(zip(self.facts, found)) if before != now]
        if differ:
            self._fail("torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward "
                       "pass.\n" + "\n".join(differ), operations)

    def _fail(self, why: str, operations: list[str] | None) -> NoReturn:
        if self.operations is None:
            raise CheckpointError(f"{why}\nWith `debug=True` the differentiable operations of both runs are listed here.")
        first, second = (f"{len(names)}: {', '.join(names)}" for names in (self.operations, operations or []))
        raise CheckpointError("You are seeing this error because you passed `debug=True` to checkpoint and what is to be saved differs between the original "
                              f"forward and the recomputation.\n{why}\nDifferentiable operations of the original forward, {first}.\nThose of the "
                              f"recomputation, {second}.")


@contextlib.contextmanager
def _listing(operations: list[str] | None) -> Iterator[None]:
    """Inside, the names of differentiable operations go to the list, if there is one."""
    if operations is None:
        yield
        return
    before, mode.watchers = mode.watchers, (*mode.watchers, lambda node, values: operations.append(node.name()))
    try:
        yield
    finally:
        mode.watchers = before


def recomputed(run: Callable, args: tuple, context_fn: Callable, check: str, early_stop: bool, preserve: bool, debug: bool) -> Any:
    """run(*args), of which nothing is kept but its tensor arguments."""
    if check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {check}")
    before, during = context_fn()
    early_stop = _early_stop[-1] if _early_stop else early_stop
    debug = _debug[-1] if _debug and _debug[-1] is not None else debug
    region = _Region(run, args, during, _CHECKS[check], early_stop, preserve, debug)
    with saved_tensors_hooks(region.pack, region.unpack), _listing(region.operations), before:
        result = run(*args)
    region.ended = True
    return result
