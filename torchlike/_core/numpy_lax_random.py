"""NumPy rules for JAX's random keys: the Threefry-2x32 counter generator (Salmon et al., 2011), bit for bit.

A key is held as one uint64 whose memory is its two uint32 words.
"""
from __future__ import annotations

import math

import jax
import numpy as np

from .numpy_lax_rules import Lacks, rule

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(k0, k1, x0, x1) -> tuple[np.ndarray, np.ndarray]:
    """Twenty rounds; uint32 arrays that broadcast."""
    k0, k1 = np.asarray(k0, np.uint32), np.asarray(k1, np.uint32)
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for i in range(5):
        for r in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))) ^ x0
        x0 = x0 + keys[(i + 1) % 3]
        x1 = x1 + keys[(i + 2) % 3] + np.uint32(i + 1)
    return x0, x1


@rule("threefry2x32")
def _threefry(eqn):
    return lambda k0, k1, x0, x1: list(threefry2x32(k0, k1, x0, x1))


def _only_threefry(name) -> None:
    if "fry" not in str(name):
        raise Lacks(f"the random generator {name}")
    if not jax.config.jax_threefry_partitionable:
        raise Lacks("threefry with jax_threefry_partitionable=False")


def _packed(words):
    return np.ascontiguousarray(words).view(np.uint64)[..., 0]


def _words(key):
    return np.ascontiguousarray(np.asarray(key)[..., None]).view(np.uint32)


def _at_iota(key, shape):
    """The generator at counters 0, 1, 2, ... over `shape`, for every key."""
    words = _words(key)
    lift = (..., *[None] * len(shape))
    counts = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    high, low = (counts >> np.uint64(32)).astype(np.uint32), counts.astype(np.uint32)
    return threefry2x32(words[..., 0][lift], words[..., 1][lift], high, low)


@rule("random_seed")
def _random_seed(eqn):
    _only_threefry(eqn.params["impl"])

    def random_seed(seed):
        seed = np.asarray(seed)
        wide = seed.view(f"u{seed.dtype.itemsize}").astype(np.uint64)
        return _packed(np.stack([wide >> np.uint64(32), wide & np.uint64(0xFFFFFFFF)], -1).astype(np.uint32))
    return random_seed


@rule("random_wrap")
def _random_wrap(eqn):
    _only_threefry(eqn.params["impl"])
    return _packed


@rule("random_unwrap")
def _random_unwrap(eqn):
    _only_threefry(eqn.invars[0].aval.dtype)
    return _words


@rule("random_split")
def _random_split(eqn):
    _only_threefry(eqn.invars[0].aval.dtype)
    shape = tuple(eqn.params["shape"])
    return lambda key: _packed(np.stack(_at_iota(key, shape), -1))


@rule("random_fold_in")
def _random_fold_in(eqn):
    _only_threefry(eqn.invars[0].aval.dtype)

    def fold_in(key, data):
        words, data = _words(key), np.asarray(data).astype(np.uint32)
        return _packed(np.stack(threefry2x32(words[..., 0], words[..., 1], np.zeros_like(data), data), -1))
    return fold_in


@rule("random_bits")
def _random_bits(eqn):
    _only_threefry(eqn.invars[0].aval.dtype)
    width, shape = eqn.params["bit_width"], tuple(eqn.params["shape"])

    def random_bits(key):
        high, low = _at_iota(key, shape)
        if width == 64:
            return (high.astype(np.uint64) << np.uint64(32)) | low
        return (high ^ low).astype(f"u{width // 8}")
    return random_bits
