"""Views by strides: diagonals, sliding windows over one dimension, as_strided."""
from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._arguments import as_dim, as_int, as_size
from .._core import program
from .._core.grad_mode import mode
from .._core.graph import Identity
from .._core.layout import Layout, contiguous, extent
from .._core.overwrite import may_write
from .._core.registry import View
from .._public import public
from .._storage import places
from .._tensor import Tensor, _refuse_batched
from .bit_views import _CONJ, _NEGATED, is_conj, is_neg, view_as_complex, view_as_real, view_dtype
from .from_data import place
from .shape_views import view
from .slicing import set_slice

_BESIDE = ("result = tensor.as_strided({}, {}, {}) can access memory outside of `tensor`. `result` can access some memory in range [{}, {}], but `tensor` "
           "can only access some memory in range [{}, {}]. This is not supported inside of vmap, please try to rewrite the `as_strided` call as a sequence of "
           "PyTorch view operations")
FEW = 16  # windows or blocks up to which each is an instruction of its own: XLA takes long to compile many


def _diag_size(rows, columns, offset):
    return max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))


def _diagonal_layout(a: Layout, offset, d1, d2):
    n = _diag_size(a.shape[d1], a.shape[d2], offset)
    keep = [i for i in range(len(a.shape)) if i not in (d1, d2)]
    start = 0 if not n else offset * a.strides[d2] if offset >= 0 else -offset * a.strides[d1]
    return Layout((*(a.shape[i] for i in keep), n), (*(a.strides[i] for i in keep), a.strides[d1] + a.strides[d2]), a.offset + start)


def _diagonal_index(n, offset):
    i = np.arange(n)
    return (i, i + offset) if offset >= 0 else (i - offset, i)


def _diagonal_put(xp, base, new, offset, d1, d2):
    moved = xp.moveaxis(base, (d1, d2), (-2, -1))
    index = (..., *_diagonal_index(new.shape[-1], offset))
    if xp is np:
        moved = moved if may_write(base) else moved.copy()
        moved[index] = new
    else:
        moved = moved.at[index].set(new)
    return xp.moveaxis(moved, (-2, -1), (d1, d2))


_DIAGONAL = View("diagonal", lambda xp, x, offset, d1, d2: xp.moveaxis(x, (d1, d2), (-2, -1))[(..., *_diagonal_index(_diag_size(x.shape[d1], x.shape[d2], offset), offset))],
                 put=_diagonal_put, layout=_diagonal_layout)


