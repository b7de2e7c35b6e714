"""NumPy rules for windowed reductions and their gradients."""
from __future__ import annotations

import itertools
import math

import numpy as np

from .numpy_lax_reduce import highest, lowest
from .numpy_lax_rules import Lacks, build, dtype_of, is_narrow, opened, out_dtype, out_shape, rule, shape_of
from .numpy_lax_shape import pad_array


def _geometry(eqn):
    p = eqn.params
    dims = tuple(p["window_dimensions"])
    ones = (1,) * len(dims)
    strides, padding = tuple(p["window_strides"]), tuple(p["padding"])
    base, window = tuple(p.get("base_dilation") or ones), tuple(p.get("window_dilation") or ones)
    config = tuple((lo, hi, b - 1) for (lo, hi), b in zip(padding, base))
    return dims, strides, window, config


def _tap(offset, dilation, strides, out):
    return tuple(slice(i * d, i * d + (m - 1) * t + 1, t) if m else slice(0, 0)
                 for i, d, t, m in zip(offset, dilation, strides, out))


_REDUCERS = {"reduce_window_sum": (np.add, lambda d: d.type(0)), "reduce_window_max": (np.maximum, lowest),
             "reduce_window_min": (np.minimum, highest)}


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _reduce_window(eqn):
    """One dimension after another: each is a few strided slices combined."""
    ufunc, identity = _REDUCERS[eqn.primitive.name]
    dims, strides, dilation, config = _geometry(eqn)
    dtype, shape = dtype_of(eqn), out_shape(eqn)
    compute = np.dtype(np.float32) if is_narrow(dtype) else dtype
    value = np.asarray(identity(compute), compute)
    pads = any(any(c) for c in config)
    passes = [(axis, d, s, t) for axis, (d, s, t) in enumerate(zip(dims, strides, dilation)) if d > 1 or s > 1]

    def reduce_window(x):
        x = x.astype(compute, copy=False)
        if pads:
            x = pad_array(x, value, config)
        for axis, taps, stride, step in passes:
            lead, size = (slice(None),) * axis, shape[axis]
            end = (size - 1) * stride + 1 if size else 0
            y = x[(*lead, slice(0, end, stride))]
            for i in range(1, taps):
                part = x[(*lead, slice(i * step, i * step + end, stride))]
                y = ufunc(y, part) if i == 1 else ufunc(y, part, out=y)
            x = y
        return x.astype(dtype, copy=False)
    return reduce_window


@rule("reduce_window")
def _general_reduce_window(eqn):
    """A fold of each window by an arbitrary function, in order, over all windows at once."""
    import jax
    from jax.extend import core

    p, n = eqn.params, len(eqn.invars) // 2
    dims, strides, dilation, config = _geometry(eqn)
    shape = out_shape(eqn)
    size = math.prod(shape)
    inner, consts = opened(p["jaxpr"])
    function = core.jaxpr_as_fun(core.ClosedJaxpr(inner, consts or p.get("consts", ())))
    structs = [jax.ShapeDtypeStruct((size,), out_dtype(eqn, i % n)) for i in range(2 * n)]
    step = build(jax.make_jaxpr(jax.vmap(function))(*structs))

    def reduce_window(*args):
        operands = [pad_array(x, np.asarray(v), config) for x, v in zip(args[:n], args[n:])]
        state = [np.full(size, v) for v in args[n:]]
        for offset in itertools.product(*map(range, dims)):
            where = _tap(offset, dilation, strides, shape)
            state = step([*state, *[x[where].reshape(-1) for x in operands]])
        return [s.reshape(shape) for s in state]
    return reduce_window


def _selected(x, select, dims, strides, dilation, config, out):
    """For every window, the flat index into the padded x of the element that `select` keeps; padding is never kept."""
    inside = None
    if any(any(c) for c in config):
        inside = pad_array(np.ones(x.shape, bool), np.zeros((), bool), config)
        x = pad_array(x, np.zeros((), x.dtype), config)
    places = np.arange(x.size).reshape(x.shape)
    best = where = None
    for offset in itertools.product(*map(range, dims)):
        tap = _tap(offset, dilation, strides, out)
        value, place = x[tap], places[tap]
        real = None if inside is None else inside[tap]
        if best is None:
            best, where, found = value, place, real
            continue
        keep = select(best, value)
        if real is not None:
            keep = (keep & found) | ~real
            found = found | real
        best, where = np.where(keep, best, value), np.where(keep, where, place)
    return where, found, x.shape


def _select_function(eqn):
    name = eqn.params["select_prim"].name
    if name not in ("ge", "le"):
        raise Lacks(f"{eqn.primitive.name} by {name}")
    return np.greater_equal if name == "ge" else np.less_equal


def _unpad(x, shape, config):
    return x[tuple(slice(lo, lo + (n - 1) * (inner + 1) + 1, inner + 1) if n else slice(0, 0)
                   for n, (lo, _, inner) in zip(shape, config))]


@rule("select_and_scatter_add")
def _select_and_scatter_add(eqn):
    dims, strides, dilation, config = _geometry(eqn)
    if any(lo < 0 or hi < 0 for lo, hi, _ in config):
        raise Lacks("select_and_scatter_add with negative padding")
    select, shape, out, dtype = _select_function(eqn), shape_of(eqn, 1), shape_of(eqn, 0), out_dtype(eqn)
    best_of, worst = (np.maximum, lowest) if select is np.greater_equal else (np.minimum, highest)
    pads = any(any(c) for c in config)
    compute = np.dtype(np.float32) if is_narrow(dtype) else dtype
    worst = np.asarray(worst(compute), compute)
    taps = [_tap(offset, dilation, strides, out) for offset in itertools.product(*map(range, dims))]

    def by_place(source, x):
        where, found, padded = _selected(x, select, dims, strides, dilation, config, out)
        if found is not None:
            source = np.where(found, source, source.dtype.type(0))
        total = np.zeros(math.prod(padded), compute)
        np.add.at(total, where.reshape(-1), source.reshape(-1))
        return total.reshape(padded)

    def by_tap(source, x):
        """The first element that equals the best of its window gets the window's share."""
        inside = None
        if pads:
            inside = pad_array(np.ones(shape, bool), np.zeros((), bool), config)
            x = pad_array(x, worst, config)
        best = x[taps[0]]
        for tap in taps[1:]:
            best = best_of(best, x[tap])
        if compute.kind == "f" and np.isnan(best).any():
            return None
        total = np.zeros(x.shape, compute)
        free = None
        for tap in taps:
            hit = x[tap] == best
            if inside is not None:
                hit &= inside[tap]
            if free is None:
                free = ~hit
            else:
                hit &= free
                free &= ~hit
            total[tap] += np.where(hit, source, compute.type(0))
        return total

    def select_and_scatter_add(source, x):
        source, x = source.astype(compute, copy=False), x.astype(compute, copy=False)
        total = by_tap(source, x) if compute.kind in "fiu" else None
        if total is None:
            total = by_place(source, x)
        return _unpad(total, shape, config).astype(dtype, copy=False)
    return select_and_scatter_add


@rule("select_and_gather_add")
def _select_and_gather_add(eqn):
    dims, strides, dilation, config = _geometry(eqn)
    if any(lo < 0 or hi < 0 for lo, hi, _ in config):
        raise Lacks("select_and_gather_add with negative padding")
    select, out = _select_function(eqn), out_shape(eqn)

    def select_and_gather_add(tangents, x):
        where, _, _ = _selected(x, select, dims, strides, dilation, config, out)
        return pad_array(tangents, np.zeros((), tangents.dtype), config).reshape(-1)[where]
    return select_and_gather_add
