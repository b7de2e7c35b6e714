"""What is written between the brackets of t[...]: parts, new dimensions and advanced indices."""
from __future__ import annotations

import jax
import numpy as np

from .._arguments import refuse_long
from .._core import dtype as dt
from .._core.history import warn
from .._core.value import of_array
from .._plainly import _disabled_torch_function_impl
from .._plainly import state as overriding
from .._tensor import Tensor

MASKS = (dt.bool_, dt.uint8)
_INDEX_DTYPES = (*MASKS, dt.int32, dt.int64)


class TakesOver(Exception):
    """An index is of a class that takes functions over."""


def from_start(i: int, n: int, dim: int) -> int:
    """Index i of n, counted from the first; to torch, `dim` is where it stands between the brackets."""
    if not -n <= i < n:
        refuse_long(i)
        raise IndexError(f"index {i} is out of bounds for dimension {dim} with size {n}")
    return i + n if i < 0 else i


def _is_index_list(i) -> bool:
    return isinstance(i, (list, range)) or (isinstance(i, np.ndarray) and i.ndim > 0)


def _means_tuple(index: list) -> bool:
    """A short list that holds more than numbers is a tuple of indices to torch, as it was to old NumPy."""
    return len(index) < 32 and any(i is None or i is Ellipsis or isinstance(i, (slice, Tensor, list, tuple, range, np.ndarray)) for i in index)


def items_of(index) -> tuple | list:
    """The indices, one by one."""
    if index.__class__ is tuple:
        return index
    if isinstance(index, list) and _means_tuple(index):
        warn("Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use x[tuple(seq)] instead of "
             "x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an error or a "
             "different result")
        return index
    return list(index) if isinstance(index, tuple) else (index,)


def _known(i: Tensor) -> int | None:
    """An index that is known on the host."""
    array = i._known()
    return int(array) if array.__class__ is np.ndarray else None


def refuse_many(items, shape: tuple) -> None:
    if sum(map(dims_used, items)) > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")


def refuse_part_of_number(index) -> None:
    """torch's words for an int or a slice alone as the index of a 0-dim tensor."""
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        if index:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size 0")
        raise IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number")
    if index.__class__ is slice:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")


