"""embedding_bag: sums, means or maxima of bags of rows of a table."""
from __future__ import annotations

import numpy as np

from ..._arguments import as_int
from ..._core import dtype as dt
from ..._core import program
from ..._core.history import warn
from ..._public import named
from ..._tensor import Tensor, as_tensor_value
from ...ops.basic import where
from .bag_sums import bag_of, bag_sums
from .common import need
from .embedding import _renorm_rows, embedding


def _starts(input: Tensor, offsets: Tensor, include_last: bool, to_end: bool) -> tuple[np.ndarray, int]:
    """Where each bag starts in the flat input, and where the last one ends. `to_end`: that is where the input does, whatever the last offset says."""
    starts = offsets._host_array().astype(np.int64)
    end = input.numel()
    if include_last:
        if not starts.size:
            raise RuntimeError("include_last_offset: number of offsets should be at least 1")
        end = end if to_end else int(starts[-1])
        starts = starts[:-1]
    first = int(offsets._host_array()[0]) if offsets.numel() else 0
    if first != 0:
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                           f"However, got {first}\n[ {offsets.type()}{{}} ]")
    if starts.size and int(starts.max()) > input.numel():
        raise RuntimeError(f"offsets[-1] can not be greater than input's length {input.numel()} but got offsets[-1] of {int(starts[-1])}")
    return starts, end


