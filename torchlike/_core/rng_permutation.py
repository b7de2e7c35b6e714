"""Random permutations by swaps (Durstenfeld, "Algorithm 235: Random permutation", 1964), in vector operations."""

import numpy as np

from .rng_generator import Generator

# From this size on the sequence switches to 64-bit draws and to the "inside-out" order of the swaps.
_INSIDE_OUT = (2**32 - 1) // 20
_FEW = 512  # below, plain Python lists are quicker
_CHUNK = 4096


def permutation(gen: Generator, n: int) -> np.ndarray:
    """A random permutation of range(n), int64, from n - 1 words (2n words from n = 214748364 on)."""
    with gen.lock:
        return _inside_out(gen, n) if n >= _INSIDE_OUT else _forward(gen, n)


def _forward(gen: Generator, n: int) -> np.ndarray:
    """Step i swaps entry i with the one at i + word % (n - i)."""
    words = gen.words(max(n - 1, 0))
    target = np.arange(n)
    target[:-1] += words % np.arange(n, 1, -1, dtype=np.uint32)
    if n > _FEW:
        return _swapped_forward(target)
    perm = list(range(n))
    for i, j in enumerate(target.tolist()):
        perm[i], perm[j] = perm[j], perm[i]
    return np.array(perm, np.int64)


def _swapped_forward(target: np.ndarray) -> np.ndarray:
    """The result of the swaps (i, target[i] >= i) for i = 0, 1, ... without making them one by one.

    Step i leaves in place i what was at its target: the entry that the last earlier step with the same target put
    there, or else the target itself. That entry is what the earlier step j had found in place j, and this in turn was
    put there by the last step before j whose target was j, and so on down to a place that no step had touched.
    """
    step = np.arange(target.size)
    by_target = (target << 32) | step
    by_target.sort()
    places, steps = by_target >> 32, by_target & 0xFFFFFFFF
    earlier, last = np.full_like(step, -1), np.full_like(step, -1)
    earlier[steps[1:]] = np.where(places[1:] == places[:-1], steps[:-1], -1)
    last[places] = steps  # sorted, so that the last of equal places stays
    own = target == step
    found = np.where(own, earlier, last)
    np.copyto(found, step, where=found < 0)
    active = step
    while active.size:
        there = found[active]
        beyond = found[there]
        moved = np.flatnonzero(beyond != there)
        active = active[moved]
        found[active] = beyond[moved]
    perm = np.where(earlier < 0, target, found[earlier])
    return np.where(own, found, perm)


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
