"""Orthogonal polynomials of torch.special: elementwise in x and the degree n, without derivatives, as in torch."""
from __future__ import annotations

import jax
import numpy as np

from .special import elementwise_function


def _climb(xp, x, n, first, step):
    """p_n(x) by the recurrence p_{k+1} = step(k, x, p_k, p_{k-1}), from p_0 = 1 and p_1 = first."""
    one = xp.ones_like(x)

    def goes_on(state):
        return xp.any((state[0] < n) & ~xp.isnan(state[2]))  # what is not a number stays so

    def climb(state):
        k, below, at, out = state
        above = step(xp.asarray(k, x.dtype), x, at, below)
        return k + 1, at, above, xp.where(n == k + 1, above, out)
    state = 1, one, first, xp.where(n == 0, one, first)
    if xp is not np:
        state = jax.lax.while_loop(goes_on, climb, state)
    else:
        with np.errstate(all="ignore"):
            while goes_on(state):
                state = climb(state)
    k, _, at, out = state
    return xp.where((k < n) & xp.isnan(at), at, out)


def _polynomial(name: str, first, step, angle=None, ends=None, shifted: bool = False, limits: dict | None = None):
    """torch.special.<name>. angle(xp, theta, n): the closed form for x = cos(theta); ends: of n, the sizes of the values at 1 and -1;
    limits: the largest degree by dtype, NaN beyond it."""
    def kernel(xp, x, n):
        x, n = xp.broadcast_arrays(x, n)
        n = xp.where(abs(n) < 2.0 ** 63, n, -1).astype(np.int64)
        x = 2 * x - 1 if shifted else x
        closed = (xp.abs(x) <= 1) & (n > 8) if angle else xp.zeros(x.shape, bool)
        out = _climb(xp, x, xp.where(closed, 0, n), first(x), step)
        if angle:
            out = xp.where(closed, angle(xp, xp.arccos(xp.where(closed & (abs(x) < 1), x, 0)), n.astype(x.dtype)), out)
            for end, size in zip((1, -1), ends):
                out = xp.where(closed & (x == end), (size(n) * (1 - 2 * (n & 1) * (end < 0))).astype(x.dtype), out)
        if limits:
            out = xp.where(n > limits[x.dtype.itemsize], np.asarray(np.nan, x.dtype), out)
        return xp.where(n < 0, xp.zeros_like(x), out)
    return elementwise_function(name, kernel, parameters="x, n", low=False)


def _chebyshev(kind: str, first, angle, *ends) -> tuple:
    def step(k, x, at, below):
        return 2 * x * at - below
    return (_polynomial(f"chebyshev_polynomial_{kind}", first, step, angle, ends),
            _polynomial(f"shifted_chebyshev_polynomial_{kind}", first, step, angle, ends, shifted=True))


_T, _U = lambda xp, a, n: xp.cos(n * a), lambda xp, a, n: xp.sin((n + 1) * a) / xp.sin(a)
_V, _W = lambda xp, a, n: xp.cos((n + 0.5) * a) / xp.cos(a / 2), lambda xp, a, n: xp.sin((n + 0.5) * a) / xp.sin(a / 2)
chebyshev_polynomial_t, shifted_chebyshev_polynomial_t = _chebyshev("t", lambda x: x, _T, lambda n: 1, lambda n: 1)
chebyshev_polynomial_u, shifted_chebyshev_polynomial_u = _chebyshev("u", lambda x: 2 * x, _U, lambda n: n + 1, lambda n: n + 1)
chebyshev_polynomial_v, shifted_chebyshev_polynomial_v = _chebyshev("v", lambda x: 2 * x - 1, _V, lambda n: 1, lambda n: 2 * n + 1)
chebyshev_polynomial_w, shifted_chebyshev_polynomial_w = _chebyshev("w", lambda x: 2 * x + 1, _W, lambda n: 2 * n + 1, lambda n: 1)
_LIMITS = {4: 128, 8: 512}
hermite_polynomial_h = _polynomial("hermite_polynomial_h", lambda x: 2 * x, lambda k, x, at, below: 2 * x * at - 2 * k * below, limits=_LIMITS)
hermite_polynomial_he = _polynomial("hermite_polynomial_he", lambda x: x, lambda k, x, at, below: x * at - k * below, limits=_LIMITS)
laguerre_polynomial_l = _polynomial("laguerre_polynomial_l", lambda x: 1 - x, lambda k, x, at, below: ((2 * k + 1 - x) * at - k * below) / (k + 1))
legendre_polynomial_p = _polynomial("legendre_polynomial_p", lambda x: x, lambda k, x, at, below: ((2 * k + 1) * x * at - k * below) / (k + 1))
