"""Elements set or combined by index arrays in compiled programs, by way of the flat array where single elements are written.

XLA's CPU backend goes through the entries one by one: with one position each they take 4 ns; a column of positions a dimension has
to be put together first, and slices that lie across memory take 30 ns an element.
"""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np

_RUN = 8  # neighbours from which on a slice is better written as such


def _positions(shape: tuple, where: tuple):
    """Where x[where] lies in the flat array, for x of `shape`; None where slices are written, or index arrays are not neighbours."""
    arrays = [d for d, i in enumerate(where) if i.__class__ is not slice]
    if len(where) != len(shape) or len(shape) < 2 or any(i.__class__ is slice and i != slice(None) for i in where):
        return None
    first, last = arrays[0], arrays[-1]
    behind = len(shape) - 1 - last
    if len(arrays) != last - first + 1 or behind + first == 0 and len(arrays) < 2 or np.prod(shape[last + 1:], dtype=np.int64) >= _RUN:
        return None
    kind, stride, total = np.int32 if np.prod(shape, dtype=np.int64) < 2 ** 31 else np.int64, 1, 0
    rank = max(np.ndim(where[d]) for d in arrays)
    for d in range(len(shape) - 1, -1, -1):
        i, n = where[d], shape[d]
        if i.__class__ is slice:
            part = jnp.arange(n, dtype=kind).reshape(-1, *(1,) * (len(shape) - 1 - d if d > last else behind + rank + first - 1 - d))
        else:
            part = jnp.asarray(i).astype(kind)
            part = jnp.where(part < 0, part + n, part).reshape(*part.shape, *(1,) * behind)
        total, stride = total + part * stride, stride * n
    return total


def changed_at(x, where, values, mode: str, **known):
    """getattr(x.at[where], mode)(values, **known), for bools too"""
    if x.dtype == bool:  # lax adds none
        mode = {"add": "max", "multiply": "min"}.get(mode, mode)
    flat = _positions(x.shape, where) if where.__class__ is tuple and x.size else None
    if flat is None:
        return getattr(x.at[where], mode)(values, **known)
    values = jnp.broadcast_to(jnp.asarray(values, x.dtype), flat.shape)
    return getattr(x.reshape(-1).at[flat.reshape(-1)], mode)(values.reshape(-1), **known).reshape(x.shape)
