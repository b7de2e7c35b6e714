"""Elements by index tensors along one dimension: gather, scatter and its reductions."""

from __future__ import annotations

import functools

import jax
import numpy as np

from .._arguments import as_dim, flag, refuse_learnable
from .._core import dtype as dt
from .._core.errors import class_name, not_implemented
from .._core.history import warn
from .._core.overwrite import changeable
from .._core.registry import Op
from .._public import named, public
from .._tensor import Tensor, apply
from .elements import held
from .index_kernels import ONLY
from .index_ranges import check_range
from .positions import combine_at, elements, set_at
from .scattering import changed_at

FEW = 1 << 10  # positions that are kept for the next time

# -- arrays ------------------------------------------------------------------------------------------------------------


def along(index, dim: int) -> tuple:
    """Index arrays for every dimension, `index` at dim and positions elsewhere: x[along(...)] has index's shape."""
    places = _places(index.shape) if sum(index.shape) < FEW else _places.__wrapped__(index.shape)
    return (*places[:dim], index, *places[dim + 1 :]) if places else ()


@functools.lru_cache(256)
def _places(shape: tuple) -> tuple:
    """The positions along each dimension."""
    n = len(shape)
    return tuple(np.arange(size).reshape([-1 if k == d else 1 for k in range(n)]) for d, size in enumerate(shape))


def add_along(xp, shape, index, dim: int, values):
    """Zeros of `shape` with values added at index along dim: the adjoint of gather."""
    where = along(index, dim)
    w = wide(values.dtype)
    if xp is not np:
        return changed_at(xp.zeros(shape, w), where, values.astype(w), "add").astype(values.dtype)
    out = np.zeros(shape, w)
    combine_at(np.add, out, where, values.astype(w, copy=False))
    return out.astype(values.dtype, copy=False)


def _gather(xp, x, index, dim):
    if x.shape[:dim] + x.shape[dim + 1 :] != index.shape[:dim] + index.shape[dim + 1 :]:
        x = x[tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(index.shape))]
    if xp is not np:
        return xp.take_along_axis(x, index, dim, mode="promise_in_bounds")
    return elements(x, along(index, dim))


GATHER = Op(
    "gather",
    _gather,
    shape=lambda a, i, dim: (i.shape, a.dtype),
    vjp=lambda xp, g, index, dim, plan: (add_along(xp, plan.avals[0].shape, index, dim, g), None),
)
GATHER.picks = True
GATHER.asks = "gather", ("self", 0), ("index", 1)

_UFUNCS = {"add": np.add, "multiply": np.multiply, "amax": np.maximum, "amin": np.minimum}
_AT = {"add": "add", "multiply": "multiply", "amax": "max", "amin": "min"}


def _at(xp, x, where):
    return elements(x, where) if xp is np else x[where]


def write_at(xp, x, where, values, mode: str):
    """x with values set or combined at index arrays."""
    if xp is not np:
        return changed_at(x, where, values, _AT.get(mode, mode))
    out = changeable(x)
    if mode == "set":
        set_at(out, where, values)
    else:
        combine_at(_UFUNCS[mode], out, where, values)
    return out


def _source(xp, src, index, dtype):
    """src in the target's dtype and index's shape; numbers are repeated."""
    src = xp.asarray(src).astype(dtype)
    return src[tuple(slice(0, n) for n in index.shape)] if src.ndim else xp.broadcast_to(src, index.shape)


def _source_gradient(xp, gs, aval):
    """The gradient of the part of src that was used, as src's."""
    if aval.number or not aval.shape:
        return xp.sum(gs)
    if gs.shape == aval.shape:
        return gs
    return xp.pad(gs, [(0, n - m) for n, m in zip(aval.shape, gs.shape)])


def wide(dtype):
    """What numbers of 16 bits are summed up in by index, to be rounded once."""
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def _scatter(xp, x, index, src, dim, mode):
    if mode != "add":
        return write_at(xp, x, along(index, dim), _source(xp, src, index, x.dtype), mode)
    w = wide(x.dtype)
    src = _source(xp, src, index, x.dtype)
    return write_at(xp, x.astype(w, copy=False), along(index, dim), src.astype(w, copy=False), mode).astype(x.dtype, copy=False)


def _scatter_vjp(xp, g, index, needs, dim, mode, plan):
    where = along(index, dim)
    gx = g if mode == "add" or not needs[0] else write_at(xp, g, where, np.zeros((), g.dtype), "set")
    return gx, None, _source_gradient(xp, g[where], plan.avals[2]) if needs[2] else None


SCATTER = Op("scatter", _scatter, shape=lambda a, i, s, dim, mode: (a.shape, a.dtype), vjp=_scatter_vjp)
SCATTER.overwrites = True


# -- reductions by index -----------------------------------------------------------------------------------------------


def identity(dtype, mode):
    """What a reduction starts from when the target's own value does not count."""
    if mode in ("sum", "mean", "prod"):
        return np.asarray(1 if mode == "prod" else 0).astype(dtype)
    if dtype.kind in "fVc":
        return np.asarray(-np.inf if mode == "amax" else np.inf).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(mode == "amin")
    info = np.iinfo(dtype)
    return np.asarray(info.min if mode == "amax" else info.max, dtype)


