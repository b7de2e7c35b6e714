"""Systems of linear equations: solve, inverse, triangular systems, determinants."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from .._arguments import flag
from .._core import dtype as dt
from .._core.aval import broadcast_shapes
from .._core.history import warn
from .._core.registry import Op
from .._core.triangular import solve_triangle, substitute
from .._public import FUNCTIONS, public, with_out
from .._tensor import Tensor, apply
from . import cpu_products
from .extreme_places import place_of
from .linalg_common import adjoint, by_columns, each, eye_like, lapack, need_float, need_matrix, need_same_dtype, need_square, raise_failures
from .named_results import named_result
from .small_systems import are_small, solve_small

_mm = cpu_products.matmul


def _zero_pivot(xp, lu):
    """The 1-based position of the first zero on the diagonal of U, 0 where there is none."""
    zero = xp.diagonal(lu, axis1=-2, axis2=-1) == 0
    if not zero.shape[-1]:
        return xp.zeros(zero.shape[:-1], np.int32)
    place = zero.argmax(axis=-1) if xp is np else place_of(zero, -1, False, True)
    return xp.where(xp.any(zero, axis=-1), place + 1, 0).astype(np.int32)


def _solve(xp, a, b):
    """(x with a x = b, position of a zero pivot); matrices b, batch dimensions equal."""
    if xp is np:
        try:
            return [np.linalg.solve(a, b) if a.size and b.size else np.zeros(b.shape, b.dtype), np.zeros(a.shape[:-2], np.int32)]
        except np.linalg.LinAlgError:
            def one(m, r):
                lu, pivots, info = lapack(m.dtype, "getrf")(m)
                return (lapack(m.dtype, "getrs")(lu, pivots, r)[0] if info == 0 else np.full_like(r, np.nan)), np.int32(info)
            return each(one, a, b, ranks=(2, 2))
    lu, _, order = jax.lax.linalg.lu(a)
    b = jnp.take_along_axis(b, order[..., None], axis=-2)
    y = jax.lax.linalg.triangular_solve(lu, b, left_side=True, lower=True, unit_diagonal=True)
    return [jax.lax.linalg.triangular_solve(lu, y, left_side=True, lower=False), _zero_pivot(xp, lu)]


def _solve_vjp(xp, g0, a, out0, needs):
    gb = _solve(xp, adjoint(xp, a), g0)[0]
    return (-_mm(xp, gb, adjoint(xp, out0)) if needs[0] else None), gb


SOLVE = Op("linalg_solve_ex", _solve, vjp=_solve_vjp, shape=lambda a, b: [(b.shape, b.dtype), (a.shape[:-2], dt.int32)])


def _inv_vjp(xp, g0, out0):
    h = adjoint(xp, out0)
    return -_mm(xp, _mm(xp, h, g0), h)


INV = Op("linalg_inv_ex", lambda xp, a: _solve(xp, a, eye_like(xp, a, a.shape[-1])), vjp=_inv_vjp,
         shape=lambda a: [(a.shape, a.dtype), (a.shape[:-2], dt.int32)])


@SOLVE.kernel_for("cpu")
def _solve_cpu(a, b):
    return solve_small(a, b) if are_small(a, b) else NotImplemented


@INV.kernel_for("cpu")
def _inv_cpu(a):
    return _solve_cpu(a, eye_like(jnp, a, a.shape[-1]))


_inv_ex, _solve_ex_result = named_result("linalg_inv_ex", "inverse", "info"), named_result("linalg_solve_ex", "result", "info")


def _singular_inverse(prefix: str, k: int) -> str:
    return f"linalg.inv: {prefix}The diagonal element {k} is zero, the inversion could not be completed because the input matrix is singular."


@with_out
def inv_ex(A, *, check_errors: bool = False) -> _inv_ex:
    """(inverse, info): info is 0, or the 1-based position of a zero pivot of a singular matrix."""
    need_square(A, "linalg.inv")
    need_float(A, "linalg.inv")
    result, info = apply(INV, (A,))
    if check_errors:
        raise_failures(info, _singular_inverse)
    return _inv_ex(by_columns(result), info)


@with_out
def inv(A) -> Tensor:
    """The inverse of square matrices; LinAlgError for a singular one."""
    return inv_ex(A, check_errors=True).inverse


@public(out=True)
def inverse(input) -> Tensor:
    """linalg.inv(input)."""
    return inv(input)


@with_out
def solve_ex(A, B, *, left: bool = True, check_errors: bool = False) -> _solve_ex_result:
    """(X with A X = B, or X A = B for left=False; info)."""
    need_square(A, "linalg.solve")
    need_float(A, "linalg.solve")
    need_same_dtype(A, B, "linalg.solve")
    a, b = tuple(A.shape), tuple(B.shape)
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and b == a[:-1])
    if vector:
        if not left:
            raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve "
                               "is equivalent to B / A.squeeze(-1)")
        B = B.unsqueeze(-1)
        b = tuple(B.shape)
    elif B.ndim < 2:
        raise RuntimeError("linalg.solve: The input tensor B must have at least 2 dimensions.")
    if b[-2 if left else -1] != a[-1]:
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})")
    batch = broadcast_shapes(a[:-2], b[:-2])
    if a[:-2] != batch:
        A = A.expand(*batch, *a[-2:])
    if b[:-2] != batch:
        B = B.expand(*batch, *b[-2:])
    if left:
        x, info = apply(SOLVE, (A, B))
        by_columns(x)
    else:
        x, info = apply(SOLVE, (A.mT, B.mT))
        x = x.mT.contiguous()
    if check_errors:
        raise_failures(info, lambda prefix, k: f"torch.linalg.solve: {prefix}The solver failed because the input matrix is singular.")
    if vector:
        x = x.squeeze(-1) if x.ndim == 2 else by_columns(x.squeeze(-1).clone())
    return _solve_ex_result(x, info)


@with_out
def solve(A, B, *, left: bool = True) -> Tensor:
    """X with A X = B (X A = B for left=False); LinAlgError for a singular A."""
    return solve_ex(A, B, left=left, check_errors=True).result


# -- triangular systems --------------------------------------------------------------------------------------------------


def _triangular(xp, a, b, upper, unit):
    if xp is np:
        if a.size > a.shape[-1] ** 3:  # more matrices than rows: row by row, all matrices at once
            return substitute(a, b, not upper, unit)
        return each(lambda m, r: (solve_triangle(m, r, not upper, unit),), a, b, ranks=(2, 2))[0]
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=not upper, unit_diagonal=unit)


def _triangular_vjp(xp, g, a, out, upper, unit, needs):
    gb = _triangular(xp, adjoint(xp, a), g, not upper, unit)
    if not needs[0]:
        return None, gb
    ga = -_mm(xp, gb, adjoint(xp, out))
    return (xp.triu if upper else xp.tril)(ga, (1 if upper else -1) if unit else 0), gb


TRIANGULAR = Op("linalg_solve_triangular", _triangular, shape=lambda a, b, upper, unit: (b.shape, b.dtype), vjp=_triangular_vjp)


@with_out
def solve_triangular(input, B, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with A X = B (X A = B for left=False) for a triangular A, of which only that triangle is read."""
    name = "linalg.solve_triangular"
    need_square(input, name)
    need_matrix(B, name, "B")
    need_same_dtype(input, B, name)
    a, b = tuple(input.shape), tuple(B.shape)
    if b[-2 if left else -1] != a[-1]:
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})")
    batch = broadcast_shapes(a[:-2], b[:-2])
    input, B = input.expand(*batch, *a[-2:]), B.expand(*batch, *b[-2:])
    if left:
        return by_columns(apply(TRIANGULAR, (input, B), (flag(upper), flag(unitriangular))))
    return by_columns(apply(TRIANGULAR, (input.mT, B.mT), (not upper, flag(unitriangular))).mT.contiguous())


