"""t[...] and t[...] = v: basic indices are views, tensor and list indices gather and scatter."""
from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .._arguments import refuse_long
from .._core import dtype as dt
from .._core import program
from .._core.aval import aval
from .._core.errors import class_name
from .._core.history import warn
from .._core.layout import Layout, combined, contiguous_strides, overlapping
from .._core.registry import Op
from .._core.value import is_tracer, of_array
from .._public import FUNCTIONS
from .._tensor import Tensor, apply
from .._writing import check_apart
from .basic import filled_by, to_device
from .element_writes import Loop, changed, is_element, read_element, read_row, write_element
from .from_data import place
from .index_kernels import INDEX, INDEX_PUT, INDEX_PUT_MASK, take_shape
from .index_parsing import MASKS, cuts_of, dims_used, from_start, items_of, parsed, refuse_many, refuse_part_of_number
from .index_ranges import check_range
from .part_writes import is_read_part, read_part, write_part
from .parts import link_of
from .pointwise import _plain_number
from .shape_views import UNSQUEEZE, VIEW
from .slicing import SELECT_AT, take_index, take_slice


def getitem(self: Tensor, index) -> Tensor:
    """torch's indexing: ints, slices, None, ..., and tensors, arrays or lists of ints or bools."""
    cls = index.__class__
    # where nothing is pending, an element is read sooner than recorded
    adds = Loop.adds_to and id(self) in Loop.adds_to
    if cls in _PLACES and (adds or not program.state.program.results) and not (cls is tuple and index and index[0].__class__ is slice):
        made = read_element(self, index)
        if made is not None:
            return made
    if adds and (made := read_part(self, index)) is not None:
        return made
    if cls is int:
        if program.state.samples and not program.state.program.results and (made := read_row(self, index)) is not None:
            return made
        shape = self._value.aval.shape
        if not shape:
            refuse_part_of_number(index)
        return take_index(self, 0, from_start(index, shape[0], 0))
    try:
        if cls is tuple or cls is slice:
            cuts = cuts_of(index if cls is tuple else (index,), self._value.aval.shape, True)
            link = link_of(self, cuts) if cuts else None
            if link is not None:
                return self._view(*link)
        t, advanced = _basic(self, index)
    except Exception as error:
        return _taken_over(error, Tensor.__getitem__, self, index)
    if not advanced:
        return t
    if all(map(_is_position, advanced.values())) and _may_alias(t, advanced.values()):
        made = _at_positions(t, advanced)
        made._unplaced = index, self._chain
        return made
    first, advanced = _pending_first(advanced)
    return _gather(t, advanced) if not first else _gather(_gather(t, first), advanced)


def _is_position(i: Tensor) -> bool:
    """Whether an index is one whole number, which is not known yet: to torch an int."""
    return not i._value.aval.ndim and i.dtype.category == dt.INT and i.dtype is not dt.uint8


def _pending_first(advanced: dict) -> tuple[dict, dict]:
    """Positions to be taken first, and the other advanced indices of what that leaves.

    torch takes ints first. Whether a position is an index or an int shows only where slices or None lie between the indices: these
    indices' dimensions come first in the result.
    """
    first = {d: i for d, i in advanced.items() if _is_position(i)}
    dims = sorted(advanced)
    if not first or len(first) == len(dims) or all(b == a + dims_used(advanced[a]) for a, b in zip(dims, dims[1:])):
        return {}, advanced
    return first, {d - sum(f < d for f in first): i for d, i in advanced.items() if d not in first}


def _taken_over(error: Exception, function: Callable, t: Tensor, index, *value):
    """What the class of an index or a value makes of it by its `__torch_function__`; else the error that comes of it."""
    asked = [*(index if isinstance(index, (tuple, list)) else (index,)), *value]
    if any(hasattr(type(x), "__torch_function__") and type(x) is not Tensor for x in asked):
        from ..overrides import handed_over, has_torch_function
        if has_torch_function(asked):
            return handed_over(function, (t, *asked), t, index, *value)
    raise error


def _may_alias(t: Tensor, positions: Iterable[Tensor]) -> bool:
    """Whether an element at positions that are not known yet can be the view that it is in torch: not where a function is traced or mapped,
    which knows no memory, nor for a class that holds its data itself."""
    return (program.state.program.__class__ is program.Program and program.state.capture is None and not t._dispatches
            and t._value.array is not program.META_ARRAY
            and not any(x._dispatches or is_tracer(x._current().array) or x.device is not t.device for x in (t, *positions)))


