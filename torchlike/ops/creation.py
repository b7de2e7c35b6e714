"""Factories: tensors from data, from numbers, ranges."""
from __future__ import annotations

import array
import functools
import math
import warnings

import numpy as np

from .._arguments import factory_size, refuse_huge
from .._core import device as dev
from .._core import dtype as dt
from .._core.aval import aval
from .._core.history import warn
from .._core.program import META_ARRAY
from .._core.registry import Op
from .._core.room import need_room
from .._core.value import Value, of_array
from .._public import MISSING, Refused, public
from .._tensor import Tensor, apply
from .aliases import of_its_class
from .elements import as_integer, held, plain_number
from .memory_formats import laid_out, preserve_format


def _full(xp, value, shape, dtype, device):
    if dtype is dt.uint64:
        value = xp.asarray(value).astype(np.uint64)  # a record's ints have a sign
    return xp.full(shape, value, dtype=dtype.np)


_full_op = Op("full", _full, shape=lambda value, shape, dtype, device: (shape, dtype), vjp=False)


def _constant_kernel(xp, value, shape, dtype, device):
    return xp.full(shape, value, dtype=dtype.np)


_constant_op = Op("constant", _constant_kernel, shape=lambda value, shape, dtype, device: (shape, dtype), vjp=False)


def check_size(shape: tuple, dtype: dt.dtype, device) -> None:
    """Refuse what no memory can hold, here on the user's line."""
    refuse_huge(shape)
    need_room(shape, dtype, device)


def constant(shape: tuple, value, dtype: dt.dtype, device) -> Tensor:
    """A tensor of one number that is part of the program's structure, so that XLA can fold it."""
    check_size(shape, dtype, device)
    return apply(_constant_op, (), (value, shape, dtype, device))


def filled(shape: tuple, value, dtype: dt.dtype, device) -> Tensor:
    """A tensor of one number; the number is data, so it may change between runs."""
    check_size(shape, dtype, device)
    # a lone 16-bit number overflows to inf in torch, where several are an error
    checked = dt.float64 if dtype in (dt.float16, dt.bfloat16) and math.prod(shape) == 1 else dtype
    return apply(_full_op, (held(value, checked),), (shape, dtype, device))


def _empty_check(shape):
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")


def _float_or_default(dtype):
    if dtype is None:
        return dt.get_default_dtype()
    return _check_dtype(dtype)


def _check_dtype(dtype) -> dt.dtype:
    if not isinstance(dtype, dt.dtype):
        if dtype is float:
            return dt.float64
        if dtype is int:
            return dt.int64
        if dtype is bool:
            return dt.bool_
        if dtype is complex:
            return dt.complex128
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return dtype


def dtype_into(out: Tensor | None, dtype):
    """The dtype that a factory makes: that of `out=`, where it is given, which no other may be asked for with."""
    if out is None:
        return dtype
    if isinstance(out, Tensor) and dtype is not None and _check_dtype(dtype) is not out.dtype:
        raise RuntimeError(f"dtype {_check_dtype(dtype).short} does not match dtype of out parameter ({out.dtype.short})")
    return getattr(out, "dtype", dtype)


def _finish(t: Tensor, requires_grad: bool, out: Tensor | None = None, by_number: bool = False) -> Tensor:
    """A factory's result: t, or `out` filled with it, resized where it has to be; `by_number`: where t has another number of elements."""
    if out is not None:
        from .._writing import fill_out
        if by_number and isinstance(out, Tensor) and out._value.aval.numel == t._value.aval.numel:
            t = t.view(out.shape)
        t = fill_out(out, t, said=False)
    if requires_grad is not False and requires_grad is not None:
        if requires_grad is not True:
            raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        if t.dtype.category < dt.FLOAT:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t.requires_grad = True
    return t


def need_strided(layout, name: str) -> None:
    """Only zeros can be made sparse."""
    if layout is not None and layout.name != "strided":
        raise RuntimeError(f"{name}(...) is not implemented for sparse layout")


