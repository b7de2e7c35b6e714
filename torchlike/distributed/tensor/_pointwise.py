"""Sharding rules of operations that work element by element: the result lies as the operand that is cut the most."""
from __future__ import annotations

import dataclasses
from typing import Any

from ..._core.aval import broadcast_shapes
from ..._core.registry import OPS, Elementwise
from ._call import Call
from ._dtensor import DTensor
from ._layout import Placements
from .placement_types import Partial, Placement, Replicate, Shard

# beside what the engine knows as elementwise
_MORE = """dropout alpha_dropout masked_fill to type type_as float double half bfloat16 int long short bool cfloat cpu cuda clone detach contiguous
requires_grad positive true_divide subtract multiply divide negative absolute clip clamp_min clamp_max relu6 selu logsigmoid softsign tanhshrink pow
float_power __rsub__ __rtruediv__ __rpow__ __pow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __or__ __xor__ __invert__ __floordiv__ __mod__
bernoulli uniform normal zero fill copy exponential greater greater_equal less less_equal not_equal logical_not nan_to_num swish
zeros_like ones_like empty_like full_like rand_like randn_like real imag conj data""".split()
_NOT = {"flip", "sort", "argsort", "rms_norm", "prelu", "rrelu_with_noise", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div",
        "soft_margin_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "unread", "complex", "polar"}
NAMES = ({n for n, op in OPS.items() if isinstance(op, Elementwise) or getattr(op, "pointwise", False)} | set(_MORE)) - _NOT
_OF_TERMS = {"add", "sub", "neg", "negative", "clone", "detach", "contiguous", "to", "float", "double", "half", "bfloat16", "type", "type_as",
             "requires_grad", "copy", "zero", "data", "subtract", "positive"}  # of a sum's terms: the terms of the result
_OF_ONE_SUM = {"mul", "div", "true_divide", "multiply", "divide"}  # where only the first operand is a tensor
_FILLED = {"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"}


def pointwise(call: Call) -> Any:
    """Answer the call: operands are moved to where the result lies."""
    shape = call.first._global if call.inplace else broadcast_shapes(*(t._global for t in call.tensors))
    out = _result(call, shape)
    return call.locally(lambda t: _seen_from(t, out, shape), out, shape)


def _result(call: Call, shape: tuple[int, ...]) -> Placements:
    if call.inplace:
        return call.first._placements
    linear = _keeps_terms(call)
    followed = max(call.tensors, key=lambda t: sum(p.is_shard() for p in t._placements))  # the first of those that are cut the most
    return tuple(_along(i, call, followed, shape, linear) for i in range(call.mesh.ndim))


def _along(i: int, call: Call, followed: DTensor, shape: tuple[int, ...], linear: bool) -> Placement:
    for t in (followed, *call.tensors):
        p = t._placements[i]
        if isinstance(p, Shard):
            dim = p.dim + len(shape) - len(t._global)
            if t._global[p.dim] == shape[dim]:
                return dataclasses.replace(p, dim=dim)
    if linear and all(isinstance(t._placements[i], Partial) and t._placements[i] == call.first._placements[i] for t in call.tensors):
        return call.first._placements[i]
    return Replicate()


def _keeps_terms(call: Call) -> bool:
    name = call.name.rstrip("_")
    if name in _OF_TERMS:
        numbers = [a for a in call.args[1:2] if isinstance(a, (int, float, complex))]  # a number added to each term would be added often
        return not (name in ("add", "sub", "subtract") and numbers)
    return name in _OF_ONE_SUM and len(call.tensors) == 1 and isinstance(call.args[0], DTensor) and "rounding_mode" not in call.kwargs


def _seen_from(t: DTensor, out: Placements, shape: tuple[int, ...]) -> Placements:
    """How an operand has to lie for a result that lies as `out`."""
    made = []
    for p in out:
        if isinstance(p, Shard):
            dim = p.dim - len(shape) + len(t._global)
            p = dataclasses.replace(p, dim=dim) if dim >= 0 and t._global[dim] == shape[p.dim] else Replicate()
        made.append(p)
    return tuple(made)


def filled_like(call: Call) -> Any:
    """zeros_like and its kin: pieces of the same size, whole where the tensor is a sum."""
    out = tuple(Replicate() if isinstance(p, Partial) else p for p in call.first._placements)
    return call.locally(lambda t: t._placements, out, call.first._global)


def each(call: Call) -> Any:
    """`torch._foreach_*`: lists are answered one place at a time."""
    lists = [a for a in call.args if isinstance(a, (list, tuple))]
    rows = []
    for i in range(len(lists[0])):
        args = [[a[i]] if isinstance(a, (list, tuple)) else a for a in call.args]
        rows.append(call.func(*args, **call.kwargs))
    if call.inplace:
        return None
    return type(rows[0])(row[0] for row in rows)


RULES = {**dict.fromkeys(NAMES, pointwise), **{n + "_": pointwise for n in NAMES}, **dict.fromkeys(_FILLED, filled_like)}
