"""Sharding rules of operations along dimensions: where none of them is cut, each rank works on its piece; sums of pieces are terms of the whole."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ._call import Call, replicated, without
from ._dtensor import DTensor, placed_piece
from ._layout import Placements
from ._moves import Reduce
from .placement_types import Partial, Replicate, Shard


def _dims(given: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front; all of them for None and ()."""
    if given is None or given == ():
        return tuple(range(ndim))
    return tuple(d % max(ndim, 1) for d in ((given,) if isinstance(given, int) else given))


def _left(placements: Placements, dims: Sequence[int], keepdim: bool) -> Placements:
    """Placements of a result without these dimensions."""
    return tuple(dataclasses.replace(p, dim=p.dim - sum(d < p.dim for d in dims)) if isinstance(p, Shard) and not keepdim else p for p in placements)


def total(call: Call) -> Any:
    """sum and mean: of a dimension that is cut, this rank's part of it is a term."""
    x = call.first
    dims = _dims(call.given(1, "dim", call.kwargs.get("axis")), x.dim())
    keepdim = bool(call.given(2, "keepdim", False))
    wanted, out = [], []
    for i, p in enumerate(x._placements):
        op = None
        if isinstance(p, Shard) and p.dim in dims:
            even = x._global[p.dim] % call.mesh.size(i) == 0
            op = "sum" if call.name in ("sum", "nansum") else "avg" if even else None
        if op is not None or isinstance(p, Shard) and p.dim not in dims:
            wanted.append(p)
        elif isinstance(p, Partial) and p.reduce_op in ("sum", "avg") and call.name != "nansum" and x.dtype.is_floating_point:
            wanted.append(p)
            op = p.reduce_op
        else:
            wanted.append(Replicate())
        out.append(Partial(op) if op else wanted[-1])
    if len({p.reduce_op for p in out if isinstance(p, Partial)}) > 1:
        wanted = out = list(replicated(call))
    return call.locally(lambda _: tuple(wanted), _left(tuple(out), dims, keepdim))


def norm(call: Call) -> Any:
    """Norms: of one dimension that is cut, from each rank's norm of its piece."""
    x, vector = call.first, call.name == "vector_norm"
    order = call.given(1, "ord" if vector else "p", 2)
    dims, keepdim = _dims(call.given(2, "dim"), x.dim()), bool(call.given(3, "keepdim", False))
    number = 2.0 if order in (None, "fro") else order
    if not isinstance(number, (int, float)) or number <= 0 or call.name == "matrix_norm":
        return along(call, None)
    wanted = without(x._placements, [])
    made = call.on(lambda t: _nonempty(t, wanted))
    cut = [i for i, p in enumerate(wanted) if isinstance(p, Shard) and p.dim in dims]
    for i in cut:
        group = call.mesh.get_group(i)
        made = Reduce.apply(made, "max", group) if number == float("inf") else Reduce.apply(made ** number, "sum", group) ** (1 / number)
    out = tuple(Replicate() if i in cut else p for i, p in enumerate(wanted))
    return call.results(made, _left(out, dims, keepdim))


def _nonempty(t: DTensor, wanted: Placements) -> Tensor:
    """A rank without a piece counts as one of zeros."""
    local = placed_piece(t, wanted)
    return local if local.numel() else local.new_zeros([max(n, 1) for n in local.shape])


def along(call: Call, dims: Sequence[int] | None, kept: bool = True, keepdim: bool = False) -> Any:
    """An operation along some dimensions (None: all), which each rank needs whole; `kept`: they are there in the result too."""
    wanted = {id(t): without(t._placements, dims if t is call.first else None) for t in call.tensors}
    out = wanted[id(call.first)]
    return call.locally(lambda t: wanted[id(t)], out if kept else _left(out, dims or (), keepdim))


def same_size(place: int, name: str = "dim", default: Any = None):
    """A rule for what works along `dim` and keeps the shape: softmax, cumsum."""
    def rule(call: Call) -> Any:
        dim = call.given(place, name, default)
        return along(call, None if dim is None else _dims(dim, call.first.dim()))
    return rule


def reducing(place: int = 1, keep: int = 2):
    """A rule for what takes `dim` away, or everything where none is given: amax, argmax, prod, all."""
    def rule(call: Call) -> Any:
        x, dim = call.first, call.given(2, "dim")
        if dim is None or isinstance(dim, str) or len(call.tensors) > 1 or isinstance(dim, bool):
            return along(call, None)
        return along(call, _dims(dim, x.dim()), False, bool(call.given(keep, "keepdim", False)))
    return rule


def normalized(call: Call) -> Any:
    """layer_norm and rms_norm: the last dimensions are whole."""
    n = len(call.given(1, "normalized_shape"))
    dims = range(call.first.dim() - n, call.first.dim())
    return along(call, list(dims))


RULES = {
    "sum": total, "mean": total, "nansum": total, "norm": norm, "vector_norm": norm,
    **dict.fromkeys(("softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"), same_size(1)),
    "glu": same_size(1, default=-1), "normalize": same_size(2, default=1), "sort": same_size(1, default=-1), "argsort": same_size(1, default=-1),
    "flip": same_size(1, "dims"), "topk": same_size(2, default=-1),
    **dict.fromkeys(("amax", "amin", "argmax", "argmin", "max", "min", "prod", "all", "any", "logsumexp", "median", "mode"), reducing()),
    "layer_norm": normalized, "rms_norm": normalized,
}
