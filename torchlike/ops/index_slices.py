"""Slices by a vector of indices (the index_* family), elements by positions (take, put), index_put."""

from __future__ import annotations

import numpy as np

from .._arguments import as_dim, flag
from .._core import dtype as dt
from .._core.aval import broadcast_shapes
from .._core.errors import class_name, not_implemented
from .._core.layout import like
from .._core.registry import Op
from .._public import named, public
from .._tensor import Tensor, apply
from .creation import filled
from .elements import held
from .gathering import INDEX_REDUCE, flat, gather, in_range, need_index, out_of, wide, write_at
from .index_kernels import INDEX, INDEX_WIDE, ONLY
from .index_ranges import check_range
from .indexing import _basic, _nonnegative, _prepared, put_at_mask, put_index, put_repeating, refuse_other_dtype

# -- slices by a vector of indices -------------------------------------------------------------------------------------


_SELECT_SCALAR = Op("index_select_scalar", lambda xp, x, index: x.reshape(()), shape=lambda a, i: ((), a.dtype), vjp=lambda xp, g, index: (g, None),
                    torch_name="IndexSelectBackward0")


@public(out=True)
def index_select(input, dim: int, index: Tensor) -> Tensor:
    """The slices along dim that a vector of indices names."""
    d = as_dim(dim, input.ndim)
    if not isinstance(index, Tensor):
        raise TypeError(f"index_select(): argument 'index' (position 3) must be Tensor, not {class_name(index)}")
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    need_index("index_select", index, "index_select(): Expected dtype int32 or int64 for index")
    if not input.ndim:
        if index.numel() != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)")
        in_range(index, 1, lambda bad: "index out of range in self", IndexError)
        return apply(_SELECT_SCALAR, (input, index))
    if input.ndim > 1 and not input.shape[d] and index.numel():
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    n = input.shape[d]
    if d == 1:  # torch has a kernel of its own for it, which says so in other words
        in_range(index, n, lambda bad: f"INDICES element is out of DATA bounds, id={bad} axis_dim={n}")
    else:
        in_range(index, n, lambda bad: "index out of range in self", IndexError)
    op = INDEX_WIDE if input.ndim > 1 and d in (0, input.ndim - 1) and wide(input.dtype.np) != input.dtype.np else INDEX
    return named(apply(op, (input, flat(index)), ((d,),)), "IndexSelectBackward0")


def _rows(ndim, index, dim):
    return (slice(None),) * dim + (index,) + (slice(None),) * (ndim - dim - 1)


def _index_write(xp, x, index, src, scale, dim, mode):
    src = xp.asarray(src).astype(x.dtype)
    if scale is not None:
        src = src * xp.asarray(scale).astype(x.dtype)  # -1 of an unsigned number's kind is its largest
    if mode == "add" and x.ndim > 1 and scale is None and dim in (0, x.ndim - 1):  # where torch's scatter_add does it
        w = wide(x.dtype)
        return write_at(xp, x.astype(w, copy=False), _rows(x.ndim, index, dim), src.astype(w, copy=False), mode).astype(x.dtype, copy=False)
    return write_at(xp, x, _rows(x.ndim, index, dim), src, mode)


def _index_write_vjp(xp, g, index, scale, dim, mode, needs, plan):
    where = _rows(g.ndim, index, dim)
    gx = g if mode == "add" or not needs[0] else write_at(xp, g, where, np.zeros((), g.dtype), "set")
    if not needs[2]:
        return gx, None, None
    if mode == "set" and not plan.avals[2].shape:  # written once, however often index names a slice
        there = write_at(xp, xp.zeros(g.shape, bool), where, np.ones((), bool), "set")
        return gx, None, xp.sum(xp.where(there, g, np.zeros((), g.dtype))), None
    gs = g[where]
    if scale is not None:
        scale = xp.asarray(scale, dtype=g.dtype)
        gs = gs * (xp.conj(scale) if g.dtype.kind == "c" else scale)
    return gx, None, gs if plan.avals[2].shape else xp.sum(gs), None


INDEX_WRITE = Op(
    "index_write", _index_write, shape=lambda a, i, s, scale, dim, mode: (a.shape, a.dtype), vjp=_index_write_vjp
)
INDEX_WRITE.edge_order = 0, 2
INDEX_WRITE.overwrites = True


def _out_of_self(bad) -> str:
    return "index out of range in self"


def _vector_index(name: str, input: Tensor, d: int, index, error=IndexError, negative: bool = False, wording=None) -> Tensor:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {index.dtype.short} and size: "
            f"{list(index.shape)}"
        )
    index = flat(index)
    n = input.shape[d]
    if negative:
        check_range(index, n, out_of(d, n), error)
        return _nonnegative(index, n)
    in_range(index, n, wording or out_of(d, n), error)
    return index


