"""Memory that results of a call of vmap share with tensors from outside: an argument that comes back, views of arguments and of captured tensors.

Inside of the call an example lies as it does in the batched tensor, stride for stride. So a view of it says which window of the batched
tensor it is there, once the batch's own stride is added; its values come from the call's operation, like any other result's.
"""
from __future__ import annotations

from typing import NamedTuple

from .._core import dtype as dt
from .._core.graph import Outside
from .._core.layout import Layout, contiguous
from .._storage import without_overlaps
from .._tensor import Tensor, _plain_copy
from ._trace import Placeholder, Trace


def intact(trace: Trace, t: Tensor) -> Placeholder | None:
    """The argument that t is an example of, if it is that very one: the tensor that the function was called with, or wrote in place."""
    place = trace.examples.get(id(t))
    if place is None:
        return None
    return place if t._edge is place.edge or t._current() is not place.value else None


def from_outside(trace: Trace, t: Tensor) -> bool:
    """Whether t, which no example has to itself, shows memory that was there before the call; it is the same after the call."""
    st, v = t._storage, t._current()
    if trace.holds(v if st is None else st.value) and not trace.wrote(t):
        return False
    if st is None or not trace.holds(v):
        return True
    base = t._base  # it looks again, at the end, for what it shows and for its place in the graph
    return not t._unplaced and (t._edge is None if base is None else t._several is None or base._edge is None)


class Sharing(NamedTuple):
    """What becomes of a result that is a view of an argument."""

    place: Placeholder
    view: Tensor
    version: int  # of the argument's memory when the function returned; what it wrote goes there afterwards


def sharing(trace: Trace, results: list[Tensor]) -> list[Sharing | None]:
    """How each result shares memory with an argument."""
    by_storage = {id(p.tensor._storage): p for p in trace.examples.values() if p.tensor._storage is not None}
    places = [None if t._storage is None or t._unplaced else by_storage.get(id(t._storage)) for t in results]
    return [None if p is None else Sharing(p, t, p.source._ensure_storage().version) for t, p in zip(results, places)]


def shared(how: Sharing, out: Tensor, dim: int) -> Tensor:
    """`out`, which holds all examples' rows of a view along dimension `dim`, as a view of the batched argument."""
    source, step, t = how.place.source, how.place.step, how.view
    source._current()
    st, mine = source._ensure_storage(), t._strided()
    size, there = source.dtype.itemsize, t.dtype.itemsize  # strides count elements
    shift = source._strided().offset - how.place.layout.offset  # of an argument whose place was not known when the call began
    if step * size % there or shift * size % there:
        return out
    layout = Layout(tuple(out.shape), (*mine.strides[:dim], step * size // there, *mine.strides[dim:]), mine.offset + shift * size // there)
    chain = (*source._chain, *t._chain)
    if chain or layout != (st.layout or contiguous(st.value.aval.shape)):
        chain = without_overlaps(chain, layout, t.dtype, st)
    made = _plain_copy(out)
    made._storage, made._chain, made._layout = st, chain, layout
    made._seen = how.version
    if source._of_data is not None:
        made._of_data = source._of_data
    if source._inference:
        made._inference, made._plain = True, False
    if t._base is None:  # detached
        return made
    if t._base is not how.place.tensor and t._base is not how.place.tensor._base:  # a view of what was detached
        made._base = source._alias()
        return made
    made._base = source if source._base is None else source._root()
    if t._several is not None:
        name, which, _, reason = t._several
        made._several = name, which, made._written, reason
        if name is None and source._edge is not None and t.dtype.category >= dt.FLOAT:
            made._end_graph(Outside)
    return made