_COMBINE = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "amax", "amin": "amin"}


def _counts(xp, shape, where, include_self, dtype):
    """How many values meet at each target, at least 1."""
    start = xp.ones(shape, dtype) if include_self else xp.zeros(shape, dtype)
    return xp.maximum(write_at(xp, start, where, np.ones((), dtype), "add"), np.ones((), dtype))


def _scatter_reduce(xp, x, index, src, dim, mode, include_self):
    return _reduced(xp, x, index, src, dim, mode, include_self, wide(x.dtype))


def _index_reduce(xp, x, index, src, dim, mode, include_self):
    """As torch does, 16-bit numbers are rounded at each step."""
    return _reduced(xp, x, index, src, dim, mode, include_self, x.dtype)


def _reduced(xp, x, index, src, dim, mode, include_self, w):
    where = along(index, dim)
    src = _source(xp, src, index, w)
    base = x.astype(w)
    if not include_self:
        base = write_at(xp, base, where, identity(w, mode), "set")
    out = write_at(xp, base, where, src, _COMBINE[mode])
    if mode == "mean":
        n = _counts(xp, x.shape, where, include_self, wide(w) if w.kind != "b" else np.dtype(np.int64))
        out = out // n if w.kind in "iub" else out / n.astype(w)
    return out.astype(x.dtype)


def _product(xp, base, where, factors):
    """base times the factors that meet at each place. JAX has no derivative of it; none of the factors is zero here, which makes it a quotient."""
    if xp is np:
        return write_at(xp, base, where, factors, "multiply")

    @jax.custom_vjp
    def product(base, factors):
        return write_at(xp, base, where, factors, "multiply")

    def forward(base, factors):
        out = product(base, factors)
        return out, (base, factors, out)

    def backward(saved, g):
        base, factors, out = saved
        return g * out / base, (g * out)[where] / factors

    product.defvjp(forward, backward)
    return product(base, factors)


def _prod_vjp(xp, g, x, src, where, shape, include_self):
    """g * product of the others: where one factor is zero, the others' product must be taken anew.

    Factors that are zero stay in it as their sum `null`: a number that is zero too, but carries what second derivatives need.
    """
    one, zero = np.ones((), g.dtype), np.zeros((), g.dtype)
    own = x if include_self else write_at(xp, x, where, one, "set")
    filled, kept = lambda v: xp.where(v == 0, one, v), lambda v: xp.where(v == 0, v, zero)  # noqa: E731
    product = _product(xp, filled(own), where, filled(src))
    zeros = write_at(xp, (own == 0).astype(g.dtype), where, (src == 0).astype(g.dtype), "add")
    null = zeros * zero if xp is np else write_at(xp, kept(own), where, kept(src), "add")

    def times_null(factors, zeros, null, n):
        return xp.where(zeros == n, factors, xp.where(zeros == n + 1, factors * null, zero))

    def others(v, product, zeros, null):
        return xp.where(v == 0, times_null(product, zeros, null - kept(v), 1), times_null(product / filled(v), zeros, null, 0))

    return g * others(own, product, zeros, null), g[where] * others(src, product[where], zeros[where], null[where])


def _scatter_reduce_vjp(xp, g, x, index, src, out, needs, dim, mode, include_self, plan):
    where = along(index, dim)
    if mode == "sum":
        gx, gs = g, _at(xp, g, where)
    elif mode == "mean":
        each = g / _counts(xp, x.shape, where, include_self, g.dtype)
        gx, gs = each, _at(xp, each, where)
    elif mode == "prod":
        gx, gs = _prod_vjp(xp, g, x, _source(xp, src, index, x.dtype), where, x.shape, include_self)
    else:
        # as in torch, an equal value of self takes its share even where it does not count
        mine, theirs = (x == out).astype(g.dtype), (_source(xp, src, index, x.dtype) == _at(xp, out, where)).astype(g.dtype)
        share = g / xp.maximum(write_at(xp, mine, where, theirs, "add"), np.ones((), g.dtype))
        gx, gs = share * mine, _at(xp, share, where) * theirs
    if not include_self:
        gx = write_at(xp, gx, where, np.zeros((), g.dtype), "set")
    return gx, None, _source_gradient(xp, gs, plan.avals[2])


SCATTER_REDUCE, INDEX_REDUCE = (
    Op(name, kernel, vjp=_scatter_reduce_vjp, shape=lambda a, i, s, dim, mode, include_self: (a.shape, a.dtype))
    for name, kernel in (("scatter_reduce", _scatter_reduce), ("index_reduce", _index_reduce))
)

# -- arguments ---------------------------------------------------------------------------------------------------------


def need_index(name: str, index, error: str) -> None:
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): argument 'index' must be Tensor, not {class_name(index)}")
    if index.dtype is not dt.int64 and index.dtype is not dt.int32:
        raise RuntimeError(error)


