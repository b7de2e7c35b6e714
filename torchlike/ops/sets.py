"""Distinct values, membership, and binary search."""

from __future__ import annotations

import math
from typing import Literal, overload

import numpy as np
from jax import lax, vmap
from jax import numpy as jnp

from .._arguments import as_own_dim, flag
from .._core import dtype as dt
from .._core import program
from .._core.arrays import cast
from .._core.errors import class_name, not_implemented
from .._core.grad_mode import mode
from .._core.history import warn
from .._core.layout import Layout, contiguous_strides
from .._core.registry import Op
from .._public import FUNCTIONS, called, public
from .._tensor import Tensor, apply
from .elements import common_dtype
from .masks import _on
from .pointwise import _plain_number, number
from .sorting import argsort_array
from .underivable import Underived

# -- distinct values: their number depends on the data, so they are found on the host ----------------------------------


def _chosen(name: str) -> Op:
    return Underived(name, f"the derivative for '{name}' is not implemented.", NotImplementedError)


_UNIQUE, _UNIQUE_DIM, _CONSECUTIVE = map(_chosen, ("_unique2", "unique_dim", "unique_consecutive"))


_FIRST = 4  # columns after which wide rows seldom agree


def _places(new: np.ndarray) -> np.ndarray:
    """The number of the group of each row, given which begin one."""
    group = new.astype(np.int64)
    group[:1] = 0
    return np.add.accumulate(group, out=group)  # NumPy's own conversion on the way takes four times as long


def _begins(rows: np.ndarray) -> np.ndarray:
    """Which rows differ from the one before."""
    new = np.ones(len(rows), bool)
    if rows.shape[1] == 1:
        flat = rows.reshape(-1)
        np.not_equal(flat[1:], flat[:-1], out=new[1:])
    else:
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return new


def _sorted_order(rows: np.ndarray) -> np.ndarray:
    """The stable order of rows, by their first columns first."""
    columns = rows.shape[1]
    if columns == 1:
        return argsort_array(np, rows.reshape(-1), 0, False)
    if columns <= 2 * _FIRST or rows.dtype.kind == "f":  # a NaN would look as if it were decided
        return np.lexsort(rows.T[::-1]) if columns else np.arange(len(rows))
    order = np.lexsort(rows[:, _FIRST - 1::-1].T)
    new = _begins(rows[order, :_FIRST])
    open_ = np.flatnonzero(~(new & np.append(new[1:], True)))
    some = order[open_]
    order[open_] = some[np.lexsort((*rows[some, _FIRST:].T[::-1], _places(new)[open_]))]
    return order


def _by_counting(array: np.ndarray, inverse: bool) -> tuple | None:
    """The values among whole numbers, which of them each is (if `inverse` asks) and how often each occurs; None where the numbers are others, or lie too
    far apart. Two passes over memory, where sorting takes as long as twenty."""
    if array.dtype.kind not in "iub" or array.dtype == np.uint64 or not array.size:
        return None
    low, high = int(array.min()), int(array.max())
    if high - low >= max(array.size, 1 << 8):
        return None
    flat = array.reshape(-1).astype(np.int64)
    flat -= low
    often = np.bincount(flat)
    there = often > 0
    values = (np.flatnonzero(there) + low).astype(array.dtype)
    return values, _places(there)[flat] if inverse else None, often[there]


def _find(op: Op, input: Tensor, dim: int | None, keep_order: bool, inverse: bool, counts: bool):
    array = input._host_array()
    counted = None if keep_order or dim is not None or input.requires_grad else _by_counting(array, inverse)
    if counted is not None:
        values, group, often = counted
        out = [values, *([group.reshape(array.shape)] if inverse else []), *([often] if counts else [])]
        made = tuple([_on(x, input.device) for x in out])
        return made if len(made) > 1 else made[0]
    if dim is None:
        moved, rows = array.reshape(-1), array.reshape(-1, 1)
        shape = array.shape
    else:
        moved = np.moveaxis(array if array.ndim else array.reshape(1), dim, 0)
        rows = moved.reshape(len(moved), math.prod(moved.shape[1:]))
        shape = (len(moved),)
    rows = rows.astype(np.float32) if rows.dtype.kind == "V" else rows
    order = None if keep_order else _sorted_order(rows)
    new = _begins(rows if order is None else rows[order])
    starts = np.flatnonzero(new)
    found = moved.take(starts if order is None else order[starts], 0)
    found = found if dim is None else np.moveaxis(found, 0, dim)
    values = _on(np.ascontiguousarray(found), input.device)
    if input.requires_grad and mode.enabled:
        values = apply(op, (values, input))
    if dim:  # torch finds the slices first in memory, and moves their dimension back
        sizes, d = tuple(values.shape), dim % values.ndim
        strides = contiguous_strides((sizes[d], *sizes[:d], *sizes[d + 1:]))
        values._layout = Layout(sizes, (*strides[1:d + 1], strides[0], *strides[d + 1:]))
    out = [values]
    if inverse:
        group = _places(new)
        if order is not None:
            group[order] = group.copy()  # of the rows where they were
        out.append(_on(group.reshape(shape), input.device))
    if counts:
        out.append(_on(np.diff(starts, append=len(new)), input.device))
    return tuple(out) if len(out) > 1 else values