def strided_only(layout, name: str) -> None:
    """The kernel `name` fills memory: torch has none for the parts of a sparse tensor."""
    if layout is not None and layout.name != "strided":
        if layout.name == "sparse_coo":
            raise Refused(name, "SparseCPU")
        raise RuntimeError("torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size [0]")


def _zeros_in(layout, t: Tensor, value) -> Tensor:
    """t, which is filled with value, in a layout."""
    if layout is None or layout.name == "strided":
        return t
    if value:
        need_strided(layout, "full")
    return t.to_sparse(layout=layout)


LAYOUT_NAMES = {"strided": "Strided", "sparse_coo": "Sparse", "sparse_csr": "SparseCsr", "sparse_csc": "SparseCsc", "sparse_bsr": "SparseBsr",
                 "sparse_bsc": "SparseBsc", "jagged": "Jagged"}


def _constant(name, value):
    def make(*size, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, names=None):
        shape = factory_size(name, size)
        if name == "zeros" and out is None and shape and min(shape) < 0:
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        _empty_check(shape)
        if out is not None:
            if device is not None and dev.canonical(device) is not out.device:
                raise RuntimeError(f"device type {dev.canonical(device).type} does not match device type of out parameter ({out.device.type})")
            if layout is not None and layout is not out.layout:
                raise RuntimeError(f"layout {LAYOUT_NAMES[layout.name]} does not match layout of out parameter ({LAYOUT_NAMES[out.layout.name]})")
            return _finish(constant(shape, value, dtype_into(out, dtype), out.device), requires_grad, out)
        return _finish(_zeros_in(layout, constant(shape, value, _float_or_default(dtype), dev.resolve(device)), value), requires_grad)

    def made(*size, **kwargs):
        if "size" in kwargs:
            if size:
                raise TypeError(f"{name}() got multiple values for argument 'size'")
            size = (kwargs.pop("size"),)
        memory_format = kwargs.pop("memory_format", None) if name == "empty" else None
        if memory_format is None:
            return make(*size, **kwargs)
        if kwargs.get("out") is not None:
            raise RuntimeError("'memory_format' argument is incompatible with 'out' tensor argument")
        if memory_format is preserve_format:
            raise RuntimeError("unsupported memory format Preserve")
        t = make(*size, **kwargs)
        return laid_out(t, t, memory_format)
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"torch.{name}(*size): a tensor of that shape filled with {value}."
    return public(method=False)(made)


zeros = _constant("zeros", 0)
ones = _constant("ones", 1)
empty = _constant("empty", 0)


@public(method=False)
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, names=None, pin_memory=False) -> Tensor:
    """A tensor of shape `size` filled with a number; the dtype follows the number."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    need_strided(layout, "full")
    shape = factory_size("full", (size,))
    _empty_check(shape)
    fill_value = plain_number(fill_value)
    dtype = dtype_into(out, dtype)
    if dtype is None:
        dtype = number_dtype(fill_value)
    return _finish(filled(shape, fill_value, _check_dtype(dtype), dev.resolve(device)), requires_grad, out)


def number_dtype(x) -> dt.dtype:
    """The dtype of a tensor made from a Python number."""
    if isinstance(x, bool):
        return dt.bool_
    if isinstance(x, int):
        return dt.int64
    return _default_complex() if isinstance(x, complex) else dt.get_default_dtype()


def _default_complex() -> dt.dtype:
    if dt.get_default_dtype() is dt.bfloat16:
        raise RuntimeError("invalid default scalar type for complex")
    return dt.complex_of(dt.get_default_dtype())


def _like(name, value):
    def made(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
        a = input._value.aval
        t = constant(a.shape, value, a.dtype if dtype is None else _check_dtype(dtype), a.device if device is None else dev.canonical(device))
        return of_its_class(input, _finish(_zeros_in(layout, laid_out(t, input, memory_format or preserve_format), value), requires_grad))
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"torch.{name}(input): a tensor of input's shape, dtype and device filled with {value}."
    return public(method=False)(made)


zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)
empty_like = _like("empty_like", 0)


@public(method=False)
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    """A tensor of input's shape, dtype and device filled with a number."""
    need_strided(layout, "full")
    a = input._value.aval
    fill_value = plain_number(fill_value)
    made = filled(a.shape, fill_value, a.dtype if dtype is None else _check_dtype(dtype), a.device if device is None else dev.canonical(device))
    return of_its_class(input, _finish(laid_out(made, input, memory_format or preserve_format), requires_grad))


