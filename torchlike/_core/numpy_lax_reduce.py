"""NumPy rules for reductions, cumulative operations and sorting."""
from __future__ import annotations

import numpy as np

from .halves import widened
from .numpy_lax_rules import build, dtype_of, is_float, is_narrow, out_dtype, out_shape, rule, shape_of, total_order

PACKED = 64  # elements: from this length on a stable argsort packs keys and positions


def lowest(dtype: np.dtype):
    """The identity of max."""
    if dtype == bool:
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else dtype.type(-np.inf)


def highest(dtype: np.dtype):
    """The identity of min."""
    if dtype == bool:
        return True
    return np.iinfo(dtype).max if dtype.kind in "iu" else dtype.type(np.inf)


@rule("reduce_sum", "reduce_prod")
def _reduce_sum(eqn):
    axes, dtype = tuple(eqn.params["axes"]), out_dtype(eqn)
    reduce = (np.add if eqn.primitive.name == "reduce_sum" else np.multiply).reduce
    if not axes:
        return lambda x: x
    if is_narrow(dtype):
        return lambda x: reduce(x.astype(np.float32), axes).astype(dtype)
    return lambda x: reduce(x, axes, dtype)


@rule("reduce_max", "reduce_min")
def _reduce_max(eqn):
    axes, dtype, shape = tuple(eqn.params["axes"]), out_dtype(eqn), out_shape(eqn)
    largest = eqn.primitive.name == "reduce_max"
    if not axes:
        return lambda x: x
    if eqn.invars[0].aval.size == 0:
        identity = (lowest if largest else highest)(dtype)
        return lambda x: np.full(shape, identity, dtype)
    reduce = (np.maximum if largest else np.minimum).reduce
    return lambda x: reduce(x, axes)


@rule("reduce_and", "reduce_or", "reduce_xor")
def _reduce_bits(eqn):
    axes, name = tuple(eqn.params["axes"]), eqn.primitive.name
    reduce = {"reduce_and": np.bitwise_and, "reduce_or": np.bitwise_or, "reduce_xor": np.bitwise_xor}[name].reduce
    return lambda x: reduce(x, axes)


@rule("argmax", "argmin")
def _argmax(eqn):
    (axis,), index = eqn.params["axes"], np.dtype(eqn.params["index_dtype"])
    function = np.argmax if eqn.primitive.name == "argmax" else np.argmin
    narrow = is_narrow(dtype_of(eqn))
    return lambda x: function(x.astype(np.float32) if narrow else x, axis).astype(index)


@rule("reduce")
def _reduce(eqn):
    """A fold by an arbitrary function, in order, over all the other elements at once."""
    import jax
    from jax.extend import core

    n, axes = len(eqn.invars) // 2, tuple(eqn.params["dimensions"])
    inner = eqn.params["jaxpr"]
    shape = out_shape(eqn)
    size = int(np.prod(shape))
    if hasattr(inner, "jaxpr"):
        function = core.jaxpr_as_fun(inner)
    else:
        function = core.jaxpr_as_fun(core.ClosedJaxpr(inner, eqn.params.get("consts", ())))
    structs = [jax.ShapeDtypeStruct((size,), out_dtype(eqn, i % n)) for i in range(2 * n)]
    step = build(jax.make_jaxpr(jax.vmap(function))(*structs))
    kept = [d for d in range(len(shape_of(eqn))) if d not in axes]

    def reduce(*args):
        operands = [x.transpose(*axes, *kept).reshape(-1, size) for x in args[:n]]
        state = [np.full(size, v) for v in args[n:]]
        for row in zip(*operands):
            state = step([*state, *row])
        return [s.reshape(shape) for s in state]
    return reduce


@rule("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def _cumulative(eqn):
    axis, reverse, dtype = eqn.params["axis"], eqn.params["reverse"], dtype_of(eqn)
    ufunc = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum,
             "cumlogsumexp": np.logaddexp}[eqn.primitive.name]
    compute = np.dtype(np.float32) if is_narrow(dtype) else dtype
    flip = (slice(None),) * axis + (slice(None, None, -1),)

    def cumulative(x):
        if x.dtype != compute:
            x = x.astype(compute)
        if reverse:
            x = x[flip]
        if ufunc is np.logaddexp and dtype.kind == "c":
            y = _complex_cumlogsumexp(x, axis)
        else:
            y = ufunc.accumulate(x, axis, compute)
        if reverse:
            y = y[flip]
        return y if compute == dtype else y.astype(dtype)
    return cumulative


def _complex_cumlogsumexp(x, axis):
    top = np.maximum.accumulate(x.real, axis)
    out = np.empty_like(x)
    state = None
    for i in range(x.shape[axis]):
        where = (slice(None),) * axis + (i,)
        m, term = top[where], x[where]
        state = term if state is None else np.log(np.exp(state - m) + np.exp(term - m)) + m
        out[where] = state
    return out


def stable_order(key: np.ndarray, axis: int) -> np.ndarray:
    """np.argsort(key, axis, 'stable'); a key of at most 32 bits is sorted in one word with its position, which NumPy's
    vectorized sort does several times faster."""
    n = key.shape[axis]
    if n < PACKED or key.dtype.itemsize > 4 or key.dtype.kind == "c":
        return np.argsort(key, axis, "stable")
    if key.dtype.kind == "f":
        key = np.asarray(key, np.float32) + np.float32(0)  # -0.0 becomes 0.0
        key = total_order(np.where(np.isnan(key), np.float32(np.nan), key))
    words = np.moveaxis(key, axis, -1).astype(np.int64)
    if key.dtype == np.uint32:
        words -= 1 << 31
    words <<= 32
    words |= np.arange(n)
    words.sort(-1)
    words &= 0xFFFFFFFF
    return np.moveaxis(words, -1, axis)


def _sorted(x, axis):
    if is_narrow(x.dtype):
        return np.sort(x.astype(np.float32), axis, "stable").astype(x.dtype)
    if is_float(x.dtype) and np.any(np.signbit(x) & (x == 0)):
        return np.sort(x, axis, "stable")  # 0.0 and -0.0 compare equal and keep their order
    return np.sort(x, axis)


@rule("sort")
def _sort(eqn):
    axis, keys = eqn.params["dimension"], eqn.params["num_keys"]
    if len(eqn.invars) == 1:
        return lambda x: [_sorted(x, axis)]

    def sort(*xs):
        if keys == 1:
            order = stable_order(widened(xs[0]), axis)
        else:
            order = np.lexsort([widened(x) for x in xs[keys - 1::-1]], axis)
        if order.ndim == 1:
            return [x[order] for x in xs]
        return [np.take_along_axis(x, order, axis) for x in xs]
    return sort


@rule("top_k", "approx_top_k")
def _top_k(eqn):
    """Largest first, ties by position; floats in total order."""
    p = eqn.params
    k, axis = p["k"], p.get("axis", p.get("reduction_dimension", len(shape_of(eqn)) - 1))
    largest, index = p.get("is_max_k", True), out_dtype(eqn, 1)
    where = (slice(None),) * (axis % len(shape_of(eqn))) + (slice(0, k),)

    def top_k(x):
        key = total_order(x) if is_float(x.dtype) else x.astype(np.int8) if x.dtype == bool else x
        order = stable_order(~key if largest else key, axis)[where]
        return [np.take_along_axis(x, order, axis), order.astype(index)]
    return top_k
