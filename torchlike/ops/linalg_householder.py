"""Products of Householder reflections, and the reflections of a QR factorization."""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from .._core.grad_mode import mode
from .._core.registry import Op
from .._public import public, with_out
from .._tensor import Tensor, apply
from . import cpu_products
from .linalg_common import by_columns, each, lapack, need_matrix
from .named_results import named_result
from .underivable import Underived

_mm = cpu_products.matmul
_geqrf_result = named_result("geqrf", "a", "tau")


def _reflectors_shape(a):
    return [(a.shape, a.dtype), ((*a.shape[:-2], min(a.shape[-2:])), a.dtype)]


def _geqrf_numpy(a):
    return each(lambda m: lapack(m.dtype, "geqrf")(m)[:2] if m.size else (m, np.zeros(min(m.shape), m.dtype)), a, ranks=(2,))


def _geqrf(xp, a):
    reflectors, tau = jax.numpy.linalg.qr(a, mode="raw")
    return [reflectors.swapaxes(-1, -2), tau]


GEQRF = Op("geqrf", _geqrf, numpy=_geqrf_numpy, shape=_reflectors_shape, vjp=False)
_GEQRF_RESULT = Underived("geqrf_result", "the derivative for 'geqrf' is not implemented.", NotImplementedError, "GeqrfBackward0")


def _vectors(xp, a):
    """The reflection vectors below the diagonal, ones on it."""
    return xp.tril(a, -1) + xp.eye(*a.shape[-2:], dtype=a.dtype)


def _product(xp, a, tau):
    m, n, k = *a.shape[-2:], tau.shape[-1]
    if xp is np and math.prod(a.shape[:-2]) <= 16 * k:  # for more matrices than that, all at once are quicker
        build = lapack(a.dtype, "ungqr" if a.dtype.kind == "c" else "orgqr")
        return each(lambda x, t: (build(x, t, lwork=64 * n)[0],), a, tau, ranks=(2, 1))[0]
    q = xp.broadcast_to(xp.eye(m, n, dtype=a.dtype), a.shape)
    steps = _reflections(xp, a, tau)
    if xp is np:
        for v, t in zip(*(x[::-1] for x in steps)):
            q = _reflected(np, q, v, t)
        return q
    return jax.lax.scan(lambda q, x: (_reflected(jnp, q, *x), None), q, steps, reverse=True)[0]


def _reflections(xp, a, tau) -> tuple:
    """Vectors (k, ..., m) and factors (k, ...)."""
    return xp.moveaxis(_vectors(xp, a)[..., :tau.shape[-1]], -1, 0), xp.moveaxis(tau, -1, 0)


def _reflected(xp, q, v, t):
    return q - t[..., None, None] * v[..., :, None] * _mm(xp, xp.conj(v)[..., None, :], q)


def _reflected_vjp(xp, g, q, v, t):
    """Of _reflected: gradients of q, v and t."""
    row = xp.conj(v)[..., None, :]
    of_q, of_g = _mm(xp, row, q), _mm(xp, row, g)  # (..., 1, n)
    to_v = xp.conj(t)[..., None] * (g * xp.conj(of_q)).sum(-1) + t[..., None] * (q * xp.conj(of_g)).sum(-1)
    return _reflected(xp, g, v, xp.conj(t)), -to_v, -(of_g * xp.conj(of_q)).sum((-1, -2))


