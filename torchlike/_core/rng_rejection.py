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


def accepted_pairs(gen: Generator, n: int, surely: Callable[[np.ndarray, np.ndarray], np.ndarray],
                   exactly: Callable[[int, float, float], bool]) -> tuple[np.ndarray, np.ndarray]:
    """The doubles u - 0.5 and v that each of n elements accepts, where all take pairs until they accept one.

    `surely` marks pairs that every element accepts; only the others are held against the element whose turn it is.
    """
    us, vs, found = [], [], 0
    while found < n:
        size = min(int(1.5 * (n - found)) + 8, _MOST)
        u, v = as_doubles(gen.peek(4 * size)).reshape(size, 2).T
        u = u - 0.5
        taken = surely(u, v)
        doubtful = np.flatnonzero(~taken)
        before, last = found, n - 1
        for j, a, b in zip(doubtful.tolist(), u[doubtful].tolist(), v[doubtful].tolist(), strict=True):
            element = before + j
            if element > last:
                break
            if exactly(element, a, b):
                taken[j] = True
            else:
                before -= 1
        chosen = np.flatnonzero(taken)[: n - found]
        found += chosen.size
        us.append(u[chosen])
        vs.append(v[chosen])
        gen.skip(4 * (size if found < n else int(chosen[-1]) + 1))
    return np.concatenate(us), np.concatenate(vs)
