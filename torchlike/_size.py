"""torch.Size."""
from __future__ import annotations


class Size(tuple):
    """torch.Size: a shape."""

    __module__ = "torch"
    __slots__ = ()

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    def __getitem__(self, i):
        r = tuple.__getitem__(self, i)
        return Size(r) if i.__class__ is slice else r

    def __add__(self, other):
        return Size(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other):
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, n):
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __reduce__(self):
        return (_size, (tuple(self),))


def _size(sizes: tuple) -> Size:
    """For pickling: classes that call themselves torch's cannot be pickled by name."""
    return Size(sizes)
