"""Poisson and binomial samples, in torch's order of draws.

Large means by transformed rejection: Hörmann, "The transformed rejection method for generating Poisson random variables", 1993, and
"The generation of binomial random variates", 1993; small ones by multiplying uniforms and by adding up geometric waiting times.
"""

import functools
import math
from collections.abc import Callable

import numpy as np

from . import rng_poisson_loop
from .rng_generator import Generator
from .rng_normal import exp
from .rng_rejection import accepted_pairs, doubles, products

_MANY, _FOR_XLA = 16, 512  # elements from which on arrays pay, and XLA once it is there


def _floor(x: float) -> float:
    return float(math.floor(x)) if abs(x) < math.inf else x


def _product(uniform: Callable[[], float], rate: float) -> float:
    if rate == 0:
        return 0.0
    limit, product, k = math.exp(-rate), uniform(), 0.0
    while product > limit:
        product *= uniform()
        k += 1
    return k


def _hat(rate, sqrt=math.sqrt) -> tuple:
    """b, a, the reciprocal of alpha and the level of immediate acceptance of a rate (or of an array of rates)."""
    b = 0.931 + 2.53 * sqrt(rate)
    return b, -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)


def _accepted(rate: float, hat: tuple, u: float, v: float) -> bool:
    b, a, inverse_alpha, accept = hat
    us = 0.5 - abs(u)
    if us >= 0.07 and v <= accept:
        return True
    k = _floor((2 * a / us + b) * u + rate + 0.43) if us else -1
    if k < 0 or (us < 0.013 and v > us):
        return False
    height = _log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
    return height <= -rate + k * math.log(rate) - math.lgamma(k + 1)


def _transformed(uniform: Callable[[], float], rate: float) -> float:
    hat = b, a, _, _ = _hat(rate)
    while True:
        u, v = uniform() - 0.5, uniform()
        if _accepted(rate, hat, u, v):
            return _floor((2 * a / (0.5 - abs(u)) + b) * u + rate + 0.43) if rate < math.inf else rate


def _by_xla(gen: Generator, rates: np.ndarray) -> np.ndarray:
    """Of rates that are not negative."""
    large, parameters = rates >= 10, np.zeros((7, rates.size))
    parameters[0] = rates
    parameters[1] = np.where(large, 0, exp(-np.minimum(rates, 10)))
    if not large.any():
        return rng_poisson_loop.chosen(gen, parameters, bool)
    from_ten = np.maximum(rates, 10)
    parameters[2:] = b, a, _, _, _ = *_hat(from_ten, np.sqrt), np.log(from_ten)
    hats = parameters[2:6]

    def accepts(i: int, u: float, v: float) -> bool:
        return _accepted(float(rates[i]), tuple(hats[:, i].tolist()), u, v)
    found = rng_poisson_loop.chosen(gen, parameters, accepts)
    u = np.where(large, found, 0)
    return np.where(large, np.floor((2 * a / (0.5 - abs(u)) + b) * u + rates + 0.43), found)


def _all_transformed(gen: Generator, rates: np.ndarray) -> np.ndarray:
    hats = b, a, _, level = _hat(rates, np.sqrt)
    given = list(zip(rates.tolist(), zip(*(part.tolist() for part in hats))))
    rate = float(rates.min())
    if rate == rates.max():
        judged = functools.partial(_judged, rate)
    else:
        def judged(u, v):
            taken = (abs(u) <= 0.43) & (v <= level.min())
            return taken, ~taken
    u = accepted_pairs(gen, rates.size, judged, lambda i, u, v: _accepted(*given[i], u, v))
    with np.errstate(invalid="ignore"):
        return np.where(rates < np.inf, np.floor((2 * a / (0.5 - abs(u)) + b) * u + rates + 0.43), rates)


