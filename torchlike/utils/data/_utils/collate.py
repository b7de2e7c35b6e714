"""Batches from lists of samples."""
from __future__ import annotations

import collections
import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlike._core.dtype import float64
from torchlike._functions import torch
from torchlike._tensor import Tensor, as_tensor_value

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of NumPy dtype that no tensor can hold
default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _is_namedtuple(data: Any) -> bool:
    return isinstance(data, tuple) and hasattr(data, "_fields")


def _like_mapping(original, items: dict):
    """`items` in a mapping of the kind of `original`; a plain dict where that kind cannot be made."""
    try:
        if isinstance(original, collections.abc.MutableMapping):
            made = copy.copy(original)  # keeps a default factory, an order, attributes
            made.update(items)
            return made
        return type(original)(items)
    except TypeError:
        return items


def _like_sequence(original, items: list):
    """`items` in a sequence of the kind of `original`; a list where that kind cannot be made."""
    try:
        if isinstance(original, collections.abc.MutableSequence):
            made = copy.copy(original)
            for i, item in enumerate(items):
                made[i] = item
            return made
        return type(original)(items)
    except TypeError:  # range is a sequence that takes no items
        return items


def default_convert(data: Any) -> Any:
    """NumPy arrays inside `data` become tensors; everything else stays."""
    if isinstance(data, Tensor):
        return data
    if type(data).__module__ == "numpy" and isinstance(data, (np.ndarray, np.generic)) and not isinstance(data, str):
        if isinstance(data, np.ndarray) and np_str_obj_array_pattern.search(data.dtype.str):
            return data
        return torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {k: default_convert(v) for k, v in data.items()})
    if _is_namedtuple(data):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(v) for v in data])
    return data


def collate(batch: list, *, collate_fn_map: dict | None = None) -> Any:
    """One batch of many samples; `collate_fn_map` (type or tuple of types: function) says how leaves are joined."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            function = next((f for types, f in collate_fn_map.items() if isinstance(first, types)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)

    def join(column):
        return collate(column, collate_fn_map=collate_fn_map)

    if isinstance(first, collections.abc.Mapping):
        return _like_mapping(first, {key: join([sample[key] for sample in batch]) for key in first})
    if _is_namedtuple(first):
        return kind(*map(join, zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [join(column) for column in zip(*batch)]
        return columns if isinstance(first, tuple) else _like_sequence(first, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch: list, *, collate_fn_map: dict | None = None) -> Tensor:
    import torchlike as torch  # the public function, which classes of tensors take over, is above
    kind = "nested" if batch[0].is_nested else "sparse" if batch[0].layout not in (torch.strided, torch.jagged) else None
    if kind is not None:
        raise RuntimeError(f"Batches of {kind} tensors are not currently supported by the default collate_fn; please provide a custom collate_fn to handle "
                           "them appropriately.")
    return torch.stack(batch, 0)


def collate_numpy_array_fn(batch: list, *, collate_fn_map: dict | None = None) -> Tensor:
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    first = batch[0]
    alike = (type(first), first.shape, first.dtype)
    if alike[0] is np.ndarray and first.dtype.isnative and min(first.strides, default=0) >= 0 and all(
            (type(a), a.shape, a.dtype) == alike for a in batch):
        return as_tensor_value(np.stack(batch))  # one tensor instead of one for each sample
    return collate_tensor_fn([torch.as_tensor(array) for array in batch])


def collate_numpy_scalar_fn(batch: list, *, collate_fn_map: dict | None = None) -> Tensor:
    return torch.as_tensor(batch)


def collate_float_fn(batch: list, *, collate_fn_map: dict | None = None) -> Tensor:
    return torch.tensor(batch, dtype=float64)


def collate_int_fn(batch: list, *, collate_fn_map: dict | None = None) -> Tensor:
    return torch.tensor(batch)


def collate_str_fn(batch: list, *, collate_fn_map: dict | None = None) -> Any:
    return batch


default_collate_fn_map: dict[type | tuple[type, ...], Callable] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: list) -> Any:
    """Samples joined along a new first dimension.

    Tensors, arrays and numbers become tensors (Python floats as float64), strings and bytes stay lists, and mappings,
    named tuples and sequences are joined member by member.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
