"""Functions that say themselves what vmap makes of them: torch.autograd.Function.vmap, torch.library.register_vmap.

Such a rule wants real batches, so what has been recorded for its arguments so far becomes an operation of its own, and the rule runs
on its results where the call of vmap stands. What the rule returns comes back into the trace as further arguments.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from .._core import program_info
from .._core.aval import BOOL, COMPLEX, FLOAT, INT
from .._core.grad_mode import mode
from .._core.graph import AccumulateGrad, Identity, reachable
from .._core.program import record
from .._core.value import Value
from .._tensor import Tensor
from ..autograd import _tangents
from ..autograd.grad_mode import no_grad
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._trace import Trace, innermost
from .vmap import _batched, _Call, is_batchedtensor, with_tangents


class VmapInfo(NamedTuple):
    """What a rule is told of the call."""

    batch_size: int
    randomness: str


def evaluated(trace: Trace, tensors: list[Tensor]) -> list[tuple[Tensor, int | None]]:
    """What tensors of an open call are outside of it, and which dimension the examples lie along (None: all see the same)."""
    found: dict[int, tuple] = {}
    pending: list[Tensor] = []
    waiting: list[Tensor] = []
    for t in tensors:
        v = t._current()
        place = trace.placeholders.get(-1 - v.ref) if v.epoch is trace and v.ref < 0 else None
        if place is not None:
            found[id(t)] = place.source, place.axis
        elif v.epoch is trace and (v.ref >= 0 or id(v) in trace.stacked):
            pending.append(t)
        else:
            found[id(t)] = t, None
    if pending:
        steps = program_info.steps_to(trace.node)
        refs = [t._current().ref for t in pending]
        waiting = list(pending)
        shared = [t for t, mixed in zip(pending, _batched(trace, steps, refs)) if not mixed and not (mode.enabled and t.requires_grad)]
        for t, v in zip(shared, _again(trace, steps, [t._value.ref for t in shared])):
            found[id(t)] = Tensor._of(v), None
        pending = [t for t in pending if id(t) not in found]
    if pending:
        before = trace.position()
        try:
            call = _Call(trace, "part", pending, whole=False)
        finally:
            trace.back_to(before)
        with trace.suspended():
            for t, (out, spread) in zip(pending, call.apply()):
                found[id(t)] = out, 0 if spread else None
    if _tangents.levels:
        for t in waiting:
            found[id(t)] = _evaluated_tangents(trace, t, *found[id(t)])
    return [found[id(t)] for t in tensors]


def _evaluated_tangents(trace: Trace, t: Tensor, outer: Tensor, axis: int | None) -> tuple[Tensor, int | None]:
    """What t is outside of the call, which has t's tangents there."""
    for level, tangent in _tangents.tangents_of(t):
        with level.unseen():
            (made, along), = evaluated(trace, [tangent])
            with trace.suspended():
                if axis is None and along is not None:
                    outer, axis = outer.expand(trace.size, *outer.shape), 0
                if along is None and axis is not None:
                    made = made.expand(trace.size, *made.shape)
                elif along:
                    made = made.movedim(along, 0)
        level.of[outer._current()] = made
    return outer, axis


def _again(trace: Trace, steps: list, refs: list[int]) -> list[Value]:
    """Results of steps that no example has to itself, computed where the call stands."""
    needed = set(refs)
    for s in reversed(steps):
        if needed & set(range(s.out, s.out + len(s.plan.outs))):
            needed.update(r for r in s.refs if r.__class__ is int)
    floats, ints = iter(trace.floats), iter(trace.ints)
    take = {FLOAT: lambda: next(floats), INT: lambda: next(ints), BOOL: lambda: bool(next(ints)), COMPLEX: lambda: complex(next(floats), next(floats))}
    made: dict[int, Value] = {}
    with trace.suspended():
        for s in steps:
            given = [r if r is None else take[r]() if r.__class__ is not int else made.get(r) if r >= 0 else trace.inputs[-1 - r] for r in s.refs]
            if needed & set(range(s.out, s.out + len(s.plan.outs))):
                made.update(enumerate(record(s.plan.op, given, s.plan.statics)[1], s.out))
    return [made[r] if r >= 0 else trace.inputs[-1 - r] for r in refs]