def _at_positions(t: Tensor, positions: dict) -> Tensor:
    """The view of t at positions along dimensions."""
    index, dims = _prepared(t, positions)
    for taken, (dim, i) in enumerate(zip(dims, index)):
        t = t._view(SELECT_AT, (dim - taken,), position=(i if i.dtype is dt.int64 else i.to(dt.int64))._current())
    return t


def _basic(t: Tensor, index, alias: bool = True):
    """Apply ints, slices, None and ...; the view (always one if `alias`), and the advanced indices left for it as {dim: Tensor}."""
    items = items_of(index)
    shape = t._value.aval.shape
    try:
        parts, new, advanced, data = parsed(items, shape, alias)
    except Exception:
        if not shape:
            refuse_part_of_number(index)
        refuse_many(items, shape)
        raise
    if alias and not parts and not new and not advanced:
        refuse_many(items, shape)
        return t._view(VIEW, (shape,)), advanced
    return _viewed(t, parts, new, data), advanced


def _viewed(t: Tensor, parts: list, new: list, data: bool) -> Tensor:
    """t cut to parts, with new dimensions.

    One view where it can be; else one after the other as torch does, so that the last one's name is that of the node.
    """
    link = None if new else link_of(t, parts, data)
    if link is not None:
        return t._view(*link)
    dropped = 0
    for source, start, n, step in parts:
        while new and new[0][1] <= source:
            t = t._view(UNSQUEEZE, (new.pop(0)[0],))
            dropped -= 1
        if n < 0:
            t = take_index(t, source - dropped, start, data)
            dropped += 1
        else:
            t = take_slice(t, source - dropped, start, n, step)
    for dim, _ in new:
        t = t._view(UNSQUEEZE, (dim,))
    return t


def _expand_masks(t: Tensor, advanced: dict) -> dict:
    """Boolean masks as the positions where they are true."""
    out = {}
    for dim, i in advanced.items():
        if i.dtype in MASKS:
            if i.dtype is dt.uint8:
                warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.")
            _check_mask(t, dim, i)
            if i._dispatches:  # its class says where
                out.update({dim + k: positions for k, positions in enumerate(i.nonzero().unbind(1))})
                continue
            mask = i._host_array()
            for k, positions in enumerate(np.nonzero(mask)):
                v = of_array(positions.astype(np.int64, copy=False))
                v.bounds = (0, mask.shape[k] - 1) if positions.size else (0, -1)  # they need not be looked through
                out[dim + k] = Tensor._of(v)
        else:
            out[dim] = i
    return out


def _check_mask(t: Tensor, dim: int, mask: Tensor) -> None:
    shape, mine = t._value.aval.shape, mask._value.aval.shape
    for k, (a, b) in enumerate(zip(mine, shape[dim:])):
        if a != b:
            raise IndexError(f"The shape of the mask {list(mine)} at index {k} does not match the shape of the indexed tensor "
                             f"{list(shape)} at index {dim + k}")


def _prepared(t: Tensor, advanced: dict):
    advanced = _expand_masks(t, advanced)
    dims = tuple(sorted(advanced))
    shape = t._value.aval.shape
    if len(dims) > 1:
        shapes = [advanced[d]._value.aval.shape for d in dims]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                             + ", ".join(str(list(s)) for s in shapes)) from None
    index = []
    empty = not all(n for d, n in enumerate(shape) if d not in dims)  # then nothing is looked up
    for k, d in enumerate(dims):  # torch counts the dimensions that have an index, in what it says
        i = advanced[d]
        if not shape[d] and i._value.aval.numel:
            raise IndexError("index is out of bounds for dimension with size 0")
        if not empty:
            check_range(i, shape[d], lambda bad, k=k, d=d: f"index {bad} is out of bounds for dimension {k} with size {shape[d]}")
        index.append(_beside(t, i.new_zeros(i.shape) if empty else _nonnegative(i, shape[d])))
    return index, dims


def _beside(t: Tensor, i: Tensor) -> Tensor:
    """An index on t's device: indices may be on the CPU, whatever they select from."""
    if i.device is t.device:
        return i
    if i.device.type != "cpu":
        raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({t.device})")
    return to_device(i, t.device)


def _nonnegative(i: Tensor, n: int) -> Tensor:
    v = i._current()
    if v.bounds is not None and v.bounds[0] >= 0:
        return i
    if v.bounds is not None and v.array is not None:
        a = np.asarray(v.array)
        return Tensor._of(of_array(np.where(a < 0, a + n, a), v.aval.device))
    return apply(_WRAP, (i, n))


_WRAP = Op("wrap_index", lambda xp, x, n: xp.where(x < 0, x + xp.asarray(n, x.dtype), x), shape=lambda a, n: (a.shape, a.dtype), vjp=False)


