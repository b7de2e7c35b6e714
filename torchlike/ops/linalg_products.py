"""Products and functions of matrices: powers, traces, Kronecker and cross products, tensor equations."""
from __future__ import annotations

import math

from .._arguments import as_dim, as_int, as_own_dim, need_tensor
from .._core import dtype as dt
from .._core.aval import broadcast_shapes
from .._core.errors import not_implemented
from .._core.history import warn
from .._core.registry import Op
from .._public import named, public, with_out
from .._tensor import Tensor, apply
from .._writing import fill_out
from .linalg_common import need_square
from .linalg_solve import inv, solve
from .matmul import matmul, multi_dot
from .ranges import eye
from .shape_views import RESHAPE

_SHORT, _MANY = 1 << 8, 1 << 14  # a Kronecker product's elements in a row of the second matrix, and in all


@public()
def matrix_power(input, n: int, *, out: Tensor | None = None) -> Tensor:
    """The n-th power of square matrices, by squaring; the inverse's for n < 0."""
    made = _power(input, as_int(n, "n"))
    return made if out is None else fill_out(out, made.contiguous(), name="matrix_power")  # not by columns, as an inverse alone is


def _power(input, n: int) -> Tensor:
    need_square(input, "linalg.matrix_power")
    if n == 0:
        return input.clone().copy_(eye(input.shape[-1], dtype=input.dtype, device=input.device))
    base, n, out = (inv(input), -n, None) if n < 0 else (input, n, None)
    while n:
        if n & 1:
            out = base if out is None else matmul(out, base)
        n >>= 1
        if n:
            base = matmul(base, base)
    return out.clone() if out is input else out


@public()
def trace(input) -> Tensor:
    """The sum of the diagonal."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    if input.dtype is dt.bool_:
        raise not_implemented("trace", input.dtype)
    return named(input.diagonal().sum(), "TraceBackward0", input)


@public(out=True)
def kron(input, other: Tensor) -> Tensor:
    """The Kronecker product."""
    if not isinstance(other, Tensor):
        need_tensor(other, "kron", "'other' (position 2)")
    n = max(input.ndim, other.ndim)
    a, b = [1] * (n - input.ndim) + list(input.shape), [1] * (n - other.ndim) + list(other.shape)
    if input.ndim and other.ndim and b[-1] < _SHORT and math.prod(a) * math.prod(b) >= _MANY:  # by rows, which NumPy takes one at a time
        long = a[-1] * b[-1]
        left = input.reshape(*a, 1).expand(*a, b[-1]).reshape([*[x for s in a[:-1] for x in (s, 1)], long])
        right = other.reshape(*b[:-1], 1, b[-1]).expand(*b[:-1], a[-1], b[-1]).reshape([*[x for s in b[:-1] for x in (1, s)], long])
    else:
        left = input.reshape([x for s in a for x in (s, 1)])
        right = other.reshape([x for s in b for x in (1, s)])
    return apply(RESHAPE, (left * right,), (tuple([x * y for x, y in zip(a, b)]),))  # no view, as in torch: the product need not be kept beside it


def _cross(xp, a, b, dim):
    a, b = xp.broadcast_arrays(a, b)
    return xp.roll(a, -1, dim) * xp.roll(b, 1, dim) - xp.roll(a, 1, dim) * xp.roll(b, -1, dim)


def _cross_vjp(xp, g, a, b, dim):
    return _cross(xp, xp.conj(b), g, dim), _cross(xp, g, xp.conj(a), dim)


CROSS = Op("linalg_cross", _cross, vjp=_cross_vjp, shape=lambda a, b, dim: (broadcast_shapes(a.shape, b.shape), a.dtype))


@with_out
def linalg_cross(input, other, *, dim: int = -1) -> Tensor:
    """The cross products of vectors of three along dim."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = as_own_dim(dim, input.ndim)
    sizes = input.shape[d], other.shape[d]
    if sizes != (3, 3):
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    if input.dtype is dt.bool_:
        raise not_implemented("cross", dt.bool_)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.short} but found {other.dtype.short}")
    return apply(CROSS, (input, other), (d - input.ndim,))


@public(out=True)
def cross(input, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross products along dim, the first dimension of size three by default."""
    if dim is None:
        dim = next((i for i, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
        warn("Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use torch.linalg.cross.\n"
             "The default value of dim will change to agree with that of linalg.cross in a future release.", once=True)
    return linalg_cross(input, other, dim=dim)


@with_out
def vecdot(x, y, *, dim: int = -1) -> Tensor:
    """sum(conj(x) * y) along dim."""
    if x.dtype.category < dt.FLOAT or y.dtype.category < dt.FLOAT:
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype.short}")
    if x.dtype is not y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype.short} and y of type {y.dtype.short} instead")
    return ((x.conj() if x.dtype.is_complex else x) * y).sum(dim)


@with_out
def linalg_multi_dot(tensors) -> Tensor:
    """The product of matrices in the cheapest order; the first and last may be vectors."""
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    for i, t in enumerate(tensors):
        ends = i in (0, len(tensors) - 1)
        if t.ndim != 2 and not (ends and t.ndim == 1):
            raise RuntimeError(f"multi_dot(): the {'first' if i == 0 else 'last'} tensor must be 1D or 2D but got {t.ndim}D" if ends else
                               f"multi_dot(): tensor {i} must be 2D but got {t.ndim}D")
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {tensors[0].dtype.c_name} and tensor {i} {t.dtype.c_name}")
    first, last = tensors[0].ndim == 1, tensors[-1].ndim == 1
    parts = [t.unsqueeze(0) if first and i == 0 else t.unsqueeze(1) if last and i == len(tensors) - 1 else t for i, t in enumerate(tensors)]
    for i in range(len(parts) - 1):
        k, k2 = parts[i].shape[1], parts[i + 1].shape[0]
        if k != k2:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and {list(tensors[i + 1].shape)} "
                               "cannot be multiplied")
    out = multi_dot(parts)
    if first:
        out = out.squeeze(0)
    return out.squeeze(-1) if last else out


def linalg_vander(x, N: int | None = None) -> Tensor:
    """(*, n) to (*, n, N): the powers 0 to N-1 of each element, N = n by default."""
    n = (x.shape[-1] if x.ndim else 1) if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = x if x.dtype.category >= dt.FLOAT else x.to(dt.int64)
    x = x if x.ndim else x.unsqueeze(0)
    powers = x.unsqueeze(-1).expand(*x.shape, n - 1)
    from .joining import cat
    return cat([x.new_ones(*x.shape, 1), powers.cumprod(-1)], -1)


@with_out
def tensorinv(input, ind: int = 2) -> Tensor:
    """B with tensordot(A, B, ind) the identity."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind', but got " + str(ind))
    rows, columns = math.prod(input.shape[:ind]), math.prod(input.shape[ind:])
    if rows != columns:
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {columns} != {rows}")
    return inv(input.reshape(rows, columns)).reshape([*input.shape[ind:], *input.shape[:ind]])


@with_out
def tensorsolve(input, other, dims=None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first."""
    if dims is not None:
        moved = [as_dim(d, input.ndim) for d in dims]
        input = input.permute([d for d in range(input.ndim) if d not in moved] + moved)
    shape = input.shape[other.ndim:]
    size = math.prod(shape)
    if size != math.prod(other.shape):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
                           f"{size} != {math.prod(input.shape[:other.ndim])}")
    return solve(input.reshape(size, size), other.reshape(-1)).reshape(shape)


def linalg_diagonal(A, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A view of the diagonals, of the last two dimensions by default."""
    return A.diagonal(offset, dim1, dim2)


