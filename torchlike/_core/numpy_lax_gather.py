"""NumPy rule for gather."""
from __future__ import annotations

import math

import numpy as np

from .numpy_lax_index import Windows, mode_of
from .numpy_lax_rules import dtype_of, is_float, out_shape, rule, shape_of


def _fill_value(eqn, dtype):
    value = eqn.params["fill_value"]
    if value is None:
        if is_float(dtype) or dtype.kind == "c":
            value = np.nan
        else:
            value = True if dtype == bool else np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return np.asarray(value).astype(dtype)


@rule("gather")
def _gather(eqn):
    numbers, mode = eqn.params["dimension_numbers"], mode_of(eqn)
    shape, out, dtype = shape_of(eqn), out_shape(eqn), dtype_of(eqn)
    batch = shape_of(eqn, 1)[:-1]
    sizes = tuple(map(int, eqn.params["slice_sizes"]))
    fill = _fill_value(eqn, dtype) if mode == "fill" else None
    start_map = tuple(map(int, numbers.start_index_map))
    pairs = tuple(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims))
    windows = Windows(shape, sizes, start_map, pairs, batch)
    removed = {*map(int, numbers.collapsed_slice_dims), *map(int, numbers.operand_batching_dims)}
    kept = [d for d in range(len(shape)) if d not in removed]
    offset_dims = set(map(int, numbers.offset_dims))
    # axes of the result as it is made, (batch..., window...), in the order they are wanted
    batch_axes, window_axes = iter(range(len(batch))), iter(range(len(batch), len(out)))
    order = tuple(next(window_axes) if i in offset_dims else next(batch_axes) for i in range(len(out)))
    made = (*batch, *[sizes[d] for d in kept])

    def masked(result, ok):
        """ok over the batch; result in its final order."""
        ok = ok.reshape(*ok.shape, *[1] * len(kept)).transpose(order)
        return np.where(ok, result, fill)

    if eqn.outvars[0].aval.size == 0:
        return lambda x, indices: np.zeros(out, dtype)
    if eqn.invars[0].aval.size == 0:
        return lambda x, indices: np.full(out, fill if mode == "fill" else 0, dtype)

    if math.prod(batch) == 1 and not pairs:
        def gather_one(x, indices):
            columns = windows.columns(indices)
            if mode == "fill" and windows.inside(columns) is not None:
                return np.full(out, fill, dtype)
            return x[windows.slices(windows.clamped(columns))].reshape(out)
        return gather_one

    axis = start_map[0] if len(start_map) == 1 else -1
    whole = all(k == n or d == axis for d, (k, n) in enumerate(zip(sizes, shape)))
    if axis >= 0 and not pairs and whole and sizes[axis] == 1:
        # where np.take puts the other dimensions
        after = {d: i if d < axis else i + len(batch) for i, d in enumerate(d for d in range(len(shape)) if d != axis)}
        wanted = [axis + a if a < len(batch) else after.get(kept[a - len(batch)]) for a in order]
        squeezed = tuple(a for a in wanted if a is not None)  # without the indexed dimension, of size 1
        plain = squeezed == tuple(range(len(squeezed)))

        def gather_take(x, indices):
            column = indices[..., 0].astype(np.intp, copy=False)
            result = np.take(x, column, axis, mode="clip")
            if not plain:
                result = result.transpose(squeezed)
            if result.shape != out:
                result = result.reshape(out)
            if fill is not None:
                ok = windows.inside([column])
                if ok is not None:
                    result = masked(result, ok)
            return result
        return gather_take

    same = order == tuple(range(len(out)))

    def gather(x, indices):
        columns = windows.columns(indices)
        ok = windows.inside(columns) if fill is not None else None
        if fill is None:  # XLA clamps what was promised to be inside, too
            columns = windows.clamped(columns)
        rows = windows.rows(columns)
        if windows.row == 1:
            result = np.take(x.reshape(-1), rows, mode="clip").reshape(made)
        else:
            result = np.take(x.reshape(-1, windows.row), rows, 0, mode="clip").reshape(made)
        if not same:
            result = result.transpose(order)
        return result if ok is None else masked(result, ok)
    return gather
