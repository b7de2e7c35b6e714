"""Tensors from data: numbers, nested sequences, NumPy arrays, buffers, other tensors."""
from __future__ import annotations

import array
import functools
import operator

import numpy as np

from .._core import device as dev
from .._core import dtype as dt
from .._core.arrays import stored
from .._core.aval import aval
from .._core.errors import class_name
from .._core.grad_mode import mode
from .._core.history import warn
from .._core.layout import Layout, like
from .._core.program import META_ARRAY
from .._core.silence import silently
from .._core.value import Value, is_tracer, of_array
from .._public import public
from .._tensor import Tensor
from .creation import _check_dtype, _default_complex, _finish, _float_or_default, number_dtype
from .elements import as_integer


def from_data(data, dtype=None, device=None) -> Tensor:
    """A fresh tensor from nested sequences, numbers, NumPy arrays and tensors, with torch's inference of dtype."""
    device = dev.resolve(device)
    if hasattr(data, "untyped"):  # a storage, which torch shares
        from .storages import elements
        return elements(data, dtype).to(device)
    if is_tracer(data):  # within one of JAX's transformations, where no value is known
        made = Tensor._of(of_array(data))
        return made if dtype is None else made.to(_check_dtype(dtype))
    array = _host_data(data, dtype)
    made = place(array, device)
    if isinstance(data, (np.ndarray, Tensor)):
        made._layout = _laid_as(data)
    halves = dtype is dt.complex32 or (dtype is None and array.dtype == np.complex64 and dt.get_default_dtype() is dt.float16
                                       and isinstance(data, (complex, list, tuple)))
    return made.to(dt.complex32) if halves else made  # NumPy has no such type, so the array cannot tell


