"""Matrix norms, linalg.norm, torch.norm in all its forms, condition numbers, renorm."""
from __future__ import annotations

import math
from typing import Any

from .._arguments import as_dim, real, refuse_learnable
from .._core import dtype as dt
from .._public import named, public, with_out
from .._tensor import Tensor
from .linalg_common import need_float
from .linalg_solve import inv_ex
from .linalg_spectral import svdvals
from .norms import vector_norm
from .reductions import reduced


def _two_dims(dim, ndim: int) -> tuple[int, int]:
    dims = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    a, b = (as_dim(d, ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    return a, b


@with_out
def matrix_norm(input, ord="fro", dim=(-2, -1), keepdim: bool = False, *, dtype=None) -> Tensor:
    """Norms of matrices: 'fro', 'nuc' (sum of singular values), 2 / -2 (the largest, smallest), 1 / -1 (sums of columns), inf / -inf (of rows)."""
    name = "linalg.matrix_norm"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    need_float(input, name, low=True)
    refuse_learnable(ord, "linalg_matrix_norm", "ord", 2)
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")
    if ord not in ("fro", "nuc") and (isinstance(ord, str) or abs(ord) not in (1, 2, math.inf)):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    rows, columns = _two_dims(dim, input.ndim)
    if dtype is not None:
        input = input.to(dtype)
    if ord == "fro":
        return vector_norm(input, 2, (rows, columns), keepdim)
    summed, kept = (rows, columns) if ord in (1, -1) else (columns, rows)
    if ord in (1, 2, math.inf) and 0 in (input.shape[kept], input.shape[summed] if ord == 2 else 1):
        return input.new_zeros(reduced(tuple(input.shape), (rows, columns), keepdim), dtype=input.dtype.to_real())  # the largest of nothing
    if ord in ("nuc", 2, -2):
        rest = [d for d in range(input.ndim) if d not in (rows, columns)]
        values = svdvals(input.permute([*rest, rows, columns]))
        out = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
        if keepdim:
            back = [0] * input.ndim
            for i, d in enumerate([*rest, rows, columns]):
                back[d] = i
            out = out[..., None, None].permute(back)
        return out
    sums = vector_norm(input, 1, summed, True)
    out = sums.amax(kept, True) if ord > 0 else sums.amin(kept, True)
    return out if keepdim else out.squeeze((rows, columns))


@with_out
def linalg_norm(input, ord=None, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """A vector norm for one dim (or no ord), a matrix norm for two."""
    if dim is not None:
        dims = list(dim) if isinstance(dim, (tuple, list)) else [dim]
        if len(dims) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dims}")
        if ord is None:
            return vector_norm(input, 2, dim, keepdim, dtype=dtype)
        if isinstance(ord, str) or len(dims) == 2:
            return matrix_norm(input, ord, dims, keepdim, dtype=dtype)
        return vector_norm(input, ord, dims[0], keepdim, dtype=dtype)
    if ord is None:
        return vector_norm(input, 2, None, keepdim, dtype=dtype)
    if input.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D.")
    if input.ndim == 2 or isinstance(ord, str):
        return matrix_norm(input, ord, (-2, -1), keepdim, dtype=dtype)
    return vector_norm(input, ord, None, keepdim, dtype=dtype)


@public(out=True)
def norm(input: Any, p: float | str | None = "fro", dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """The p-norm of vectors along dim, or of all elements; 'fro' is 2; 'nuc' sums the singular values of a matrix."""
    if dim.__class__ is int:
        dim = [dim]
    if p in ("fro", None) and (p is None or dim is None or len(dim) < 3):
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if isinstance(p, str):
        return matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


@public(method=False, out=True)
def nuclear_norm(input, dim=(-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of singular values."""
    return matrix_norm(input, "nuc", dim, keepdim)


@public(method=False, out=True)
def frobenius_norm(input, dim, keepdim: bool = False) -> Tensor:
    """The 2-norm of all elements over dim."""
    return vector_norm(input, 2, dim, keepdim)


@with_out
def cond(input, p=None) -> Tensor:
    """norm(A) * norm(inverse), in the 2-norm the ratio of extreme singular values; inf for a singular matrix."""
    if input.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    rows, columns = input.shape[-2:]
    if not input.numel() and (rows == columns or not isinstance(p, str)):
        return input.new_zeros(input.shape[:-2], dtype=input.dtype.to_real())
    if p in (None, 2, -2):
        values = svdvals(input)
        high, low = values[..., :1], values[..., -1:]
        return (low / high if p == -2 else high / low).squeeze(-1)
    if p not in ("fro", "nuc") and (isinstance(p, str) or abs(p) not in (1, math.inf)):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if rows != columns:
        raise RuntimeError(f"linalg.cond(ord={p}): A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if p == "nuc":  # the inverse of a singular matrix has no singular values, their reciprocals are inf
        values = svdvals(input)
        return values.sum(-1) * values.reciprocal().sum(-1)
    inverse, info = inv_ex(input)
    out = matrix_norm(input, p) * matrix_norm(inverse, p)
    return out.masked_fill(info != 0, math.inf)


@public(inplace=True, out=True)
def renorm(input, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices along dim scaled down to p-norm maxnorm where they exceed it."""
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    p, maxnorm = real(p, "renorm", "p", 2, "Number"), real(maxnorm, "renorm", "maxnorm", 4, "Number")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    d = as_dim(dim, input.ndim)
    wide = input.float() if input.dtype in (dt.float16, dt.bfloat16) else input
    size = vector_norm(wide, p, [i for i in range(input.ndim) if i != d], True)
    factor = (maxnorm / (size + 1e-7)).masked_fill((size > maxnorm).logical_not(), 1.0)
    return named(input * factor.to(input.dtype.to_real()), "RenormBackward0", input)