def _cut(starts: np.ndarray, end: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions (bags, longest) of each bag's elements in the flat input, and which of them are real."""
    lengths = np.diff(np.append(starts, end))
    longest = int(lengths.max()) if lengths.size else 0
    real = np.arange(longest) < lengths[:, None]
    return np.where(real, starts[:, None] + np.arange(longest), 0), real


def _follow(starts: np.ndarray | None, end: int, input: Tensor) -> bool:
    """Whether bags are consecutive pieces of the whole input."""
    return starts is None or starts.size > 0 and end == input.numel() and bool((np.diff(starts) >= 0).all())


def _kept(index: Tensor, padding: int, positions: np.ndarray, real: np.ndarray):
    """The elements that are no padding: their places, and the bags of them."""
    kept = index._host_array().reshape(-1) != padding
    real = real & kept[positions]
    return np.flatnonzero(kept), np.where(real, (np.cumsum(kept) - 1)[positions], 0), real


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Rows of weight reduced per bag: input (B, N) holds B bags, or (N) with the bags' starts in offsets; to (B, width).

    mode: 'sum' (with optional per_sample_weights), 'mean' or 'max'. Rows at padding_idx do not count; empty bags give 0.
    """
    input, weight = _ordered(input, weight)
    _check(input, weight, offsets, per_sample_weights)
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError(f"max mode does not support {'scaling the gradient by the frequency' if scale_grad_by_freq else 'sparse weights'}")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode="
                                  f"'{mode}'). Please open a feature request on GitHub.")
    rows = weight.shape[0]
    if padding_idx is not None:
        padding_idx = as_int(padding_idx, "padding_idx", symbolic=True)
        if not -rows <= padding_idx < rows:
            raise RuntimeError(f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}")
        padding_idx %= rows
    if input.dtype not in (dt.int64, dt.int32):
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                           f"torch.{input.dtype.short}Tensor instead (while checking arguments for embedding_bag)")
    if weight.dtype.category != dt.FLOAT:
        given = f"torch.{weight.dtype.short}Tensor" if weight.dtype.category == dt.INT else f"CPU{weight.dtype.short}Type"
        raise RuntimeError("Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, Double; but got "
                           f"{given} instead (while checking arguments for embedding_bag)")
    # torch's kernel for these asks the last offset where the last bag ends; its other one does not
    fast = padding_idx is None and mode != "max" and weight.dtype in (dt.float32, dt.float16, dt.bfloat16)
    _in_range(input, rows, fast)
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError("Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type "
                           f"{weight.type()} does not equal {per_sample_weights.type()} (while checking arguments for embedding_bag)")
    if max_norm is not None:
        _renorm_rows(weight, input, max_norm, norm_type)
    starts, end = (None, 0) if input.ndim == 2 else _starts(input, offsets, include_last_offset, not fast)
    if mode != "max" and not sparse and not scale_grad_by_freq and padding_idx is None and _follow(starts, end, input) and weight.dtype.category == dt.FLOAT:
        return bag_sums(weight, input, starts, per_sample_weights, mode == "mean")
    real = None
    if starts is not None:
        positions, real = _cut(starts, end)
    elif sparse:
        positions = np.arange(input.numel()).reshape(input.shape)
        real = np.ones(positions.shape, bool)
    if real is not None:
        input, scale = input.reshape(-1), None if per_sample_weights is None else per_sample_weights.reshape(-1)
        once = sparse or scale_grad_by_freq
        if once and padding_idx is not None:  # rows of padding make no entries of the gradient
            kept, positions, real = _kept(input, padding_idx, positions, real)
            kept, padding_idx = as_tensor_value(kept, input.device), None
            input, scale = input[kept], None if scale is None else scale[kept]
        if not real.any():
            nothing = embedding(input[:0], weight, sparse=sparse)
            if scale is not None:
                nothing = nothing * scale[:0].unsqueeze(-1)
            return nothing.sum(0).expand(len(positions), -1).clone()
        at, real = as_tensor_value(positions, input.device), None if real.all() else as_tensor_value(real, input.device)
        scale = None if scale is None else scale[at]
        if once:  # an entry per element, and none, nor a count, for what fills up short bags
            found = embedding(input, weight, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)[at]
            return named(_reduced(found, real, scale, mode), "EmbeddingBagBackward0", weight)
        input, per_sample_weights = input[at], scale
    if padding_idx is not None:
        counted = input != padding_idx
        real = counted if real is None else real & counted
    found = embedding(input, weight, scale_grad_by_freq=scale_grad_by_freq)
    return named(_reduced(found, real, per_sample_weights, mode), "EmbeddingBagBackward0", weight)


def _in_range(index: Tensor, rows: int, fast: bool) -> None:
    v = index._current()
    if program.guarded(v, lambda v: _in_range(Tensor._of(v), rows, fast)):
        return
    array = v.array
    if isinstance(array, np.ndarray) and array.size:
        bad = (array < 0) | (array >= rows)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            value = int(array.reshape(-1)[at])
            raise RuntimeError(f"Index {at} of input takes value {value} which is not in the valid range [0, {rows})" if fast else
                               f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {value}")


def _reduced(vectors: Tensor, real: Tensor | None, scale: Tensor | None, mode: str) -> Tensor:
    zero = vectors.new_zeros(())
    if mode == "max":
        if real is None:
            return vectors.max(1)[0]
        best = where(real.unsqueeze(-1), vectors, vectors.new_full((), float("-inf"))).max(1)[0]
        return where(real.any(1, keepdim=True), best, zero)
    if scale is not None:
        vectors = vectors * scale.unsqueeze(-1)
    if real is not None:
        vectors = where(real.unsqueeze(-1), vectors, zero)
    if mode == "sum":
        return vectors.sum(1)
    return vectors.mean(1) if real is None else vectors.sum(1) / real.sum(1, keepdim=True).clamp_min(1)


def _ordered(input, weight) -> tuple:
    """The indices and the table: first releases of PyTorch had them in the other order, which it still takes."""
    if not (isinstance(input, Tensor) and isinstance(weight, Tensor) and weight.dtype is dt.int64 and input.is_floating_point()):
        return input, weight
    warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and should now be "
         "`embedding_bag(input, weight, ...)`.")
    return weight, input


def _check(input: Tensor, weight: Tensor, offsets, per_sample_weights) -> None:
    need(input, "embedding_bag")
    need(weight, "embedding_bag", "weight", 2)
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.size()}) is not None, then it must have the same shape as "
                         f"the input ({input.size()})")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            kind = str(type(offsets))
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, found "
                             f"offsets of type {kind}")
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")


def notes(indices: Tensor, weight: Tensor, offsets: Tensor, mode: int, bags: int, padding_idx: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Beside torch.embedding_bag's result: each index's bag (nothing where the kernel for sums needs none), how many of a bag's indices count,
    and which of them a maximum is from; the last two are zeros for sums, and for means the lengths twice."""
    index, starts, kind = indices._host_array(), offsets._host_array(), indices.dtype.np
    bag = np.clip(bag_of(np, starts, len(index)), 0, max(bags - 1, 0)).astype(kind)
    counts = np.ones(len(index), bool) if padding_idx is None else index != padding_idx % weight.shape[0]
    if mode == 0:
        fast = padding_idx is None and weight.dtype in (dt.float32, dt.float16, dt.bfloat16)
        found = bag[:0] if fast else bag, np.zeros(len(starts), kind), np.zeros(len(starts), kind)
    else:
        lengths = np.bincount(bag[counts], minlength=bags).astype(kind)
        found = bag, lengths, lengths.copy()
        if mode == 2:
            table = weight._host_array()
            rows = np.zeros((bags, table.shape[1]), kind)
            for b in np.flatnonzero(lengths):
                mine = index[counts & (bag == b)]
                rows[b] = mine[table[mine].argmax(0)]
            found = bag, lengths, rows
    return tuple([as_tensor_value(x, weight.device) for x in found])
