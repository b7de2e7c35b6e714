"""Sizes as expressions of the dynamic dimensions: which they are, how they read, and the nodes that compute them."""
from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from .._examples.sizes import Dyn, affine, floored

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//"}


class Expr:
    """A symbol (`s77`), or an operation on expressions and numbers."""

    __slots__ = ("op", "args", "hint")

    def __init__(self, op: str, args: tuple, hint: int) -> None:
        self.op, self.args, self.hint = op, args, hint

    def __str__(self) -> str:
        if self.op == "symbol":
            return self.args[0]
        a, b = self.args
        if self.op == "floordiv":
            return f"({_inner(a)}//{b})"
        if self.op == "mul":
            return f"{b}*{a}" if isinstance(b, int) and not isinstance(a, int) else "*".join(sorted([_factor(a), _factor(b)]))
        if isinstance(b, int) and b < 0:
            return f"{a} - {-b}"
        return f"{a} {_SYMBOLS[self.op]} {b}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def symbols(self) -> set[str]:
        """The names in it."""
        return {self.args[0]} if self.op == "symbol" else set().union(*(a.symbols() for a in self.args if isinstance(a, Expr)))

    def at(self, sizes: dict[str, int]) -> int:
        """Its value where the symbols are these."""
        if self.op == "symbol":
            return sizes[self.args[0]]
        a, b = (x.at(sizes) if isinstance(x, Expr) else x for x in self.args)
        return getattr(operator, self.op)(a, b)

    def nodes(self, symbol: Callable[[str], Any], make: Callable[[Callable, tuple], Any]) -> Any:
        """The node of its value; `symbol` has those of symbols, `make` makes one of a function and arguments."""
        if self.op == "symbol":
            return symbol(self.args[0])
        return make(self, getattr(operator, self.op), tuple([a.nodes(symbol, make) if isinstance(a, Expr) else a for a in self.args]))

    def sympy(self) -> str:
        """As PyTorch's files write it."""
        if self.op == "symbol":
            return f"Symbol('{self.args[0]}', positive=True, integer=True)"
        a, b = (x.sympy() if isinstance(x, Expr) else f"Integer({x})" for x in self.args)
        if self.op == "sub":
            return f"Add({a}, Mul(Integer(-1), {b}))"
        return f"{ {'add': 'Add', 'mul': 'Mul', 'floordiv': 'FloorDiv'}[self.op]}({a}, {b})"


def _inner(x: Any) -> str:
    return f"({x})" if isinstance(x, Expr) and x.op != "symbol" else str(x)


def _factor(x: Any) -> str:
    return f"({x})" if isinstance(x, Expr) and x.op in ("add", "sub") else str(x)


def made(op: str, a: Any, b: Any) -> Any:
    """An expression, or its value where that is known."""
    x, y = (v.hint if isinstance(v, Expr) else v for v in (a, b))
    value = getattr(operator, op)(x, y)
    return Expr(op, (a, b), value) if isinstance(a, Expr) or isinstance(b, Expr) else value


def symbol(name: str, hint: int) -> Expr:
    """A dynamic dimension."""
    return Expr("symbol", (name,), hint)


def _plus(x: Any, b: int) -> Any:
    return made("add", x, b) if b else x


def _times(x: Any, a: int) -> Any:
    return made("mul", x, a) if a != 1 else x


def _linear(wanted: Dyn, x: Expr, of: Dyn) -> Expr | None:
    found = affine(wanted, of)
    if found is None:
        return None
    a, b = found
    if a.denominator == 1:
        return _plus(_times(x, a.numerator), b) if a > 0 else None
    return None


def expression(wanted: Dyn, symbols: dict[str, Dyn]) -> Expr | None:
    """Which function of the symbols a size is; None where it is none that is known here."""
    known = {name: (symbol(name, of.values[0]), of) for name, of in symbols.items()}
    for x, of in known.values():
        if of == wanted:
            return x
    for x, of in known.values():
        found = _linear(wanted, x, of)
        if found is not None:
            return found
    pairs = [(p, q) for i, p in enumerate(known.values()) for q in list(known.values())[i:]]
    for (x, xs), (y, ys) in pairs:
        both = xs * ys
        if isinstance(both, Dyn):
            found = _linear(wanted, made("mul", x, y), both)
            if found is not None:
                return found
        x, y = sorted((x, y), key=str)
        total = xs + ys
        if x is not y and isinstance(total, Dyn):
            found = _linear(wanted, made("add", x, y), total)
            if found is not None:
                return found
    candidates = [(x, of) for x, of in known.values()] + [(made("mul", x, y), xs * ys) for (x, xs), (y, ys) in pairs if isinstance(xs * ys, Dyn)]
    for x, of in candidates:
        found = floored(wanted, of)
        if found is not None:
            b, c, d = found
            return _plus(made("floordiv", _plus(x, b), c), d)
    for y, ys in known.values():
        rest = [Fraction(w, v) for w, v in zip(wanted.values, ys.values)] if all(ys.values) else []
        if rest and all(r.denominator == 1 for r in rest) and len({r.numerator for r in rest}) > 1:
            inner = expression(Dyn(tuple(r.numerator for r in rest)), {n: s for n, s in symbols.items() if n != str(y)})
            if inner is not None:
                return made("mul", inner, y)
    return None