def _real(name: str, input: Tensor) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {class_name(input)}")
    if input.dtype.is_complex:
        raise not_implemented(name, input.dtype)


def _checked_dim(input: Tensor, dim: int | None) -> int | None:
    if dim is None:
        return None
    d = as_own_dim(dim, input.ndim)
    if not input.numel():
        if input.shape[d]:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        if list(input.shape).count(0) > 1:
            raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied")
    return d


@overload
def unique(input: Tensor, sorted: bool = True, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None) -> Tensor: ...
@overload
def unique(input: Tensor, sorted: bool = True, *, return_inverse: Literal[True], return_counts: bool = False, dim: int | None = None) -> tuple[Tensor, ...]: ...
@overload
def unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, *, return_counts: Literal[True], dim: int | None = None) -> tuple[Tensor, ...]: ...
@public()
def unique(input, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements (or slices along dim) in order; as asked, where each went, and how often each occurs."""
    _real("unique", input)
    d = _checked_dim(input, dim)
    flag(sorted)
    return _find(_UNIQUE if d is None else _UNIQUE_DIM, input, d, False, flag(return_inverse), flag(return_counts))


def _unique(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    """unique as it was called in PyTorch 0.4; the inverse is empty where it is not asked for."""
    found = unique(self, sorted, return_inverse)
    return found if return_inverse else (found, self.new_empty(0, dtype=dt.int64))


FUNCTIONS["_unique"] = called(_unique)


@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None) -> Tensor: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: Literal[True], return_counts: bool = False, dim: int | None = None) -> tuple[Tensor, ...]: ...
@overload
def unique_consecutive(input: Tensor, return_inverse: bool = False, *, return_counts: Literal[True], dim: int | None = None) -> tuple[Tensor, ...]: ...
@public()
def unique_consecutive(input, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Tensor | tuple[Tensor, ...]:
    """unique that merges only equal neighbours and keeps their order."""
    _real("unique_consecutive", input)
    return _find(_CONSECUTIVE, input, _checked_dim(input, dim), True, flag(return_inverse), flag(return_counts))


# -- membership --------------------------------------------------------------------------------------------------------


def _isin(xp, x, among, dtype, invert):
    x, among = cast(xp, x, dtype.np), cast(xp, among, dtype.np)
    if xp is np and x.dtype.kind == "V":
        x, among = x.astype(np.float32), among.astype(np.float32)  # NumPy does not know the other types' NaN
    return xp.isin(x, among, invert=invert)


_ISIN = Op("isin", _isin, shape=lambda a, among, dtype, invert: (a.shape, dt.bool_), vjp=False)


@public(method=False, out=True)
def isin(
    elements=None,
    test_elements=None,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    element=None,
    test_element=None,
) -> Tensor:
    """Which elements are among test_elements; either may be a number (named `element`, `test_element`)."""
    elements, test_elements = (
        element if elements is None else elements,
        test_element if test_elements is None else test_elements,
    )
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError(
            f"isin() received an invalid combination of arguments - got ({class_name(elements)}, {class_name(test_elements)})"
        )
    pair = [x if isinstance(x, Tensor) else _plain_number(number(x)) for x in (elements, test_elements)]
    for x in pair:
        if isinstance(x, Tensor) and (x.dtype.is_complex or x.dtype is dt.bool_):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {x.dtype.short}")
    return apply(_ISIN, pair, (common_dtype(*pair), bool(invert)))


# -- binary search -----------------------------------------------------------------------------------------------------


def _bisected(xp, sequence, values, right: bool):
    """torch's search by halves, whose comparisons say where it goes among NaN: on from an element that is not (>= or) > the value."""
    n = sequence.shape[-1]
    index = np.int64 if xp is np or n >> 30 else np.int32  # the quicker one
    bounds = xp.zeros(values.shape, index), xp.full(values.shape, n, index)
    if not n or not values.size:
        return bounds[0]
    rows = sequence if sequence.ndim == 1 else sequence.reshape(-1, n)
    row = () if sequence.ndim == 1 else (np.arange(rows.shape[0]).reshape(*values.shape[:-1], 1),)

    def halve(_, bounds):
        start, end = bounds
        middle = start + ((end - start) >> 1)
        found = rows[(*row, xp.minimum(middle, n - 1))]
        on = ~(found > values if right else found >= values)
        return xp.where((start < end) & on, middle + 1, start), xp.where((start < end) & ~on, middle, end)
    if xp is not np:
        return lax.fori_loop(0, n.bit_length(), halve, bounds)[0]
    for i in range(n.bit_length()):
        bounds = halve(i, bounds)
    return bounds[0]


def _searchsorted(xp, sequence, values, sorter, right, dtype, out):
    sequence, values = cast(xp, sequence, dtype.np), cast(xp, values, dtype.np)
    if xp is np and sequence.dtype.kind == "V":
        sequence, values = sequence.astype(np.float32), values.astype(np.float32)  # NumPy does not know the other types' NaN
    if sorter is not None:
        sequence = xp.take_along_axis(sequence, sorter, -1)
    side = "right" if right else "left"
    if sequence.dtype.kind == "f" and (xp is not np or np.isnan(sequence).any()):
        return _bisected(xp, sequence, values, right).astype(out.np)
    if sequence.ndim == 1:
        return xp.searchsorted(sequence, values, side=side).astype(out.np)
    if not values.size or not sequence.size:  # a number of rows cannot be told from no elements
        return xp.zeros(values.shape, out.np)
    rows, wanted = sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1])
    if xp is np:
        found = np.stack([np.searchsorted(s, v, side) for s, v in zip(rows, wanted)])
    else:
        found = vmap(lambda s, v: jnp.searchsorted(s, v, side=side))(rows, wanted)
    return found.reshape(values.shape).astype(out.np)


