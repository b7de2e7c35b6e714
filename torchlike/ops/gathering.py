"""Elements by index tensors along one dimension: gather, scatter, index_select and their kin; nonzero, masked_select."""
from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._core.registry import Op
from .._public import as_dim, number, public
from .._tensor import Tensor, apply, as_tensor_value
from .indexing import _nonnegative, check_range, put_index
from .pointwise import _plain_number


def _along(x_shape, index, dim):
    """Index arrays for every dimension, with `index` at dim: x[...] of index's shape."""
    n = len(x_shape)
    return tuple(index if d == dim else np.arange(index.shape[d]).reshape([-1 if k == d else 1 for k in range(n)]) for d in range(n))


def _gather(xp, x, index, dim):
    if x.shape[:dim] + x.shape[dim + 1:] == index.shape[:dim] + index.shape[dim + 1:]:
        return xp.take_along_axis(x, index, dim)
    return x[_along(x.shape, index, dim)]


def _add_at(xp, zeros, where, values):
    if xp is not np:
        return zeros.at[where].add(values)
    np.add.at(zeros, where, values)
    return zeros


def _gather_vjp(xp, g, index, dim, plan):
    a = plan.avals[0]
    return _add_at(xp, xp.zeros(a.shape, g.dtype), _along(a.shape, index, dim), g), None


GATHER = Op("gather", _gather, shape=lambda a, i, dim: (i.shape, a.dtype), vjp=_gather_vjp)


def _need_index(name: str, index: Tensor, *, also_int32: bool = False) -> None:
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index.dtype is not dt.int64 and not (index.dtype is dt.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def _flat(t: Tensor) -> Tensor:
    return t.reshape(1) if not t.ndim else t


def _check_extent(name: str, input: Tensor, index: Tensor, dim: int, src: Tensor | None = None) -> None:
    if index.ndim != input.ndim:
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {'self' if src is not None else 'input'} tensor")
    if not index.numel():
        return
    for d in range(input.ndim):
        if d != dim and index.shape[d] > input.shape[d]:
            if src is None:
                raise RuntimeError(f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than self "
                                   f"{list(input.shape)} apart from dimension {dim}")
            raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from dimension {dim}"
                               + (f" and to be no larger size than src {list(src.shape)}" if isinstance(src, Tensor) else ""))
        if isinstance(src, Tensor) and index.shape[d] > src.shape[d]:
            raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from dimension {dim} and to be "
                               f"no larger size than src {list(src.shape)}")


def _in_range(index: Tensor, n: int, dim: int) -> None:
    message = lambda bad: f"index {bad} is out of bounds for dimension {dim} with size {n}"  # noqa: E731
    try:
        check_range(index, n, message)
        low = index._current().bounds
        if low is not None and low[0] < 0:
            raise IndexError(message(low[0]))
    except IndexError as e:
        raise RuntimeError(str(e)) from None


