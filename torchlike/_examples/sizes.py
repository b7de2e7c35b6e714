"""Sizes that depend on the inputs' dynamic dimensions.

The model runs several times, with those dimensions of other sizes each time. A number that is not the same in all runs depends on
them: a `Dyn` holds it as it was in each run, and calculates as the runs do, side by side. Which function of the dimensions it is
gets asked only where a graph has to hold it.
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from .watch import Unfollowed


class Dyn:
    """A number that differs between the runs."""

    __slots__ = ("values",)

    def __init__(self, values: tuple) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Dyn{self.values}"

    def __hash__(self) -> int:
        return hash(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dyn) and self.values == other.values

    def __neg__(self) -> Any:
        return -1 * self

    def __int__(self) -> int:
        raise Unfollowed(f"a number that has to be constant depends on a dynamic dimension: it was {', '.join(map(str, self.values))}")

    __bool__ = __index__ = __float__ = __int__


def dyn(values: Sequence) -> Any:
    """One number of the runs': itself where all agree."""
    first = values[0]
    return first if all(v == first for v in values) else Dyn(tuple(values))


def _calculates(f: Callable) -> Callable:
    def run(self: Dyn, other: Any) -> Any:
        others = other.values if isinstance(other, Dyn) else [other] * len(self.values)
        return dyn([f(a, b) for a, b in zip(self.values, others, strict=True)])
    return run


for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
    _f = getattr(operator, _name)
    setattr(Dyn, f"__{_name}__", _calculates(_f))
    setattr(Dyn, f"__r{_name}__", _calculates(lambda a, b, f=_f: f(b, a)))
for _name in ("lt", "le", "gt", "ge"):  # an answer that differs is asked for as a bool, which fails
    setattr(Dyn, f"__{_name}__", _calculates(getattr(operator, _name)))


def product(sizes: Sequence) -> Any:
    """The product of sizes."""
    total: Any = 1
    for n in sizes:
        total = total * n
    return total


# -- which function of the dimensions it is --------------------------------------------------------------------------------


def affine(wanted: Dyn, of: Dyn) -> tuple[Fraction, int] | None:
    """(a, b) with wanted = a * of + b in all runs."""
    (x0, x1), (y0, y1) = of.values[:2], wanted.values[:2]
    if x0 == x1:
        return None
    a = Fraction(y1 - y0, x1 - x0)
    b = y0 - a * x0
    if b.denominator != 1 or any(a * x + b != y for x, y in zip(of.values, wanted.values)):
        return None
    return a, int(b)


def floored(wanted: Dyn, of: Dyn) -> tuple[int, int, int] | None:
    """(b, c, d) with wanted = (of + b) // c + d in all runs: what a convolution with a stride leaves."""
    for c in range(2, 65):
        for b in range(c):
            d = wanted.values[0] - (of.values[0] + b) // c
            if all((x + b) // c + d == y for x, y in zip(of.values, wanted.values)):
                return b, c, d
    return None


def expression(wanted: Dyn, symbols: dict[str, Dyn]) -> str | None:
    """A text for a size, as torch writes it beside an output: `2*h - 4`."""
    for name, of in symbols.items():
        if wanted == of:
            return name
    for name, of in symbols.items():
        found = affine(wanted, of)
        if found is not None and found[0].denominator == 1 and found[0] > 0:
            a, b = found
            text = name if a == 1 else f"{a}*{name}"
            return text if b == 0 else f"{text} {'+' if b > 0 else '-'} {abs(b)}"
        if found is not None and found[0].numerator == 1 and found[1] == 0:
            return f"{name}//{found[0].denominator}"
    for first, x in symbols.items():
        for second, y in symbols.items():
            rest = Fraction(wanted.values[0], x.values[0] * y.values[0])
            if first < second and rest.denominator == 1 and wanted == x * y * int(rest):
                return f"{first}*{second}" if rest == 1 else f"{rest}*{first}*{second}"
    for name, of in symbols.items():
        found = floored(wanted, of)
        if found is not None:
            b, c, d = found
            inner = name if b == 0 else f"({name} + {b})"
            return f"{inner}//{c}" + ("" if d == 0 else f" {'+' if d > 0 else '-'} {abs(d)}")
    return None