def _gather(t: Tensor, advanced: dict) -> Tensor:
    index, dims = _prepared(t, advanced)
    made = apply(INDEX, (t, *index), (dims,))
    if t._layout is not None:
        made._layout = _gathered_layout(t._layout, made._value.aval.shape, tuple([i._value.aval.shape for i in index]), dims)
    return made


def _gathered_layout(a: Layout, shape: tuple, index: tuple, dims: tuple) -> Layout | None:
    """The layout of gathered elements: the dimensions that stay are ordered as in memory, those of the indices as in the indices."""
    n = len(shape) - len(a.shape) + len(dims)  # dimensions of the indices, which stand together at `at`
    at = dims[0] if dims == tuple(range(dims[0], dims[-1] + 1)) else 0
    stay = [s for d, s in enumerate(a.strides) if d not in dims]
    rows = [(*stay[:at], *[0] * n, *stay[at:])]
    for i in index:
        lead = n - len(i)
        moves = [0] * lead + [0 if m == 1 and m != k else s for s, m, k in zip(contiguous_strides(i), i, shape[at + lead:])]
        rows.append((*[0] * at, *moves, *[0] * (len(stay) - at)))
    return combined(shape, tuple(Layout(shape, row) for row in rows))


_ELEMENTS, _PLACES = (float, int, bool, Tensor), (tuple, int, Tensor)


def setitem(self: Tensor, index, value) -> None:
    """t[index] = value, broadcasting value and casting it to t's dtype."""
    if value.__class__ in _ELEMENTS and self.__class__ is Tensor:
        if value.__class__ is Tensor and is_read_part(value, self, index):
            changed(self)
            return
        if index.__class__ in _PLACES and write_element(self, index, value) or write_part(self, index, value):
            return
    if id(self) in Loop.adds_to and index.__class__ in _PLACES and isinstance(value, Tensor) and is_element(value, self, index):
        self._check_write()  # x[i] += 1 ends so: the view was written already
        self._count_write(self._storage)
        self._seen = self._storage.version
        return
    if value.__class__ is Tensor and value._unplaced is not None and value._unplaced[0] is index and _is_there(value, self):
        self._check_write()  # likewise
        self._count_write(self._storage)
        return
    try:
        t, advanced = _basic(self, index, alias=False)
    except Exception as error:
        return _taken_over(error, Tensor.__setitem__, self, index, value)
    if not isinstance(value, Tensor):
        if isinstance(value, (int, float, complex, np.integer)):
            if isinstance(value, (int, np.integer)):
                refuse_long(value)
            value = _plain_number(value)
            if not advanced:
                t._check_write()
                filled_by(t, value)
                return
            value = _number_like(t, value)
        else:
            return _taken_over(TypeError(f"can't assign a {class_name(value)} to a {self.type()}"), Tensor.__setitem__, self, index, value)
    if not advanced:
        if value is self and overlapping(t._layout) and t._value.aval.shape == self._value.aval.shape:
            t._check_write(repeats=True)
            t._count_write(t._storage)
            return  # all of it is what it is
        if value._chain and value._chain == t._chain and value._storage is t._storage and value._edge is None and t._edge is None:
            t._check_write()  # x[i] += 1 ends so: the view was written already
            t._count_write(t._storage)
            return
        shape = t._value.aval.shape
        if value._value.aval.ndim > len(shape):
            value = _without_leading_ones(value, shape)
        if not value._value.aval.shape and t.__class__ is Tensor is value.__class__ and not overlapping(t._layout):
            filled_by(t, value)
            return
        apart = value._storage is None or value._storage is not t._storage
        t.copy_(value if apart and value._value.aval.shape == shape else value.expand(shape))  # whose error an assignment has
        return
    t._check_write(True)
    if all(map(_is_position, advanced.values())):
        _write_at_positions(t, advanced, value)
        return
    first, advanced = _pending_first(advanced)
    if first:
        part = _gather(t, first)
        setitem(part, tuple([advanced.get(d, slice(None)) for d in range(max(advanced) + 1)]), value)
        _write_at_positions(t, first, part)
        return
    kind = next(iter(advanced.values())).dtype if len(advanced) == 1 and value._value.aval.numel == 1 else None
    if kind is dt.uint8:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
    if kind is dt.bool_:
        if put_at_mask(t, advanced, value):
            return
        value = value.to(t.dtype)
    check_apart(self, (value, *advanced.values()))
    ready, dims = _prepared(t, advanced)
    put_index(t, ready, dims, value, False)


