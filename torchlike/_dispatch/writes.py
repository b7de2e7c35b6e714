"""In-place operations on tensors that dispatch, or of them: as the operator of PyTorch's that writes (`aten.add_.Tensor`).

A function's in-place form computes a new tensor and assigns it. While that goes on for a `Target`, the operation of the function's own
name is handed on as the one that writes; where no such operation came by, what was computed is copied into the target at the end.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from .._aten_schemas import overload
from .._core.grad_mode import mode
from .._exchange import exchange
from .._ops import OpOverload, aten
from .._ops import _overloads as all_overloads
from .._plainly import dispatching
from .._tensor import Tensor
from .held import Held, Seat, data_of, is_held

_SAME = {"multiply_": "mul_", "subtract_": "sub_", "divide_": "div_", "true_divide_": "div_", "clip_": "clamp_", "absolute_": "abs_", "negative_": "neg_"}
# What is handed on as it is called, where nothing has to be differentiated
STRAIGHT = frozenset("copy_ fill_ zero_ normal_ uniform_ bernoulli_ exponential_ random_ cauchy_ log_normal_ geometric_ masked_fill_ index_put_ index_add_ "
                     "index_fill_ index_copy_ scatter_ scatter_add_ masked_scatter_ set_ resize_ t_ transpose_ squeeze_ unsqueeze_".split())
NOT_WRITTEN = frozenset("requires_grad_ detach_ share_memory_ rename_ retain_grad_".split())
VIEW = ("torchlike: an in-place operation that is differentiated, on a view of a tensor whose class dispatches ({}). Write into the tensor itself, or use "
        "an operation that makes a new one.")


class Target:
    """What is written, by which function, and whether that was handed on."""

    __slots__ = ("tensor", "name", "done")

    def __init__(self, tensor: Tensor, name: str) -> None:
        self.tensor, self.name, self.done = tensor, _SAME.get(name, name), False

    def form(self, func: OpOverload, args: tuple) -> OpOverload | None:
        """The operator that writes what func computes, where this is the call that the target waits for."""
        if self.done or not args or args[0] is not self.tensor or func.overloadpacket.__name__ + "_" != self.name:
            return None
        overloads = all_overloads().get(self.name, ())
        wanted = func._overloadname if func._overloadname in overloads else "Scalar" if "Scalar" in func._overloadname else "default"
        return getattr(getattr(aten, self.name), wanted) if wanted in overloads else None


def any_dispatches(args: tuple) -> bool:
    """Whether a tensor among arguments, or in a sequence of them, dispatches."""
    return any(x.__class__ is not Tensor and (isinstance(x, Tensor) and x._dispatches or x.__class__ in (list, tuple) and any(
        isinstance(y, Tensor) and y._dispatches for y in x)) for x in args)


def writing(name: str, f: Callable) -> Callable:
    """f, a function that writes into its first argument, for tensors that may dispatch."""
    name = _SAME.get(name, name)

    @functools.wraps(f)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, Tensor) or not (self._dispatches or any_dispatches(args)):
            return f(self, *args, **kwargs)
        if dispatching.disabled:
            if not self._dispatches:
                return f(self, *args, **kwargs)
            f(data_of(self), *args, **kwargs)
            return self
        self._check_write()
        before = dispatching.target
        target = dispatching.target = Target(self, name)
        try:
            if name in STRAIGHT and not (mode.enabled and any(isinstance(a, Tensor) and a.requires_grad for a in (self, *args, *kwargs.values()))):
                found = overload(name, (self, *args), kwargs)
                if found is not None:
                    from .._leaves import hand_on
                    target.done = True
                    schema, given, named = found
                    hand_on(schema.operator(), *given, **named)
                    count(self)
                    return self
            f(self, *args, **kwargs)
        finally:
            dispatching.target = before
        return self
    return run


def count(t: Tensor) -> None:
    """t was written."""
    if t._storage.__class__ is Seat:
        t._storage.writes[0] += 1


def written(self: Tensor, new: Tensor) -> Tensor:
    """`_assign` where self dispatches, or new does."""
    target = dispatching.target
    if dispatching.disabled:
        data_of(self)._assign(new)
        return self
    if target is None or target.tensor is not self or not target.done:
        from .._leaves import hand_on
        v = new._current()
        source = v.tensor if v.__class__ is Held else Tensor._of(v)
        before, mode.enabled = mode.enabled, False
        try:
            hand_on(aten.copy_.default, self, source)
        finally:
            mode.enabled = before
        count(self)
    if mode.enabled and new is not self and (new._edge is not None or self._edge is not None):
        if self._base is not None and is_held(self):
            raise NotImplementedError(VIEW.format(type(self).__name__))
        self._move_to(new)
    return self


_plain_assign = Tensor._assign


def assign(self: Tensor, new: Tensor, repeats: bool = False) -> Tensor:
    """Tensor._assign once there are classes that dispatch."""
    if new._storage.__class__ is Seat or new._value.__class__ is Held:
        return written(self, new)
    target = dispatching.target
    if target is not None and target.tensor is self and target.done:
        return written(self, new)
    return _plain_assign(self, new, repeats)


def install(*scopes: Mapping[str, Any]) -> None:
    """The functions in these scopes that write, and Tensor's methods, from now on by `writing`."""
    Tensor._assign = assign
    found = {id(f): (name, f) for scope in (vars(Tensor), *scopes) for name, f in scope.items()
             if name.endswith("_") and not name.startswith("_") and isinstance(f, FunctionType) and name not in NOT_WRITTEN}
    for name, f in found.values():
        exchange(f, functools.partial(writing, name))
