"""NumPy rules for special functions, by scipy.special."""
from __future__ import annotations

import jax
import numpy as np

from .numpy_lax_rules import dtype_of, in_float32, rule

_SCIPY = {"erf": "erf", "erfc": "erfc", "igamma": "gammainc", "igammac": "gammaincc", "zeta": "zeta",
          "bessel_i0e": "i0e", "bessel_i1e": "i1e", "regularized_incomplete_beta": "betainc"}


@rule(*_SCIPY)
def _by_scipy(eqn):
    import scipy.special
    return in_float32(getattr(scipy.special, _SCIPY[eqn.primitive.name]), dtype_of(eqn))


@rule("erf_inv")
def _erf_inv(eqn):
    from scipy.special import erfinv
    return in_float32(lambda x: np.copysign(erfinv(x), x), dtype_of(eqn))


@rule("lgamma")
def _lgamma(eqn):
    from scipy.special import gammaln

    def lgamma(x):
        r = gammaln(x)
        return np.where(np.isneginf(r), -r, r)  # scipy: -inf at -inf
    return in_float32(lgamma, dtype_of(eqn))


@rule("digamma")
def _digamma(eqn):
    from scipy.special import psi
    at_zero = -np.inf if jax.__version_info__ >= (0, 11) else np.nan

    def digamma(x):
        r = psi(x)
        return np.where(x == 0, r.dtype.type(at_zero), r)
    return in_float32(digamma, dtype_of(eqn))


@rule("polygamma")
def _polygamma(eqn):
    from scipy.special import gamma, psi, zeta

    def polygamma(m, x):
        sign = np.where(np.fmod(m, 2) == 0, -1, 1)
        return np.where(m == 0, psi(x), sign * gamma(m + 1) * zeta(m + 1, x)).astype(x.dtype)
    return in_float32(polygamma, dtype_of(eqn))
