"""Sharding rules of layers that look rows up or work on the samples of a batch: embedding, attention, convolutions, pools."""
from __future__ import annotations

from typing import Any

from ...overrides import DisableTorchFunctionSubclass
from ._call import Call, without
from ._dtensor import DTensor, operand
from ._layout import Placements
from ._reductions import along
from .placement_types import Partial, Placement, Replicate, Shard, share


def embedding(call: Call) -> Any:
    """A rank that has some rows of the table answers for those, and gives zeros for the others: terms of a sum."""
    index, table = call.given(0, "input"), call.given(1, "weight")
    rows = [i for i, p in enumerate(table._placements) if p.is_shard(0)]
    if call.given(3, "max_norm") is not None or len(rows) > 1:
        return NotImplemented
    of_index, of_table, out = _looked_up(index, table)
    if not rows:
        return call.locally(lambda t: of_index if t is index else of_table, out)
    i, pad = rows[0], call.given(2, "padding_idx")
    size, begin = share(table._global[0], call.mesh.size(i), call.mesh.get_coordinate()[i])
    end = begin + size
    split = [not p.is_replicate() for p in out]
    mine, weight = operand(index, of_index, split), operand(table, of_table, split)
    pad = pad + table._global[0] if pad is not None and pad < 0 else pad
    with DisableTorchFunctionSubclass():
        outside = (mine < begin) | (mine >= end)
        at = (mine - begin).masked_fill(outside, 0)
        pad = pad - begin if pad is not None and begin <= pad < end else None
        made = call.func(at, weight, pad).masked_fill(outside.unsqueeze(-1), 0) if end > begin else \
            weight.sum() + weight.new_zeros((*mine.shape, weight.shape[1]))
    return call.results(made, out, [(*index._global, table._global[1])])


def _looked_up(index: DTensor, table: DTensor) -> tuple[Placements, Placements, Placements]:
    """How indices, table and result lie: along each dimension of the mesh the table is cut or else the indices."""
    found: list[tuple[Placement, Placement, Placement]] = []
    for p, q in zip(index._placements, table._placements):
        if q.is_shard(0):
            found.append((Replicate(), q, Partial()))
        elif q.is_shard(1):
            found.append((Replicate(), q, Shard(index.dim())))
        elif isinstance(p, Shard):
            found.append((p, Replicate(), p))
        else:
            found.append((Replicate(),) * 3)
    return tuple(zip(*found))


def attention(call: Call) -> Any:
    """scaled_dot_product_attention: batches and heads may be cut."""
    query = call.given(0, "query")
    inner = [query.dim() - 2, query.dim() - 1]
    out = without(query._placements, inner)
    others = [t for t in call.tensors if t is not query]
    out = tuple(p if not isinstance(p, Shard) or all(_fits(t, query, p.dim, call.mesh.size(i)) for t in others) else Replicate() for i, p in enumerate(out))

    def wanted(t: DTensor) -> Placements:
        return tuple(_of_batch(t, query, p) for p in out)
    return call.locally(wanted, out)


def _fits(t: DTensor, query: DTensor, dim: int, parts: int) -> bool:
    """Whether a piece of the query needs a piece of t alone, or all of it."""
    dim = dim - query.dim() + t.dim()
    return dim < 0 or t._global[dim] == 1 or t._global[dim] == query._global[dim - t.dim() + query.dim()] or t._global[dim] % parts == 0


def _of_batch(t: DTensor, query: DTensor, p: Placement) -> Placement:
    if not isinstance(p, Shard):
        return p
    dim = p.dim - query.dim() + t.dim()
    return Shard(dim) if dim >= 0 and t._global[dim] != 1 else Replicate()


def per_sample(ndim: int):
    """A rule for layers on batches of so many dimensions, of which each rank may have some samples."""
    def rule(call: Call) -> Any:
        x = call.first
        return along(call, range(1, x.dim()) if x.dim() == ndim else None)
    return rule


def dropout(call: Call) -> Any:
    """Channels are dropped whole, in each rank by its own draws."""
    return along(call, range(2, call.first.dim()))


RULES = {
    "embedding": embedding, "scaled_dot_product_attention": attention,
    **{f"{name}{n}d": per_sample(n + 2) for n in (1, 2, 3) for name in ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive_avg_pool")},
    **{f"dropout{n}d": dropout for n in (1, 2, 3)},
}