@public()
def diagonal(input, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the planes of dim1 and dim2, as the last dimension."""
    n = input._value.aval.ndim
    d1, d2 = as_dim(dim1, n), as_dim(dim2, n)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input._view(_DIAGONAL, (as_int(offset, "offset"), d1, d2))


def _strided_index(shape, strides, offset):
    index = np.asarray(offset)
    for n, s in zip(shape, strides):
        index = index[..., None] + np.arange(n) * s
    return index


def _unfold_layout(a: Layout, dim, size, step):
    n = (a.shape[dim] - size) // step + 1
    shape = (*a.shape[:dim], n, *a.shape[dim + 1:], size)
    return Layout(shape, (*a.strides[:dim], a.strides[dim] * step, *a.strides[dim + 1:], a.strides[dim]), a.offset)


def _unfold(xp, x, dim, size, step):
    n = (x.shape[dim] - size) // step + 1
    if xp is np:  # copied: nobody may write into windows that overlap
        strides = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1:], x.strides[dim])
        return np.lib.stride_tricks.as_strided(x, (*x.shape[:dim], n, *x.shape[dim + 1:], size), strides, writeable=False).copy()
    index = np.arange(n)[:, None] * step + np.arange(size)
    return xp.moveaxis(xp.take(x, index, axis=dim), dim + 1, -1)


def _unfold_put(xp, base, new, dim, size, step):
    moved = xp.moveaxis(base, dim, -1)
    new = xp.moveaxis(new, dim, -2)
    windows, places = new.shape[-2], [0] * (moved.ndim - 1)
    if xp is np or windows <= FEW:
        for k in range(windows):
            moved = set_slice(xp, moved, new[..., k, :], [*places, k * step])
    else:
        moved = lax.fori_loop(0, windows, lambda k, moved: set_slice(xp, moved, lax.dynamic_index_in_dim(new, k, -2, False), [*places, k * step]), moved)
    return xp.moveaxis(moved, -1, dim)


def _unfold_vjp(xp, g, plan):
    """Windows added up in blocks of `step` elements: a block of a window is added to as many places as there are windows at once."""
    dim, size, step = plan.statics
    base = plan.avals[0]
    g = xp.moveaxis(g, dim, -2)
    lead, windows, blocks = g.shape[:-2], g.shape[-2], -(-size // step)
    if size % step:
        g = xp.pad(g, [(0, 0)] * (g.ndim - 1) + [(0, blocks * step - size)])
    g = g.reshape(*lead, windows, blocks, step)
    total = xp.zeros((*lead, windows + max(blocks - 1, 0), step), g.dtype)

    def added(k, total):
        there = lax.dynamic_slice_in_dim(total, k, windows, -2)
        return lax.dynamic_update_slice_in_dim(total, there + lax.dynamic_index_in_dim(g, k, -2, False), k, -2)
    if xp is np:
        for k in range(blocks):
            total[..., k:k + windows, :] += g[..., k, :]
    elif blocks <= FEW:
        for k in range(blocks):
            total = added(k, total)
    else:
        total = lax.fori_loop(0, blocks, added, total)
    total, length = total.reshape(*lead, total.shape[-2] * step), base.shape[dim]
    if total.shape[-1] < length:
        total = xp.pad(total, [(0, 0)] * len(lead) + [(0, length - total.shape[-1])])
    return xp.moveaxis(total[..., :length], -1, dim)


_UNFOLD = View("unfold", _unfold, put=_unfold_put, layout=_unfold_layout, overlaps=True, vjp=_unfold_vjp)


@_UNFOLD.kernel_for("cpu")
def _unfold_on_cpu(x, dim, size, step):
    """Each element from its own place: XLA gathers by the windows' places first, and puts that in order with a copy of its own."""
    lead, m, rest = x.shape[:dim], x.shape[dim], x.shape[dim + 1:]
    n, width = (m - size) // step + 1, math.prod(rest)
    shape = n, width, size
    if not x.size or not size or m * width >= 1 << 31:
        return NotImplemented
    window, column, place = (lax.broadcasted_iota(np.int32, shape, k) for k in range(3))
    at = ((window * step + place) * width + column).reshape(1, -1)
    rows = x.reshape(math.prod(lead), m * width)
    return jnp.take_along_axis(rows, jnp.broadcast_to(at, (len(rows), at.size)), 1, mode="promise_in_bounds").reshape(*lead, n, *rest, size)


@public(function=False)
def unfold(self, dimension: int, size: int, step: int) -> Tensor:
    """Windows of `size` elements every `step` along a dimension; the window is the last dimension."""
    shape = self._value.aval.shape
    d, size, step = as_dim(dimension, len(shape)), as_int(size, "size"), as_int(step, "step")
    if size > (shape[d] if shape else 1):
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {shape[d] if shape else 1} but size is {size}")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not shape:
        return view(self, (1,))[:size]
    return self._view(_UNFOLD, (d, size, step))


def _order(root) -> list[int]:
    """The dimensions of a storage's root tensor from the outermost in memory; `root` is its strides, or its Layout."""
    strides = root.strides if root.__class__ is Layout else root
    return sorted(range(len(strides)), key=lambda i: -strides[i])


def _flat_storage(xp, base, root):
    """The storage's elements in order, from its root tensor."""
    order = _order(root)
    return xp.transpose(base, order).reshape(-1), order


def _window_index(root, shape, strides, offset):
    """Which of the storage's elements, in order, a window shows."""
    index = _strided_index(shape, strides, offset)
    if root.__class__ is not Layout:
        return index
    order = _order(root)
    have = _strided_index([root.shape[i] for i in order], [root.strides[i] for i in order], root.offset).reshape(-1)
    found = np.minimum(np.searchsorted(have, index), max(have.size - 1, 0))
    if index.size and not (have.size and (have[found] == index).all()):
        raise RuntimeError(f"as_strided({list(shape)}, {list(strides)}, {offset}) shows elements between the tensor's own, those of other examples of vmap; "
                           "this is not supported by torchlike")
    return found


def _as_strided(xp, base, root, shape, strides, offset):
    flat, _ = _flat_storage(xp, base, root)
    return flat[_window_index(root, shape, strides, offset)]


def _as_strided_put(xp, base, new, root, shape, strides, offset):
    flat, order = _flat_storage(xp, base, root)
    index = _window_index(root, shape, strides, offset)
    if xp is np:
        if not may_write(base) and np.may_share_memory(flat, base):
            flat = flat.copy()
        flat[index] = new
    else:
        flat = flat.at[index].set(new)
    return xp.transpose(flat.reshape([base.shape[i] for i in order]), np.argsort(order))


def _as_strided_vjp(xp, g, plan):
    root, shape, strides, offset = plan.statics
    base = plan.avals[0]
    order = _order(root)
    index = _window_index(root, shape, strides, offset).reshape(-1)
    if xp is np:
        flat = np.zeros(base.numel, g.dtype)
        np.add.at(flat, index, g.reshape(-1))
    else:
        flat = xp.zeros(base.numel, g.dtype).at[index].add(g.reshape(-1))
    return xp.transpose(flat.reshape([base.shape[i] for i in order]), np.argsort(order))


_AS_STRIDED = View("as_strided", _as_strided, put=_as_strided_put, overlaps=True, vjp=_as_strided_vjp,
                   layout=lambda a, root, shape, strides, offset: Layout(shape, strides, offset))


class AsStridedBackward0(Identity):
    """as_strided of a tensor that is a view itself. The window may show memory beside it, which gets no gradient; an element that the
    view has several times gets its share at each place, as in torch."""

    __slots__ = ("window", "view")
    torch_name = "AsStridedBackward0"
    until_written = True

    def __init__(self, made: Tensor, view: Tensor):
        super().__init__(made, (view._edge, view._out))
        self.window, self.view = made._strided(), view._strided()

    def apply(self, grads: list, create_graph: bool) -> list:
        to, read = (_strided_index(*a).reshape(-1) for a in (self.window, self.view))
        n = 1 + max(to.max(initial=0), read.max(initial=0))
        g = grads[0].reshape(-1)
        memory = g.new_zeros(int(n)).index_put((place(to, g.device),), g, accumulate=True)
        share = place(1.0 / np.bincount(read, minlength=n)[read], g.device).to(g.dtype)
        return [(memory[place(read, g.device)] * share).reshape(self.view.shape)]


def _read_as(flat: Tensor, dtype) -> Tensor:
    """A vector's memory as a vector of another dtype."""
    have = flat.dtype
    if have.is_complex and have.to_real() is dtype:
        return view(view_as_real(flat), (-1,))
    if dtype.is_complex and dtype.to_real() is have:
        return view_as_complex(view(flat, (-1, 2)))
    return view_dtype(flat, dtype)


@public()
def as_strided(input, size, stride, storage_offset: int | None = None) -> Tensor:
    """Any strided window into the tensor's storage."""
    shape, strides = as_size(size), as_size(stride)
    if len(shape) != len(strides):
        _refuse_batched("Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size "
                        f"{list(shape)} and stride {list(strides)}", input)
        raise RuntimeError("mismatch in length of strides and shape")
    if any(n < 0 for n in shape):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    offset = input.storage_offset() if storage_offset is None else as_int(storage_offset, "storage_offset", symbolic=True)
    if any(s < 0 for s in strides):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: " + str(list(strides)))
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    st = input._ensure_storage()
    input._current()
    need = extent(Layout(shape, strides, offset))
    kind, item = st.value.aval.dtype, input.dtype.itemsize
    have = st.value.aval.numel * kind.itemsize
    whole, root = st.layout or contiguous(st.value.aval.shape), places(st)
    if program.state.program.__class__ is not program.Program and (offset < whole.offset or need > extent(whole)) and kind is input.dtype:
        raise RuntimeError(_BESIDE.format(list(shape), list(strides), offset, offset, need, whole.offset, extent(whole)))
    if need * item > have and root.__class__ is not Layout:
        raise RuntimeError(f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize {item} requiring "
                           f"a storage size of {need * item} are out of bounds for storage of size {have}")
    if root.__class__ is Layout:
        _window_index(root, shape, strides, offset)
    seen_from, root = root, input
    if input._chain:
        root = input._base if input._base is not None and not input._base._chain else Tensor._of(st.value)
        if root._storage is None:
            root._storage, root._seen, root._layout = st, st.version, st.layout
    if input._chain and input._chain[0][0].name == "lens" and not root._chain:  # seen with tangents of its own
        root = root._view(*input._chain[0][::2])
    if kind is not input.dtype:  # it shows the memory as another dtype
        root = _read_as(root._view(_AS_STRIDED, (seen_from, (have // item * item // kind.itemsize,), (1,), 0)), input.dtype)
        seen_from = (1,)
    made = root._view(_AS_STRIDED, (seen_from, shape, strides, offset))
    if is_neg(input):
        made = made._view(_NEGATED, ())
    if is_conj(input):
        made = made._view(_CONJ, ())
    if mode.enabled and root is not input and input._edge is not None:  # of the numbers that input shows
        made._edge, made._out = AsStridedBackward0(made, input), 0
        if input._several is not None:
            made._several = "AsStrided", 0, made._written, input._several[3]
    return made
