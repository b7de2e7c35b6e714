"""Factorizations without iteration: Cholesky, LU and QR."""
from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._arguments import flag
from .._core import dtype as dt
from .._core.aval import broadcast_shapes
from .._core.errors import not_implemented
from .._core.history import warn
from .._core.registry import Op
from .._public import public, with_out
from .._tensor import Tensor, apply
from .._writing import fill_out
from . import cpu_products
from .linalg_common import adjoint, by_columns, each, eye_like, lapack, need_float, need_matrix, need_same_dtype, need_square, of_symmetric, raise_failures
from .linalg_solve import TRIANGULAR, _triangular, _zero_pivot, solve_triangular
from .named_results import named_result

_mm = cpu_products.matmul

# -- Cholesky ------------------------------------------------------------------------------------------------------------


def _columns(a):
    """Column by column, which tells at which leading minor a Cholesky factorization stops."""
    n = a.shape[-1]
    rows = jnp.arange(n)

    def step(k, state):
        left, info = state
        pivot = left[k, k].real
        stop = (info > 0) | ~(pivot > 0)
        column = jnp.where(rows >= k, left[:, k], 0) / jnp.sqrt(jnp.where(stop, 1, pivot)).astype(a.dtype)
        rest = (rows[:, None] > k) & (rows[None, :] > k)
        new = jnp.where(rest, left - column[:, None] * jnp.conj(column)[None, :], left).at[:, k].set(column)
        return jnp.where(stop, left, new), jnp.where((info == 0) & stop, k + 1, info).astype(np.int32)
    left, info = jax.lax.fori_loop(0, n, step, (jnp.tril(a), jnp.zeros((), np.int32)))
    return jnp.tril(left), info


def _cholesky(xp, a, upper):
    if upper:
        factor, info = _cholesky(xp, adjoint(xp, a), False)
        return [adjoint(xp, factor), info]
    if xp is np:
        try:
            return [np.linalg.cholesky(a), np.zeros(a.shape[:-2], np.int32)]
        except np.linalg.LinAlgError:  # which minor is it?
            pass

        def one(m):
            factor, info = lapack(m.dtype, "potrf")(m, lower=True, clean=True)
            return factor, np.int32(info)
        return each(one, a, ranks=(2,))
    if not a.size:
        return [a, jnp.zeros(a.shape[:-2], np.int32)]
    factor = of_symmetric(lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False), a)
    failed = jnp.any(jnp.isnan(factor), axis=(-2, -1))
    flat = jax.lax.stop_gradient(a).reshape(-1, *a.shape[-2:])
    partial, info = jax.lax.cond(jnp.any(failed), lambda m: jax.vmap(_columns)(m), lambda m: (m, jnp.zeros(m.shape[:1], np.int32)), flat)
    info = jnp.where(failed, info.reshape(a.shape[:-2]), 0).astype(np.int32)
    return [jnp.where((info > 0)[..., None, None], partial.reshape(a.shape), factor), info]


def _cholesky_vjp(xp, g0, out0, upper):
    """Murray, 2016."""
    if upper:
        g0, out0 = adjoint(xp, g0), adjoint(xp, out0)
    h = adjoint(xp, out0)
    p = xp.tril(_mm(xp, h, g0))
    p = 0.5 * (p + adjoint(xp, xp.tril(p, -1)))
    right = TRIANGULAR.kernel(xp, h, p, True, False)  # L^-H P
    return adjoint(xp, TRIANGULAR.kernel(xp, h, adjoint(xp, right), True, False))


CHOLESKY = Op("linalg_cholesky_ex", _cholesky, vjp=_cholesky_vjp,
              shape=lambda a, upper: [(a.shape, a.dtype), (a.shape[:-2], dt.int32)])
_cholesky_ex = named_result("linalg_cholesky_ex", "L", "info")


def _not_positive(name: str):
    return lambda prefix, k: (f"{name}: {prefix}The factorization could not be completed because the input is not positive-definite (the leading "
                              f"minor of order {k} is not positive-definite).")


