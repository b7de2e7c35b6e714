"""NumPy functions inside compiled programs, and in functions that JAX's transformations write down.

JAX calls them on a thread of XLA's, where it makes float32 and int32 numbers of 64-bit ones: those cross as pairs of 32 bits.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback

from .._core.jax_settings import engine_settings
from .._core.traces import called_back

_PAIRS = {np.dtype(np.int64): (2,), np.dtype(np.uint64): (2,), np.dtype(np.float64): (2,), np.dtype(np.complex128): (2, 2)}  # dimensions that bits add


def on_host(f: Callable, results: list[jax.ShapeDtypeStruct], *arrays) -> list:
    """f(*arrays), which takes NumPy arrays and returns as many as `results`, of these shapes and dtypes."""
    return _called(functools.partial(jax.pure_callback, vmap_method="expand_dims"), f, results, arrays)


def at_each_run(f: Callable, results: list[jax.ShapeDtypeStruct], *arrays) -> list:
    """As on_host, of a function with effects: it is called once in every run, and such calls keep their order."""
    def alone(*xs):
        with called_back():
            return f(*xs)
    with engine_settings():
        return _called(functools.partial(io_callback, ordered=True), alone, results, map(lax.stop_gradient, arrays))


def _called(how: Callable, f: Callable, results: list[jax.ShapeDtypeStruct], arrays: Iterable) -> list:
    arrays = tuple(arrays)
    dtypes, made_of = [np.dtype(x.dtype) for x in arrays], [np.dtype(r.dtype) for r in results]

    def call(*parts):
        return [_host_bits(np.asarray(x, d)) for x, d in zip(f(*map(_host_numbers, parts, dtypes)), made_of, strict=True)]
    bits = [jax.ShapeDtypeStruct((*r.shape, *_PAIRS[d]), np.uint32) if d in _PAIRS else r for r, d in zip(results, made_of)]
    made = how(call, bits, *map(_bits, arrays))
    return [_numbers(x, d) for x, d in zip(made, made_of)]


def _bits(x):
    if x.dtype == np.complex128:
        x = jnp.stack([x.real, x.imag], -1)
    return lax.bitcast_convert_type(x, np.uint32) if np.dtype(x.dtype) in _PAIRS else x


def _numbers(x, dtype: np.dtype):
    if dtype == np.complex128:
        return lax.complex(*jnp.moveaxis(lax.bitcast_convert_type(x, np.float64), -1, 0))
    return lax.bitcast_convert_type(x, dtype) if dtype in _PAIRS else x


def _host_bits(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint32).reshape(x.shape + _PAIRS[x.dtype]) if x.dtype in _PAIRS else x


def _host_numbers(x, dtype: np.dtype) -> np.ndarray:
    x = np.asarray(x)
    return np.ascontiguousarray(x).reshape(-1).view(dtype).reshape(x.shape[:-len(_PAIRS[dtype])]) if dtype in _PAIRS else x