def observe(t: Tensor) -> Any:
    """The data of a tensor that is looked at inside of an open call, where all examples see the same; else None."""
    trace = innermost()
    if trace is None or trace.closing:
        return None
    with no_grad():
        (outer, dim), = evaluated(trace, [t])
        if dim is not None:
            return None
        with trace.suspended():
            array = outer._host_array()
    t._value.array = array
    return array


def refuse_batched(t: Tensor, words: str) -> None:
    """RuntimeError for what torch refuses of a tensor whose examples an open call of vmap maps over; a transform inside of it may have it."""
    trace = innermost()
    if trace is not None and is_batchedtensor(t) and not differentiated_inside(trace, [t]):
        raise RuntimeError(words)


def differentiated_inside(trace: Trace, tensors: list[Tensor]) -> bool:
    """Whether a transform inside of the traced function differentiates with respect to what the tensors depend on."""
    nodes = reachable(t._edge for t in tensors if t.requires_grad)
    return any(isinstance(node, (AccumulateGrad, Identity)) and node in trace.nodes for node in nodes)


def by_rule(name: str, rule: Callable, plain: Callable, args: tuple, kwargs: dict, forward: bool = False) -> tuple[Any, bool] | None:
    """(the result of a function that has a rule, whether its derivative has still to be recorded) inside of an open call of vmap; None
    where no argument depends on that call. plain: the function itself. forward: the result shall be without derivative."""
    trace = innermost()
    leaves, spec = tree_flatten(args)
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    if trace is None:
        return None
    if not any(t._current().epoch is trace for t in tensors):
        with trace.suspended():  # perhaps they depend on a call around this one
            return by_rule(name, rule, plain, args, kwargs, forward)
    if any(isinstance(x, Tensor) for x in tree_flatten(kwargs)[0]):
        raise NotImplementedError(f"Run your vmap over {name} with kwarg-only Tensors is not supported.")
    if trace.closing:
        raise NotImplementedError(f"torchlike: gradients from outside of vmap, through the gradient of {name}, which is differentiated inside of it and has "
                                  "a rule for vmap")
    inside = forward or differentiated_inside(trace, tensors)
    quiet = no_grad() if inside else contextlib.nullcontext()
    with quiet:
        outer = iter(evaluated(trace, tensors))
    pairs = [next(outer) if isinstance(x, Tensor) else (x, None) for x in leaves]
    given = tree_unflatten([x for x, _ in pairs], spec)
    with trace.suspended(), quiet:
        if all(d is None for _, d in pairs):
            return (_entered(trace, *_flat(plain(*given, **kwargs), None)), inside)
        before = [x._current() if isinstance(x, Tensor) else None for x, _ in pairs]
        made = rule(VmapInfo(trace.size, trace.randomness), tree_unflatten([d for _, d in pairs], spec), *given, **kwargs)
        written = [(t, x, d) for t, (x, d), v in zip(leaves, pairs, before) if v is not None and x._current() is not v]
    with quiet:
        for t, x, d in written:  # the function's own tensor holds that, too
            if t is not x:
                t._assign(x if d is None else with_tangents(trace, x, d))
    if not isinstance(made, tuple) or len(made) != 2:
        raise RuntimeError(f"Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the output. "
                           f"Got a {type(made).__name__}" + (f" with {len(made)} returns." if isinstance(made, tuple) else "."))
    with quiet:
        return _entered(trace, *_flat(*made), {(id(x), d): t for t, x, d in written}), inside


def _flat(output: Any, out_dims: Any) -> tuple[list, list, Any]:
    leaves, spec = tree_flatten(output)
    dims = [None] * len(leaves) if out_dims is None else _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError("The vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected out_dims "
                           f"(structure {tree_flatten(out_dims)[1]}) to be compatible with the pytree structure of output (structure {spec}).")
    return leaves, dims, spec


def _entered(trace: Trace, leaves: list, dims: list, spec: Any, own: dict[tuple, Tensor] | None = None) -> Any:
    """Results of a rule as the traced function goes on with them; `own`: its tensors, by those outside that the rule wrote in place."""
    def entered(x: Any, d: int | None) -> Any:
        if not isinstance(x, Tensor):
            return x
        d = d if d is None else d % x.ndim
        return own[id(x), d] if own and (id(x), d) in own else x if d is None else with_tangents(trace, x, d)
    return tree_unflatten([entered(x, d) for x, d in zip(leaves, dims)], spec)