def _product_vjp(xp, g, a, tau):
    n, k = a.shape[-1], tau.shape[-1]
    q, steps = xp.broadcast_to(xp.eye(*a.shape[-2:], dtype=a.dtype), a.shape), _reflections(xp, a, tau)
    if xp is np:
        before, made = [], []
        for v, t in zip(*(x[::-1] for x in steps)):
            before.append(q)
            q = _reflected(np, q, v, t)
        for v, t in zip(*steps):
            g, *found = _reflected_vjp(np, g, before.pop(), v, t)
            made.append(found)
        to_v, to_tau = (np.stack(x) for x in zip(*made))
    else:
        _, before = jax.lax.scan(lambda q, x: (_reflected(jnp, q, *x), q), q, steps, reverse=True)

        def back(g, x):
            g, *found = _reflected_vjp(jnp, g, *x)
            return g, found
        _, (to_v, to_tau) = jax.lax.scan(back, g, (before, *steps))
    to_a = xp.tril(xp.moveaxis(to_v, 0, -1), -1)
    if k < n:
        to_a = xp.concatenate([to_a, xp.zeros((*a.shape[:-1], n - k), a.dtype)], -1)
    return to_a, xp.moveaxis(to_tau, 0, -1)


HOUSEHOLDER = Op("linalg_householder_product", _product, shape=lambda a, tau: (a.shape, a.dtype), vjp=_product_vjp)


def _without_gradients(input, tau) -> Tensor:
    """The product of no reflections, whose gradients are None in torch."""
    from ..autograd.function import Function

    class LinalgHouseholderProduct(Function):
        @staticmethod
        def forward(ctx, input, tau):
            return apply(HOUSEHOLDER, (input, tau))

        @staticmethod
        def backward(ctx, g):
            return None, None
    return LinalgHouseholderProduct.apply(input, tau)


@with_out
def householder_product(input, tau) -> Tensor:
    """The first columns of H_1 H_2 ... H_k, H_i = 1 - tau_i v_i v_i^H with v_i in column i of A below the diagonal."""
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is equal to {input.ndim}")
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}")
    if input.dtype is not tau.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype.short} does not match input dtype {input.dtype.short}")
    if not input.numel() or not tau.numel():
        return by_columns(_without_gradients(input, tau))
    return by_columns(apply(HOUSEHOLDER, (input, tau)))


@public(out=True)
def orgqr(input, tau: Tensor) -> Tensor:
    """linalg.householder_product(input, tau)."""
    return householder_product(input, tau)


@public(out=True)
def geqrf(input) -> _geqrf_result:
    """(R with the reflection vectors below its diagonal, tau)."""
    need_matrix(input, "torch.geqrf", "input")
    packed, tau = apply(GEQRF, (input,))
    if input.requires_grad and mode.enabled:
        packed, tau = [apply(_GEQRF_RESULT, (x, input)) for x in (packed, tau)]
    return _geqrf_result(by_columns(packed), tau)


def _need_reflections(input: Tensor, tau: Tensor, other: Tensor, left: bool) -> None:
    """torch's errors for the arguments of ormqr."""
    for name, x in ("input", input), ("other", other):
        if x.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    at = -2 if left else -1
    rows = other.shape[at]
    if rows != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{at}] must be equal to input.shape[-2]")
    if not tau.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if tau.shape[-1] != min(rows, input.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{at}], input.shape[-1])")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(f"torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is equal to "
                           f"{input.ndim}")
    if input.ndim != other.ndim:
        raise RuntimeError(f"torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {other.ndim} and input.ndim "
                           f"is equal to {input.ndim}")
    for name, batch in ("tau", tau.shape[:-1]), ("other", other.shape[:-2]):
        if batch != input.shape[:-2]:
            raise RuntimeError(f"torch.ormqr: Expected batch dimensions of {name} to be equal to input.shape[:-2], but got {list(batch)}")
    for name, x in ("tau", tau), ("other", other):
        if x.dtype is not input.dtype:
            raise RuntimeError(f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype{input.dtype.short} and {name} has dtype "
                               f"{x.dtype.short}")


@public(out=True)
def ormqr(input, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q other (other Q for left=False), Q the square product of input's reflections; transpose: Q^H."""
    _need_reflections(input, tau, other, left)
    rows, k = input.shape[-2], tau.shape[-1]
    padding = input.new_zeros(*input.shape[:-2], rows, rows - k)
    from .joining import cat
    q = householder_product(cat([input[..., :k], padding], -1), tau)
    q = q.mH if transpose else q
    return by_columns(q @ other if left else other @ q)