def _arange(xp, start, step, n, dtype, device):
    if xp is np and n:
        return _arange_numpy(start, step, n, dtype.np)
    if dtype.np.kind in "iu":
        return (xp.asarray(start).astype(np.int64) + xp.arange(n, dtype=np.int64) * xp.asarray(step).astype(np.int64)).astype(dtype.np)
    acc = np.float64
    return (xp.asarray(start).astype(acc) + xp.arange(n, dtype=acc) * xp.asarray(step).astype(acc)).astype(dtype.np)


def _arange_numpy(start, step, n, to):
    """The same without large arrays on the way."""
    if to.kind in "iu":
        start, step = (int(np.asarray(x).astype(np.int64)) for x in (start, step))
        last = start + step * (n - 1)
        if 0 < abs(step) < 2 ** 20 and abs(last - start) < 2 ** 30:  # NumPy counts them in floats
            return np.arange(start, last + (1 if step > 0 else -1), step, np.int64).astype(to, copy=False)
        step, start = np.int64(step), np.int64(start)
    values = np.arange(n, dtype=np.int64 if to.kind in "iu" else np.float64)
    if step != 1:
        values *= step
    if start != 0:
        values += start
    return values.astype(to, copy=False)


_arange_op = Op("arange", _arange, shape=lambda start, step, n, dtype, device: ((n,), dtype), vjp=False)


def range_bounds(name: str, bounds: tuple, start, end, step) -> tuple:
    """(start, end, step) of `f(end)`, `f(start, end)`, `f(start, end, step)`; each may be given by name, but a lone start is no end."""
    given = [n for n, x in (("start", start), ("end", end), ("step", step)) if x is not MISSING]
    if len(bounds) == 1 and not given:
        return 0, bounds[0], 1
    names = ("start", "end", "step")[:len(bounds)]
    if len(bounds) > 3 or (set(names) & set(given)) or (bounds and len(bounds) == 1 and "end" not in given):
        words = ", ".join([*(type(x).__name__ for x in bounds), *(f"{n}=..." for n in given)])
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({words})")
    start, end, step = (*bounds, *(start, end, step)[len(bounds):])
    if end is MISSING:
        raise TypeError(f'{name}() missing 1 required positional arguments: "end"')
    return 0 if start is MISSING else start, end, 1 if step is MISSING else step


