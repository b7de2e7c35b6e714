"""Names of dynamic dimensions, and linear functions of them."""
from __future__ import annotations

import math
from typing import Any


class _DimHint:
    """Dynamic or static, without a name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"DimHint({self.kind})"


class Dim:
    """A dimension of any size from `min` to `max`. Equal dimensions have the same Dim; `2 * dim + 1` is a dimension that depends on it."""

    AUTO, DYNAMIC, STATIC = map(_DimHint, ("AUTO", "DYNAMIC", "STATIC"))
    factor, offset = 1, 0

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__, self.root = name, self
        self.min, self.max = 0 if min is None else min, math.inf if max is None else max
        assert name.isidentifier(), f"Dim name must be a valid identifier, got {name}"
        assert self.max > self.min, f"Cannot create Dim with inconsistent min={min}, max={max}"

    def __add__(self, other: int) -> Dim:
        return _DerivedDim(self.root, self.factor, self.offset + _integer(other, "add", self))

    def __sub__(self, other: int) -> Dim:
        return _DerivedDim(self.root, self.factor, self.offset - _integer(other, "subtract", self))

    def __mul__(self, other: int) -> Dim:
        if not isinstance(other, int) or other <= 0:
            raise NotImplementedError(f"Attempted to multiply {other!r} with {self.__name__}, where a positive integer was expected. (Only increasing linear "
                                      "operations with integer coefficients are supported.)")
        return _DerivedDim(self.root, self.factor * other, self.offset * other)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        parts = [repr(self.__name__), *([f"min={self.min}"] if self.min != 2 else []), *([f"max={self.max}"] if self.max != math.inf else [])]
        return f"Dim({', '.join(parts)})"


class _DerivedDim(Dim):
    """factor * root + offset."""

    def __init__(self, root: Dim, factor: int, offset: int) -> None:
        self.root, self.factor, self.offset = root, factor, offset
        text = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        self.__name__ = text if not offset else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"
        self.min, self.max = factor * root.min + offset, factor * root.max + offset

    def __repr__(self) -> str:
        return self.__name__


def _integer(x: Any, what: str, dim: Dim) -> int:
    if not isinstance(x, int):
        raise NotImplementedError(f"Attempted to {what} {x!r} to {dim.__name__}, where an integer was expected. (Only increasing linear operations with "
                                  "integer coefficients are supported.)")
    return x


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A Dim for each name."""
    return tuple([Dim(name, min=min, max=max) for name in names])
