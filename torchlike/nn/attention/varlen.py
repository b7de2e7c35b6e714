"""Attention of sequences of different lengths that lie one behind the other in one tensor."""
from __future__ import annotations

import math
from typing import NamedTuple

from torchlike._core.grad_mode import mode
from torchlike._public import FUNCTIONS
from torchlike._tensor import Tensor
from torchlike.autograd import no_grad
from torchlike.ops.from_data import tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What varlen_attn returns beside the results: `lse`, the logarithms of the sums of exponentials."""

    lse: bool = False


def _places(starts: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Where the elements of each sequence lie, (sequences, most), and which of them there are."""
    at = FUNCTIONS["arange"](most, device=starts.device)
    first, end = starts[:-1].long()[:, None], starts[1:].long()[:, None]
    return first + at, at < end - first


def _gathered(x: Tensor, places: Tensor, there: Tensor) -> Tensor:
    """The elements (sequences, heads, most, size) at those places; zeros where there is none."""
    taken = x[places.clamp(max=x.shape[0] - 1)]
    return taken.masked_fill(~there[:, :, None, None], 0.0).transpose(1, 2)


def _check(query: Tensor, key: Tensor, paged: bool, window_size: tuple[int, int], enable_gqa: bool) -> None:
    heads, own = query.size(1), key.size(2 if paged else 1)
    if not enable_gqa and heads != own:
        raise ValueError(f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={own}. Try setting enable_gqa=True for GQA.")
    if enable_gqa and heads % own:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={own}.")
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")


def varlen_attn(query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None, max_q: int, max_k: int, *,
                return_aux: AuxRequest | None = None, scale: float | None = None, window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
                seqused_k: Tensor | None = None, block_table: Tensor | None = None, num_splits: int | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """Attention within each sequence: query (T_q, H_q, D), key and value (T_k, H_kv, D), whose sequences begin at `cu_seq_q` and `cu_seq_k`
    (sequences + 1), none longer than `max_q` and `max_k`. The result is (T_q, H_q, D); with `AuxRequest(lse=True)` also float32 (H_q, T_q).

    `window_size`: how many keys before and behind a query's own place count, -1 for all; places are counted from the sequences' ends.
    `seqused_k`: how many keys of each sequence count. `block_table` (sequences, pages): keys and values are pages (pages, size, H_kv, D).
    ValueError for numbers of heads that do not fit. `num_splits` changes nothing.
    """
    _check(query, key, block_table is not None, window_size, enable_gqa)
    if mode.enabled and any(t.requires_grad for t in (query, key, value)):
        for name, given in (("seqused_k", seqused_k), ("block_table", block_table)):
            if given is not None:
                raise RuntimeError(f"{name} is an inference-only parameter.")
    q_places, q_there = _places(cu_seq_q, max_q)
    if block_table is not None:
        size = key.shape[1]
        at = FUNCTIONS["arange"](max_k, device=key.device)
        k_places = block_table.long().clamp(min=0)[:, at // size] * size + at % size
        k_there = at < seqused_k.long()[:, None]
        key, value = key.flatten(0, 1), value.flatten(0, 1)
    else:
        k_places, k_there = _places(cu_seq_k, max_k)
        if seqused_k is not None:
            k_there = k_there & (FUNCTIONS["arange"](max_k, device=key.device) < seqused_k.long()[:, None])
    q, k, v = _gathered(query, q_places, q_there), _gathered(key, k_places, k_there), _gathered(value, k_places, k_there)
    if enable_gqa:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    seen = k_there[:, None, :]
    left, right = window_size
    apart = FUNCTIONS["arange"](max_k, device=q.device)[None, None, :] - FUNCTIONS["arange"](max_q, device=q.device)[None, :, None]
    apart = apart - (k_there.sum(1) - q_there.sum(1))[:, None, None]
    if left >= 0:
        seen = seen & (apart >= -left)
    if right >= 0:
        seen = seen & (apart <= right)
    scores = (q.float() @ k.float().transpose(2, 3)) * (1 / math.sqrt(query.shape[2]) if scale is None else scale)
    scores = scores.masked_fill(~seen[:, None], -math.inf)
    most = scores.detach().amax(-1, keepdim=True).clamp(min=-1e30)
    shares = (scores - most).exp()
    total = shares.sum(-1, keepdim=True)
    made = (shares / total.clamp(min=1e-30)).to(v.dtype) @ v
    made = _packed(made.transpose(1, 2), cu_seq_q, query.shape[0], max_q)
    if return_aux is None or not return_aux.lse:
        return made
    lse = FUNCTIONS["where"](total > 0, most + total.log(), tensor(math.inf, device=q.device)).detach()[..., 0]
    return made, _packed(lse.transpose(1, 2), cu_seq_q, query.shape[0], max_q).t().contiguous()


def _packed(x: Tensor, starts: Tensor, total: int, most: int) -> Tensor:
    """(sequences, most, ...) as the sequences lie, (total, ...); zeros where no sequence lies."""
    at = FUNCTIONS["arange"](total, device=x.device)
    which = FUNCTIONS["searchsorted"](starts.long(), at, right=True) - 1
    outside = (which < 0) | (which >= x.shape[0])
    which = which.clamp(0, x.shape[0] - 1)
    made = x[which, (at - starts.long()[which]).clamp(0, most - 1)]
    return made.masked_fill(outside.reshape(-1, *[1] * (made.ndim - 1)), 0.0)


def varlen_attn_out(out: Tensor, query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None, max_q: int, max_k: int, *,
                    return_aux: AuxRequest | None = None, scale: float | None = None, window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
                    seqused_k: Tensor | None = None, block_table: Tensor | None = None, num_splits: int | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """The same, written into `out`; not differentiated."""
    with no_grad():
        made = varlen_attn(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, return_aux=AuxRequest(True), scale=scale, window_size=window_size,
                           enable_gqa=enable_gqa, seqused_k=seqused_k, block_table=block_table, num_splits=num_splits)
        out.copy_(made[0])
    return (out, made[1]) if return_aux is not None and return_aux.lse else out