@public(method=False)
def arange(*bounds, start=MISSING, end=MISSING, step=MISSING, out=None, dtype=None, layout=None, device=None, requires_grad=False,
           pin_memory=False) -> Tensor:
    """The numbers start, start + step, ... below end; int64 when all are ints, else the default float."""
    strided_only(layout, "arange.start_out")
    start, end, step = range_bounds("arange", bounds, start, end, step)
    start, end, step = (x.item() if isinstance(x, (Tensor, np.generic)) else x for x in (start, end, step))
    for x in (start, end, step):
        if x.__class__ is not float:
            held(x, dt.float64 if x.__class__ is complex else dt.int64)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0) != (end >= start) and start != end:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    dtype = dtype_into(out, dtype)
    if dtype is None:
        integral = all(isinstance(x, int) for x in (start, end, step))
        dtype = dt.int64 if integral else dt.get_default_dtype()
    elif _check_dtype(dtype) is dt.int64:  # torch counts with what that type holds of the bounds
        start, end, step = int(start), int(end), int(step)
        if not step:
            raise ValueError("step must be nonzero")
    dtype, place = _check_dtype(dtype), dev.resolve(device)
    if all(isinstance(x, int) for x in (start, end, step)):
        n = max(0, -((start - end) // step))
    else:
        n = (end - start) / step
        if n >= 1 << 63:
            raise RuntimeError("invalid size, possible overflow?")
        n = max(0, math.ceil(n))
    if dtype.category in (dt.BOOL, dt.COMPLEX):
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.short}'")
    check_size((n,), dtype, place)
    made = apply(_arange_op, (start, step), (n, dtype, place))
    if n and (dtype is dt.int64 or dtype is dt.int32) and start.__class__ is int and step.__class__ is int and made._plain:
        made._value.bounds = (start, start + (n - 1) * step) if step > 0 else (start + (n - 1) * step, start)
    return _finish(made, requires_grad, counted(out, n), True)


def counted(out: Tensor | None, n: int) -> Tensor | None:
    """`out=` of arange, which warns where it is not as long as was counted."""
    if isinstance(out, Tensor) and 0 != out.numel() != n:
        warn(f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} which does not match the computed number of "
             f"elements {n}. Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape ({n},).")
    return out


# -- from data -----------------------------------------------------------------------------------------------------------


def from_data(data, dtype=None, device=None) -> Tensor:
    """A fresh tensor from nested sequences, numbers, NumPy arrays and tensors, with torch's inference of dtype."""
    device = dev.resolve(device)
    array = _host_data(data, dtype)
    made = place(array, device)
    halves = dtype is dt.complex32 or (dtype is None and array.dtype == np.complex64 and dt.get_default_dtype() is dt.float16
                                       and isinstance(data, (complex, list, tuple)))
    return made.to(dt.complex32) if halves else made  # NumPy has no such type, so the array cannot tell


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
        return np.array(data, dtype=d.np)
    if isinstance(data, (list, tuple, range)):
        return _from_nested(data, dtype)
    if hasattr(data, "_elements"):  # a storage
        return data._elements(dtype)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return _host_data(np.asarray(data), dtype)
    if hasattr(data, "__dlpack__"):
        from ..utils.dlpack import from_dlpack
        return _host_data(from_dlpack(data), dtype)
    if isinstance(data, (int, float, complex)):
        return _from_number(data, dtype)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        try:
            items = list(data)
        except Exception:
            raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None
        return _from_nested(items, dtype)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _from_number(x, dtype) -> np.ndarray:
    d = number_dtype(x) if dtype is None else dtype
    if d.np.kind in "iu":
        return np.array(as_integer(x, d), d.np)
    if isinstance(x, complex) and d.category < dt.COMPLEX:
        raise TypeError("must be real number, not complex")
    if d.category == dt.BOOL:
        return np.array(bool(x))
    with np.errstate(over="ignore"):  # to inf, as in torch
        return np.array(float(x) if d.category == dt.FLOAT else x).astype(d.np)


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


def _leaves(data, shape, depth, out, dtype) -> None:
    if depth == len(shape):
        if isinstance(data, str):
            raise TypeError("new(): invalid data type 'str'") if out else ValueError("too many dimensions 'str'")
        if isinstance(data, (list, tuple)):
            if any(x is data for x in data):
                raise TypeError("new(): self-referential lists are incompatible")
            kind = type(data).__name__
            raise TypeError(f"must be real number, not {kind}" if out and isinstance(out[0], float)
                            else f"'{kind}' object cannot be interpreted as an integer")
        if isinstance(data, Tensor):
            data = _element(data, dtype)
        elif isinstance(data, np.ndarray):
            if data.ndim:
                raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
            data = data[()]
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


