"""Elements chosen by masks and counts; their number is known only from the data, so these run on the host."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np

from .._arguments import as_dim, as_int
from .._core import dtype as dt
from .._core import program
from .._core.aval import broadcast_shapes
from .._core.errors import not_implemented
from .._core.history import warn
from .._core.registry import Op
from .._public import named, public
from .._tensor import Tensor, apply, as_tensor_value
from .._writing import fill_out
from .choosing import choose
from .from_data import place
from .index_kernels import INDEX
from .index_slices import index_select
from .memory_formats import contiguous_format
from .scans import running


def _on(array: np.ndarray, device) -> Tensor:
    """A host array as a tensor on a device."""
    return as_tensor_value(array) if device.type == "cpu" else place(array, device)


@overload
def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@public()
def nonzero(input, *, out=None, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """Where input is not zero: (count, ndim) positions, or one vector a dimension."""
    if out is not None:
        if as_tuple:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        _need_long("nonzero", out)
    array = input._host_array()
    if as_tuple:
        return tuple(_on(np.ascontiguousarray(p), input.device) for p in np.nonzero(np.atleast_1d(array)))
    if array.ndim:
        found = np.argwhere(array)
    else:
        found = np.zeros((int(bool(array)), 0), np.int64)
    made = _on(found, input.device)
    return made if out is None else fill_out(out, made)


def _need_long(name: str, out) -> None:
    if isinstance(out, Tensor) and out.dtype is not dt.int64:
        raise RuntimeError(f"{name}: Expected out tensor to have scalar type Long but got scalar type{out.dtype.short}")


@public()
def argwhere(input) -> Tensor:
    """nonzero."""
    return nonzero(input)


@public()
def nonzero_static(input, *, size: int, fill_value: int = -1, out=None) -> Tensor:
    """nonzero cut or filled up to `size` rows: its shape does not depend on the data."""
    _need_long("nonzero_static", out)
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    made = apply(_NONZERO_STATIC, (input, as_int(fill_value, "fill_value")), (as_int(size, "size", symbolic=True),))
    return made if out is None else fill_out(out, made)


def _nonzero_static(xp, x, fill, size):
    flat = (x != 0).reshape(-1)
    first = xp.argsort(~flat, kind="stable")[:size] if xp is np else xp.argsort(~flat, stable=True)[:size]
    rows = xp.stack(xp.unravel_index(first, x.shape), 1) if x.ndim else xp.zeros((first.shape[0], 0), np.int64)
    rows = xp.pad(rows, ((0, size - first.shape[0]), (0, 0)))
    return xp.where(np.arange(size)[:, None] < xp.sum(flat), rows, fill).astype(np.int64)


_NONZERO_STATIC = Op(
    "nonzero_static", _nonzero_static, shape=lambda a, fill, size: ((size, a.ndim), dt.int64), vjp=False
)


def _positions(mask: Tensor, shape: tuple) -> np.ndarray:
    """Flat positions where a mask broadcast to shape holds."""
    return np.flatnonzero(np.broadcast_to(mask._host_array(), shape))


@public(out=True)
def masked_select(input, mask: Tensor) -> Tensor:
    """The elements where mask holds, as a vector."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(tuple(mask.shape), tuple(input.shape))
    return named(apply(INDEX, (input.expand(shape).reshape(-1), _on(_positions(mask, shape), input.device)), ((0,),)), "MaskedSelectBackward0", input)


def _sources(xp, mask):
    """Which element of the source each element of the mask takes."""
    return xp.maximum(running(xp, mask.astype(np.int32 if mask.size < 2 ** 31 else np.int64), 0, "cumsum") - 1, 0)


def _masked_scatter(xp, x, mask, source):
    if not source.size:
        return choose(xp, mask, xp.zeros((), x.dtype), x)  # no element of the mask holds
    order = _sources(xp, mask.reshape(-1))
    return choose(xp, mask, source.reshape(-1)[order].reshape(mask.shape), x)


def _masked_scatter_vjp(xp, g, mask, needs, plan):
    gs, a = None, plan.avals[2]
    if needs[2] and not a.numel:
        gs = xp.zeros(a.shape, g.dtype)
    elif needs[2]:
        flat = mask.reshape(-1)
        order = _sources(xp, flat)
        values = choose(xp, flat, g.reshape(-1), xp.zeros((), g.dtype))
        if xp is np:
            gs = np.zeros(a.numel, g.dtype)
            np.add.at(gs, order, values)
        else:
            gs = xp.zeros(a.numel, g.dtype).at[order].add(values)
        gs = gs.reshape(a.shape)
    return choose(xp, mask, xp.zeros((), g.dtype), g), None, gs


_MASKED_SCATTER = Op(
    "masked_scatter", _masked_scatter, shape=lambda a, mask, source: (a.shape, a.dtype), vjp=_masked_scatter_vjp
)


