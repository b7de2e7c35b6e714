"""Gamma and Dirichlet samples through which gradients flow (implicit reparameterization)."""
from __future__ import annotations

import jax
import numpy as np

from .._core import dtype as dt
from .._core.errors import not_implemented
from .._core.registry import Op
from .._core.rng_gamma import standard_gamma
from .._public import FUNCTIONS
from .._tensor import Tensor, apply
from .random import _generator, by_values
from .staged_draws import drawn_from
from .unary import special


def _gamma_slope(xp, a, x):
    """d sample / d shape parameter, at a fixed quantile."""
    if xp is np:
        return _gamma_cdf_slope(a.astype(np.float64), x.astype(np.float64))
    wide = np.float32 if a.dtype.itemsize < 4 else a.dtype
    return jax.lax.random_gamma_grad(xp.asarray(a, wide), xp.asarray(x, wide))


def _gamma_cdf_slope(a, x):
    """-(d/da of the regularized incomplete gamma function) / its density, by central differences of the smaller tail."""
    f, step = special(np), 1e-5 * a
    upper = x > a
    slope = np.where(upper, f.gammaincc(a - step, x) - f.gammaincc(a + step, x), f.gammainc(a + step, x) - f.gammainc(a - step, x))
    return -slope / (2 * step) / np.exp((a - 1) * np.log(x) - x - f.gammaln(a))


def _beta_cdf_slope(xp, x, a, b):
    """(d/da of the regularized incomplete beta function) / its density, in double by central differences."""
    step = 1e-5 * a
    f = special(xp).betainc
    slope = (f(a + step, b, x) - f(a - step, b, x)) / (2 * step)
    log_density = (a - 1) * xp.log(x) + (b - 1) * xp.log1p(-x) - special(xp).betaln(a, b)
    return slope / xp.exp(log_density)


def _dirichlet_vjp(xp, g, alpha, x):
    """Each component is Beta(alpha_i, total - alpha_i); the others shrink in proportion."""
    a, s = alpha.astype(np.float64), x.astype(np.float64)
    slope = -_beta_cdf_slope(xp, s, a, xp.sum(a, axis=-1, keepdims=True) - a) / (1 - s)
    return (slope * (g - xp.sum(s * g, axis=-1, keepdims=True))).astype(alpha.dtype), None


_GAMMA = Op("standard_gamma", lambda xp, alpha, sample: +sample, shape=lambda a, s: (a.shape, a.dtype), torch_name="StandardGammaBackward0",
            vjp=lambda xp, g, alpha, sample: (g * _gamma_slope(xp, alpha, sample).astype(g.dtype), None))
_DIRICHLET = Op("dirichlet", lambda xp, alpha, x: +x, shape=lambda a, s: (a.shape, a.dtype), torch_name="_DirichletBackward",
                vjp=_dirichlet_vjp)


def _check(alpha: Tensor) -> None:
    if alpha.dtype.category != dt.FLOAT:
        raise not_implemented("gamma", alpha.dtype)


@by_values
def _gamma_numbers(alpha: Tensor, generator) -> Tensor:
    _check(alpha)
    g = _generator(generator)
    return drawn_from(lambda host: np.maximum(standard_gamma(g, host).astype(host.dtype), np.finfo(host.dtype).tiny), [alpha], tuple(alpha.shape), alpha.dtype.np)


@by_values
def _dirichlet_numbers(alpha: Tensor, generator) -> Tensor:
    _check(alpha)
    generator = _generator(generator)

    def numbers(host):
        limits = np.finfo(host.dtype)
        g = np.maximum(standard_gamma(generator, host.astype(np.float64)), np.finfo(np.float64).tiny)
        return np.clip((g / g.sum(-1, keepdims=True)).astype(host.dtype), limits.tiny, np.nextafter(host.dtype.type(1), host.dtype.type(0)))
    return drawn_from(numbers, [alpha], tuple(alpha.shape), alpha.dtype.np)


def _standard_gamma(alpha: Tensor, generator=None) -> Tensor:
    """Gamma(alpha, 1) samples of alpha's shape, at least the type's smallest number."""
    return apply(_GAMMA, (alpha, _gamma_numbers(alpha, generator)))


def _sample_dirichlet(alpha: Tensor, generator=None) -> Tensor:
    """Dirichlet(alpha) samples over the last dimension. In doubles until the end, as torch: gamma samples of small parameters are tiny."""
    return apply(_DIRICHLET, (alpha, _dirichlet_numbers(alpha, generator)))


FUNCTIONS.update(_sample_dirichlet=_sample_dirichlet, _standard_gamma=_standard_gamma)
