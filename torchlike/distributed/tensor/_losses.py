"""Cross-entropy of logits of which each rank has some classes: nothing but sums of single numbers per sample is exchanged."""
from __future__ import annotations

import contextvars
from typing import Any

from ...overrides import DisableTorchFunctionSubclass
from ._call import Call, replicated
from ._dtensor import piece, placed_piece
from ._moves import Reduce
from .placement_types import share

class_parallel = contextvars.ContextVar("class_parallel", default=False)  # inside loss_parallel()


def cross_entropy(call: Call) -> Any:
    logits, target, weight = call.given(0, "input"), call.given(1, "target"), call.given(2, "weight")
    dim = 1 if logits.dim() > 1 else 0
    cut = [i for i, p in enumerate(logits._placements) if p.is_shard(dim)]
    smooth, old = call.given(7, "label_smoothing", 0.0), call.given(3, "size_average") is not None or call.given(5, "reduce") is not None
    if not class_parallel.get() or not cut or smooth or old or target.is_floating_point():
        return NotImplemented
    if len(cut) != 1:
        raise ValueError(f"loss_parallel() requires exactly one mesh dim to shard tensor dimension {dim}, but got placements {logits._placements} with "
                         f"{len(cut)} such mesh dim(s).")
    if any(p.is_shard() for i, p in enumerate(logits._placements) if i not in cut):
        return NotImplemented
    i, ignored, reduction = cut[0], call.given(4, "ignore_index", -100), call.given(6, "reduction", "mean")
    group, whole = call.mesh.get_group(i), replicated(call)
    size, begin = share(logits._global[dim], group.size(), group.rank())
    z, y = piece(logits), placed_piece(target, whole)
    with DisableTorchFunctionSubclass():
        z = z - Reduce.apply(z.detach().amax(dim, keepdim=True), "max", group)
        total = Reduce.apply(z.exp().sum(dim), "sum", group)
        kept = y != ignored
        outside = (y < begin) | (y >= begin + size) | ~kept
        found = z.gather(dim, (y - begin).masked_fill(outside, 0).unsqueeze(dim)).squeeze(dim).masked_fill(outside, 0)
        losses = (total.log() - Reduce.apply(found, "sum", group)) * kept
        counted = kept.to(losses.dtype)
        if weight is not None:
            counted = placed_piece(weight, whole)[y.masked_fill(~kept, 0)] * counted
            losses = losses * counted
        made = losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.sum() / counted.sum()
    return call.results(made, whole)


RULES = {"cross_entropy": cross_entropy}