@public(out=True)
def gather(input, dim: int, index, *, sparse_grad: bool = False) -> Tensor:
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on: the shape of index."""
    d = as_dim(dim, input.ndim)
    _need_index("gather", index)
    if not input.ndim or not index.ndim:
        return gather(_flat(input), 0, _flat(index)).reshape(index.shape)
    _check_extent("gather", input, index, d)
    _in_range(index, input.shape[d], d)
    return apply(GATHER, (input, index), (d,))


def _scatter(xp, x, index, src, dim, mode):
    where = _along(x.shape, index, dim)
    src = src[tuple(slice(0, n) for n in index.shape)] if src.shape != () else xp.broadcast_to(src, index.shape)
    src = src.astype(x.dtype)
    if xp is np:
        out = x.copy()
        if mode == "set":
            out[where] = src
        else:
            {"add": np.add, "multiply": np.multiply, "amax": np.maximum, "amin": np.minimum}[mode].at(out, where, src)
        return out
    at = x.at[where]
    return {"set": at.set, "add": at.add, "multiply": at.multiply, "amax": at.max, "amin": at.min}[mode](src)


def _scatter_vjp(xp, g, x, index, src, out, dim, mode, needs, plan):
    where = _along(x.shape, index, dim)
    if mode == "add":
        gx, gs = g, g[where]
    elif mode == "set":
        zero = xp.zeros((), g.dtype)
        gx = g.copy() if xp is np else g
        if xp is np:
            gx[where] = 0
        else:
            gx = gx.at[where].set(zero)
        gs = g[where]
    else:
        raise RuntimeError(f"scatter with reduce='{mode}' is not differentiable here")
    if needs[2]:
        full = xp.zeros(plan.avals[2].shape, g.dtype)
        if plan.avals[2].shape == ():
            gs = xp.sum(gs)
        elif gs.shape != full.shape:
            index_full = tuple(slice(0, n) for n in gs.shape)
            if xp is np:
                full[index_full] = gs
                gs = full
            else:
                gs = full.at[index_full].set(gs)
    return gx, None, gs if needs[2] else None


SCATTER = Op("scatter", _scatter, shape=lambda a, i, s, dim, mode: (a.shape, a.dtype), vjp=_scatter_vjp)
SCATTER_EXTREME = Op("scatter_reduce", _scatter, shape=lambda a, i, s, dim, mode: (a.shape, a.dtype))


def _scattered(input, dim, index, src, mode, name):
    d = as_dim(dim, input.ndim)
    _need_index(name, index)
    if isinstance(src, Tensor):
        if src.dtype is not input.dtype:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    else:
        from .creation import filled
        src = filled((), _plain_number(number(src)), input.dtype, input.device)
    if not input.ndim:
        return _scattered(_flat(input), 0, _flat(index), _flat(src), mode, name).reshape(())
    if not index.numel():
        return input.clone()
    _check_extent(name, input, index, d, src if src.ndim else input)
    _in_range(index, input.shape[d], d)
    return apply(SCATTER if mode in ("set", "add") else SCATTER_EXTREME, (input, index, src), (d, mode))


@public(inplace=True, out=True)
def scatter(input, dim: int, index, src=None, *, value=None, reduce: str | None = None) -> Tensor:
    """input with src (or a number) written at index along dim; reduce 'add' or 'multiply' combines instead."""
    source = value if src is None else src
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    return _scattered(input, dim, index, source, reduce or "set", "scatter")


@public(inplace=True, out=True)
def scatter_add(input, dim: int, index, src) -> Tensor:
    """input with src added at index along dim."""
    return _scattered(input, dim, index, src, "add", "scatter_add")


@public(out=True)
def index_select(input, dim: int, index) -> Tensor:
    """The slices along dim that a vector of indices names."""
    d = as_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in (dt.int64, dt.int32):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.ndim:
        return input.clone()
    from .indexing import INDEX
    n = input.shape[d]
    check_range(index, n, lambda bad: "index out of range in self")
    if (index._current().bounds or (0,))[0] < 0:
        raise IndexError("index out of range in self")
    return apply(INDEX, (input, _flat(index)), ((d,),))


@public(inplace=True)
def index_add(input, dim: int, index, source, *, alpha=1) -> Tensor:
    """input with alpha * source added to the slices that index names."""
    d = as_dim(dim, input.ndim)
    if source.dtype is not input.dtype:
        raise RuntimeError(f"index_add_(): self ({input.dtype.short}) and source ({source.dtype.short}) must have the same scalar type")
    made = input.clone()
    return _put_along(made, d, index, source if alpha == 1 else source * alpha, True)


def _put_along(t: Tensor, d: int, index: Tensor, source, accumulate: bool) -> Tensor:
    if index.ndim > 1:
        raise IndexError("Index is supposed to be a vector")
    if not t.ndim:
        return _put_along(t.reshape(1), 0, _flat(index), _flat(source), accumulate).reshape(())
    n = t.shape[d]
    check_range(index, n, lambda bad: f"index {bad} is out of bounds for dimension {d} with size {n}")
    return put_index(t, [_nonnegative(_flat(index), n)], (d,), source, accumulate)


@public(inplace=True)
def index_copy(input, dim: int, index, source) -> Tensor:
    """input with the slices that index names replaced by source's."""
    return _put_along(input.clone(), as_dim(dim, input.ndim), index, source, False)