def flat(t):
    return t.reshape(1) if isinstance(t, Tensor) and not t.ndim else t


def _check_extent(input: Tensor, index: Tensor, dim: int, src=None) -> None:
    if index.ndim != input.ndim:
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {'input' if src is None else 'self'} tensor"
        )
    if isinstance(src, Tensor) and src.ndim != index.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d in range(input.ndim):
        if d != dim and index.shape[d] > input.shape[d]:
            if src is None:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than self "
                    f"{list(input.shape)} apart from dimension {dim}"
                )
            more = f" and to be no larger size than src {list(src.shape)}" if isinstance(src, Tensor) else ""
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from dimension {dim}{more}"
            )
        if isinstance(src, Tensor) and index.shape[d] > src.shape[d]:
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from dimension {dim} and to be "
                f"no larger size than src {list(src.shape)}"
            )


def in_range(index: Tensor, n: int, message, error: type[Exception] = RuntimeError) -> None:
    """The index must lie in [0, n): an error now when it is known, else at the next observation."""
    seen = index._current().bounds
    if seen is None or seen[0] < 0 or seen[1] >= n:
        check_range(index, n, message, error, negative=False)


def out_of(dim: int, n: int):
    return lambda bad: f"index {bad} is out of bounds for dimension {dim} with size {n}"


@public(out=True)
def gather(input, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on: the shape of index."""
    d = as_dim(dim, input.ndim)
    if isinstance(index, Tensor) and not index.numel():  # no elements may be of any dtype
        index = index.long()
    need_index("gather", index, "gather(): Expected dtype int32/int64 for index")
    if not input.ndim or not index.ndim:
        made = gather(flat(input), 0, flat(index))
        return made if index.ndim else apply(ONLY, (made,))
    if index.ndim != input.ndim and not index.numel():  # no elements may be of any shape
        return gather(input, d, _nothing(index, input.ndim)).reshape(index.shape)
    if index.numel() or index.ndim != input.ndim:
        _check_extent(input, index, d)
    in_range(index, input.shape[d], out_of(d, input.shape[d]))
    return apply(GATHER, (input, index), (d,))


def _nothing(x: Tensor, ndim: int) -> Tensor:
    return x.reshape(-1)[:0].reshape((0,) * ndim)


def _scattered(name: str, input, dim, index, src, op, statics) -> Tensor:
    d = as_dim(dim, input.ndim)
    need_index(name, index, f"{name}(): Expected dtype int32/int64 for index")
    if isinstance(src, Tensor):
        if src.dtype is not input.dtype:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    else:
        src = held(src, input.dtype)
    if not input.ndim:
        return apply(ONLY, (_scattered(name, flat(input), 0, flat(index), flat(src), op, statics),))
    index, src = flat(index), flat(src)
    if index.numel():
        _check_extent(input, index, d, src)
    else:
        index = _nothing(index, input.ndim)
        src = _nothing(src, input.ndim) if isinstance(src, Tensor) else src
    in_range(index, input.shape[d], out_of(d, input.shape[d]))
    return apply(op, (input, index, src), (d, *statics))


@public(inplace=True, out=True)
def scatter(input, dim: int, index: Tensor, src: Tensor | float | None = None, *, value=None, reduce: str | None = None) -> Tensor:
    """input with src (or a number) written at index along dim; reduce 'add' or 'multiply' combines instead."""
    source = value if src is None else src
    refuse_learnable(value, "scatter", "value")
    if source is None:
        raise TypeError('scatter() missing 1 required positional arguments: "src"')
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if reduce is not None and isinstance(source, Tensor):
        warn("The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch release. "
             "Use torch.scatter_reduce instead for more reduction options.", once=True)
    if reduce == "multiply":
        return _scattered("scatter", input, dim, index, source, SCATTER_REDUCE, ("prod", True))
    return _scattered("scatter", input, dim, index, source, SCATTER, (reduce or "set",))


@public(inplace=True, out=True)
def scatter_add(input, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """input with src added at index along dim."""
    if not isinstance(src, Tensor):
        raise TypeError(f"scatter_add(): argument 'src' must be Tensor, not {class_name(src)}")
    return named(_scattered("scatter", input, dim, index, src, SCATTER, ("add",)), "ScatterAddBackward0")


@public(inplace=True, out=True)
def scatter_reduce(input, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """input combined with src at index along dim by 'sum', 'prod', 'mean', 'amax' or 'amin'."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in _COMBINE:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got " + str(reduce))
    if not isinstance(src, Tensor):
        raise TypeError(f"scatter_reduce(): argument 'src' must be Tensor, not {class_name(src)}")
    if (reduce == "mean" and input.dtype is dt.bool_) or (reduce in ("amax", "amin") and input.dtype.is_complex):
        raise not_implemented(f"scatter_gather_tensor_cpu_reduce_{reduce}", input.dtype)
    return _scattered("scatter", input, dim, index, src, SCATTER_REDUCE, (reduce, flag(include_self)))
