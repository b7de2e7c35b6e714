"""Gamma samples in double precision, in torch's order of draws.

Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; shapes below 1 by their boost.
"""

import math
from collections.abc import Callable

import numpy as np

from .rng_gamma_loop import ready, samples
from .rng_generator import Generator, as_doubles
from .rng_normal import pairs
from .rng_rejection import doubles, resolve

_THIRD, _SQUEEZE = float(np.float32(1 / 3)), float(np.float32(0.0331))  # floats in torch too
_MANY, _CHUNK = 32, 1024  # elements from which on arrays pay, and made at a time
_LEAST = 1.3  # below this shape 1 + c * x is negative too often for `_all`


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


def _all(gen: Generator, d: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Samples without boost. Two attempts take a pair of doubles for two normals and then a double each, whether or not they succeed,
    unless 1 + c * x is not positive: the next normal is then taken without a double in between."""
    n, start, parts = d.size, 0, []
    given = list(zip(d.tolist(), c.tolist(), strict=True))
    lowest = -(1 - 1e-9) / c.max()

    def accepts(i: int, x: float, u: float) -> bool | None:
        d, c = given[i]
        y = 1.0 + c * x
        if y <= 0:
            return None
        v, square = y * y * y, x * x
        return u < 1.0 - _SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v))

    while start < n:
        kept, size = gen.next_normal, min(n - start, _CHUNK) // 2 + 4
        alone = kept is not None
        numbers = as_doubles(gen.peek(2 * (4 * size + alone)))
        fours = numbers[alone:].reshape(size, 4)
        x, u = pairs(fours[:, :2].ravel()), 1.0 - fours[:, 2:].ravel()
        if alone:
            x, u = np.concatenate(([kept], x)), np.concatenate(([1.0 - numbers[0]], u))
        square = x * x
        taken = (x > lowest) & (u < 1.0 - _SQUEEZE * square * square)
        holds = resolve(taken, ~taken, n, start, accepts, x, u)
        chosen = np.flatnonzero(taken[:holds])[: n - start]
        last = start + chosen.size
        y = 1.0 + c[start:last] * x[chosen]
        parts.append(d[start:last] * (y * y * y))
        start = last
        done = holds if start < n else int(chosen[-1]) + 1
        whole, half = divmod(done - alone, 2)
        gen.skip(2 * (alone + 4 * whole + 3 * half))
        gen.next_normal = float(x[done]) if half else None
        if done < x.size and start < n:
            parts.append([_one(gen, gen.double, 0.0, *given[start])])
            start += 1
    return np.concatenate(parts)


def standard_gamma(gen: Generator, alpha: np.ndarray) -> np.ndarray:
    """Gamma samples of shape parameters `alpha`, as float64."""
    flat = alpha.ravel()
    boosted, one = flat < 1, flat.dtype.type(1)
    with np.errstate(divide="ignore", over="ignore"):  # in the parameters' own type, as torch
        boost = np.where(boosted, one / flat, 0).astype(np.float64)
        d = (np.where(boosted, flat + one, flat) - flat.dtype.type(_THIRD)).astype(np.float64)
    c = 1.0 / np.sqrt(9.0 * d)
    if flat.size >= _MANY and flat.min() >= _LEAST:
        with gen.lock:
            return _all(gen, d, c).reshape(alpha.shape)
    found = np.where(flat == 0, 0.0, np.nan)
    drawn = np.flatnonzero(flat > 0)
    if drawn.size >= _MANY and ready(d[drawn]):
        each = [part[drawn] for part in (boost, d, c)]
        with gen.lock:
            found[drawn] = samples(gen, *each, lambda i: _one(gen, gen.double, *(float(part[i]) for part in each)))
        return found.reshape(alpha.shape)
    with gen.lock, doubles(gen, 3 * alpha.size) as uniform:
        found[drawn] = [_one(gen, uniform, *each) for each in zip(*(part[drawn].tolist() for part in (boost, d, c)), strict=True)]
    return found.reshape(alpha.shape)
