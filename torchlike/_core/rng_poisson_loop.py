"""Which doubles the Poisson samples of many rates take, found one after the other by XLA.

Each sample begins where the one before it ended, so NumPy cannot help, and Python needs a microsecond a double. XLA only decides: the
samples are computed from what it chose. Where its own logarithms might decide otherwise than the C library's, it stops and asks.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .kept_kernel import KeptKernel
from .rng_generator import Generator, as_doubles

SAMPLES, DOUBLES = 1 << 12, 1 << 14  # in a call
_SECONDS = 1e-6  # that Python needs for a sample, at least


def _product(numbers, rates, at, i, total, k):
    """A step of a small rate: (doubles taken, whether that was the last, the sample, product and count from now on)."""
    nothing = rates[0, i] == 0
    total = jnp.where(nothing, 0.0, total * numbers[at])
    more = total > rates[1, i]
    return jnp.where(nothing, 0, 1), ~more, k, jnp.where(more, total, 1.0), jnp.where(more, k + 1, 0.0)


def _log_factorial(n):
    """Of n >= 0, by Stirling's series for (n + 8)! and a quarter of the instructions of lax.lgamma."""
    z, more = n + 9, (n + 1) * (n + 2) * ((n + 3) * (n + 4)) * ((n + 5) * (n + 6) * ((n + 7) * (n + 8)))
    w = 1 / (z * z)
    rest = (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188 - w * (691 / 360360)))))) / z
    return (z - 0.5) * jnp.log(z) - z + 0.5 * math.log(2 * math.pi) + rest - jnp.log(more)


def _rejection(numbers, rates, at, i):
    """A step of a rate of at least 10: (whether the pair is accepted, its u, doubt)."""
    mean, b, a, inverse_alpha, accept, log_mean = rates[0, i], *(rates[row, i] for row in range(2, 7))
    u, v = numbers[at] - 0.5, numbers[at + 1]
    us = 0.5 - jnp.abs(u)
    slope = a / us
    place = (2 * slope + b) * u + mean + 0.43
    n = jnp.floor(place)
    at_once, never = (us >= 0.07) & (v <= accept), (us < 0.013) & (v > us)
    power = n * log_mean
    excess = jnp.log(v * inverse_alpha / (slope / us + b)) - (power - mean - _log_factorial(n))
    close = (jnp.abs(excess) <= 1e-12 * (mean + jnp.abs(power) + 1)) | (jnp.abs(place - jnp.round(place)) <= 1e-14 * (1 + jnp.abs(place)))
    doubt = ~at_once & ~never & (close | ~(jnp.abs(excess) < 1e300))
    return at_once | ~never & (n >= 0) & (excess <= 0), u, doubt


def _walk(large: bool, numbers, rates, count, i, total, k):
    """From the i-th sample on: the next double, the sample, its product and count so far, doubt, and what each sample took. No step branches:
    only then does XLA make one loop of it."""
    def step(state):
        at, i, total, k, doubt, taken = state
        doubles, done, value, total, k = _product(numbers, rates, at, i, total, k)
        if large:
            accepted, u, doubt = _rejection(numbers, rates, at, i)
            rejects = rates[0, i] >= 10
            doubt = doubt & rejects
            doubles, done, value = jnp.where(rejects, jnp.where(doubt, 0, 2), doubles), jnp.where(rejects, accepted & ~doubt, done), jnp.where(rejects, u, value)
            total, k = jnp.where(rejects, 1.0, total), jnp.where(rejects, 0.0, k)
        return at + doubles.astype(at.dtype), i + done.astype(i.dtype), total, k, doubt, taken.at[i].set(value)

    def goes_on(state):
        return (state[1] < count) & (state[0] + 1 < DOUBLES) & ~state[4]
    return lax.while_loop(goes_on, step, (jnp.int32(0), i, total, k, jnp.zeros((), bool), jnp.zeros(SAMPLES)))


_SCALARS = [jax.ShapeDtypeStruct((), d) for d in (np.int32, np.int32, np.float64, np.float64)]
_KERNELS = [KeptKernel(name, functools.partial(_walk, large), [jax.ShapeDtypeStruct((DOUBLES,), np.float64), jax.ShapeDtypeStruct((7, SAMPLES), np.float64), *_SCALARS], {})
            for large, name in enumerate(("poisson_products", "poisson"))]


def ready(n: int, large: bool) -> bool:
    """Told that so many samples are asked for, of rates that are partly `large`: whether `chosen` can be called."""
    kernel = _KERNELS[large]
    if kernel.call is None:
        kernel.spent(n * _SECONDS)
    return kernel.call is not None


def chosen(gen: Generator, parameters: np.ndarray, accepts: Callable[[int, float, float], bool]) -> np.ndarray:
    """For each column of rate, exp(-rate), the four parameters of the rejection and log(rate): how many doubles its product takes, or, for rates of at
    least 10, the u of the pair (u + 0.5, v) that is accepted. accepts(sample, u, v) is asked where XLA is in doubt. The caller holds
    the lock."""
    parts, call = [], _KERNELS[bool((parameters[0] >= 10).any())].call
    for first in range(0, parameters.shape[1], SAMPLES):
        some = parameters[:, first:first + SAMPLES]
        count = some.shape[1]
        given = np.zeros((7, SAMPLES))
        given[:, :count] = some
        taken, i, total, k = np.zeros(count), 0, 1.0, 0.0
        while i < count:
            numbers = as_doubles(gen.peek(2 * DOUBLES))
            at, end, total, k, doubt, made = (np.asarray(x) for x in call(numbers, given, np.int32(count), np.int32(i), np.float64(total), np.float64(k)))
            at, end = int(at), int(end)
            taken[i:end] = made[i:end]
            if doubt:
                u, v = float(numbers[at]) - 0.5, float(numbers[at + 1])
                at += 2
                if accepts(first + end, u, v):
                    taken[end] = u
                    end += 1
            gen.skip(2 * at)
            i = end
        parts.append(taken)
    return np.concatenate(parts)