_SEARCHSORTED = Op(
    "searchsorted", _searchsorted, shape=lambda s, v, sorter, right, dtype, out: (v.shape, out), vjp=False
)


@public(method=False, out=True)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where to insert input into sorted_sequence (along its last dimension), before or after equal elements."""
    name = "torch.searchsorted()"
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(f"{name}: side can only be 'left' or 'right' but got {side}")
        if right and side == "left":
            raise RuntimeError(
                f"{name}: side and right can't be set to opposites, got side of {side} while right was True"
            )
        right = side == "right"
    s = sorted_sequence.shape
    if not s:
        raise RuntimeError(f"{name}: boundaries tensor should have positive dimension, but got 0 dimension")
    if not isinstance(input, Tensor):
        input = _plain_number(number(input))
    v = input.shape if isinstance(input, Tensor) else ()
    if len(s) != 1 and not v:
        raise RuntimeError(
            f"{name}: input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
            f"dim({len(s)}) and input value's dim(0) numel(1)"
        )
    if len(s) != 1 and tuple(s[:-1]) != tuple(v[:-1]):
        raise RuntimeError(
            f"{name}: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor "
            f"must match, but we got boundaries tensor {list(s)} and input value tensor {list(v)}"
        )
    if sorter is not None:
        _check_sorter(name, sorted_sequence, sorter)
    for t, what in ((input, "input value"), (sorted_sequence, "boundary"), (sorter, "sorter")):
        if isinstance(t, Tensor) and not t.is_contiguous():
            warn(f"{name}: {what} tensor is non-contiguous, this will lower the performance due to extra data copy when converting non-contiguous tensor to "
                 f"contiguous, please use contiguous {what} tensor if possible. This message will only appear once per program.", once=True)
    if sorted_sequence.dtype is dt.bool_ and isinstance(input, Tensor) and input.dtype is dt.bool_ and input.numel():
        raise not_implemented("searchsorted_out_cpu", input.dtype)
    out = dt.int32 if out_int32 else dt.int64
    return apply(_SEARCHSORTED, (sorted_sequence, input, sorter), (flag(right), common_dtype(sorted_sequence, input), out))


def _check_sorter(name: str, sequence: Tensor, sorter: Tensor) -> None:
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            f"{name}: boundary and sorter must have the same size, but got boundary tensor {list(sequence.shape)}and got sorter tensor "
            f"{list(sorter.shape)}"
        )
    if sorter.dtype is not dt.int64:
        raise RuntimeError(f"{name}: sorter must be a tensor of long dtype but got dtype {sorter.dtype.short}")
    known = sorter._known()
    if isinstance(known, np.ndarray):
        if known.size and not 0 <= known.min() <= known.max() < sequence.shape[-1]:
            raise RuntimeError(f"{name}: sorter index out of range")
        return
    inside = ((sorter >= 0) & (sorter < sequence.shape[-1])).all()
    program.check(inside._value, lambda: RuntimeError(f"{name}: sorter index out of range"))


@public(method=False, out=True)
def bucketize(input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket of each element of input between sorted boundaries."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
