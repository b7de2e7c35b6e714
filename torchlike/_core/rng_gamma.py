"""Gamma samples in double precision, in torch's order of draws.

Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; shapes below 1 by their boost.
"""

import math
from collections.abc import Callable

import numpy as np

from .rng_generator import Generator
from .rng_rejection import doubles

_THIRD, _SQUEEZE = float(np.float32(1 / 3)), float(np.float32(0.0331))  # floats in torch too


def _normal(gen: Generator, uniform: Callable[[], float]) -> float:
    kept = gen.next_normal
    if kept is not None:
        gen.next_normal = None
        return kept
    angle, radius = 2.0 * math.pi * uniform(), math.sqrt(-2.0 * math.log1p(-uniform()))
    gen.next_normal = radius * math.sin(angle)
    return radius * math.cos(angle)


def _one(gen: Generator, uniform: Callable[[], float], boost: float, d: float, c: float) -> float:
    """`boost`: the power of the additional factor that shapes below 1 need, else 0."""
    scale = (1.0 - uniform()) ** boost if boost else 1.0
    while True:
        x = y = 0.0
        while y <= 0.0:
            x = _normal(gen, uniform)
            y = 1.0 + c * x
        v, square = y * y * y, x * x
        u = 1.0 - uniform()
        if u < 1.0 - _SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def standard_gamma(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma samples of shape parameters `alpha`, as float64."""
    flat = alpha.ravel()
    boosted, one = flat < 1, flat.dtype.type(1)
    with np.errstate(divide="ignore", over="ignore"):  # in the parameters' own type, as torch
        boost = np.where(boosted, one / flat, 0).astype(np.float64)
        d = (np.where(boosted, flat + one, flat) - flat.dtype.type(_THIRD)).astype(np.float64)
    c = 1.0 / np.sqrt(9.0 * d)
    found = np.where(flat == 0, 0.0, np.nan)
    drawn = np.flatnonzero(flat > 0)
    with gen.lock, doubles(gen, 3 * alpha.size) as uniform:
        found[drawn] = [_one(gen, uniform, *each) for each in zip(*(part[drawn].tolist() for part in (boost, d, c)), strict=True)]
    return found.reshape(alpha.shape)