def _laid_as(data: np.ndarray | Tensor) -> Layout | None:
    """The layout of a copy, which lies as the original does: columns one after the other, if that does."""
    if isinstance(data, Tensor):
        return None if data._layout is None else like(data._layout)
    from .._host import refuse_reversed
    refuse_reversed(data)
    return None if data.flags.c_contiguous and data.size else like(Layout(data.shape, tuple([s // data.itemsize for s in data.strides]), 0))


def place(array: np.ndarray, device) -> Tensor:
    """A tensor over a host array that nobody else writes, on a device."""
    array = np.asarray(array)  # NumPy's functions of arrays without dimensions give scalars
    if device.type == "meta":
        return Tensor._of(Value(aval(array.shape, dt.from_numpy_dtype(array.dtype), device), META_ARRAY))
    v = of_array(array)
    if device.type != "cpu":
        from .._core.program import move
        v = move(v, device)
    return Tensor._of(v)


def _host_data(data, dtype) -> np.ndarray:
    if dtype is not None:
        dtype = _check_dtype(dtype)
    cls = data.__class__
    if cls is float or cls is int or cls is bool or cls is complex:
        return _from_number(data, dtype)
    if isinstance(data, Tensor):
        if dtype is not None and dtype.category < dt.COMPLEX == data.dtype.category:
            from .basic import to_dtype  # with its warning
            data = to_dtype(data, dtype)
        a = data._host_array()
        return a.copy() if dtype is None else a.astype(dtype.np)
    if isinstance(data, (np.ndarray, np.generic)):
        if not data.dtype.isnative:
            raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte orders is currently "
                             "not supported.")
        d = dt.from_numpy_dtype(data.dtype) if dtype is None else dtype
        made = stored(np, np.asarray(data), d)
        return made if made.dtype != data.dtype else np.array(made)
    if isinstance(data, (list, tuple, range)):
        return _from_nested(data, dtype)
    if (hasattr(data, "__array__") or hasattr(data, "__array_interface__")) and not isinstance(data, type):
        array = np.asarray(data)
        if array.dtype != object or not hasattr(data, "__len__"):
            return _host_data(array, dtype)
        return _from_nested(_items(data), dtype)  # a pandas Series of lists
    if hasattr(data, "__dlpack__"):
        from ..utils.dlpack import from_dlpack
        return _host_data(from_dlpack(data), dtype)
    if isinstance(data, (int, float, complex)):
        return _from_number(data, dtype)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        return _from_nested(_items(data), dtype)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    return _from_number(_as_number(data, dtype), dtype)


def _items(data) -> list:
    """The items of what is a sequence to torch: its first one has the number 0."""
    try:
        items = list(data)
        if items:
            data[0]
        return items
    except Exception:
        raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None


def _no_number(x, dtype) -> Exception:
    """torch's error for what is no number; it says what the dtype would need, if one is given."""
    kind = class_name(x)
    if dtype is not None:
        return TypeError(f"'{kind}' object cannot be interpreted as an integer" if dtype.category <= dt.INT else f"must be real number, not {kind}")
    return TypeError(f"new(): invalid data type '{kind}'") if isinstance(x, (str, bytes)) else RuntimeError(f"Could not infer dtype of {kind}")


def _as_number(x, dtype):
    """x, or what an object that can be a number (decimal.Decimal) is to a dtype."""
    if isinstance(x, _NUMBERS):
        return x
    if dtype is None or not hasattr(type(x), "__index__" if dtype.category <= dt.INT else "__float__"):
        raise _no_number(x, dtype)
    return operator.index(x) if dtype.category <= dt.INT else float(x)


def _from_number(x, dtype) -> np.ndarray:
    d = number_dtype(x) if dtype is None else dtype
    if d.np.kind in "iu":
        return np.array(as_integer(x, d), d.np)
    if d.category == dt.BOOL:
        return np.array(bool(x))
    if isinstance(x, complex) and d.category < dt.COMPLEX:
        raise TypeError("must be real number, not complex")
    return silently(stored, np, np.array(float(x) if d.category == dt.FLOAT else x), d)  # too large ones to inf, as in torch


_NUMBERS = (int, float, complex)
_NO_INDEX = "only integer tensors of a single element can be converted to an index"
_NO_SCALAR = "only one element tensors can be converted to Python scalars"


def _shape_of(data) -> tuple:
    shape = []
    while True:
        if isinstance(data, (list, tuple, range)):
            shape.append(len(data))
            if len(shape) > 128:
                raise ValueError(f"too many dimensions '{type(data).__name__}'")
            if not len(data):
                break
            data = data[0]
        else:
            shape.extend(data.shape if isinstance(data, np.ndarray) else ())  # a tensor in a list is one number
            break
    return tuple(shape)


def _warn_of_arrays() -> None:
    warn("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single numpy.ndarray with "
         "numpy.array() before converting to a tensor.", once=True)


def _leaves(data, shape, depth, out, dtype) -> None:
    if depth and isinstance(data, np.ndarray):
        _warn_of_arrays()
    if depth == len(shape):
        if isinstance(data, str):
            raise _no_number(next((x for x in out if not isinstance(x, (*_NUMBERS, np.generic))), data), dtype) if out else ValueError("too many dimensions 'str'")
        if isinstance(data, (list, tuple)):
            if any(x is data for x in data):
                raise TypeError("new(): self-referential lists are incompatible")
            kind = type(data).__name__
            real = isinstance(out[0], float) if out and dtype is None else dtype is not None and dtype.category > dt.INT
            raise TypeError(f"must be real number, not {kind}" if real else f"'{kind}' object cannot be interpreted as an integer")
        if isinstance(data, Tensor):
            data = _element(data, dtype)
        elif isinstance(data, np.ndarray):
            if data.ndim:
                complex(data)  # which NumPy refuses; older ones only warn where it has one element
            data = data.reshape(())[()]
        out.append(data)
        return
    if isinstance(data, np.ndarray):
        if data.shape != shape[depth:]:
            raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data) if data.ndim else 0})")
        out.extend(data.reshape(-1).tolist() if data.dtype.kind in "biufc" else data.astype(np.float32).reshape(-1).tolist())
        return
    if isinstance(data, Tensor) and data.ndim:
        data = tuple(data)
    if not isinstance(data, (list, tuple, range)):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for x in data:
        _leaves(x, shape, depth + 1, out, dtype)


class _NoNumber(Exception):
    """A tensor in a list has not one element, and what would be made of the list is not known yet."""


def _is_whole(data) -> bool:
    """Whether a list is one of whole numbers."""
    if isinstance(data, (list, tuple)):
        return all(map(_is_whole, data))
    return data.dtype.category <= dt.INT if isinstance(data, Tensor) else isinstance(data, (int, np.integer, np.bool_)) or isinstance(data, np.ndarray) and data.dtype.kind in "biu"


