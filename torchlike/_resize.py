"""Another size over the same memory (`resize_`, `out=`), and storages that grow under all tensors that share them."""
from __future__ import annotations

from ._core.graph import AccumulateGrad, Identity
from ._core.layout import Layout, contiguous, contiguous_strides, extent
from ._core.program import record
from ._core.registry import OPS
from ._core.unwritten import content
from ._storage import Past, Storage, in_order, through, window
from ._tensor import Tensor


class Reshaped(Identity):
    """The edge of a tensor that took another shape outside the graph: gradients come in the new shape."""

    __slots__ = ()

    def apply(self, grads: list, create_graph: bool) -> list:
        node, out = self.edges[0]
        got, want = tuple(grads[0].shape), node.output_aval(out).shape
        try:
            return [grads[0].sum_to_size(want)]
        except RuntimeError:
            raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index 0 - got {list(got)} but expected shape compatible "
                               f"with {list(want)}") from None


def resize(t: Tensor, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> None:
    """t becomes the window of `shape` at its place in memory, without writing there. A storage that is too small grows."""
    st = t._ensure_storage()
    if st.host is not None:
        st.host.sync(st)
    t._current()
    if any(link[0].name == "conj" for link in t._chain) or t._storage.value.aval.dtype is not t.dtype:
        _move(t)
    st, layout = t._storage, Layout(shape, strides or contiguous_strides(shape), t._strided().offset)
    need, base = extent(layout), t._root()
    if need > st.value.aval.numel:
        grow(st, need, unwritten=True)
        base = None
    link = window(st, layout)
    t._value, t._seen = through(st.value, (link,)), st.version
    t._chain, t._layout = (link,), layout
    if base is None or base._edge is None or t._several is not None:
        t._base = None
        keep_place(t)
    else:
        t._refresh(st)


def keep_place(t: Tensor) -> None:
    """t, which took another shape outside the graph, stays where it is in it."""
    if t._edge is not None and not isinstance(t._edge, AccumulateGrad):
        t._edge, t._out = Reshaped(t, (t._edge, t._out)), 0


def _move(t: Tensor) -> None:
    """A storage of its own for a tensor that reads the shared one as another dtype."""
    version = t._written
    t._storage, t._chain, t._layout = None, (), None
    t._writes = version
    t._ensure_storage()


def grow(st: Storage, size: int, unwritten: bool = False) -> None:
    """The storage with zeros behind its elements (or `content` of what nobody wrote); tensors that share it find out when they look again."""
    if st.host is not None:
        raise RuntimeError("Trying to resize storage that is not resizable")
    a = st.value.aval
    root = st.layout or contiguous(a.shape)
    flat = through(st.value, (in_order(st, a.numel),))
    more = record(OPS["constant"], [], (content(a.dtype) if unwritten else 0, (size - a.numel,), a.dtype, a.device))[1][0]
    st.value, st.layout = record(OPS["cat"], [flat, more], (0,))[1][0], None
    Past.add(st).growths.append((st.version, window(st, root)))
