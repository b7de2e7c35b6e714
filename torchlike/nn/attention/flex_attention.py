"""Attention whose scores a function changes, and whose mask a function gives (FlexAttention, Dong et al., 2024).

The functions are written for one score and its place, and torch.vmap makes them functions of all; XLA fuses what they do with the softmax.
"""
from __future__ import annotations

import enum
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from torchlike._core import dtype as dt
from torchlike._public import FUNCTIONS as F
from torchlike._tensor import Tensor
from torchlike.accelerator import current_accelerator
from torchlike.func import vmap
from torchlike.nn import functional
from torchlike.nn.attention._block_mask import BlockMask, _sliced, noop_mask, to_dense, to_ordered

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention", "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What flex_attention shall also return."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What it also returned: the logarithms of the sums of exponentials, the greatest scores; None where nobody asked."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class _Mod(enum.Enum):
    SCORE, MASK = 5, 4


def _kind(function: Callable) -> _Mod:
    """Whether a function takes a score and its place, or the place alone."""
    count = sum(p.default is p.empty for p in inspect.signature(function).parameters.values())
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return _Mod(count)


def _everywhere(function: Callable, scores: Tensor | None, shape: tuple[int, int, int, int], device: Any) -> Tensor:
    """function at every (batch, head, query, key), of its score if there are scores."""
    first = () if scores is None else (0,)
    for i in (3, 2, 1, 0):
        function = vmap(function, in_dims=(*first, *(0 if i == j else None for j in range(4))))
    places = [F["arange"](n, device=device) for n in shape]
    return function(*(() if scores is None else (scores,)), *places)


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The boolean mask of a mask_mod, or of where a score_mod does not give -inf."""
    device = (current_accelerator() or "cpu") if device is None else device
    shape = B or 1, H or 1, Q_LEN, KV_LEN
    if _kind(mod_fn) is _Mod.MASK:
        return _everywhere(mod_fn, None, shape, device)
    return ~_everywhere(mod_fn, F["zeros"](shape, device=device), shape, device).isneginf()


def create_block_mask(mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
                      BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False, separate_full_blocks: bool = True) -> BlockMask:
    """The BlockMask of a mask_mod; wholly allowed blocks are listed apart with separate_full_blocks."""
    if _kind(mask_mod) is not _Mod.MASK:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = functional.pad(mask, (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    b, h, q, k = mask.shape
    allowed = mask.view(b, h, q // rows, rows, k // columns, columns).sum((3, 5))
    full = allowed == rows * columns
    lists = (*to_ordered((allowed > 0) & ~full), *to_ordered(full)) if separate_full_blocks else to_ordered(allowed > 0)
    return BlockMask.from_kv_blocks(*lists, BLOCK_SIZE=(rows, columns), mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


def _combined(masks: tuple[Callable, ...], start: bool, name: str) -> Callable:
    if not all(map(callable, masks)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        out = b.new_full((), start, dtype=dt.bool_)
        for f in masks:
            found = f(b, h, q_idx, kv_idx)
            out = out & found if start else out | found
        return out
    mask.__name__ = name
    return mask


def and_masks(*mask_mods: Callable) -> Callable:
    """A mask_mod that allows what all of them allow."""
    return _combined(mask_mods, True, "and_mask")


def or_masks(*mask_mods: Callable) -> Callable:
    """A mask_mod that allows what one of them allows."""
    return _combined(mask_mods, False, "or_mask")


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.device != key.device or query.device != value.device:
        raise ValueError(f"Expected query, key, and value to have the same device type, but got query.device: {query.device}, "
                         f"key.device: {key.device}, and value.device: {value.device} instead.")
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"Expect query and key/value to have the same embedding dimension but got E={query.shape[-1]} and E={key.shape[-1]}.")
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared and not enable_gqa:
        raise ValueError(f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={shared}. Try setting "
                         "enable_gqa=True for GQA.")
    if heads % shared:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={shared}.")
    if query.shape[0] != key.shape[0] and (block_mask is None or block_mask.kv_num_blocks.shape[0] != query.shape[0]):
        raise ValueError(f"Expect query and key/value to have the same batch size, or block_mask and query to have the same batch size, but got "
                         f"Bq={query.shape[0]}, Bkv={key.shape[0]}.")
    if block_mask is None:
        return
    if block_mask.mask_mod is _sliced:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if tuple(block_mask.shape[-2:]) != (query.shape[-2], key.shape[-2]):
        raise ValueError(f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.shape[-2]} and "
                         f"kv_len={key.shape[-2]}. Create a block mask for these lengths.")


def _allowed(block_mask: BlockMask, shape: tuple[int, int, int, int], device: Any) -> Tensor:
    """The whole boolean mask: full blocks, and what mask_mod allows in the other listed ones."""
    def wide(blocks: Tensor) -> Tensor:
        big = blocks.to(dt.bool_).repeat_interleave(block_mask.BLOCK_SIZE[0], -2).repeat_interleave(block_mask.BLOCK_SIZE[1], -1)
        return big[..., :shape[2], :shape[3]]
    out = wide(to_dense(block_mask.kv_num_blocks, block_mask.kv_indices))
    if block_mask.mask_mod is not noop_mask:
        out = out & _everywhere(block_mask.mask_mod, None, shape, device)
    if block_mask.full_kv_indices is not None:
        out = out | wide(to_dense(block_mask.full_kv_num_blocks, block_mask.full_kv_indices))
    return out


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None = None, block_mask: BlockMask | None = None,
                   scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: dict | None = None, *,
                   return_aux: AuxRequest | None = None) -> Any:
    """softmax(score_mod(query key^T * scale, batch, head, query, key)) value, for (batch, heads, length, features).

    Rows in which nothing is allowed give 0. kernel_options tune torch's kernels and are not needed.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux. return_lse is deprecated, please use return_aux=AuxRequest(lse=True) instead.")
    kind = query.dtype if query.dtype is dt.float64 else dt.float32
    key, value = key.to(query.dtype), value.to(query.dtype)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    if key.shape[0] != query.shape[0]:
        key, value = (t.expand(query.shape[0], -1, -1, -1) for t in (key, value))
    scores = (query @ key.mT).to(kind) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        scores = _everywhere(score_mod, scores, tuple(scores.shape), query.device).to(kind)
    if block_mask is not None:
        scores = F["where"](_allowed(block_mask, tuple(scores.shape), query.device), scores, -math.inf)
    empty = (scores == -math.inf).all(-1, keepdim=True)
    weights = F["where"](empty, 0.0, F["softmax"](F["where"](empty, 0.0, scores), -1))
    out = (weights.to(query.dtype) @ value).to(query.dtype)
    if return_aux is not None:
        return out, AuxOutput(scores.logsumexp(-1) if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (out, scores.logsumexp(-1)) if return_lse else out