def warn_of_gradient(t: Tensor) -> None:
    """PyTorch's warning where a float or complex number is taken of a tensor in a graph, which the number is not in."""
    if mode.enabled and t.requires_grad:
        warn("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using tensor.detach() first.", once=True)


def _element(t: Tensor, dtype):
    """The number that a tensor in a list stands for."""
    if dtype is not None and dtype.category <= dt.INT and (t.numel() != 1 or t.dtype.category > dt.INT):
        raise TypeError(_NO_INDEX)
    if t.numel() != 1:
        raise _NoNumber if dtype is None else ValueError(_NO_SCALAR)
    if dtype is not None and dtype.category == dt.FLOAT and t.dtype.category == dt.COMPLEX:
        raise RuntimeError("value cannot be converted to type double without overflow")
    if dtype is None or dtype.category > dt.INT:
        warn_of_gradient(t)
    return t._host_array().reshape(())[()] if dtype is None and t.dtype.np.kind in "biufc" else t.item()


DEEP = 16  # lists in lists, above which one may hold itself
_LISTS = frozenset({list, tuple})
_PLAIN = [{float}, {int}, {float, int}]  # classes of numbers in the usual lists


def _from_numbers(data: list | tuple, dtype) -> np.ndarray | None:
    """What _from_nested makes of lists of Python's floats and ints, as most are; None where it has to look closer."""
    flat, shape = data, [len(data)]
    while flat and flat[0].__class__ in _LISTS:
        n = len(flat[0])
        if len(shape) > DEEP or not all(row.__class__ in _LISTS and len(row) == n for row in flat):
            return None
        flat = [x for row in flat for x in row]
        shape.append(n)
    kinds = set(map(type, flat))
    if kinds not in _PLAIN:
        return None
    if dtype is None:
        dtype = dt.get_default_dtype() if float in kinds else dt.int64
    try:
        if dtype.category == dt.FLOAT:
            return silently(stored, np, np.array(flat, np.float64), dtype).reshape(shape)  # too large ones to inf, as in torch
        return np.array(flat, np.int64).reshape(shape) if dtype is dt.int64 and float not in kinds else None
    except OverflowError:
        return None


def _from_nested(data, dtype) -> np.ndarray:
    if data.__class__ in _LISTS and (made := _from_numbers(data, dtype)) is not None:
        return made
    shape = _shape_of(data)
    if len(shape) > 1 and isinstance(data[0], np.ndarray) and all(isinstance(x, np.ndarray) and x.shape == data[0].shape for x in data):
        _warn_of_arrays()
        return _host_data(np.stack(data), dtype)
    flat: list = []
    given = dtype
    try:
        _leaves(data, shape, 0, flat, dtype)
    except _NoNumber:
        raise (TypeError(_NO_INDEX) if _is_whole(data) else ValueError(_NO_SCALAR)) from None
    if dtype is None:
        dtype = _infer(data, flat)
    if not flat:
        return np.zeros(shape, dtype.np)
    kinds = set(map(type, flat))
    if any(issubclass(k, np.generic) for k in kinds):
        flat = [x.item() if isinstance(x, np.generic) else x for x in flat]
        kinds = set(map(type, flat))
    if not all(issubclass(k, _NUMBERS) for k in kinds):
        flat = [_as_number(x, given) for x in flat]
        kinds = set(map(type, flat))
    if dtype.np.kind in "iu":
        info = np.iinfo(dtype.np)
        if not kinds <= {int, bool} or min(flat) < info.min or max(flat) > info.max:
            flat = [as_integer(x, dtype) for x in flat]
        return np.array(flat, dtype=dtype.np).reshape(shape)
    if dtype.category == dt.BOOL:
        return np.array([bool(x) for x in flat], np.bool_).reshape(shape)
    if complex in kinds and dtype.category != dt.COMPLEX:
        raise TypeError("must be real number, not complex")
    with np.errstate(over="ignore"):  # as above
        return stored(np, np.array(flat, np.float64 if dtype.category == dt.FLOAT else None), dtype).reshape(shape)


