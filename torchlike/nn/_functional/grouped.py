"""grouped_mm: products of groups of rows with a matrix each (mixture of experts)."""
from __future__ import annotations

import jax
import numpy as np

from ..._core.halves import widened
from ..._core.registry import Op
from ..._public import FUNCTIONS, called
from ..._tensor import Tensor, apply
from ...ops.joining import cat, stack
from ...ops.matmul import bmm


def _grouped(xp, x, weight, ends):
    if xp is not np:
        return _traced(xp, x, weight, ends)
    x32, out = widened(x), np.zeros((x.shape[0], weight.shape[2]), x.dtype)
    for k, s, e in _spans(ends, x.shape[0]):
        out[s:e] = x32[s:e] @ widened(weight[k])
    return out


def _grouped_vjp(xp, g, x, weight, ends, needs):
    """Row by row the product with the transposed matrix; matrix by matrix the product of its rows."""
    if xp is not np:
        _, pull = jax.vjp(lambda x, weight: _traced(xp, x, weight, ends), x, weight)
        return *pull(g), None
    g32, x32 = widened(g), widened(x) if needs[1] else None
    of_x, of_weight = np.zeros_like(x) if needs[0] else None, np.zeros_like(weight) if needs[1] else None
    for k, s, e in _spans(ends, x.shape[0]):
        if needs[0]:
            of_x[s:e] = g32[s:e] @ widened(weight[k]).T
        if needs[1]:
            of_weight[k] = x32[s:e].T @ g32[s:e]
    return of_x, of_weight, None


def _traced(xp, x, weight, ends):
    from pallas_kernels import grouped_mm as kernel
    return kernel(x, weight, xp.diff(ends, prepend=xp.zeros(1, ends.dtype)).astype(np.int32), impl="reference")  # others: accelerated.py


def _spans(ends, rows: int):
    """(number, first row, end) of each group that has rows; rows past the last are none's, as in the traced kernel."""
    s = 0
    for k, e in enumerate(np.minimum(ends, rows).tolist()):
        if e > s:
            yield k, s, e
            s = e


GROUPED = Op("grouped_mm", _grouped, shape=lambda x, w, ends: ((x.shape[0], w.shape[2]), x.dtype), vjp=_grouped_vjp)


def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype=None) -> Tensor:
    """Products group by group; offs holds each group's end along the dimension that varies.

    (M, K) x (G, K, N): groups of rows, to (M, N). (G, M, K) x (K-major (K, N)): groups of columns, to (M, N).
    (M, K) x (K, N): groups of the summed dimension, to (G, M, N). (G, M, K) x (G, K, N): bmm, without offs.
    """
    if mat_a.ndim not in (2, 3) or mat_b.ndim not in (2, 3):
        raise RuntimeError(f"mat_a and mat_b have to be 2 or 3 dimensional, got {mat_a.ndim} and {mat_b.ndim}")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if (offs is not None) != (mat_a.ndim == 2 or mat_b.ndim == 2):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if offs is None:
        made = bmm(mat_a, mat_b)
    elif mat_a.ndim == 2 and mat_b.ndim == 3:
        if offs.shape[0] != mat_b.shape[0]:
            raise RuntimeError("matrix batch sizes have to match")
        made = apply(GROUPED, (mat_a, mat_b, offs))
    else:
        ends = offs.tolist()
        ranges = list(zip([0, *ends], ends))
        if mat_a.ndim == 2:
            made = stack([mat_a[:, s:e] @ mat_b[s:e] for s, e in ranges])
        else:
            made = cat([mat_a[g] @ mat_b[:, s:e] for g, (s, e) in enumerate(ranges)], 1)
    return made if out_dtype is None else made.to(out_dtype)


def _grouped_mm(input: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype=None) -> Tensor:
    """grouped_mm under its name in `torch`."""
    return grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


FUNCTIONS["_grouped_mm"] = called(_grouped_mm)
