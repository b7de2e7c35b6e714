"""Python's arithmetic operators on tensors: which operands are torch's, and which are left to the operand's own class."""
from __future__ import annotations

import numpy as np

from .._arguments import number
from .._core import dtype as dt
from .._fields import Fields
from .._tensor import Tensor, apply
from .element_writes import add_to_element
from .part_writes import add_to_part
from .pointwise import ADD, DIV, MUL, PLAIN, RSUB, SUB, add, div, floor_divide, mul, number_minus, number_over, pow, remainder, sub


def handed_on(name, self, other):
    """What the class of an operand that is no tensor makes of the operator; NotImplemented where it takes none of it, and Python asks its own operator."""
    from ..overrides import handed_over, reported
    try:
        return handed_over(reported(name), (other,), self, other)
    except TypeError:
        return NotImplemented


def operator(f, name, reflected=False):
    """The dunder method `name`: NotImplemented for operands that torch does not take either."""
    def run(self, other):
        if isinstance(other, Fields) or other.__class__ in PLAIN:
            return f(other, self) if reflected else f(self, other)
        if isinstance(other, np.ndarray) and f.__name__ != "eq":  # left to NumPy, whose result __array_wrap__ makes a tensor, in NumPy's type
            return self.reciprocal() * other if reflected and f is number_over else NotImplemented
        if isinstance(other, np.ndarray):
            from .from_data import from_data
            other = from_data(other)
        other = number(other)
        if not isinstance(other, (Tensor, int, float, complex)):
            if not hasattr(other, "__torch_function__"):
                return NotImplemented
            return handed_on(name, self, other)
        return f(other, self) if reflected else f(self, other)
    return run


def in_place_operator(name, symbol):
    def run(self, other):
        if not isinstance(other, Tensor) and hasattr(other, "__torch_function__"):
            return handed_on(symbol, self, other)
        try:
            return getattr(self, name)(other)
        except TypeError:
            if _foreign(other):
                return NotImplemented
            raise
    return run


_ELEMENTS = (int, float, Tensor)


def _into_part(name, sign):
    """The operator also where a loop adds to elements or parts of a tensor."""
    general = getattr(Tensor, name)

    def run(self, other):
        if (self._base is not None and self.__class__ is Tensor and other.__class__ in _ELEMENTS
                and (add_to_part if self._value.aval.ndim else add_to_element)(self, other, sign)):
            return self
        return general(self, other)
    run.__name__ = name
    setattr(Tensor, name, run)


def _foreign(x) -> bool:
    """Whether an operator leaves an operand to the operand's own class."""
    return not isinstance(number(x), (Tensor, int, float, complex, np.ndarray)) and not hasattr(x, "__torch_function__")


_REFLECTED = {sub: number_minus, div: number_over}
for _symbol, _f in (("add", add), ("sub", sub), ("mul", mul), ("truediv", div), ("floordiv", floor_divide), ("mod", remainder),
                    ("pow", pow)):
    setattr(Tensor, f"__{_symbol}__", operator(_f, f"__{_symbol}__"))
    setattr(Tensor, f"__r{_symbol}__", operator(_REFLECTED.get(_f, _f), f"__r{_symbol}__", reflected=True))
    setattr(Tensor, f"__i{_symbol}__", in_place_operator(_f.__name__ + "_", f"__i{_symbol}__"))


_into_part("__iadd__", 1)
_into_part("__isub__", -1)


def _fast(op, name):
    """The operator's common case in as little Python as possible."""
    slow = getattr(Tensor, name)

    def run(self, other):
        if isinstance(other, Fields) or other.__class__ in PLAIN:
            return apply(op, (self, other))
        return slow(self, other)
    run.__name__ = name
    setattr(Tensor, name, run)


def _fast_difference(op, name):
    """As _fast; bools, and a number as self, are refused elsewhere."""
    slow = getattr(Tensor, name)

    def run(self, other):
        if isinstance(self, Tensor) and self._value.aval.dtype is not dt.bool_ and (
                other.__class__ in PLAIN or other.__class__ is Tensor and other._value.aval.dtype is not dt.bool_):
            return apply(op, (self, other))
        return slow(self, other)
    run.__name__ = name
    setattr(Tensor, name, run)


_fast_difference(SUB, "__sub__")
_fast_difference(RSUB, "__rsub__")
for _name, _op in (("__add__", ADD), ("__radd__", ADD), ("__mul__", MUL), ("__rmul__", MUL), ("__truediv__", DIV)):
    _fast(_op, _name)
for _prefix in ("", "r", "i"):  # Python 2's names, which PyTorch kept
    setattr(Tensor, f"__{_prefix}div__", getattr(Tensor, f"__{_prefix}truediv__"))
