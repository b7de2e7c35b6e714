"""Gamma samples in double precision, one element at a time in torch's order of draws.

Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; shapes below 1 by their boost.
"""

import math

import numpy as np

from .rng_generator import Generator
from .rng_normal import serial_normals

_LOW53 = (1 << 53) - 1
_THIRD, _SQUEEZE = float(np.float32(1 / 3)), float(np.float32(0.0331))  # floats in torch too


def uniform(gen: Generator) -> float:
    """A double from [0, 1) of 53 bits."""
    return (int(gen.words64(1)[0]) & _LOW53) * 2.0**-53


def _one(gen: Generator, alpha: float) -> float:
    scale = 1.0
    if alpha < 1.0:
        if alpha == 0.0:
            return 0.0
        scale = (1.0 - uniform(gen)) ** (1.0 / alpha)
        alpha += 1.0
    d = alpha - _THIRD
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = y = 0.0
        while y <= 0.0:
            x = float(serial_normals(gen, 1, 0.0, 1.0)[0])
            y = 1.0 + c * x
        v, square = y * y * y, x * x
        u = 1.0 - uniform(gen)
        if u < 1.0 - _SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def standard_gamma(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma samples of shape parameters `alpha`, as float64."""
    with gen.lock:
        found = [_one(gen, a) if a == a else math.nan for a in alpha.astype(np.float64).ravel().tolist()]
    return np.array(found, np.float64).reshape(alpha.shape)