def _element(t: Tensor, dtype):
    """The number that a tensor in a list stands for."""
    if dtype is not None and dtype.category <= dt.INT and (t.numel() != 1 or t.dtype.category > dt.INT):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if t.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if dtype is not None and dtype.category == dt.FLOAT and t.dtype.category == dt.COMPLEX:
        raise RuntimeError("value cannot be converted to type double without overflow")
    return t._host_array().reshape(())[()] if dtype is None and t.dtype.np.kind in "biufc" else t.item()


def _from_nested(data, dtype) -> np.ndarray:
    shape = _shape_of(data)
    if len(shape) > 1 and isinstance(data[0], np.ndarray) and all(isinstance(x, np.ndarray) and x.shape == data[0].shape for x in data):
        return _host_data(np.stack(data), dtype)
    flat: list = []
    _leaves(data, shape, 0, flat, dtype)
    if dtype is None:
        dtype = _infer(data, flat)
    if not flat:
        return np.zeros(shape, dtype.np)
    kinds = set(map(type, flat))
    if any(issubclass(k, np.generic) for k in kinds):
        flat = [x.item() if isinstance(x, np.generic) else x for x in flat]
        kinds = set(map(type, flat))
    bad = next((k for k in kinds if not issubclass(k, (int, float, complex))), None)
    if bad is not None:
        if issubclass(bad, str):
            raise ValueError(f"too many dimensions '{bad.__name__}'")
        raise RuntimeError(f"Could not infer dtype of {bad.__name__}")
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
        return np.array(flat, np.float64 if dtype.category == dt.FLOAT else None).astype(dtype.np).reshape(shape)


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
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).", stacklevel=3)
        device = data.device if device is None else device
    return _finish(from_data(data, dtype, device), requires_grad)


@public(method=False)
def as_tensor(data, dtype=None, device=None, *, copy=None, requires_grad=False) -> Tensor:
    """The data as a tensor, sharing memory with tensors and NumPy arrays where dtype and device allow."""
    if isinstance(data, Tensor):
        t = data
        if (dtype is not None and dtype is not t.dtype) or (device is not None and dev.canonical(device) is not t.device):
            t = t.to(device=device, dtype=dtype)
        return t.clone() if copy else t
    if isinstance(data, np.ndarray) and not copy and (dtype is None or dt.from_numpy_dtype(data.dtype) is dtype):
        t = from_numpy(data)
        return t if device is None else t.to(device)
    return _finish(from_data(data, dtype, device), requires_grad)


@public(method=False)
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None) -> Tensor:
    """as_tensor that also reads Python buffers and DLPack capsules; copy=False refuses what cannot share memory."""
    if type(obj).__name__ == "PyCapsule":
        from ..utils.dlpack import from_dlpack
        obj = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview, array.array)):
        from .ranges import frombuffer
        obj = frombuffer(obj, dtype=_float_or_default(dtype))
    elif copy is False and isinstance(obj, np.generic):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    if copy is False:
        if not isinstance(obj, (Tensor, np.ndarray)):
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        have = obj.dtype if isinstance(obj, Tensor) else dt.from_numpy_dtype(obj.dtype)
        if dtype is not None and dtype is not have:
            raise ValueError(f"can't alias tensor with dtype '{have.short}' into dtype '{dtype.short}'.")
    made = as_tensor(obj, dtype, device, copy=copy)
    if made.requires_grad and requires_grad is False:
        return made.detach()
    return made.requires_grad_() if requires_grad and not made.requires_grad else made


@public(method=False)
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor that shares the array's memory: writes on either side show on the other."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not ndarray.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not "
                         "supported.")
    if any(s % ndarray.itemsize for s in ndarray.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.")
    from .._host import share
    return share(ndarray)


@public(method=False)
def scalar_tensor(s, *, dtype=None, layout=None, device=None, requires_grad=False) -> Tensor:
    """A 0-dim tensor; the default float unless dtype is given."""
    return _finish(filled((), s, _float_or_default(dtype), dev.resolve(device)), requires_grad)