@public(inplace=True)
def index_fill(input, dim: int, index, value) -> Tensor:
    """input with the slices that index names filled with a number."""
    from .creation import filled
    source = value if isinstance(value, Tensor) else filled((), value, input.dtype, input.device)
    return _put_along(input.clone(), as_dim(dim, input.ndim), index, source, False)


@public(inplace=True)
def index_put(input, indices, values, accumulate: bool = False) -> Tensor:
    """input with values written (or added) where a tuple of index tensors says."""
    made = input.clone()
    if accumulate:
        from .indexing import _basic, _prepared
        t, advanced = _basic(made, tuple(indices))
        index, dims = _prepared(t, advanced)
        put_index(t, index, dims, values, True)
    else:
        made[tuple(indices)] = values
    return made


@public(out=True)
def take(input, index) -> Tensor:
    """Elements of the flattened input."""
    return input.reshape(-1)[index]


@public(out=True)
def take_along_dim(input, indices, dim: int | None = None) -> Tensor:
    """gather with broadcasting of the other dimensions."""
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    d = as_dim(dim, input.ndim)
    shape = list(np.broadcast_shapes(*(tuple(1 if k == d else n for k, n in enumerate(t.shape)) for t in (input, indices))))
    a, b = list(shape), list(shape)
    a[d], b[d] = input.shape[d], indices.shape[d]
    return gather(input.expand(a), d, indices.expand(b))


@public()
def nonzero(input, *, as_tuple: bool = False, out=None):
    """Where input is not zero: (count, ndim) positions, or one vector a dimension."""
    found = np.nonzero(np.atleast_1d(input._host_array()))
    if as_tuple:
        return tuple(as_tensor_value(np.ascontiguousarray(p)) for p in found)
    made = as_tensor_value(np.stack(found, 1) if input.ndim else np.zeros((len(found[0]), 0), np.int64))
    if out is not None:
        from .._public import fill_out
        return fill_out(out, made)
    return made


@public(out=True)
def argwhere(input) -> Tensor:
    """nonzero."""
    return nonzero(input)


@public(out=True)
def masked_select(input, mask) -> Tensor:
    """The elements where mask holds, as a vector."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = np.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    where = np.flatnonzero(np.broadcast_to(mask._host_array(), shape))
    return input.expand(shape).reshape(-1)[as_tensor_value(where)]


@public(inplace=True)
def masked_scatter(input, mask, source) -> Tensor:
    """input with source's elements, in order, where mask holds."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    shape = np.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    where = np.flatnonzero(np.broadcast_to(mask._host_array(), shape))
    if source.numel() < where.size:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {input.dtype.short} and {source.dtype.short}"
                           if input.dtype is not source.dtype else "Number of elements of source < number of ones in mask")
    flat = input.expand(shape).reshape(-1).clone()
    flat[as_tensor_value(where)] = source.reshape(-1)[:where.size]
    return flat.reshape(shape)


@public(method=False)
def repeat_interleave(input, repeats=None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element (or slice along dim) repeated; one argument: indices repeated by their counts."""
    if repeats is None:
        return as_tensor_value(np.repeat(np.arange(input.numel()), input._host_array()))
    if dim is None:
        input, dim = input.reshape(-1), 0
    d = as_dim(dim, input.ndim)
    if isinstance(repeats, Tensor) and repeats.numel() == 1:
        repeats = int(repeats)
    if isinstance(repeats, int):
        if repeats < 0:
            raise RuntimeError("repeats can not be negative")
        shape = list(input.shape)
        shape[d] *= repeats
        return input.unsqueeze(d + 1).expand(*input.shape[:d + 1], repeats, *input.shape[d + 1:]).reshape(shape)
    counts = repeats._host_array() if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.size != input.shape[d]:
        raise RuntimeError("repeats must have the same size as input along dim, but got repeats.size(0) = "
                           f"{counts.size} and input.size({d}) = {input.shape[d]}")
    return index_select(input, d, as_tensor_value(np.repeat(np.arange(counts.size), counts)))


Tensor.repeat_interleave = repeat_interleave
