"""NumPy rules that move elements without computing: broadcasts, reshapes, slices, pads."""
from __future__ import annotations

import numpy as np

from .numpy_lax_rules import out_dtype, out_shape, rule, shape_of

COPIED = 4096  # elements: a smaller broadcast is copied, which costs less than np.broadcast_to's Python


@rule("broadcast_in_dim")
def _broadcast_in_dim(eqn):
    shape, old, dims = out_shape(eqn), shape_of(eqn), eqn.params["broadcast_dimensions"]
    middle = [1] * len(shape)
    for d, n in zip(dims, old):
        middle[d] = n
    middle = tuple(middle)
    if middle == shape:
        return lambda x: x.reshape(shape)
    if eqn.outvars[0].aval.size > COPIED:
        return lambda x: np.broadcast_to(x.reshape(middle), shape)
    dtype = out_dtype(eqn)

    def broadcast(x):
        out = np.empty(shape, dtype)
        out[...] = x.reshape(middle)
        return out
    return broadcast


@rule("reshape")
def _reshape(eqn):
    shape, dims = out_shape(eqn), eqn.params.get("dimensions")
    if dims is not None:
        return lambda x: x.transpose(dims).reshape(shape)
    return lambda x: x.reshape(shape)


@rule("squeeze")
def _squeeze(eqn):
    shape = out_shape(eqn)
    return lambda x: x.reshape(shape)


@rule("transpose")
def _transpose(eqn):
    order = tuple(map(int, eqn.params["permutation"]))
    return lambda x: x.transpose(order)


@rule("rev")
def _rev(eqn):
    where = tuple(slice(None, None, -1) if d in eqn.params["dimensions"] else slice(None) for d in range(len(shape_of(eqn))))
    return lambda x: x[where]


@rule("slice")
def _slice(eqn):
    p = eqn.params
    where = tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"] or (1,) * len(p["start_indices"])))
    return lambda x: x[where]


@rule("concatenate")
def _concatenate(eqn):
    axis = eqn.params["dimension"]
    return (lambda x: x) if len(eqn.invars) == 1 else lambda *xs: np.concatenate(xs, axis)


@rule("stack")
def _stack(eqn):
    axis = eqn.params["axis"]
    return lambda *xs: np.stack(xs, axis)


@rule("unstack")
def _unstack(eqn):
    axis = eqn.params["axis"]
    return lambda x: list(np.moveaxis(x, axis, 0))


@rule("split")
def _split(eqn):
    axis, ends = eqn.params["axis"], np.cumsum(eqn.params["sizes"])
    lead = (slice(None),) * axis
    where = [(*lead, slice(int(e - n), int(e))) for n, e in zip(eqn.params["sizes"], ends)]
    return lambda x: [x[w] for w in where]


@rule("tile")
def _tile(eqn):
    reps = tuple(eqn.params["reps"])
    return lambda x: np.tile(x, reps)


@rule("iota")
def _iota(eqn):
    shape, dim, dtype = out_shape(eqn), eqn.params["dimension"], out_dtype(eqn)
    column = [1] * len(shape)
    column[dim] = shape[dim]
    return lambda *sizes: np.broadcast_to(np.arange(shape[dim]).astype(dtype).reshape(column), shape)


@rule("empty", "empty2")
def _empty(eqn):
    shape, dtype = out_shape(eqn), out_dtype(eqn)
    return lambda *_: np.zeros(shape, dtype)


def pad_array(x: np.ndarray, value, config) -> np.ndarray:
    """x with (low, high, interior) per dimension; negative low and high cut."""
    source, target, shape = [], [], []
    for n, (low, high, inner) in zip(x.shape, config):
        step = inner + 1
        size = low + high + (n + (n - 1) * inner if n else 0)
        first = max(0, -(low // step))
        last = min(n, -((low - size) // step))
        shape.append(size)
        source.append(slice(first, max(last, first)))
        start = low + first * step
        target.append(slice(start, start + max(last - first - 1, -1) * step + 1, step) if last > first else slice(0, 0))
    part = x[tuple(source)]
    if part.shape == tuple(shape):
        return part
    if not value and not np.signbit(value.real if value.dtype.kind == "c" else value):
        out = np.zeros(shape, x.dtype)
    else:
        out = np.empty(shape, x.dtype)
        out[...] = value
    out[tuple(target)] = part
    return out


@rule("pad")
def _pad(eqn):
    config = tuple(eqn.params["padding_config"])
    return lambda x, value: pad_array(x, value, config)


@rule("dynamic_slice")
def _dynamic_slice(eqn):
    sizes = tuple(eqn.params["slice_sizes"])
    room = [n - k for n, k in zip(shape_of(eqn), sizes)]

    def dynamic_slice(x, *starts):
        where = []
        for s, k, most in zip(starts, sizes, room):
            s = min(max(int(s), 0), most)
            where.append(slice(s, s + k))
        return x[tuple(where)]
    return dynamic_slice


@rule("dynamic_update_slice")
def _dynamic_update_slice(eqn):
    sizes = shape_of(eqn, 1)
    room = [n - k for n, k in zip(shape_of(eqn), sizes)]

    def dynamic_update_slice(x, update, *starts):
        where = []
        for s, k, most in zip(starts, sizes, room):
            s = min(max(int(s), 0), most)
            where.append(slice(s, s + k))
        out = np.array(x)
        out[tuple(where)] = update
        return out
    return dynamic_update_slice
