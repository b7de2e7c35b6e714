"""Random permutations by swaps (Durstenfeld, "Algorithm 235: Random permutation", 1964), in LAPACK or vector operations."""

import numpy as np

from . import row_swaps
from .rng_generator import Generator

# From this size on the sequence switches to 64-bit draws and to the "inside-out" order of the swaps.
_INSIDE_OUT = (2**32 - 1) // 20
_CHUNK = 4096


def permutation(gen: Generator, n: int) -> np.ndarray:
    """A random permutation of range(n), int64, from n - 1 words (2n words from n = 214748364 on)."""
    with gen.lock:
        return _inside_out(gen, n) if n >= _INSIDE_OUT else _forward(gen, n)


def _forward(gen: Generator, n: int) -> np.ndarray:
    """Step i swaps entry i with the one at i + word % (n - i)."""
    words = gen.words(max(n - 1, 0))
    target = np.arange(max(n - 1, 0), dtype=np.int32)
    target += (words % np.arange(n, 1, -1, dtype=np.uint32)).astype(np.int32)
    if row_swaps.pays(n):
        return row_swaps.swapped(np.arange(n, dtype=np.int64), target)
    perm = list(range(n))
    for i, j in enumerate(target.tolist()):
        perm[i], perm[j] = perm[j], perm[i]
    return np.array(perm, np.int64)


def _inside_out(gen: Generator, n: int) -> np.ndarray:
    """Step i swaps entry i with the one at word64 % (i + 1); in chunks, as the sizes that need it fill the memory."""
    perm = np.arange(n, dtype=np.int64)
    mark, start = np.empty(n, np.int32), 0
    while start < n:
        # Chunks much shorter than the part already shuffled: few of their swaps meet.
        size = min(_CHUNK, n - start, 1 + start // 16)
        place = np.arange(start, start + size)
        target = (gen.words64(size) % (place + 1).astype(np.uint64)).astype(np.int64)
        _swap_in_order(perm, place, target, mark)
        start += size
    return perm


def _swap_in_order(perm: np.ndarray, place: np.ndarray, target: np.ndarray, mark: np.ndarray) -> None:
    """Swap perm[place[k]] with perm[target[k]] for k = 0, 1, ...; places are consecutive, targets not above them.

    Swaps that share no place with another one commute, so they run as one; the rest, few, run in turn.
    `mark` is scratch space as long as `perm`.
    """
    order = np.arange(target.size, dtype=mark.dtype)
    mark[target] = order
    lone = mark[target] == order
    # The last writer of a shared place won above; it is as little alone as the others.
    lone[mark[target[~lone]]] = False
    inner = np.flatnonzero(target >= place[0])
    lone[inner] = False
    lone[target[inner] - place[0]] = False
    left, right = place[lone], target[lone]
    perm[left], perm[right] = perm[right], perm[left]
    rest = np.flatnonzero(~lone)
    for i, j in zip(place[rest].tolist(), target[rest].tolist(), strict=True):
        perm[i], perm[j] = perm[j], perm[i]
