"""log(exp(x) + exp(y)), to base e and 2, where neither power need be finite."""
from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .blocks import in_blocks
from .choosing import choose
from .exponentials import MANY, softplus
from .pointwise import binary, conj, only


def complex_logaddexp(xp, x, y):
    """The larger by real part, plus what the other adds: its angle is not turned into (-pi, pi]. Of two zeros' logarithms it is y."""
    low, high = xp.where(x.real < y.real, x, y), xp.where(x.real < y.real, y, x)
    alike = (x.real == y.real) & xp.isinf(x.real)  # their difference is NaN
    sums = xp.where(alike, xp.log(xp.exp(low) + xp.exp(high)), high + xp.log1p(xp.exp(xp.where(alike, xp.zeros((), x.dtype), low - high))))
    return xp.where(alike & (x.real < 0), low, sums)


@in_blocks
def _logaddexp(xp, x, y):
    """The larger, and log(1 + exp(-|x - y|))."""
    if x.dtype.kind == "c":
        return complex_logaddexp(xp, x, y)
    if xp is np and x.dtype == np.float32 and x.size >= MANY:
        less = -abs(x - y)
        if not np.isnan(less.max()):  # as it is of equal infinities
            return np.maximum(x, y) + softplus(np, less)
    return xp.logaddexp(x, y)


def _below(xp, x, y, out):
    """x - out; 0 where x is all there is, also where it is infinite."""
    return choose(xp, (x == out) & (x != y), xp.zeros_like(out), x - out)


logaddexp = binary("logaddexp", _logaddexp,
                   promote=only("logaddexp_cpu", dt.FLOAT), inplace=False, grads=(
    lambda xp, g, x, y, out: g * conj(xp, xp.exp(_below(xp, x, y, out))), lambda xp, g, x, y, out: g * conj(xp, xp.exp(_below(xp, y, x, out)))))
logaddexp2 = binary("logaddexp2", lambda xp, x, y: xp.logaddexp2(x, y), promote=only("logaddexp2_cpu", dt.FLOAT), inplace=False, grads=(
    lambda xp, g, x, y, out: g * xp.exp2(_below(xp, x, y, out)), lambda xp, g, x, y, out: g * xp.exp2(_below(xp, y, x, out))), real=True)
