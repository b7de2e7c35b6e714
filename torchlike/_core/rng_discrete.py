"""Poisson and binomial samples, one element at a time in torch's order of draws.

Large means by transformed rejection: Hörmann, "The transformed rejection method for generating Poisson random variables", 1993, and
"The generation of binomial random variates", 1993; small ones by multiplying uniforms and by adding up geometric waiting times.
"""

import math

import numpy as np

from .rng_gamma import uniform
from .rng_generator import Generator


def _poisson(gen: Generator, rate: float) -> float:
    if rate == 0:
        return 0.0
    if rate < 10:
        limit, product, k = math.exp(-rate), uniform(gen), 0
        while product > limit:
            product *= uniform(gen)
            k += 1
        return float(k)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha, accept = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = uniform(gen) - 0.5, uniform(gen)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= accept:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        hat = _log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if hat <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return float(k)


def _log(x: float) -> float:
    return math.log(x) if x else -math.inf


def _waiting(gen: Generator, count: float, p: float) -> float:
    """Successes, counted by the geometric numbers of trials between them."""
    rate, trials, found = math.log1p(-p), 0.0, 0.0
    while True:
        u = uniform(gen)
        trials += math.ceil(math.log(u) / rate) if u else math.inf
        if trials > count:
            return found
        found += 1


def _stirling_rest(k: float) -> float:
    """log(k!) less Stirling's formula for it."""
    if k < 10:
        return math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))
    square = (k + 1) ** 2
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _rejected(gen: Generator, count: np.floating, p: np.floating) -> float:
    """Numbers of successes around a mean of at least 10. Products of the parameters are rounded in their own type."""
    deviation = float(np.sqrt(count * p * (1 - p)))
    odds, middle = float(p / (1 - p)), math.floor((count + 1) * p)
    centre, count, p = float(count * p) + 0.5, float(count), float(p)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    accept, alpha = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
    while True:
        u, v = uniform(gen) - 0.5, uniform(gen)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + centre) if us else -1
        if us >= 0.07 and v <= accept:
            return float(k)
        if k < 0 or k > count:
            continue
        bound = ((middle + 0.5) * math.log((middle + 1) / (odds * (count - middle + 1)))
                 + (count + 1) * math.log((count - middle + 1) / (count - k + 1))
                 + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
                 + _stirling_rest(middle) + _stirling_rest(count - middle) - _stirling_rest(k) - _stirling_rest(count - k))
        if _log(v * alpha / (a / (us * us) + b)) <= bound:
            return float(k)


def _binomial(gen: Generator, count: np.floating, p: np.floating) -> float:
    if count <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return float(count)
    if not (count == count and p == p):
        return math.nan
    rare = p if p <= 0.5 else 1 - p
    found = _rejected(gen, count, rare) if count * rare >= 10 else _waiting(gen, float(count), float(rare))
    return found if p <= 0.5 else float(count) - found


def poisson(gen: Generator, rate: np.ndarray) -> np.ndarray:
    """Poisson samples of the given rates, as float64."""
    with gen.lock:
        found = [_poisson(gen, r) for r in rate.astype(np.float64).ravel().tolist()]
    return np.array(found, np.float64).reshape(rate.shape)


def binomial(gen: Generator, count: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Binomial samples of `count` trials of probability `p`, arrays of one shape and type, as float64."""
    with gen.lock:
        found = [_binomial(gen, n, q) for n, q in zip(count.ravel(), p.ravel(), strict=True)]
    return np.array(found, np.float64).reshape(count.shape)
