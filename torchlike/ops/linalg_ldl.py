"""A = L D L^T for symmetric and Hermitian matrices that need not be definite (LAPACK's sytrf and hetrf; JAX has neither)."""
from __future__ import annotations

import jax
import numpy as np

from .._arguments import flag
from .._core import dtype as dt
from .._core.registry import Op
from .._public import with_out
from .._tensor import Tensor, apply
from .host_calls import on_host
from .linalg_common import by_columns, each, lapack, need_float, need_matrix, need_same_dtype, need_square, raise_failures
from .named_results import named_result
from .underivable import underived


def _called(xp, function, arrays, like, *rest):
    """`function` of NumPy arrays; a compiled program calls back for it."""
    if xp is np:
        return function(*arrays, *rest)
    return on_host(lambda *xs: function(*xs, *rest), [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in like], *arrays)


def _routine(dtype, name: str, hermitian: bool):
    return lapack(dtype, ("he" if hermitian and dtype.kind == "c" else "sy") + name)


def _factor(a, hermitian):
    def one(m):
        if not m.size:
            return m, np.zeros(0, np.int32), np.int32(0)
        ld, pivots, info = _routine(m.dtype, "trf", hermitian)(m, lower=1)
        return np.tril(ld), pivots.astype(np.int32), np.int32(info)
    return each(one, a, ranks=(2,))


def _solve(ld, pivots, b, hermitian):
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])

    def one(ld, pivots, b):
        return (_routine(ld.dtype, "trs", hermitian)(ld, pivots, b, lower=1)[0] if b.size else b,)
    return each(one, *(np.broadcast_to(x, batch + x.shape[x.ndim - r:]) for x, r in ((ld, 2), (pivots, 1), (b, 2))), ranks=(2, 1, 2))


def _solution(ld, b) -> tuple:
    return (*np.broadcast_shapes(ld.shape[:-2], b.shape[:-2]), *b.shape[-2:])


def _factor_kernel(xp, a, hermitian):
    return _called(xp, _factor, (a,), [(a.shape, a.dtype), (a.shape[:-1], np.int32), (a.shape[:-2], np.int32)], hermitian)


def _solve_kernel(xp, ld, pivots, b, hermitian):
    return _called(xp, _solve, (ld, pivots, b), [(_solution(ld, b), b.dtype)], hermitian)[0]


def _solve_vjp(xp, g, ld, pivots, plan):
    hermitian, = plan.statics
    conj = xp.conj if g.dtype.kind == "c" and not hermitian else lambda x: x  # (A^-1)^H is conj(A^-1) for a symmetric A
    x = conj(_solve_kernel(xp, ld, pivots, conj(g), hermitian))
    return None, None, x.sum(tuple(range(x.ndim - len(plan.avals[2].shape))))


FACTOR = Op("linalg_ldl_factor_ex", _factor_kernel, vjp=False,
            shape=lambda a, hermitian: [(a.shape, a.dtype), (a.shape[:-1], dt.int32), (a.shape[:-2], dt.int32)])
SOLVE = Op("linalg_ldl_solve", _solve_kernel, vjp=_solve_vjp, shape=lambda ld, pivots, b, hermitian: (_solution(ld, b), b.dtype))
_ex_result, _result = named_result("linalg_ldl_factor_ex", "LD", "pivots", "info"), named_result("linalg_ldl_factor", "LD", "pivots")


def _factored(A, hermitian: bool, name: str, check: bool):
    need_square(A, "torch.linalg.ldl_factor_ex")
    need_float(A, "torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu")
    made = apply(FACTOR, (A,), (flag(hermitian),))
    if check:
        raise_failures(made[2], lambda prefix, k: f"torch.linalg.{name}: {prefix}D[{k},{k}] is zero and using it in ldl_solve would result in a "
                       "division by zero.", RuntimeError)
    return underived("linalg_ldl_factor_ex", by_columns(made[0]), A), *made[1:]


@with_out
def ldl_factor_ex(input, *, hermitian: bool = False, check_errors: bool = False) -> _ex_result:
    """(L and D in one matrix, pivots, info); equal negative pivots mark a 2 by 2 block of D. info: the position of a zero in D, or 0."""
    return _ex_result(*_factored(input, hermitian, "ldl_factor_ex", check_errors))


@with_out
def ldl_factor(input, *, hermitian: bool = False) -> _result:
    """(LD, pivots); RuntimeError where D is singular."""
    return _result(*_factored(input, hermitian, "ldl_factor", True)[:2])


@with_out
def ldl_solve(LD, pivots, B, *, hermitian: bool = False) -> Tensor:
    """X with A X = B, A factored by ldl_factor. The gradient reaches B alone."""
    name = "torch.linalg.ldl_solve"
    need_square(LD, name)
    need_matrix(B, name, "B")
    if LD.dtype is not B.dtype:
        need_same_dtype(LD, B, name)
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {list(pivots.shape)} instead")
    if pivots.dtype.category != dt.INT:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.short}")
    if B.shape[-2] != LD.shape[-1]:
        n, (rows, columns) = LD.shape[-1], B.shape[-2:]
        raise RuntimeError(f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {rows} by {columns}")
    made = by_columns(apply(SOLVE, (LD, pivots.to(dt.int32), B), (flag(hermitian),)))
    return underived("linalg_ldl_solve", made, LD, B) if LD.requires_grad else made