_triangular_solve_result = named_result("triangular_solve", "solution", "cloned_coefficient")


@public(out=True)
def triangular_solve(input, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> _triangular_solve_result:
    """(X with A X = input, a copy of A); transpose: A.T X = input."""
    warn("torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be removed in a future PyTorch release.\n"
         "torch.linalg.solve_triangular takes A first and returns X alone.", once=True)
    need_matrix(input, "torch.triangular_solve", "b")
    need_square(A, "triangular_solve")
    x = solve_triangular(A.mT if transpose else A, input, upper=upper != transpose, unitriangular=unitriangular)
    return _triangular_solve_result(x, by_columns(A.clone()))


# -- determinants --------------------------------------------------------------------------------------------------------


def _det(xp, a):
    return xp.linalg.det(a)


def _cofactors(xp, a, det):
    """conj(det) a^-H; zeros for a singular matrix, as in torch."""
    singular = (det == 0)[..., None, None]
    identity = eye_like(xp, a, a.shape[-1])
    inverse = _solve(xp, xp.where(singular, identity, a), identity)[0]
    return xp.conj(det)[..., None, None] * adjoint(xp, inverse)


DET = Op("linalg_det", _det, shape=lambda a: (a.shape[:-2], a.dtype), torch_name="LinalgDetBackward0",
         vjp=lambda xp, g, a, out: g[..., None, None] * _cofactors(xp, a, out))


def _slogdet_vjp(xp, g0, g1, a, out0):
    h = adjoint(xp, _solve(xp, a, eye_like(xp, a, a.shape[-1]))[0])
    g = g1 if a.dtype.kind != "c" else g1 - 1j * (xp.conj(g0) * out0).imag
    return g[..., None, None].astype(a.dtype) * h


SLOGDET = Op("linalg_slogdet", lambda xp, a: list(xp.linalg.slogdet(a)), vjp=_slogdet_vjp,
             shape=lambda a: [(a.shape[:-2], a.dtype), (a.shape[:-2], a.dtype.to_real())])
_linalg_slogdet, _slogdet = named_result("linalg_slogdet", "sign", "logabsdet"), named_result("slogdet", "sign", "logabsdet")


@with_out
def linalg_det(A) -> Tensor:
    """The determinant of square matrices."""
    need_square(A, "linalg.det")
    need_float(A, "linalg.det", "lu_cpu")
    return apply(DET, (A,))


@public()
def det(input) -> Tensor:
    """The determinant of square matrices."""
    return linalg_det(input)


@with_out
def linalg_slogdet(A) -> _linalg_slogdet:
    """(sign, log |det|) of square matrices; (0, -inf) for a singular one."""
    need_square(A, "linalg.slogdet")
    need_float(A, "linalg.slogdet")
    return _linalg_slogdet(*apply(SLOGDET, (A,)))


@public(out=True)
def slogdet(input) -> _slogdet:
    """linalg.slogdet(input)."""
    return _slogdet(*linalg_slogdet(input))


@public()
def logdet(input) -> Tensor:
    """log det; NaN for a negative determinant, -inf for zero."""
    need_square(input, "logdet")
    need_float(input, "logdet")
    sign, size = apply(SLOGDET, (input,))
    if not input.dtype.is_complex:
        return FUNCTIONS["where"](sign == -1, float("nan"), size)  # no gradient either
    return size + sign.log()