def _same_kind(name: str, input: Tensor, source: Tensor) -> None:
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}(): self ({input.dtype.short}) and source ({source.dtype.short}) must have the same scalar type"
        )


def _check_slices(name: str, input: Tensor, d: int, index: Tensor, source: Tensor) -> None:
    """source must be index.numel() slices of input's shape."""
    want = list(input.shape)
    want[d] = index.numel()
    if list(source.shape) == want or (not source.ndim and index.numel() == 1):
        return
    if source.ndim == input.ndim and source.shape[d] != index.numel():
        raise RuntimeError(
            f"{name}(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({source.shape[d]}), for dim: {d}"
        )
    raise RuntimeError(
        "source tensor shape must match self tensor shape, excluding the specified dimension. "
        f"Got self.shape = {list(input.shape)} source.shape = {list(source.shape)}"
    )


def _wrong_index(name: str, index) -> str:
    """torch's words, which have the underscore for both forms of these functions."""
    if not isinstance(index, Tensor):
        return f"{name}(): Expected dtype int32/int64 for index"
    return f"{name.rstrip('_')}_(): Expected dtype int32/int64 for index but got: {index.dtype.short}"


def _added(name: str, input, dim, index, source, scale) -> Tensor:
    d = as_dim(dim, input.ndim)
    if not input.ndim:
        return apply(ONLY, (_added(name, flat(input), 0, flat(index), flat(source), scale),))
    need_index(name, index, _wrong_index(name, index))
    _same_kind(name, input, source)
    _check_slices(name, input, d, index, source)
    # torch lets scatter_add do the plain addition along the first and the last dimension, which has an error of its own
    scattered = scale is None and input.ndim > 1 and d in (0, input.ndim - 1)
    index = _vector_index(name, input, d, index, RuntimeError if scattered else IndexError, wording=None if scattered else _out_of_self)
    return apply(INDEX_WRITE, (input, index, source, scale), (d, "add"))


@public(inplace=True, out=True)
def index_add(input, dim: int, index: Tensor, source: Tensor, *, alpha=1) -> Tensor:
    """input with alpha * source added to the slices that index names."""
    alpha = held(alpha, input.dtype)
    scale = None if alpha == 1 else alpha
    return named(_added("index_add_", input, dim, index, source, scale), "IndexAddBackward0")


