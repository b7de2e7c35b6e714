"""torch.Size."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex, overload

import numpy as np

from ._core.shown import Shown


class Size(tuple[int, ...] if TYPE_CHECKING else tuple, metaclass=Shown):
    """torch.Size: a shape."""

    __module__ = "torch"
    __slots__ = ()

    def __init_subclass__(cls, **kwargs):
        raise TypeError("type 'torch.Size' is not an acceptable base type")

    def __new__(cls, *sizes):
        made = tuple.__new__(cls, *sizes)
        for n in made:
            if n.__class__ is not int:
                return tuple.__new__(cls, [_checked(i, n) for i, n in enumerate(made)])
        return made

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    @overload
    def __getitem__(self, i: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, i: slice) -> Size: ...
    def __getitem__(self, i):
        r = tuple.__getitem__(self, i)
        return tuple.__new__(Size, r) if i.__class__ is slice else r

    def __add__(self, other) -> Size:
        if isinstance(other, tuple):
            return Size(tuple.__add__(self, other))
        try:
            return tuple(self) + other  # of an array: its sum
        except TypeError:
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size") from None

    def __radd__(self, other):
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, n) -> Size:
        made = tuple(self) * n
        return tuple.__new__(Size, made) if made.__class__ is tuple else made

    __rmul__ = __mul__

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __reduce__(self):
        return (_size, (tuple(self),))


def _checked(i: int, n):
    """Item i of a Size: NumPy's integers stay, other things that count as integers become such."""
    if isinstance(n, np.integer):
        return n
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')") from None


def _size(sizes: tuple) -> Size:
    """For pickling: classes that call themselves torch's cannot be pickled by name."""
    return Size(sizes)
