"""NumPy rules for scatter and its variants; updates of one place are applied in order."""
from __future__ import annotations

import math

import numpy as np

from .numpy_lax_index import Windows, mode_of
from .numpy_lax_rules import Lacks, dtype_of, is_narrow, opened, rule, shape_of

_COMBINE = {"scatter": None, "scatter-add": np.add, "scatter-sub": np.subtract, "scatter-mul": np.multiply,
            "scatter-min": np.minimum, "scatter-max": np.maximum}


@rule(*_COMBINE)
def _scatter(eqn):
    ufunc, p = _COMBINE[eqn.primitive.name], eqn.params
    if ufunc is None and p.get("update_jaxpr") is not None:
        inner, _ = opened(p["update_jaxpr"])
        if inner.outvars[0] is not inner.invars[1]:
            raise Lacks("scatter with a function")
    numbers, mode = p["dimension_numbers"], mode_of(eqn)
    shape, dtype = shape_of(eqn), dtype_of(eqn)
    update_shape, batch = shape_of(eqn, 2), shape_of(eqn, 1)[:-1]
    window_dims = tuple(map(int, numbers.update_window_dims))
    removed = {*map(int, numbers.inserted_window_dims), *map(int, numbers.operand_batching_dims)}
    extents = iter([update_shape[d] for d in window_dims])
    sizes = tuple(1 if d in removed else next(extents) for d in range(len(shape)))
    start_map = tuple(map(int, numbers.scatter_dims_to_operand_dims))
    pairs = tuple(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims))
    windows = Windows(shape, sizes, start_map, pairs, batch)
    order = (*[d for d in range(len(update_shape)) if d not in window_dims], *window_dims)
    n, row, unique = math.prod(batch), windows.row, p["unique_indices"]
    wide = np.dtype(np.float32) if is_narrow(dtype) and ufunc is not None else dtype
    if eqn.invars[2].aval.size == 0 or eqn.invars[0].aval.size == 0:
        return lambda x, indices, updates: x

    def placed(indices):
        columns = windows.columns(indices)
        if mode == "clip":
            return windows.clamped(columns), None
        return columns, windows.inside(columns)

    if n == 1 and not pairs:
        def scatter_one(x, indices, updates):
            columns, ok = placed(indices)
            if ok is not None:
                return x
            out = np.array(x)
            part = out[windows.slices(columns)]
            updates = updates.reshape(part.shape)
            part[...] = updates if ufunc is None else ufunc(part, updates)
            return out
        return scatter_one

    within = np.arange(row)

    def scatter(x, indices, updates):
        columns, ok = placed(indices)
        rows = windows.rows(columns)
        updates = updates.transpose(order).reshape(n, -1)
        if ok is not None:
            ok = ok.reshape(-1)
            rows, updates = rows[ok], updates[ok]
        out = np.array(x, wide, order="C")
        rows = rows.reshape(-1)
        if ufunc is None or unique:
            table, updates = out.reshape(-1, row), updates.reshape(-1, row)
            table[rows] = updates if ufunc is None else ufunc(table[rows], updates)
        else:
            places = rows if row == 1 else (rows[:, None] * row + within).reshape(-1)
            ufunc.at(out.reshape(-1), places, updates.reshape(-1).astype(wide, copy=False))
        return out.astype(dtype, copy=False)
    return scatter
