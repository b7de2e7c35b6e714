"""Random permutations by swaps, in vectors: Durstenfeld, "Algorithm 235: Random permutation", 1964."""

import numpy as np

from .rng_generator import Generator

# From this size on the sequence switches to 64-bit draws and to the "inside-out" order of the swaps.
_INSIDE_OUT = (2**32 - 1) // 20
_FEW = 1024
_CHUNK = 4096


def _swap_in_order(perm: np.ndarray, start: int, target: np.ndarray, mark: np.ndarray) -> None:
    """Swap perm[start + k] with perm[target[k]] for k = 0, 1, ... as if one after the other.

    Swaps that share no place with another of this chunk commute, so they run as one; the rest, few, run in turn.
    `mark` is scratch space as long as `perm`.
    """
    m = target.size
    place = np.arange(start, start + m)
    order = np.arange(m, dtype=mark.dtype)
    mark[target] = order
    lone = mark[target] == order
    # The last writer of a shared place won above; it is as little alone as the others.
    lone[mark[target[~lone]]] = False
    inner = np.flatnonzero((target >= start) & (target < start + m))
    lone[inner] = False
    lone[target[inner] - start] = False
    left, right = place[lone], target[lone]
    perm[left], perm[right] = perm[right], perm[left]
    rest = np.flatnonzero(~lone)
    for i, j in zip(place[rest].tolist(), target[rest].tolist(), strict=True):
        perm[i], perm[j] = perm[j], perm[i]


def permutation(gen: Generator, n: int) -> np.ndarray:
    """A random permutation of range(n), int64, in n - 1 words (2n words from 214748364 on)."""
    perm = np.arange(n, dtype=np.int64)
    with gen.lock:
        if n >= _INSIDE_OUT:
            _inside_out(gen, perm)
        else:
            _forward(gen, perm)
    return perm


def _forward(gen: Generator, perm: np.ndarray) -> None:
    """Step i swaps perm[i] with a place drawn from perm[i:]."""
    n, start = perm.size, 0
    mark = np.empty(n if n > _FEW else 0, np.int32)
    while n - start > _FEW:
        size = min(_CHUNK, (n - start) // 16)
        place = np.arange(start, start + size)
        target = (gen.words(size) % (n - place).astype(np.uint32)).astype(np.int64)
        target += place
        _swap_in_order(perm, start, target, mark)
        start += size
    # Near the end nearly every swap meets another one: plain lists are quicker.
    tail = perm[start:].tolist()
    size = len(tail)
    for i, word in enumerate(gen.words(max(size - 1, 0)).tolist()):
        j = i + word % (size - i)
        tail[i], tail[j] = tail[j], tail[i]
    perm[start:] = tail


def _inside_out(gen: Generator, perm: np.ndarray) -> None:
    """Step i swaps perm[i] with a place drawn from perm[:i + 1]."""
    n = perm.size
    head = list(range(min(_FEW, n)))
    for i, word in enumerate(gen.words64(len(head)).tolist()):
        j = word % (i + 1)
        head[i], head[j] = head[j], head[i]
    perm[: len(head)] = head
    mark, start = np.empty(n, np.int32), len(head)
    while start < n:
        size = min(_CHUNK, n - start, start // 16)
        place = np.arange(start, start + size, dtype=np.uint64)
        target = (gen.words64(size) % (place + np.uint64(1))).astype(np.int64)
        _swap_in_order(perm, start, target, mark)
        start += size
