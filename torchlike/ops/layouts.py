"""torch.layout: how a tensor keeps its elements. Tensors here are strided; the other names are compared with."""

from __future__ import annotations

from .._core.shown import Shown
from .._public import FUNCTIONS, public
from .._tensor import Size, Tensor


class layout(metaclass=Shown):  # noqa: N801  (torch's name)
    """torch.layout."""

    __module__ = "torch"

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return _by_name, (self.name,)


def _by_name(name: str) -> layout:
    return LAYOUTS[name]


LAYOUTS = {
    n: layout(n) for n in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
}
FUNCTIONS.update(LAYOUTS, layout=layout)


def _layout(self) -> layout:
    return LAYOUTS["strided"]


Tensor.layout = property(_layout)


@public(method=False)
def broadcast_shapes(*shapes) -> Size:
    """The shape to which shapes broadcast; an int is a vector's shape."""
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    for n in (n for s in sizes for n in s):
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension ({n}): ({n})")
    found = [1] * max(map(len, sizes), default=0)
    for k, (given, size) in enumerate(zip(shapes, sizes)):
        for place, n in enumerate(reversed(size), 1):
            if found[-place] == 1:
                found[-place] = n
            elif n not in (1, found[-place]):
                raise RuntimeError(f"Attempting to broadcast a dimension of length {n} at {-place}! Mismatching argument at index {k} had {given}; but expected "
                                   f"shape should be broadcastable to {found}")
    return Size(found)
