"""The arithmetic of the Mersenne Twister: what its state shows, and its next blocks of words from XLA.

A block follows from the last one in four vectors (the recurrence looks back 624 and 227 words), where NumPy's engine makes word after word.
"""
from collections.abc import Callable

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from .kept_kernel import KeptKernel

N = 624  # words of a block, which is a state
_BACK = 227  # a word is made of those 624, 623 and 227 places before it
PIECE = 128 * N  # words that XLA makes at once
_SECONDS = 4e-9  # a word in NumPy
_COMPILING = 0.1  # seconds lost in NumPy after which it is compiled


def tempered(key):
    """The words that a state of the engine stands for."""
    y = key ^ (key >> 11)
    y ^= (y << 7) & np.uint32(0x9D2C5680)
    y ^= (y << 15) & np.uint32(0xEFC60000)
    return y ^ (y >> 18)


def untempered(words: np.ndarray) -> np.ndarray:
    """The state that stands behind 624 words, the inverse of `tempered`."""
    y = words ^ (words >> 18)
    y ^= (y << 15) & np.uint32(0xEFC60000)
    key = y
    for _ in range(4):  # each turn brings seven more bits
        key = y ^ ((key << 7) & np.uint32(0x9D2C5680))
    return key ^ (key >> 11) ^ (key >> 22)


def _following(state):
    """The next block's state."""
    def twisted(start, stop, after):
        y = (state[start:stop] & np.uint32(0x80000000)) | (after & np.uint32(0x7FFFFFFF))
        return (y >> 1) ^ jnp.where((y & 1) != 0, np.uint32(0x9908B0DF), np.uint32(0))

    first = state[N - _BACK:] ^ twisted(0, _BACK, state[1:_BACK + 1])
    second = first ^ twisted(_BACK, 2 * _BACK, state[_BACK + 1:2 * _BACK + 1])
    third = second[:N - 1 - 2 * _BACK] ^ twisted(2 * _BACK, N - 1, state[2 * _BACK + 1:])
    last = second[N - 1 - 2 * _BACK:N - 2 * _BACK] ^ twisted(N - 1, N, first[:1])
    return jnp.concatenate((first, second, third, last))


def _piece(state) -> tuple:
    """The PIECE words after a state, and the state that they end in."""
    def step(state, _):
        state = _following(state)
        return state, tempered(state)

    state, words = lax.scan(step, state, None, length=PIECE // N)
    return words.reshape(-1), state


_KERNEL = KeptKernel("words", _piece, [jax.ShapeDtypeStruct((N,), np.uint32)], {}, compiling=_COMPILING)


def pieces(words: int) -> Callable | None:
    """What makes a PIECE of words from a state, as `_piece`, where so many words are due and XLA makes them by now; else None."""
    if words < PIECE // 2:
        return None
    if _KERNEL.call is None:
        _KERNEL.spent(words * _SECONDS)
    return _KERNEL.call