def cuts_of(items: tuple, shape: tuple, alias: bool) -> list | None:
    """The parts that ints and slices ask for, as in `parsed`; None where there are other indices, or torch refuses these."""
    left = len(items)
    if left > len(shape):
        return None
    parts = []
    dim, skipped = 0, False
    for i in items:
        left -= 1
        if i is Ellipsis and dim + left < len(shape) and not skipped:
            dim, skipped = len(shape) - left, True
            continue
        size = shape[dim]
        if i.__class__ is slice:
            start, stop, step = i.indices(size)
            n = stop - start
            if step != 1:
                if step < 0:
                    return None
                n = -(-n // step)
            if n <= 0:
                n = 0
            if n != size or step != 1 or alias and (i.start is not None or i.stop is not None):
                parts.append((dim, start, n, step))
        elif i.__class__ is int and -size <= i < size:
            parts.append((dim, i + size if i < 0 else i, -1, 1))
        else:
            return None
        dim += 1
    return parts


def parsed(items, shape: tuple, alias: bool) -> tuple[list, list, dict, bool]:
    """What indices ask for: parts (dimension, start, length or -1, step) and new dimensions (where in the result, before which of t's), advanced
    indices by their dimension in the view, and whether some position came from a tensor. `alias`: also where a part is all of t."""
    # `source` counts the dimensions of the tensor; `dim` those of the view, where ints leave none
    dim, source, parts, new, advanced, data = 0, 0, [], [], {}, False
    for place, i in enumerate(items):
        cls = i.__class__
        if cls is Tensor and not i._value.aval.ndim and i._value.aval.dtype.category == dt.INT and i._value.aval.dtype is not dt.uint8:
            position = _known(i)
            if position is not None:
                i, cls, data = position, int, True
        if cls is int:
            parts.append((source, from_start(i, shape[source], place), -1, 1))
            source += 1
        elif cls is slice:
            size = shape[source]
            start, n, step = _slice_bounds(i, size)
            if n != size or step != 1 or (alias and (i.start is not None or i.stop is not None)):
                parts.append((source, start, n, step))
            dim += 1
            source += 1
        elif i is Ellipsis:
            skipped = len(shape) - sum(map(dims_used, items))
            if skipped < 0:
                refuse_many(items, shape)
            dim += skipped
            source += skipped
        elif i is None:
            new.append((dim, source))
            dim += 1
        elif isinstance(i, (bool, np.bool_)) or (isinstance(i, Tensor) and i.dtype in MASKS and i.ndim == 0):
            new.append((dim, source))
            advanced[dim] = tensor_index(i).reshape((1,)).to(dt.bool_)
            dim += 1
        elif isinstance(i, Tensor) or _is_index_list(i):
            i = tensor_index(i)
            advanced[dim] = i
            n = i.ndim if i.dtype in MASKS else 1
            dim += n
            source += n
        elif hasattr(i, "__index__"):
            if isinstance(i, jax.Array):
                return parsed([tensor_index(x) if isinstance(x, jax.Array) else x for x in items], shape, alias)
            parts.append((source, from_start(i.__index__(), shape[source], place), -1, 1))
            source += 1
        elif isinstance(i, tuple):
            advanced[dim] = tensor_index(list(i))
            dim += 1
            source += 1
        elif isinstance(i, str):
            raise TypeError("new(): invalid data type 'str'")
        else:
            raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                             f"(got {type(i).__name__})")
    if source > len(shape):
        refuse_many(items, shape)
    return parts, new, advanced, data


def dims_used(i) -> int:
    if i is None or i is Ellipsis or isinstance(i, (bool, np.bool_)):
        return 0
    if isinstance(i, Tensor) and i.dtype in MASKS:
        return i.ndim
    if isinstance(i, np.ndarray) and i.dtype == np.bool_:
        return i.ndim
    if isinstance(i, str):
        return len(i)  # to torch a sequence like any other, until it looks at the letters
    return 1


def _slice_bounds(s: slice, size: int) -> tuple[int, int, int]:
    """(start, length, step) of a slice of a dimension."""
    start, stop, step = s.start, s.stop, s.step
    if step is None and (start is None or start.__class__ is int) and (stop is None or stop.__class__ is int):
        start, stop, step = s.indices(size)
        return start, stop - start if stop > start else 0, step
    if step is not None:
        step = int(step)
        if step <= 0:
            raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    for bound in (start, stop):
        if bound is not None and bound.__class__ is not int:
            if not hasattr(bound, "__index__"):
                raise TypeError("slice indices must be integers or None or have an __index__ method")
            s = slice(None if start is None else start.__index__(), None if stop is None else stop.__index__(), step)
    start, stop, step = s.indices(size)
    return start, max(0, -(-(stop - start) // step)), step


def tensor_index(i) -> Tensor:
    if isinstance(i, jax.Array):
        i = Tensor._of(of_array(i))
    if isinstance(i, Tensor):
        if i.__class__ is not Tensor and i.__torch_function__ is not _disabled_torch_function_impl and i.__class__._plain and not overriding.disabled:
            raise TakesOver
        if i.dtype not in _INDEX_DTYPES and (i.ndim or i.dtype.category >= dt.FLOAT):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return i
    from .from_data import from_data
    array = np.asarray([x.tolist() if isinstance(x, Tensor) else x for x in i] if isinstance(i, (list, range)) else i)
    if array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind == "U":
        raise TypeError("new(): invalid data type 'str'")
    if array.dtype.kind == "c":
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if array.dtype.kind not in "iub":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return from_data(array if array.dtype.kind == "b" else array.astype(np.int64))
