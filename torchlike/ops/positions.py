"""Elements by index arrays in NumPy, by way of the flat array: one index array in place of one a dimension.

NumPy's loops over one index vector are quick (`ufunc.at`: 1.5 ns an element); those over several, and over rows, take 5 to 10
times as long.
"""
from __future__ import annotations

import numpy as np

from .rows import add_rows

FEW = 1 << 9  # index entries from which on the flat form is quicker


def positions(shape: tuple, where: tuple) -> np.ndarray | None:
    """Where x[where] lies in the flat array, for x of `shape`: slices mean whole dimensions; None where index arrays are not neighbours."""
    arrays = [d for d, i in enumerate(where) if i.__class__ is not slice]
    first, last = arrays[0], arrays[-1]
    if len(arrays) != last - first + 1:
        return None
    rank, behind, stride, parts = max(np.ndim(where[d]) for d in arrays), len(shape) - 1 - last, 1, []
    for d in range(len(shape) - 1, -1, -1):
        i, n = where[d], shape[d]
        if i.__class__ is slice:
            part = np.arange(0, n * stride, stride).reshape(-1, *(1,) * (len(shape) - 1 - d if d > last else behind + rank + first - 1 - d))
        else:
            part = np.asarray(i, np.intp) if stride == 1 else np.multiply(i, stride, dtype=np.intp)
            if part.size and part.min() < 0:
                part = np.where(part < 0, part + n * stride, part)
            part = part.reshape(*part.shape, *(1,) * behind)
        parts.append(part)
        stride *= n
    parts.sort(key=np.size, reverse=True)
    total, whole = parts[0], np.broadcast_shapes(*(p.shape for p in parts))
    ours = not any(np.may_share_memory(total, i) for i in where if i.__class__ is np.ndarray)
    for part in parts[1:]:
        total = np.add(total, part, out=total if ours and total.shape == whole and total.ndim else None)
        ours = True
    return total


def _flat(x: np.ndarray, where) -> np.ndarray | None:
    """`positions` where they pay."""
    if where.__class__ is not tuple or x.ndim < 2 or not x.flags.c_contiguous:
        return None
    size = 1
    for i in where:
        size = max(size, 1 if i.__class__ is slice else np.size(i))
    return positions(x.shape, where) if size >= FEW else None


def elements(x: np.ndarray, where: tuple) -> np.ndarray:
    """x[where]"""
    flat = _flat(x, where)
    return x[where] if flat is None else x.reshape(-1).take(flat)


def set_at(x: np.ndarray, where: tuple, values) -> None:
    """x[where] = values"""
    flat = _flat(x, where)
    if flat is None:
        x[where] = values
    else:
        x.reshape(-1)[flat] = values


def combine_at(ufunc: np.ufunc, x: np.ndarray, where: tuple, values) -> None:
    """ufunc.at(x, where, values): in the order of `where`, duplicates count each time."""
    if ufunc is np.add and where.__class__ is tuple and add_rows(x, where, values):
        return
    flat = _flat(x, where)
    if flat is None:
        ufunc.at(x, where, values)
    else:
        ufunc.at(x.reshape(-1), flat.reshape(-1), np.broadcast_to(values, flat.shape).reshape(-1))


def rows_add(n: int, index: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """n rows of zeros, with rows[i] added at index[i] for i = 0, 1, ..."""
    out = np.zeros((n, rows.shape[1]), rows.dtype)
    combine_at(np.add, out, (index, slice(None)), rows)
    return out