def _judged(rate: float, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_accepted` of arrays, and where other functions than the C library's may have decided."""
    from scipy.special import gammaln

    b, a, inverse_alpha, accept = _hat(rate)
    us = 0.5 - abs(u)
    with np.errstate(all="ignore"):
        k = np.floor((2 * a / us + b) * u + rate + 0.43)
        power = k * math.log(rate)
        excess = np.log(v) + math.log(inverse_alpha) - np.log(a / (us * us) + b) - (power - rate - gammaln(k + 1))
        surely = (us >= 0.07) & (v <= accept)
        possible = (k >= 0) & ~((us < 0.013) & (v > us)) & ~surely
        return surely | possible & (excess <= 0), possible & (abs(excess) <= 1e-11 * (rate + abs(power)))


def _log(x: float) -> float:
    return math.log(x) if x else -math.inf


def _waiting(uniform: Callable[[], float], count: float, p: float) -> float:
    """Successes, counted by the geometric numbers of trials between them."""
    rate, trials, found = math.log1p(-p), 0.0, 0.0
    while True:
        u = uniform()
        trials += -_floor(-math.log(u) / rate) if u else math.inf  # ceil
        if trials > count:
            return found
        found += 1


def _stirling_rest(k: float) -> float:
    """log(k!) less Stirling's formula for it."""
    if k < 10:
        return math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))
    square = (k + 1) * (k + 1)  # infinite past 1e154, where ** raises
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _rejected(uniform: Callable[[], float], count: float, p: float, deviation: float, odds: float, middle: float, centre: float) -> float:
    """Numbers of successes around a mean of at least 10."""
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    accept, alpha = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
    rests = None
    while True:
        u, v = uniform() - 0.5, uniform()
        us = 0.5 - abs(u)
        k = _floor((2 * a / us + b) * u + centre) if us else -1
        if us >= 0.07 and v <= accept:
            return k
        if k < 0 or k > count:
            continue
        if rests is None:
            rests = (middle + 0.5) * math.log((middle + 1) / (odds * (count - middle + 1))), _stirling_rest(middle), _stirling_rest(count - middle)
        bound = (rests[0]
                 + (count + 1) * math.log((count - middle + 1) / (count - k + 1))
                 + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
                 + rests[1] + rests[2] - _stirling_rest(k) - _stirling_rest(count - k))
        if _log(v * alpha / (a / (us * us) + b)) <= bound:
            return k


def _binomial(uniform: Callable[[], float], count: float, p: float, *rejection: float) -> float:
    """`p` at most a half; the parameters of the rejection are for a mean of at least 10, else NaN."""
    if count <= 0 or p <= 0:
        return 0.0
    if not (count == count and p == p):
        return math.nan
    return _waiting(uniform, count, p) if math.isnan(rejection[0]) else _rejected(uniform, count, p, *rejection)


def poisson(gen: Generator, rate: np.ndarray) -> np.ndarray:
    """Poisson samples of the given rates, as float64."""
    flat = rate.astype(np.float64).ravel()
    with gen.lock:
        low, high = (flat.min(), flat.max()) if flat.size >= _FOR_XLA else (0, 0)
        if low >= 0 and not low == high >= 10 and 0 < high < np.inf and rng_poisson_loop.ready(flat.size, bool(high >= 10)):
            return _by_xla(gen, flat).reshape(rate.shape)
        if flat.size >= _MANY and flat.min() >= 10:
            return _all_transformed(gen, flat).reshape(rate.shape)
        if flat.size >= _MANY and flat.max() < 10:
            found, some = np.zeros(flat.size), flat > 0
            found[some] = products(gen, [math.exp(-r) for r in flat[some].tolist()])
            return found.reshape(rate.shape)
        with doubles(gen, 6 * flat.size) as uniform:
            found = [_product(uniform, r) if r < 10 else _transformed(uniform, r) for r in flat.tolist()]
    return np.array(found, np.float64).reshape(rate.shape)


def binomial(gen: Generator, count: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Binomial samples of `count` trials of probability `p`, arrays of one shape and type, as float64."""
    count, p, shape = count.ravel(), p.ravel(), count.shape
    swapped = p > 0.5
    # Products of the parameters are rounded in their own type.
    rare = np.where(swapped, 1 - p, p)
    with np.errstate(all="ignore"):
        mean = count * rare
        parameters = np.sqrt(mean * (1 - rare)), rare / (1 - rare), np.floor((count + 1) * rare), mean.astype(np.float64) + 0.5
        parameters[0][~(mean >= 10)] = np.nan
    with gen.lock, doubles(gen, 4 * count.size) as uniform:
        found = np.array([_binomial(uniform, *each) for each in zip(*(x.tolist() for x in (count, rare, *parameters)), strict=True)], np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(swapped, count - found, found).reshape(shape)