def _check_copied(input: Tensor, d: int, index: Tensor, source: Tensor) -> None:
    """index_copy's checks, which have words of their own."""
    count = index.numel()
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not source.ndim and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if source.ndim and input.ndim and source.ndim != input.ndim:
        raise IndexError("index_copy_(): When source and destination are not scalars, their dimensionality must match. "
                         f"Source dimensionality ({source.ndim}), destination dimensionality ({input.ndim})")
    if index.dtype is not dt.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.short}")
    if source.dtype is not input.dtype:
        raise RuntimeError(f"index_copy_(): self and source expected to have the same dtype, but got (self) {input.dtype.short} and (source) {source.dtype.short}")
    apart = [" ".join(str(n) for k, n in enumerate(x.shape) if k != d) for x in (input, source)]
    if apart[0] != apart[1]:
        raise RuntimeError(f"index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {apart[0]} at dimension {d} "
                           f"and source slice shape: {apart[1]} at dimension 0.")
    if source.ndim and source.shape[d] != count:
        raise IndexError(f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({source.shape[d]})")


@public(inplace=True, out=True)
def index_copy(input, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """input with the slices that index names replaced by source's."""
    d = as_dim(dim, input.ndim)
    _check_copied(input, d, index, source)
    if not input.ndim:
        return apply(ONLY, (index_copy(flat(input), 0, flat(index), flat(source)),))
    n = input.shape[d]
    in_range(index, n, lambda i: "index_copy_(): " + out_of(d, n)(i), IndexError)
    return named(apply(INDEX_WRITE, (input, flat(index), source, None), (d, "set")), "IndexCopyBackward0")


def _fill_repeating(self, dim: int, index: Tensor, value) -> Tensor:
    index = _vector_index("index_fill_", self, as_dim(dim, self.ndim), index, negative=True)
    value = value if isinstance(value, Tensor) else filled((), value, self.dtype, self.device)
    return put_repeating(self, [index], (as_dim(dim, self.ndim),), value)


@public(inplace=True, repeating=_fill_repeating)
def index_fill(input, dim: int, index: Tensor, value) -> Tensor:
    """input with the slices that index names filled with a number."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
    elif isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    else:
        value = held(value, input.dtype)
    d = as_dim(dim, input.ndim)
    if isinstance(index, Tensor) and index.dtype is not dt.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if not input.ndim:
        return apply(ONLY, (index_fill(flat(input), 0, index, value),))
    index = _vector_index("index_fill_", input, d, index, negative=True)
    made = named(apply(INDEX_WRITE, (input, index, value, None), (d, "set")), "IndexFillBackward1" if isinstance(value, Tensor) else "IndexFillBackward0")
    made._layout = None if input._layout is None else like(input._layout)
    return made


@public(inplace=True, out=True)
def index_reduce(input, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """input's slices that index names combined with source's by 'prod', 'mean', 'amax' or 'amin'."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if (reduce == "mean" and input.dtype is dt.bool_) or (reduce in ("amax", "amin") and input.dtype.is_complex):
        raise not_implemented({"mean": "div_floor_cpu", "amax": "maximum_cpu", "amin": "minimum_cpu"}[reduce], input.dtype)
    d = as_dim(dim, input.ndim)
    if not input.ndim:
        return apply(ONLY, (index_reduce(flat(input), 0, flat(index), flat(source), reduce, include_self=include_self),))
    need_index("index_reduce_", index, _wrong_index("index_reduce_", index))
    _same_kind("index_reduce_", input, source)
    _check_slices("index_reduce_", input, d, flat(index), source)
    index = _vector_index("index_reduce_", input, d, index, wording=_out_of_self)
    spread = index.reshape([-1 if k == d else 1 for k in range(input.ndim)]).expand(source.shape)
    return named(apply(INDEX_REDUCE, (input, spread, source), (d, reduce, flag(include_self))), "IndexReduceBackward0")


def _indices_put(t: Tensor, indices):
    for k, i in enumerate(indices):
        if not isinstance(i, Tensor) and i is not None:  # None is the operator's, not the method's: `torch.ops.aten.index_put` comes here too
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got {class_name(i)}")
    if not indices:
        raise RuntimeError("index_put_(): at least one index is needed")
    return _basic(t, tuple([slice(None) if i is None else i.as_subclass(Tensor) if i.__class__ is not Tensor and i._plain else i for i in indices]))


def _put_repeating(self, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    t, advanced = _indices_put(self, indices)
    put_index(t, *_prepared(t, advanced), values, bool(accumulate))
    return self


@public(inplace=True, repeating=_put_repeating)
def index_put(input, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """input with values written (or added) where a tuple of index tensors says."""
    if not isinstance(values, Tensor):
        raise TypeError(f"index_put_(): argument 'values' (position 2) must be Tensor, not {class_name(values)}")
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put_(): argument 'indices' (position 1) must be tuple of Tensors, not {class_name(indices)}")
    made = input.clone()
    t, advanced = _indices_put(made, indices)
    if not accumulate and values._value.aval.ndim < 2 and put_at_mask(t, advanced, values):
        return made
    refuse_other_dtype(input, values)
    index, dims = _prepared(t, advanced)
    put_index(t, index, dims, values, bool(accumulate))
    return made


# -- positions in the flattened tensor ---------------------------------------------------------------------------------


def _flat_index(name: str, input: Tensor, index) -> Tensor:
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): argument 'index' must be Tensor, not {class_name(index)}")
    if index.dtype is not dt.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.short}")
    n = input.numel()
    if index.numel() and not n:
        raise IndexError(f"{name}(): tried to take from an empty tensor")
    check_range(index, n, lambda bad: f"out of range: tried to access index {bad} on a tensor of {n} elements.")
    return _nonnegative(index, n)


@public(out=True)
def take(input, index: Tensor) -> Tensor:
    """Elements of the flattened input; the shape of index."""
    return named(apply(INDEX, (input.reshape(-1), _flat_index("take", input, index)), ((0,),)), "TakeBackward0", input)


@public(inplace=True)
def put(input, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """input with source's elements written (or added) at positions of the flattened tensor."""
    index = _flat_index("put_", input, index)
    _same_kind("put_", input, source)
    if index.numel() != source.numel():
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.numel()}, "
            f"index.numel() = {index.numel()}"
        )
    statics = (0, "add" if accumulate else "set")
    made = apply(INDEX_WRITE, (input.reshape(-1), index.reshape(-1), source.reshape(-1), None), statics)
    return named(made.reshape(input.shape) if input.ndim != 1 else made, "PutBackward0", input, source)


@public(out=True)
def take_along_dim(input, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather with broadcasting of the other dimensions; without dim, of the flattened tensors."""
    if indices.dtype is not dt.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.short}")
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {input.ndim} dimensions for "
            f"input, and {indices.ndim} dimensions for indices"
        )
    d = as_dim(dim, input.ndim)
    shape = broadcast_shapes(*(tuple(1 if k == d else n for k, n in enumerate(t.shape)) for t in (input, indices)))
    a, b = list(shape), list(shape)
    a[d], b[d] = input.shape[d], indices.shape[d]
    check_range(indices, a[d], out_of(d, a[d]), RuntimeError)
    return gather(input.expand(a), d, _nonnegative(indices.expand(b), a[d]))