@public(inplace=True)
def masked_scatter(input, mask: Tensor, source: Tensor) -> Tensor:
    """input with source's elements, in order, where mask holds."""
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"masked_scatter_: expected self and source to have same dtypes but got {input.dtype.short} and {source.dtype.short}"
        )
    if mask.dtype is dt.uint8:
        warn("masked_scatter_ received a mask with dtype torch.uint8, this behavior is now deprecated,please use a mask with dtype torch.bool instead.")
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.short}")
    shape = broadcast_shapes(tuple(mask.shape), tuple(input.shape))
    if mask._current().array is not None:
        wanted = int(np.count_nonzero(np.broadcast_to(mask._host_array(), shape)))
        if source.numel() < wanted:
            raise RuntimeError("Number of elements of source < number of ones in mask")
    else:
        from .._core import program

        enough = mask.expand(shape).sum() <= source.numel()
        program.check(enough._value, lambda: RuntimeError("Number of elements of source < number of ones in mask"))
    return apply(_MASKED_SCATTER, (input.expand(shape), mask.expand(shape), source))


@public()
def repeat_interleave(input=None, repeats=None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element (or slice along dim) repeated; with one argument, indices repeated by their counts."""
    if input is None or repeats is None:
        if (repeats if input is None else input).ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        return _repeated(repeats if input is None else input, output_size)
    if dim is None:
        input, dim = input.reshape(-1), 0
    d = as_dim(dim, input.ndim)
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if isinstance(repeats, (tuple, list)):
        from .from_data import from_data

        repeats = from_data(list(repeats))
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        repeats = int(_counts(repeats)[0])
        if output_size not in (None, repeats * input.shape[d]):
            raise _other_size()
    if isinstance(repeats, int):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        if output_size not in (None, repeats * input.shape[d]):
            raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {repeats * input.shape[d]} but got {output_size}")
        input = input.unsqueeze(d + 1)
        return input.expand(*input.shape[: d + 1], repeats, *input.shape[d + 2 :]).clone(memory_format=contiguous_format).flatten(d, d + 1)
    if repeats.ndim != 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.shape[0] != input.shape[d]:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.shape[0]} and "
            f"input.size({d}) = {input.shape[d]}"
        )
    return index_select(input, d, _repeated(repeats, output_size).to(input.device))


_RUNS = Op("runs", lambda xp, counts, n: xp.searchsorted(xp.cumsum(counts), xp.arange(n), side="right").astype(np.int64), vjp=False,
           shape=lambda a, n: ((n,), dt.int64))
_RUNS_FILL = Op("runs_fill", lambda xp, counts, n: (counts.sum() == n) & xp.all(counts >= 0), vjp=False, shape=lambda a, n: ((), dt.bool_))


def _negative() -> RuntimeError:
    return RuntimeError("repeats can not be negative")


def _other_size() -> RuntimeError:
    return RuntimeError("allocated size does not match required size")


def _repeated(repeats: Tensor, size: int | None) -> Tensor:
    """Each index as often as `repeats` says. Where the number of results is given, counts that are still to be computed are not looked at."""
    if size is not None and repeats.dtype in (dt.int64, dt.int32) and repeats.numel() and repeats._known() is None:
        program.check(apply(_RUNS_FILL, (repeats,), (size,))._value, lambda counts: _negative() if (counts < 0).any() else _other_size(), repeats._current())
        return apply(_RUNS, (repeats,), (size,))
    counts = _counts(repeats)
    made = np.repeat(np.arange(counts.size), counts)
    if size not in (None, made.size):
        raise _other_size()
    return _on(made, repeats.device)


def _counts(repeats: Tensor) -> np.ndarray:
    if repeats.dtype not in (dt.int64, dt.int32):
        raise not_implemented("repeat_interleave_cpu", repeats.dtype)
    counts = repeats._host_array().reshape(-1)
    if counts.size and counts.min() < 0:
        raise _negative()
    return counts


def _choices(n: int, r: int, repeated: bool) -> np.ndarray:
    """All choices of r of n numbers, in order, as rows: each shorter choice goes on with every number that may follow its last one."""
    rows = np.arange(n).reshape(-1, 1)
    for _ in range(r - 1):
        first = rows[:, -1] + (not repeated)
        counts = n - first
        rows, ends = np.repeat(rows, counts, axis=0), np.cumsum(counts)
        rows = np.column_stack([rows, np.arange(len(rows)) + np.repeat(n - ends, counts)])
    return rows


@public(method=False)
def combinations(input, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, in order, as rows."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    r = as_int(r, "r")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    return named(apply(INDEX, (input, _on(_choices(input.shape[0], r, with_replacement), input.device)), ((0,),)), "StackBackward0")