def _factored(A, upper: bool, name: str, check: bool):
    need_square(A, name)
    need_float(A, name, "cholesky_cpu")
    factor, info = apply(CHOLESKY, (A,), (flag(upper),))
    if check:
        raise_failures(info, _not_positive(name))
    return by_columns(factor), info


@with_out
def cholesky_ex(input, *, upper: bool = False, check_errors: bool = False) -> _cholesky_ex:
    """(L with A = L L^H, info): info is 0, or the order of the leading minor that is not positive-definite."""
    return _cholesky_ex(*_factored(input, upper, "linalg.cholesky", check_errors))


@with_out
def linalg_cholesky(input, *, upper: bool = False) -> Tensor:
    """L with A = L L^H (the upper U with A = U^H U); LinAlgError where A is not positive-definite."""
    return _factored(input, upper, "linalg.cholesky", True)[0]


@public()
def cholesky(input, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """linalg.cholesky(input, upper=upper)."""
    warn("torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch release.\n"
         "torch.cholesky(A, upper=True) is torch.linalg.cholesky(A).mH.", once=True)
    need_square(input, "cholesky")
    if input.dtype.category < dt.FLOAT:
        raise not_implemented("cholesky_cpu", input.dtype)
    made = _factored(input, upper, "cholesky", True)[0]
    return made if out is None else fill_out(out, made.contiguous(), name="cholesky")


def _cholesky_solve(xp, b, factor, upper):
    lower = adjoint(xp, factor) if upper else factor
    y = TRIANGULAR.kernel(xp, lower, b, False, False)
    return TRIANGULAR.kernel(xp, adjoint(xp, lower), y, True, False)


def _of_factor(xp, g, factor, upper):
    """The gradient of a factor for the gradient g of its product with its adjoint; of all its elements, as in torch."""
    g = g + adjoint(xp, g)
    return _mm(xp, factor, g) if upper else _mm(xp, g, factor)


def _cholesky_solve_vjp(xp, g, factor, out, upper, needs):
    gb = _cholesky_solve(xp, g, factor, upper)
    return gb, -_of_factor(xp, _mm(xp, gb, adjoint(xp, out)), factor, upper) if needs[1] else None


def _cholesky_inverse_vjp(xp, g, factor, out, upper):
    return -_of_factor(xp, _mm(xp, _mm(xp, out, g), out), factor, upper)


CHOLESKY_SOLVE = Op("cholesky_solve", _cholesky_solve, vjp=_cholesky_solve_vjp, shape=lambda b, factor, upper: (b.shape, b.dtype))
CHOLESKY_INVERSE = Op("cholesky_inverse", lambda xp, factor, upper: _cholesky_solve(xp, eye_like(xp, factor, factor.shape[-1]), factor, upper),
                      vjp=_cholesky_inverse_vjp, shape=lambda factor, upper: (factor.shape, factor.dtype))


_ZERO_PIVOT = Op("zero_pivot", _zero_pivot, vjp=False, shape=lambda a: (a.shape[:-2], dt.int32))


@public(out=True)
def cholesky_solve(input, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = input, for A = L L^H (L^H L for an upper factor)."""
    if input.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {input.ndim} dimensions instead")
    if L.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {L.ndim} dimensions instead")
    need_square(L, "cholesky_solve")
    need_same_dtype(L, input, "cholesky_solve")
    if input.shape[-2] != L.shape[-1]:
        raise RuntimeError(f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-1]} by {L.shape[-1]} but each b matrix is "
                           f"{input.shape[-2]} by {input.shape[-1]}")
    batch = broadcast_shapes(input.shape[:-2], L.shape[:-2])
    b, factor = input.expand(*batch, *input.shape[-2:]), L.expand(*batch, *L.shape[-2:])
    return by_columns(apply(CHOLESKY_SOLVE, (b, factor), (flag(upper),)))


@public(out=True)
def cholesky_inverse(input, upper: bool = False) -> Tensor:
    """The inverse of L L^H."""
    need_square(input, "cholesky_inverse")
    raise_failures(apply(_ZERO_PIVOT, (input.detach(),)), lambda prefix, k: f"cholesky_inverse: {prefix}The diagonal element {k} is zero, the inversion "
                   "could not be completed because the input matrix is singular.")
    return by_columns(apply(CHOLESKY_INVERSE, (input,), (flag(upper),)))


# -- LU ------------------------------------------------------------------------------------------------------------------

# Small float32 matrices are factored in doubles. Products that are rounded before they are subtracted leave an exact zero as the last pivot of many
# Gram matrices without full rank (every fifth in the direct linear transformation of a homography), where MKL's fused ones leave a small number.
_SMALL = 32
_WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


def _wider(a):
    """The type in which a matrix is factored, None where it is its own."""
    return _WIDER.get(a.dtype) if min(a.shape[-2:]) <= _SMALL else None


def _lu_numpy(a, pivot):
    wider = _wider(a) if pivot else None
    if wider:
        lu, pivots, _ = _lu_numpy(a.astype(wider), pivot)
        with np.errstate(all="ignore"):
            lu = lu.astype(a.dtype)
        return [lu, pivots, _zero_pivot(np, lu)]

    def one(m):
        if not m.size:
            return m, np.arange(1, min(m.shape) + 1, dtype=np.int32), np.int32(0)
        if not pivot:
            return _unpivoted(m)
        lu, pivots, info = lapack(m.dtype, "getrf")(m)
        return lu, pivots.astype(np.int32) + 1, np.int32(info)
    if pivot and a.size > a.shape[-2] * a.shape[-1] * a.shape[-1] and np.isfinite(a).all():
        return _lu_of_many(a)
    return each(one, a, ranks=(2,))


def _lu_of_many(a):
    """More matrices than columns: column by column, all matrices at once."""
    rows, columns = a.shape[-2:]
    lu, k = a.reshape(-1, rows, columns).copy(), min(rows, columns)
    every, pivots = np.arange(len(lu)), np.empty((len(lu), k), np.int32)
    for i in range(k):
        below = lu[:, i:, i]
        best = np.argmax(abs(below.real) + abs(below.imag) if a.dtype.kind == "c" else abs(below), axis=1) + i
        pivots[:, i] = best + 1
        top = lu[every, best]
        lu[every, best] = lu[:, i]
        lu[:, i] = top
        lu[:, i + 1:, i] /= np.where(top[:, i] == 0, 1, top[:, i])[:, None]
        lu[:, i + 1:, i + 1:] -= lu[:, i + 1:, i, None] * top[:, None, i + 1:]
    return [lu.reshape(a.shape), pivots.reshape(*a.shape[:-2], k), _zero_pivot(np, lu).reshape(a.shape[:-2])]


def _unpivoted(m):
    lu, k = m.copy(), min(m.shape)
    with np.errstate(all="ignore"):
        for i in range(k):
            lu[i + 1:, i] /= lu[i, i]
            lu[i + 1:, i + 1:] -= np.outer(lu[i + 1:, i], lu[i, i + 1:])
    return lu, np.arange(1, k + 1, dtype=np.int32), np.int32(_zero_pivot(np, lu))


def _lu(xp, a, pivot):
    if pivot:
        lu, pivots, _ = jax.lax.linalg.lu(a)
        return [lu, (pivots + 1).astype(np.int32), _zero_pivot(jnp, lu)]
    rows, columns, k = jnp.arange(a.shape[-2]), jnp.arange(a.shape[-1]), min(a.shape[-2:])

    def step(lu, i):
        below = rows > i
        column = jnp.where(below, lu[..., :, i] / lu[..., i, i][..., None], 0)
        row = jnp.where(columns > i, lu[..., i, :], 0)
        lu = jnp.where(below[:, None] & (columns == i), column[..., :, None], lu)
        return lu - column[..., :, None] * row[..., None, :], None
    lu, _ = jax.lax.scan(step, a, jnp.arange(k))
    order = jnp.broadcast_to(jnp.arange(1, k + 1, dtype=np.int32), (*a.shape[:-2], k))
    return [lu, order, _zero_pivot(jnp, lu)]


def _lu_vjp(xp, g0, out0, out1):
    """Of L and U in one matrix, A = P L U. A wide matrix is a square one and the rest, P L Y; a tall one likewise, its rest Y U."""
    m, n = out0.shape[-2:]
    k = min(m, n)
    square = out0[..., :k, :k]
    of_lower, of_upper = xp.tril(g0[..., :k, :k], -1), xp.triu(g0[..., :k, :k])

    def by_lower(x):  # L^-H x
        return _triangular(xp, adjoint(xp, square), x, True, True)

    def by_upper(x):  # x U^-H
        return adjoint(xp, _triangular(xp, square, adjoint(xp, x), True, False))
    rest = None
    if m < n:
        rest = by_lower(g0[..., k:])
        of_lower = of_lower - _mm(xp, rest, adjoint(xp, out0[..., k:]))
    elif m > n:
        rest = by_upper(g0[..., k:, :])
        of_upper = of_upper - _mm(xp, adjoint(xp, out0[..., k:, :]), rest)
    upper = xp.triu(square)
    lower = square - upper + xp.eye(k, dtype=square.dtype)
    inner = xp.tril(_mm(xp, adjoint(xp, lower), of_lower), -1) + xp.triu(_mm(xp, of_upper, adjoint(xp, upper)))
    made = by_upper(by_lower(inner))
    if rest is not None:
        made = xp.concatenate([made, rest], -1 if m < n else -2)
    return xp.take_along_axis(made, xp.argsort(_order(xp, out1, m), -1)[..., None], -2)


LU = Op("linalg_lu_factor_ex", _lu, numpy=_lu_numpy, vjp=_lu_vjp,
        shape=lambda a, pivot: [(a.shape, a.dtype), ((*a.shape[:-2], min(a.shape[-2:])), dt.int32), (a.shape[:-2], dt.int32)])


@LU.kernel_for("cpu")
def _lu_cpu(a, pivot):
    wider = _wider(a) if pivot else None
    if not wider:
        return NotImplemented
    lu, pivots, _ = _lu(jnp, a.astype(wider), pivot)
    lu = lu.astype(a.dtype)
    return [lu, pivots, _zero_pivot(jnp, lu)]


def _order(xp, pivots, n):
    """The permutation that the row swaps i <-> pivots[i] - 1 make."""
    if xp is np:
        swaps = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1]) - 1
        order, every = np.tile(np.arange(n), (len(swaps), 1)), np.arange(len(swaps))
        for i, j in enumerate(swaps.T):
            at_i = order[:, i].copy()
            order[:, i] = order[every, j]
            order[every, j] = at_i
        return order.reshape(*pivots.shape[:-1], n)
    return jax.lax.linalg.lu_pivots_to_permutation(pivots - 1, n)


def _permutation_matrix(xp, pivots, n, dtype):
    order = _order(xp, pivots, n)
    return (xp.arange(n)[:, None] == order[..., None, :]).astype(dtype.np)


_OUTSIDE = Op("pivots_outside", lambda xp, p, n: (xp.any(p < 1) + 2 * xp.any(p > n)).astype(np.int32), vjp=False, shape=lambda p, n: ((), dt.int32))


def _need_pivots(pivots: Tensor, n: int, message: Callable[[int], str]) -> None:
    """RuntimeError unless pivots count rows from 1 to n. `message`: 1, or 3, where some are smaller, 2 where only larger ones are."""
    if pivots.device.type != "cpu" or not pivots.numel():
        return
    known = pivots._known()
    if isinstance(known, np.ndarray):  # nobody need wait for what else is recorded
        if found := int((known < 1).any()) + 2 * int((known > n).any()):
            raise RuntimeError(message(found))
    else:
        raise_failures(lambda: apply(_OUTSIDE, (pivots,), (n,)), lambda _, found: message(found), RuntimeError)


PERMUTATION = Op("lu_permutation", _permutation_matrix, vjp=False, shape=lambda p, n, dtype: ((*p.shape[:-1], n, n), dtype))
_lu_result, _lu_factor_result = named_result("linalg_lu", "P", "L", "U"), named_result("linalg_lu_factor", "LU", "pivots")
_lu_with_info = named_result("_lu_with_info", "LU", "pivots", "info", out=False)
_lu_factor_ex, _lu_unpack_result = named_result("linalg_lu_factor_ex", "LU", "pivots", "info"), named_result("lu_unpack", "P", "L", "U")


def _lu_of(A, pivot: bool, name: str):
    if A.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    if A.dtype.category < dt.FLOAT or A.dtype.to_real().itemsize < 4:
        raise not_implemented("lu_cpu", A.dtype)
    if not pivot and A.device.type == "cpu":
        raise RuntimeError(f"{name.replace('torch.lu', 'linalg.lu')}: LU without pivoting is not implemented on the CPU")
    packed, pivots, info = apply(LU, (A,), (flag(pivot),))
    return by_columns(packed), pivots, info


def _halves(lu):
    """(L with ones on its diagonal, U) of a packed factorization."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    one = lu.new_zeros(m, k).fill_diagonal_(1)
    return lu[..., :, :k].tril(-1) + one, lu[..., :k, :].triu()


@with_out
def lu(A: Tensor, *, pivot: bool = True) -> _lu_result:
    """(P, L, U) with A = P L U."""
    packed, pivots, _ = _lu_of(A, pivot, "linalg.lu")
    p = apply(PERMUTATION, (pivots,), (A.shape[-2], A.dtype)) if pivot else A.new_zeros(0)
    return _lu_result(p, *_halves(packed))


@with_out
def lu_factor_ex(A, *, pivot: bool = True, check_errors: bool = False) -> _lu_factor_ex:
    """(L and U in one matrix, 1-based row swaps, info: 0 or the position of a zero on U's diagonal)."""
    packed, pivots, info = _lu_of(A, pivot, "torch.lu_factor")
    if check_errors:
        raise_failures(info, lambda prefix, k: f"torch.linalg.lu_factor: {prefix}U[{k},{k}] is zero and using it on lu_solve would result in a "
                       "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                       "linalg.lu_factor_ex(A, pivot)", RuntimeError)
    return _lu_factor_ex(packed, pivots, info)


@with_out
def lu_factor(A, *, pivot: bool = True) -> _lu_factor_result:
    """(LU, pivots); RuntimeError for a singular matrix."""
    return _lu_factor_result(*lu_factor_ex(A, pivot=pivot, check_errors=True)[:2])


@public(method=False, out=True)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> _lu_unpack_result:
    """(P, L, U) of a packed factorization; empty tensors for what is not asked for."""
    if LU_pivots.dtype is not dt.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                           "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor")
    if unpack_pivots:
        _need_pivots(LU_pivots, LU_data.shape[-2], lambda _: "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                     "Did you properly pass the result of lu_factor?")
    p = apply(PERMUTATION, (LU_pivots,), (LU_data.shape[-2], LU_data.dtype)) if unpack_pivots else LU_data.new_zeros(0)
    return _lu_unpack_result(p, *(_halves(LU_data) if unpack_data else (LU_data.new_zeros(0), LU_data.new_zeros(0))))


@with_out
def linalg_lu_solve(LU, pivots, B, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A X = B (X A = B for left=False), A factored by lu_factor; adjoint: A^H instead of A."""
    name = "linalg.lu_solve"
    need_square(LU, name, "LU")
    need_same_dtype(LU, B, name)
    if not left:
        return linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    if B.ndim < 2 or B.shape[-2] != LU.shape[-1]:
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation AX = B ({LU.shape[-2]}x{LU.shape[-1]} and "
                           f"{'x'.join(map(str, B.shape[-2:]))})")
    _need_pivots(pivots, LU.shape[-1], lambda found: f"Pivots given to lu_solve must all be {'greater or equal to 1' if found != 2 else 'smaller or equal to LU.size(-2)'}. "
                 "Did you properly pass the result of lu_factor?")
    p = apply(PERMUTATION, (pivots,), (LU.shape[-1], LU.dtype))
    if adjoint:
        y = solve_triangular(LU.mH, B, upper=False)
        return by_columns(p @ solve_triangular(LU.mH, y, upper=True, unitriangular=True))
    y = solve_triangular(LU, p.mT @ B, upper=False, unitriangular=True)
    return solve_triangular(LU, y, upper=True)


@public(out=True)
def lu_solve(input, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """linalg.lu_solve(LU_data, LU_pivots, input)."""
    warn("torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.\n"
         "torch.lu_solve(B, LU, pivots) is torch.linalg.lu_solve(LU, pivots, B).", once=True)
    return linalg_lu_solve(LU_data, LU_pivots, input)


def _torch_lu(A, pivot: bool = True, get_infos: bool = False, out=None) -> tuple[Tensor, ...]:
    """(LU, pivots), and info with get_infos."""
    warn("torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future PyTorch release.\n"
         "torch.linalg.lu_factor_ex returns what get_infos=True asks for.", once=True)
    made = lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    if out is not None:
        for target, new in zip(out, made):
            target.resize_(new.shape).copy_(new)
        return out
    return _lu_with_info(*made) if get_infos else tuple(made[:2])


_torch_lu.__name__ = "lu"
public()(_torch_lu)

# -- QR ------------------------------------------------------------------------------------------------------------------


def _qr(xp, a, mode):
    if mode == "r":
        return [xp.zeros(0, a.dtype), xp.linalg.qr(a, mode="r")]
    q, r = xp.linalg.qr(a, mode=mode)
    return [q, r]


def _qr_shape(a, mode):
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    return [((0,) if mode == "r" else (*batch, m, k), a.dtype), ((*batch, k, n), a.dtype)]


def _qr_vjp(xp, g0, g1, a, out0, out1):
    """Walter and Lehmann, 2010; a wide matrix is a square one, Q R = X, and the rest, Q^H Y."""
    q, r, gq, gr = out0, out1, g0, g1
    m, n = a.shape[-2:]
    if n > m:
        rest, grest = a[..., m:], gr[..., m:]
        gq = gq + _mm(xp, rest, adjoint(xp, grest))
        gy = _mm(xp, q, grest)
        r, gr = r[..., :m], gr[..., :m]
    k = _mm(xp, r, adjoint(xp, gr)) - _mm(xp, adjoint(xp, gq), q)
    low = xp.tril(k, -1)
    symmetric = low + adjoint(xp, low) + xp.eye(k.shape[-1], dtype=k.dtype) * k.real.astype(k.dtype)
    right = gq + _mm(xp, q, symmetric)
    out = adjoint(xp, TRIANGULAR.kernel(xp, r, adjoint(xp, right), True, False))  # right R^-H
    return xp.concatenate([out, gy], axis=-1) if n > m else out


def _refused(words: str):
    """A hook of a node whose derivative does not exist."""
    def refuse(grads) -> None:
        raise RuntimeError(words)
    return refuse


QR = Op("linalg_qr", _qr, shape=_qr_shape, vjp=_qr_vjp)
_linalg_qr, _qr_result = named_result("linalg_qr", "Q", "R"), named_result("qr", "Q", "R")


@with_out
def linalg_qr(A, mode: str = "reduced") -> _linalg_qr:
    """(Q, R) with A = Q R; mode 'complete' for a square Q, 'r' for R alone."""
    need_matrix(A, "linalg.qr")
    need_float(A, "linalg.qr", "geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    q, r = apply(QR, (A,), (mode,))
    if r._edge is not None:
        if mode == "r":
            r._edge.register_prehook(_refused("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
                                              "mode='reduced') if you are going to differentiate through linalg.qr."))
        elif mode == "complete" and A.shape[-2] > A.shape[-1]:
            r._edge.register_prehook(_refused("The QR decomposition is not differentiable when mode='complete' and nrows > ncols."))
    return _linalg_qr(q if mode == "r" else by_columns(q), by_columns(r))


@public(out=True)
def qr(input, some: bool = True) -> _qr_result:
    """(Q, R); a square Q for some=False."""
    warn("torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\n"
         "Instead of some=False, torch.linalg.qr takes mode='complete'.", once=True)
    return _qr_result(*linalg_qr(input, "reduced" if flag(some) else "complete"))
