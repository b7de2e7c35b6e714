"""Transforms of parts of a tensor along one dimension: of pieces of given lengths, or of single slices."""
from __future__ import annotations

from collections.abc import Sequence

from .._functions import torch as F
from . import constraints
from .transforms import Transform
from .utils import sum_rightmost


def _need(ok: bool, message: str) -> None:
    if not ok:
        raise AssertionError(message)


class _Joined(Transform):
    """transforms[i] of part i; subclasses say how a tensor is cut and joined."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        _need(all(isinstance(t, Transform) for t in tseq), "All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) if cache_size else t for t in tseq], dim

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    def _cut(self, x):
        _need(-x.dim() <= self.dim < x.dim(), f"dim {self.dim} out of range for tensor with {x.dim()} dimensions")
        return self._parts(x)

    def _call(self, x):
        return self._join([t(part) for t, part in zip(self.transforms, self._cut(x))])

    def _inverse(self, y):
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._cut(y))])

    def _slopes(self, x, y):
        return [t.log_abs_det_jacobian(a, b) for t, a, b in zip(self.transforms, self._cut(x), self._cut(y))]


class CatTransform(_Joined):
    """transforms[i] of the next lengths[i] elements along dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        _need(len(self.lengths) == len(self.transforms), f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x):
        _need(x.size(self.dim) == self.length, f"x.size({self.dim}) = {x.size(self.dim)} must equal length {self.length}")
        return x.split(self.lengths, self.dim)

    def _join(self, parts):
        return F["cat"](parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        """The parts' values in place; their sum where dim belongs to an event."""
        slopes = [sum_rightmost(s, self.event_dim - t.event_dim) for s, t in zip(self._slopes(x, y), self.transforms)]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return F["cat"](slopes, dim) if dim < 0 else sum(slopes)


class StackTransform(_Joined):
    """transforms[i] of slice i along dim."""

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x):
        _need(x.size(self.dim) == len(self.transforms), f"x.size({self.dim}) = {x.size(self.dim)} must equal len(transforms) {len(self.transforms)}")
        return x.unbind(self.dim)

    def _join(self, parts):
        return F["stack"](parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        """The slices' values, stacked."""
        return F["stack"](self._slopes(x, y), self.dim)
