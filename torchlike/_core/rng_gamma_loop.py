"""Which doubles the gamma samples of many shapes take, found one after the other by XLA.

Each sample begins where the one before it ended, so NumPy cannot help where shapes below 1 are among them, and Python needs a microsecond a
sample. XLA only decides: the samples are computed from what it chose. Where its own functions might decide otherwise than the C library's, it
stops and asks.
"""
from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .kept_kernel import KeptKernel
from .rng_generator import Generator, as_doubles
from .rng_normal import pairs

SAMPLES, DOUBLES = 1 << 12, 1 << 14  # in a call
_LARGEST, _FEW = 1e10, 1 / 32  # parameter d above which every twentieth sample is in doubt, and the part of them that may have such
_SECONDS = 1e-6  # that Python needs for a sample, at least
_SQUEEZE = float(np.float32(0.0331))
_NONE, _BEFORE = -1, -2  # no normal is left; the one that the generator kept. Else twice the place of a pair, and 1 for its second normal


def _walk(numbers, shapes, count, i, kept, left):
    """From the i-th sample on: where the next one begins, how many are done, which normal is left, doubt, and each sample's normal and place of its
    boost. No step branches: only then does XLA make one loop of it."""
    def step(state):
        at, i, begun, kept, left, start, left_before, boost, _, normals, boosts = state
        start, left_before = jnp.where(begun, start, at), jnp.where(begun, left_before, left)
        boosted = ~begun & (shapes[0, i] != 0)
        boost, at = jnp.where(boosted, at, boost), at + boosted.astype(at.dtype)
        has = left != _NONE
        angle, radius = 2 * math.pi * numbers[at], jnp.sqrt(-2 * jnp.log1p(-numbers[at + 1]))
        x, normal = jnp.where(has, kept, radius * jnp.cos(angle)), jnp.where(has, left, 2 * at)
        kept, left = radius * jnp.sin(angle), jnp.where(has, _NONE, 2 * at + 1)
        at += jnp.where(has, 0, 2).astype(at.dtype)
        d, y, square = shapes[1, i], 1 + shapes[2, i] * x, x * x
        positive = y > 0
        u, v = 1 - numbers[at], jnp.where(positive, y * y * y, 1.0)
        at += positive.astype(at.dtype)
        short, excess = u - (1 - _SQUEEZE * square * square), jnp.log(u) - (0.5 * square + d * (1 - v + jnp.log(v)))
        doubt = jnp.abs(y) <= 1e-13 * (1 + jnp.abs(x))
        doubt |= positive & ((jnp.abs(short) <= 1e-13 * (1 + square * square)) | (short >= 0) & ~(jnp.abs(excess) > 1e-13 * (1 + square + d * (1 + v))))
        accepted = positive & ((short < 0) | (excess < 0)) & ~doubt
        return (at, i + accepted.astype(i.dtype), ~accepted, kept, left.astype(jnp.int32), start, left_before, boost, doubt,
                normals.at[i].set(normal.astype(jnp.int32)), boosts.at[i].set(boost))

    def goes_on(state):
        return (state[1] < count) & (state[0] + 4 < DOUBLES) & ~state[8]

    zero, places = jnp.int32(0), jnp.zeros(SAMPLES, jnp.int32)
    at, i, begun, _, left, start, left_before, _, doubt, normals, boosts = lax.while_loop(
        goes_on, step, (zero, i, jnp.zeros((), bool), kept, left, zero, left, zero, jnp.zeros((), bool), places, places))
    return jnp.where(begun, start, at), i, jnp.where(begun, left_before, left), doubt, normals, boosts


_SCALARS = [jax.ShapeDtypeStruct((), d) for d in (np.int32, np.int32, np.float64, np.int32)]
_KERNEL = KeptKernel("gamma", _walk, [jax.ShapeDtypeStruct((DOUBLES,), np.float64), jax.ShapeDtypeStruct((3, SAMPLES), np.float64), *_SCALARS], {})


def ready(d: np.ndarray) -> bool:
    """Told that samples of these parameters are asked for: whether `samples` can be called."""
    if np.count_nonzero(d > _LARGEST) > _FEW * d.size:
        return False
    if _KERNEL.call is None:
        _KERNEL.spent(d.size * _SECONDS)
    return _KERNEL.call is not None


def _normals(numbers: np.ndarray, which: np.ndarray, kept: float | None) -> np.ndarray:
    places = np.maximum(which, 0) >> 1
    made = pairs(np.stack([numbers[places], numbers[places + 1]], axis=1).ravel()).reshape(-1, 2)
    x = made[np.arange(which.size), which & 1]
    return x if kept is None else np.where(which == _BEFORE, kept, x)


def samples(gen: Generator, boost: np.ndarray, d: np.ndarray, c: np.ndarray, one) -> np.ndarray:
    """The samples; one(i) makes the i-th by itself, where XLA is in doubt. `boost`, `d` and `c` as `rng_gamma` has them. The caller holds the lock."""
    found, call = np.empty(d.size), _KERNEL.call
    for first in range(0, d.size, SAMPLES):
        shapes = np.zeros((3, SAMPLES))
        some = slice(first, min(first + SAMPLES, d.size))
        count, i = some.stop - first, 0
        shapes[:, :count] = boost[some], d[some], c[some]
        while i < count:
            numbers, kept = as_doubles(gen.peek(2 * DOUBLES)), gen.next_normal
            at, end, left, doubt, normals, boosts = (
                np.asarray(part) for part in call(numbers, shapes, np.int32(count), np.int32(i), np.float64(kept or 0.0), np.int32(_NONE if kept is None else _BEFORE)))
            at, end, left = int(at), int(end), int(left)
            if end > i:
                power, d_here, c_here = shapes[:, i:end]
                y = 1.0 + c_here * _normals(numbers, normals[i:end], kept)
                scale = np.ones(end - i)
                places = np.flatnonzero(power)
                scale[places] = [u ** p for u, p in zip((1.0 - numbers[boosts[i:end][places]]).tolist(), power[places].tolist(), strict=True)]
                found[first + i:first + end] = scale * d_here * (y * y * y)
            gen.skip(2 * at)
            if left != _BEFORE:
                gen.next_normal = None if left == _NONE else float(_normals(numbers, np.array([left]), kept)[0])
            if doubt:
                found[first + end] = one(first + end)
                end += 1
            i = end
    return found
