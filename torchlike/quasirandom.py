"""torch.quasirandom: Sobol sequences, points that fill a cube more evenly than random ones (Joe and Kuo's numbers, as SciPy has them)."""
from __future__ import annotations

import numpy as np

from ._core import dtype as dt
from ._public import FUNCTIONS as F
from ._tensor import Tensor
from .ops.random import Generator

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of a cube of `dimension` dimensions, in order. With scramble (Owen, 1998; Matousek, 1998), each dimension's bits go through a
    random lower triangular matrix and a random shift, which `seed` determines."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed, self.num_generated = dimension, scramble, seed, 0
        self._shift = self._rows = None
        if scramble:
            self._draw_scrambling()
        self.reset()

    def _draw_scrambling(self) -> None:
        bits, generator = self.MAXBIT, None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        shift = F["randint"](2, (self.dimension, bits), generator=generator).numpy()
        rows = F["randint"](2, (self.dimension, bits, bits), generator=generator).numpy()
        rows = np.tril(rows, -1) + np.eye(bits, dtype=np.int64)
        self._shift = shift @ (1 << np.arange(bits))
        self._rows = rows @ (1 << np.arange(bits - 1, -1, -1))  # row p gives bit 29 - p: the parity of what it shares with a number

    def _scrambled(self, x: np.ndarray) -> np.ndarray:
        if self._rows is None:
            return x
        out = np.zeros_like(x)
        for p in range(self.MAXBIT):
            out |= (np.bitwise_count(x & self._rows[:, p]) & 1).astype(np.int64) << (self.MAXBIT - 1 - p)
        return out ^ self._shift

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dt.dtype | None = None) -> Tensor:
        """The next n points, (n, dimension)."""
        whole = np.rint(self._points.random(n) * 2.0 ** self.MAXBIT).astype(np.int64)
        self.num_generated += n
        kind = dt.get_default_dtype() if dtype is None else dtype
        made = F["from_numpy"](self._scrambled(whole)).to(kind) * 2.0 ** -self.MAXBIT
        return made if out is None else out.resize_(made.shape).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dt.dtype | None = None) -> Tensor:
        """The next 2^m points; as many must have been drawn before that a power of two results."""
        n = 2 ** m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been previously "
                             f"generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' "
                             "instead.")
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Back to the first point."""
        import warnings

        from scipy.stats import qmc
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy's advice about powers of two
            self._points = qmc.Sobol(self.dimension, scramble=False, bits=self.MAXBIT)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Past the next n points."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        seed = "" if self.seed is None else f", seed={self.seed}"
        return f"SobolEngine(dimension={self.dimension}{', scramble=True' if self.scramble else ''}{seed})"