def _infer(data, flat) -> dt.dtype:
    found = _dtype_of_parts(data)
    if found is not None:
        return found
    kinds = set(map(type, flat))
    if any(issubclass(k, np.generic) for k in kinds):
        return functools.reduce(dt.promote_types, map(_dtype_of_kind, kinds))
    if any(issubclass(k, complex) for k in kinds):
        return _default_complex()
    if any(issubclass(k, (float, np.floating)) for k in kinds):
        return dt.get_default_dtype()
    if kinds and all(issubclass(k, (bool, np.bool_)) for k in kinds):
        return dt.bool_
    if not kinds:
        return dt.get_default_dtype()
    return dt.int64


def _dtype_of_kind(kind: type) -> dt.dtype:
    """What a number of that class makes of a list, NumPy's by its type."""
    if issubclass(kind, np.generic):
        return dt.from_numpy_dtype(np.dtype(kind))
    if issubclass(kind, bool):
        return dt.bool_
    return dt.int64 if issubclass(kind, int) else _default_complex() if issubclass(kind, complex) else dt.get_default_dtype()


def _dtype_of_parts(data) -> dt.dtype | None:
    """When the leaves are tensors or NumPy values, their promoted dtype; None for plain numbers."""
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        return dt.from_numpy_dtype(data.dtype)
    if isinstance(data, (list, tuple)) and data and not isinstance(data[0], (int, float, complex)):
        parts = [_dtype_of_parts(x) for x in data]
        if all(p is not None for p in parts):
            found = parts[0]
            for p in parts[1:]:
                found = dt.promote_types(found, p)
            return found
    return None


@public(method=False)
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """torch.tensor: always a copy; the dtype is inferred from the data unless given."""
    if isinstance(data, Tensor):
        warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
             "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).")
        device = data.device if device is None else device
    return _finish(from_data(data, dtype, device), requires_grad)


@public(method=False)
def as_tensor(data, *, dtype=None, device=None) -> Tensor:
    """The data as a tensor, sharing memory with tensors and NumPy arrays where dtype and device allow."""
    return _sharing(data, dtype, device)


def _sharing(data, dtype, device, copy: bool | None = None) -> Tensor:
    if dtype is not None:
        dtype = _check_dtype(dtype)
    if isinstance(data, Tensor):
        t = data
        if (dtype is not None and dtype is not t.dtype) or (device is not None and dev.canonical(device) is not t.device):
            t = t.to(device=device, dtype=dtype)
        return t.clone() if copy else t
    if isinstance(data, np.ndarray) and not copy and (dtype is None or dt.from_numpy_dtype(data.dtype) is dtype):
        t = from_numpy(data)
        return t if device is None else t.to(device)
    return from_data(data, dtype, device)


@public(method=False)
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None) -> Tensor:
    """as_tensor that also reads Python buffers and DLPack capsules; copy=False refuses what cannot share memory."""
    if type(obj).__name__ == "PyCapsule":
        from ..utils.dlpack import from_dlpack
        obj = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview, array.array)):
        from .ranges import frombuffer
        obj = frombuffer(obj, dtype=_float_or_default(dtype))
    elif isinstance(obj, np.ndarray) and not obj.ndim:
        obj = obj.copy()  # which torch takes for a number, even where it shall not be copied
    elif copy is False and isinstance(obj, np.generic):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    if copy is False:
        if not isinstance(obj, (Tensor, np.ndarray)):
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        have = obj.dtype if isinstance(obj, Tensor) else dt.from_numpy_dtype(obj.dtype)
        if dtype is not None and dtype is not have:
            raise ValueError(f"can't alias tensor with dtype '{have.short}' into dtype '{dtype.short}'.")
    made = _sharing(obj, dtype, device, copy)
    if made.requires_grad and requires_grad is False:
        return made.detach()
    return made.requires_grad_() if requires_grad and not made.requires_grad else made


@public(method=False)
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares the array's memory: writes on either side show on the other."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {class_name(ndarray)})")
    if not ndarray.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not "
                         "supported.")
    if any(s % ndarray.itemsize for s in ndarray.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.")
    from .._host import share
    return share(ndarray)


def legacy(data, dtype: dt.dtype, device) -> Tensor:
    """What the legacy constructors make of a sequence; of an array a tensor that shares its memory, where it has their dtype, or its strides."""
    if not isinstance(data, np.ndarray) or data.flags.c_contiguous and data.dtype != dtype.np and data.dtype.kind in "biufc":
        return from_data(data, dtype, device)
    return from_numpy(data).to(device, dtype)
