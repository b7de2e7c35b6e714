"""Attention in NumPy for long sequences: some rows of the scores at a time, as many as the cache holds.

The tiling of FlashAttention (Dao et al. 2022), without its running softmax: a block has all of its rows' scores. What a causal mask
hides is not computed, and the rows' sums divide the results instead of the scores.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

SHORTEST, MANY = 1 << 15, 1 << 18  # scores of a head, and of all, from which blocks take less time than the whole
BLOCK = 1 << 16  # scores of a block
FEWEST = 16  # rows of a block


def pays(q, k) -> bool:
    """Whether blocks take less time: 1.2 to 3 times (256 to 900 rows, causal; 1.0 to 1.7 without; NumPy 2.4 on one core of an EPYC)."""
    scores = q.shape[-2] * k.shape[-2]
    return scores >= SHORTEST and scores * math.prod(q.shape[:-2]) >= MANY


class _Heads:
    """The operands by heads, and how the scores of one are cut into blocks of rows."""

    def __init__(self, q, k, v, mask, drop, keep_scale, scale, causal, groups: int):
        self.batch = np.broadcast_shapes(q.shape[:-2], *(x.shape[:-2] if groups == 1 else (*x.shape[:-3], x.shape[-3] * groups) for x in (k, v)))
        self.n, self.s = q.shape[-2], k.shape[-2]
        self.kind = np.result_type(q.dtype, np.float32)
        self.q = np.broadcast_to(q, (*self.batch, *q.shape[-2:]))
        self.k, self.v = (np.broadcast_to(x, (*self.batch[:-1], self.batch[-1] // groups, *x.shape[-2:]) if groups > 1 else (*self.batch, *x.shape[-2:])) for x in (k, v))
        self.mask, self.drop = (None if x is None else np.broadcast_to(x, (*self.batch, self.n, self.s)) for x in (mask, drop))
        self.keep_scale, self.scale, self.causal, self.groups = self.kind.type(keep_scale or 0), self.kind.type(scale), causal, groups
        self.rows = max(FEWEST, min(BLOCK // self.s, self.n // 4 if causal else self.n))
        self.after = np.triu(np.ones((self.rows, self.rows), bool), 1) if causal else None

    def shared(self, at: tuple) -> tuple:
        """Where the keys and values of a head are."""
        return at if self.groups == 1 else (*at[:-1], at[-1] // self.groups)

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """(first row, end of rows, end of the columns that they see)."""
        for i in range(0, self.n, self.rows):
            end = min(i + self.rows, self.n)
            yield i, end, min(end, self.s) if self.causal else self.s

    def weights(self, at: tuple, q, k, i: int, end: int, seen: int) -> tuple:
        """exp(scores - greatest) of a block, the rows' greatest scores and their sums: 0 and 1 where a row sees nothing; q is scaled."""
        scores = np.matmul(q[i:end], k[:seen].T)
        if self.causal and i < seen:
            np.copyto(scores[:, i:seen], -np.inf, where=self.after[:end - i, :seen - i])  # whatever is there, NaN too
        if self.mask is not None:
            mask = self.mask[at][i:end, :seen]
            if mask.dtype == np.bool_:
                np.copyto(scores, -np.inf, where=~mask)
            else:
                scores += mask
        top = scores.max(-1, keepdims=True)
        if self.mask is not None:
            top[~np.isfinite(top)] = 0
        scores -= top
        np.exp(scores, out=scores)
        total = scores.sum(-1, keepdims=True)
        if self.mask is not None:
            total[total == 0] = 1
        return scores, top, total

    def dropped(self, at: tuple, i: int, end: int, seen: int):
        return self.drop[at][i:end, :seen] * self.keep_scale


def forward(q, k, v, mask, drop, keep_scale, scale, causal, groups: int) -> list:
    """softmax(q k^T * scale + mask) v, and each row's greatest score and sum of exponentials; operands as those of `attention._attention`."""
    h = _Heads(q, k, v, mask, drop, keep_scale, scale, causal, groups)
    out = np.empty((*h.batch, h.n, v.shape[-1]), q.dtype)
    tops, totals = np.empty((2, *h.batch, h.n), h.kind)
    for at in np.ndindex(h.batch):
        qs, ks, vs = h.q[at] * h.scale, h.k[h.shared(at)].astype(h.kind, copy=False), h.v[h.shared(at)].astype(h.kind, copy=False)
        for i, end, seen in h.blocks():
            e, top, total = h.weights(at, qs, ks, i, end, seen)
            tops[at][i:end], totals[at][i:end] = top[:, 0], total[:, 0]
            if h.drop is not None:
                e *= h.dropped(at, i, end, seen)
            out[at][i:end] = np.matmul(e, vs[:seen]) / total
    return [out, tops, totals]


def backward(g, q, k, v, mask, drop, keep_scale, scale, causal, groups: int, needs, g_top=None) -> tuple:
    """Gradients of q, k, v and the mask for every head (those of shared or broadcast ones are still to be added up), None where not needed."""
    h = _Heads(q, k, v, mask, drop, keep_scale, scale, causal, groups)
    made = [np.zeros((*h.batch, *x.shape[-2:]), h.kind) if need else None for x, need in zip((q, k, v), needs)]
    gm = np.zeros((*h.batch, h.n, h.s), h.kind) if needs[3] else None
    gq, gk, gv = made
    for at in np.ndindex(h.batch):
        qs, ks, vs = h.q[at] * h.scale, h.k[h.shared(at)].astype(h.kind, copy=False), h.v[h.shared(at)].astype(h.kind, copy=False)
        gs = g[at].astype(h.kind, copy=False)
        for i, end, seen in h.blocks():
            p, _, total = h.weights(at, qs, ks, i, end, seen)
            p /= total
            kept = 1 if h.drop is None else h.dropped(at, i, end, seen)
            if gv is not None:
                gv[at][:seen] += np.matmul((p * kept).T if h.drop is not None else p.T, gs[i:end])
            if gq is None and gk is None and gm is None:
                continue
            gp = np.matmul(gs[i:end], vs[:seen].T)
            gp *= kept
            gp *= p
            p *= gp.sum(-1, keepdims=True) if g_top is None else gp.sum(-1, keepdims=True) - g_top[at][i:end, None]
            gp -= p
            if gq is not None:
                gq[at][i:end] = np.matmul(gp, ks[:seen]) * h.scale
            if gk is not None:
                gk[at][:seen] += np.matmul(gp.T, qs[i:end])
            if gm is not None:
                gm[at][i:end, :seen] = gp
    return gq, gk, gv, gm
