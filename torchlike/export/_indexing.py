"""`x[...]` and `x[...] = y` as operators: select, slice, unsqueeze, and one index for everything that is a tensor."""
from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from .._core import dtype as dt
from .._ops import aten
from .._tensor import Tensor

if TYPE_CHECKING:
    from ._trace import Trace

_MASKS = (dt.bool_, dt.uint8)
_END = 0x7FFFFFFFFFFFFFFF


def indexed(trace: Trace, x: Tensor, index: Any) -> Tensor | None:
    """x[index]; None where the parts of the index are of another kind."""
    items = _items(x, index)
    if items is None:
        return None
    view, tensors = _views(trace, x, items)
    if tensors is not None:
        return trace.call(aten.index.Tensor, (view, tensors), {})
    if view is x:
        return _slice(trace, x, 0, slice(None)) if x.ndim else trace.call(aten.alias.default, (x,), {})
    return view


def put(trace: Trace, x: Tensor, index: Any, new: Any) -> bool | None:
    """x[index] = new."""
    items = _items(x, index)
    if items is None:
        return None
    view, tensors = _views(trace, x, items)
    number = not isinstance(new, Tensor)
    if number:
        from .. import tensor
        new = tensor(new, dtype=x.dtype, device=x.device)
    if tensors is not None:
        trace.call(aten.index_put_.default, (view, tensors, new), {})
    elif number:
        trace.call(aten.fill_.Tensor, (view, new), {})
    else:
        while new.ndim > view.ndim and new.shape[0] == 1:
            new = trace.call(aten.select.int, (new, 0, 0), {})
        trace.call(aten.copy_.default, (view, new), {})
    return True


def _items(x: Tensor, index: Any) -> list | None:
    """The parts of an index, lists as tensors and the ellipsis written out."""
    from .. import tensor
    items = list(index) if isinstance(index, tuple) else [index]
    items = [tensor(i, device=x.device) if isinstance(i, list) else i for i in items]
    known = all(i is None or i is ... or isinstance(i, (slice, Tensor)) or (isinstance(i, int) and not isinstance(i, bool)) for i in items)
    if not known or sum(i is ... for i in items) > 1:
        return None
    if any(isinstance(i, slice) and any(isinstance(n, Tensor) for n in (i.start, i.stop, i.step)) for i in items):
        return None
    used = sum(i.ndim if isinstance(i, Tensor) and i.dtype in _MASKS else i is not None and i is not ... for i in items)
    if ... in [i for i in items if not isinstance(i, Tensor)]:
        at = next(k for k, i in enumerate(items) if i is ...)
        items[at:at + 1] = [slice(None)] * (x.ndim - used)
    return items if used <= x.ndim else None


def _views(trace: Trace, x: Tensor, items: list) -> tuple[Tensor, list | None]:
    """The views that numbers, slices and new dimensions make, and the tensors that are left, with None for dimensions taken whole."""
    dim, tensors = 0, []
    for i in items:
        if isinstance(i, Tensor):
            tensors.append(i)
            dim += i.ndim if i.dtype in _MASKS else 1
        elif i is None or isinstance(i, slice):
            x = trace.call(aten.unsqueeze.default, (x, dim), {}) if i is None else x if i == slice(None) else _slice(trace, x, dim, i)
            tensors.append(None)
            dim += 1
        else:
            if not -x.shape[dim] <= i < x.shape[dim]:
                raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {x.shape[dim]}")
            x = trace.call(aten.select.int, (x, dim, i), {})
    while tensors and tensors[-1] is None:
        tensors.pop()
    return x, tensors or None


def _slice(trace: Trace, x: Tensor, dim: int, part: slice) -> Tensor:
    start, end, step = (None if n is None else operator.index(n) for n in (part.start, part.stop, part.step))
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero")
    return trace.call(aten.slice.Tensor, (x, dim, start or 0, _END if end is None else end, *([] if step in (None, 1) else [step])), {})