def put_at_mask(t: Tensor, advanced: dict, value: Tensor) -> bool:
    """Write one number, of any dtype, where the only index, a mask, holds; whether that is what it was about. The positions need not be known then."""
    if len(advanced) != 1 or value._value.aval.numel != 1 or overlapping(t._layout):
        return False
    (dim, mask), = advanced.items()
    if mask.dtype is not dt.bool_:
        return False
    _check_mask(t, dim, mask)
    value = value.to(t.dtype)
    t._assign(apply(INDEX_PUT_MASK, (t, mask, value.reshape(()) if value._value.aval.ndim else value), (dim,)))
    return True


def _is_there(value: Tensor, t: Tensor) -> bool:
    """Whether a view that an index took of t, or of a tensor like it, is what that index still says of t."""
    index, chain = value._unplaced
    return (value._storage is t._storage and chain == t._chain and value._edge is None and t._edge is None
            and all(not isinstance(i, Tensor) or i._storage is not t._storage for i in (index if index.__class__ is tuple else (index,))))


def _write_at_positions(t: Tensor, positions: dict, value: Tensor) -> None:
    """t[positions] = value as torch does it for ints: like `copy_`, of any dtype, and refused in its words."""
    shape = tuple([n for d, n in enumerate(t._value.aval.shape) if d not in positions])
    if value._value.aval.ndim > len(shape):
        value = _without_leading_ones(value, shape)
    if value._value.aval.shape != shape:
        value = value.expand(shape)
    ready, dims = _prepared(t, positions)
    put_index(t, ready, dims, value.to(t.device, t.dtype), False)


def put_repeating(t: Tensor, index, dims, value: Tensor, accumulate: bool = False) -> Tensor:
    """put_index where elements of t are one place in memory: a write to the vector of all that memory, in order."""
    t._check_write(True)
    layout = t._strided()
    whole = t._storage.value.aval
    memory = FUNCTIONS["as_strided"](t, (whole.numel * whole.dtype.itemsize // t.dtype.itemsize,), (1,), 0)
    memory._several = t._several
    places = t.storage_offset() + sum(np.arange(n).reshape(-1, *[1] * (t.ndim - 1 - d)) * s for d, (n, s) in enumerate(zip(layout.shape, layout.strides)))
    put_index(memory, [apply(INDEX, (place(places, t.device), *index), (dims,))], (0,), value, accumulate)
    return t


def put_index(t: Tensor, index, dims, value: Tensor, accumulate: bool) -> Tensor:
    """Write (or add) value at index arrays."""
    if overlapping(t._layout):
        return put_repeating(t, index, dims, value, accumulate)
    target = take_shape(aval(t._value.aval.shape, t.dtype), *(i._value.aval for i in index), dims)[0]
    if value._value.aval.ndim > len(target):
        value = _drop_ones(value, target)
    shape = value._value.aval.shape
    if shape != target:
        try:
            fits = np.broadcast_shapes(shape, target) == target
        except ValueError:
            fits = False
        if not fits:
            _refuse_shape(shape, target)
        value = value.expand(target)
    refuse_other_dtype(t, value)
    return t._assign(apply(INDEX_PUT, (t, value, *index), (dims, accumulate)))


def refuse_other_dtype(t: Tensor, value: Tensor) -> None:
    """torch's error for a write at indices of a value of another dtype."""
    if value.dtype is not t.dtype:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {t.dtype.short} for the destination and "
                           f"{value.dtype.short} for the source.")


def _number_like(t: Tensor, x) -> Tensor:
    from .creation import filled
    return filled((), x, t.dtype, t.device)


def _drop_ones(value: Tensor, target: tuple) -> Tensor:
    shape = value._value.aval.shape
    extra = len(shape) - len(target)
    if any(n != 1 for n in shape[:extra]):
        _refuse_shape(shape, target)
    return value.reshape(shape[extra:])


def _without_leading_ones(value: Tensor, target: tuple) -> Tensor:
    shape = value._value.aval.shape
    value = value.reshape(shape[next((d for d, n in enumerate(shape) if n != 1), len(shape)):])
    return value if value._value.aval.ndim <= len(target) else value.expand(target)  # which refuses it


def _refuse_shape(shape: tuple, target: tuple) -> None:
    raise RuntimeError(f"shape mismatch: value tensor of shape {list(shape)} cannot be broadcast to indexing result of shape {list(target)}")


def delitem(self: Tensor, index) -> None:
    raise TypeError("Tensor does not support deleting items")


Tensor.__getitem__ = getitem
Tensor.__setitem__ = setitem
Tensor.__delitem__ = delitem
