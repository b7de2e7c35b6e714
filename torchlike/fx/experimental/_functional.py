"""Writes without writing: under `torch.func.functionalize` a graph of `make_fx` has the operators that make new tensors.

What is written becomes another node. A view that is written is put back into what it shows, and views of what was written are made anew when they
are read next.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..._ops import OpOverload, aten

if TYPE_CHECKING:
    from ._recorded import ProxyTorchDispatchMode, Recorded

_OVERLOADS = {"bernoulli_.float": "bernoulli.p", "bernoulli_.Tensor": "bernoulli.Tensor"}
_SCATTERS = {"select": aten.select_scatter, "slice": aten.slice_scatter, "diagonal": aten.diagonal_scatter, "as_strided": aten.as_strided_scatter}


class Shown:
    """Of which tensor a Recorded is a view, by which call, and of which of its versions."""

    __slots__ = ("base", "call", "seen")

    def __init__(self, base: Recorded, call: Callable, seen: int) -> None:
        self.base, self.call, self.seen = base, call, seen


def view_of(trace: ProxyTorchDispatchMode, func: OpOverload, base: Recorded, rest: tuple, kwargs: dict) -> Shown:
    """What a view of base is that func has made."""
    def call(put: Recorded | None = None) -> Recorded:
        return trace.record(func, (base, *rest), kwargs) if put is None else _put_back(trace, func, base, put, rest, kwargs)
    return Shown(base, call, base.writes)


def read(t: Recorded) -> None:
    """t is about to be read: a view of what was written meanwhile is made anew."""
    shown = t.shown
    if shown is None:
        return
    read(shown.base)
    if shown.seen != shown.base.writes:
        made = shown.call()
        t.node, t.elem, shown.seen = made.node, made.elem, shown.base.writes


def write(trace: ProxyTorchDispatchMode, func: OpOverload, args: tuple, kwargs: dict) -> Recorded:
    """Do what func, which writes into its first argument, does, by an operator that makes a new tensor."""
    target = args[0]
    if func is aten.bernoulli_.float and len(args) == 1:
        args = target, 0.5
    made = trace.record(_functional(func), args, kwargs)
    if made.dtype is not target.dtype:
        made = trace.record(aten._to_copy.default, (made,), {"dtype": target.dtype})
    _becomes(target, made)
    return target


def _functional(func: OpOverload) -> OpOverload:
    name = f"{func.overloadpacket.__name__}.{func._overloadname}"
    packet, _, overload = _OVERLOADS.get(name, f"{name.partition('.')[0].removesuffix('_')}.{func._overloadname}").partition(".")
    found = getattr(getattr(aten, packet, None), overload, None)
    if found is None or not func.overloadpacket.__name__.endswith("_"):
        raise NotImplementedError(f"torchlike: functionalize of {func} under make_fx")
    return found


def _becomes(target: Recorded, made: Recorded) -> None:
    target.node, target.elem = made.node, made.elem
    target.writes += 1
    shown = target.shown
    if shown is not None:
        _becomes(shown.base, shown.call(target))
        shown.seen = shown.base.writes


def _put_back(trace: ProxyTorchDispatchMode, func: OpOverload, base: Recorded, put: Recorded, rest: tuple, kwargs: dict) -> Recorded:
    """base with `put` where func shows it."""
    name = func.overloadpacket.__name__
    if name in _SCATTERS:
        return trace.record(_SCATTERS[name].default, (base, put, *rest), kwargs)
    if name in ("alias", "detach"):
        return put
    if name == "t":
        return trace.record(aten.t.default, (put,), {})
    if name == "transpose":
        return trace.record(aten.transpose.int, (put, *rest), {})
    if name == "permute":
        dims = [d % base.ndim for d in rest[0]]
        return trace.record(aten.permute.default, (put, [dims.index(d) for d in range(base.ndim)]), {})
    if name in ("view", "_unsafe_view", "reshape", "squeeze", "unsqueeze"):
        return trace.record(aten.view.default, (put, list(base.shape)), {})
    raise NotImplementedError(f"torchlike: functionalize of a write into a view by {func} under make_fx")


class Inputs:
    """Arguments that a functionalized function may write: what it has made of them is copied into them at its end."""

    def __init__(self, given: list[Recorded]) -> None:
        self._given = [(t, t.node, t.elem, t.writes) for t in given]

    def copy_back(self) -> None:
        """Write."""
        for t, node, elem, writes in self._given:
            if t.writes != writes and node is not None:
                made, known = t.node, t.elem
                t.node, t.elem = node, elem
                other = type(t).of(known, made, t.trace)
                t.trace.record(aten.copy_.default, (t, other), {})
                t.node = made
