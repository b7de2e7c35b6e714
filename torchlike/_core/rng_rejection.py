"""What samplers need that take as many doubles as it turns out: doubles one by one, and pairs of them until one is accepted."""

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from .rng_generator import Generator, as_doubles

_MOST = 1 << 16  # doubles looked at together
_FEW = 8


class _Ahead:
    """Doubles of the words ahead, block by block."""

    def __init__(self, gen: Generator, size: int):
        self.gen, self.size = gen, size
        self.left: Iterator[float] | None = None

    def __iter__(self) -> Iterator[float]:
        while True:
            self.left = iter(as_doubles(self.gen.peek(2 * self.size)).tolist())
            yield from self.left
            self.gen.skip(2 * self.size)

    def close(self) -> None:
        """Leave the generator behind the last double that was taken."""
        if self.left is not None:
            self.gen.skip(2 * (self.size - self.left.__length_hint__()))


@contextlib.contextmanager
def doubles(gen: Generator, expected: float) -> Iterator[Callable[[], float]]:
    """A function that gives the next double; about so many are expected. For callers that hold the lock."""
    if expected < _FEW:
        yield gen.double
        return
    ahead = _Ahead(gen, int(min(expected, _MOST)))
    try:
        yield iter(ahead).__next__
    finally:
        ahead.close()


def accepted_pairs(gen: Generator, n: int, judged: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
                   accepts: Callable[[int, float, float], bool]) -> np.ndarray:
    """The numbers u of the pairs u + 0.5, v that each of n elements accepts, where all take pairs until they accept one.

    `judged` tells which pairs every element takes, and which ones only some may: these are held against the element whose turn it is.
    """
    found, parts = 0, []
    while found < n:
        size = min(int(1.5 * (n - found)) + 8, _MOST)
        u, v = as_doubles(gen.peek(4 * size)).reshape(size, 2).T
        u = u - 0.5
        taken, doubtful = judged(u, v)
        resolve(taken, doubtful, n, found, accepts, u, v)
        chosen = np.flatnonzero(taken)[: n - found]
        found += chosen.size
        parts.append(u[chosen])
        gen.skip(4 * (size if found < n else int(chosen[-1]) + 1))
    return np.concatenate(parts)


def resolve(taken: np.ndarray, doubtful: np.ndarray, n: int, first: int, accepts: Callable[[int, float, float], bool | None],
            u: np.ndarray, v: np.ndarray) -> int:
    """Decide which doubtful candidates (u, v) are taken too, by the elements from `first` on in turn.

    Returns how many candidates hold: all of them, or those before the one for which `accepts(element, u, v)` knows no answer.
    """
    taken &= ~doubtful
    places = np.flatnonzero(doubtful)
    sure = np.cumsum(taken)[places] + first
    more = 0
    for j, before, a, b in zip(places.tolist(), sure.tolist(), u[places].tolist(), v[places].tolist(), strict=True):
        if before + more >= n:
            break
        answer = accepts(before + more, a, b)
        if answer is None:
            return j
        if answer:
            taken[j] = True
            more += 1
    return taken.size


def products(gen: Generator, limits: list[float]) -> list[float]:
    """How many doubles can be multiplied before the product falls to a limit below 1, for each limit; the one that does it is taken too."""
    found: list[float] = []
    rest = iter(limits)
    limit, product, k = next(rest, None), 1.0, 0.0
    while limit is not None:
        size = min(4 * (len(limits) - len(found)) + 8, _MOST)
        numbers = iter(as_doubles(gen.peek(2 * size)).tolist())
        for x in numbers:
            product *= x
            if product > limit:
                k += 1
            else:
                found.append(k)
                limit, product, k = next(rest, None), 1.0, 0.0
                if limit is None:
                    break
        gen.skip(2 * (size - numbers.__length_hint__()))
    return found
