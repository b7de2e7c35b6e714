"""Factories: tensors of one number, and ranges."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import overload

import numpy as np

from .._arguments import factory_size, named_size, refuse_huge, refuse_learnable
from .._core import device as dev
from .._core import dtype as dt
from .._core import program, unwritten
from .._core.arrays import to_float8
from .._core.errors import class_name, not_implemented
from .._core.history import warn
from .._core.registry import Op
from .._core.room import need_room
from .._public import MISSING, Refused, public
from .._tensor import Tensor, apply
from .aliases import of_its_class
from .elements import held, need_fitting, plain_number
from .memory_formats import laid_out, preserve_format


def _full(xp, value, shape, dtype, device):
    if dtype is dt.uint64:
        value = xp.asarray(value).astype(np.uint64)  # a record's ints have a sign
    return _constant_kernel(xp, value, shape, dtype, device)


_full_op = Op("full", _full, shape=lambda value, shape, dtype, device: (shape, dtype), vjp=False)


def _constant_kernel(xp, value, shape, dtype, device):
    if xp is np and value.__class__ is int and not value and dtype is not dt.float8_e8m0fnu:  # which has no zero
        return np.zeros(shape, dtype.np)  # in a fraction of the time
    if dtype in dt.FLOAT8:
        return to_float8(xp, xp.full(shape, value, dtype=np.float32), dtype)
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


def written(value, dtype: dt.dtype, layout=None):
    """The number that a factory writes: value; where that is None, what nobody wrote."""
    if value is not None:
        return value
    return unwritten.content(dtype) if layout is None or layout.name == "strided" else 0


def sized(args: tuple, dtype: dt.dtype, device) -> Tensor:
    """What a legacy constructor makes of sizes: a tensor that nobody has written."""
    size = factory_size("new", args)
    _empty_check(size)
    return constant(size, written(None, dtype), dtype, device)


def filled(shape: tuple, value, dtype: dt.dtype, device) -> Tensor:
    """A tensor of one number; the number is data, so it may change between runs."""
    check_size(shape, dtype, device)
    # a lone number of 8 or 16 bits overflows in torch as one in a list does, where several are an error
    checked = dt.float64 if (dtype in (dt.float16, dt.bfloat16) or dtype in dt.FLOAT8) and math.prod(shape) == 1 else dtype
    number = held(value, checked)
    if checked in dt.FLOAT8:
        need_fitting(number, checked)
    made = apply(_full_op, (number,), (shape, dtype, device))
    if number.__class__ is int and dtype.category == dt.INT:
        made._value.bounds = (number, number) if made.numel() else (0, -1)
    return made


_FOR_EXAMPLES = Op("for_examples", lambda xp, like, made: xp.array(made), shape=lambda like, made: (made.shape, made.dtype), vjp=False)


def for_examples(made: Tensor, like: Tensor) -> Tensor:
    """What a factory made after a tensor: inside of vmap, each example has one of its own where it has a `like` of its own, to write into."""
    if program.state.program.__class__ is program.Program or made.device is not like.device:
        return made
    from .._functorch._trace import innermost  # above this file
    return made if innermost() is None else apply(_FOR_EXAMPLES, (like, made))


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
        raise TypeError(f"argument 'dtype' must be torch.dtype, not {class_name(dtype)}")
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
            raise TypeError(f"argument 'requires_grad' must be bool, not {class_name(requires_grad)}")
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


def _zeros_in(layout, t: Tensor, value, name: str) -> Tensor:
    """t, which is filled with value, in a layout."""
    if layout is None or layout.name == "strided":
        return t
    if value:
        need_strided(layout, "full")
    if layout.name != "sparse_coo" and t.ndim < 2:
        raise RuntimeError(f"torch.{name}: Only batched sparse compressed (non-block) tensors are supported, but got size {list(t.shape)}")
    if layout.name in ("sparse_bsr", "sparse_bsc"):
        raise RuntimeError(f"{name}_sparse_compressed expected sparse compressed (non-block) tensor layout but got {LAYOUT_NAMES[layout.name]}")
    return t.to_sparse(layout=layout)


LAYOUT_NAMES = {"strided": "Strided", "sparse_coo": "Sparse", "sparse_csr": "SparseCsr", "sparse_csc": "SparseCsc", "sparse_bsr": "SparseBsr",
                 "sparse_bsc": "SparseBsc", "jagged": "Jagged"}


_INT, _USUAL_SIZE = {int}, 1 << 16


def _constant(name, value):
    def make(*size, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
        shape = factory_size(name, size)
        if name == "zeros" and out is None and shape and min(shape) < 0:
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        _empty_check(shape)
        if out is not None:
            if not isinstance(out, Tensor):
                raise TypeError(f"{name}(): argument 'out' must be Tensor, not {class_name(out)}")
            if device is not None and dev.canonical(device) is not out.device:
                raise RuntimeError(f"device type {dev.canonical(device).type} does not match device type of out parameter ({out.device.type})")
            if layout is not None and layout is not out.layout:
                raise RuntimeError(f"layout {LAYOUT_NAMES[layout.name]} does not match layout of out parameter ({LAYOUT_NAMES[out.layout.name]})")
            kind = dtype_into(out, dtype)
            return _finish(constant(shape, written(value, kind), kind, out.device), requires_grad, out)
        kind = _float_or_default(dtype)
        return _finish(_zeros_in(layout, constant(shape, written(value, kind, layout), kind, dev.resolve(device)), value, name), requires_grad)

    @overload
    def made(*size: int, out: Tensor | None = None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=None) -> Tensor: ...
    @overload
    def made(size: Sequence[int], *, out: Tensor | None = None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False,
             memory_format=None) -> Tensor: ...
    def made(*size, **kwargs) -> Tensor:
        if not kwargs and set(map(type, size)) == _INT and 0 <= min(size) and max(size) < _USUAL_SIZE:  # most calls
            kind = dt.get_default_dtype()
            return constant(size, written(value, kind), kind, dev.default_device())
        if "size" in kwargs:
            if size:
                raise TypeError(f"{name}() got multiple values for argument 'size'")
            size = (named_size(name, kwargs.pop("size")),)
        memory_format = kwargs.pop("memory_format", None) if name == "empty" else None
        if memory_format is None:
            return make(*size, **kwargs)
        if kwargs.get("out") is not None:
            raise RuntimeError("'memory_format' argument is incompatible with 'out' tensor argument")
        if memory_format is preserve_format:
            raise RuntimeError("unsupported memory format Preserve")
        t = make(*size, **kwargs)
        return laid_out(t, t, memory_format)
    make.__name__ = make.__qualname__ = made.__name__ = made.__qualname__ = name  # make's in errors of arguments that it does not have
    made.__doc__ = f"torch.{name}(*size): a tensor of that shape filled with {value or 0}."
    return public(method=False)(made)


zeros = _constant("zeros", 0)
ones = _constant("ones", 1)
empty = _constant("empty", None)


@public(method=False)
def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """A tensor of shape `size` filled with a number; the dtype follows the number."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {class_name(size)}")
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
    plain = name.removesuffix("_like")

    def made(input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
        a = input._value.aval
        kind = a.dtype if dtype is None else _check_dtype(dtype)
        t = for_examples(constant(a.shape, written(value, kind, layout), kind, a.device if device is None else dev.canonical(device)), input)
        return of_its_class(input, _finish(_zeros_in(layout, laid_out(t, input, memory_format or preserve_format), value, plain), requires_grad))
    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"torch.{name}(input): a tensor of input's shape, dtype and device filled with {value or 0}."
    return public(method=False)(made)


zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)
empty_like = _like("empty_like", None)


@public(method=False)
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False) -> Tensor:
    """A tensor of input's shape, dtype and device filled with a number."""
    need_strided(layout, "full")
    a = input._value.aval
    fill_value = plain_number(fill_value)
    kind, place = a.dtype if dtype is None else _check_dtype(dtype), a.device if device is None else dev.canonical(device)
    made = for_examples(filled(a.shape, fill_value, kind, place), input)
    return of_its_class(input, _finish(laid_out(made, input, memory_format or preserve_format), requires_grad))


def _arange(xp, start, step, n, dtype, device):
    """start + i * step; floats as torch's kernel has them, which counts on from every eighth (of doubles fourth, of 16 bits sixteenth) number,
    rounded, as far as pairs of such blocks go, and rounds each product and sum once."""
    kind = dtype.np
    if kind.kind in "iu" or xp is np and _whole(start, step, n, kind):
        return _counted_numpy(start, step, n, kind) if xp is np and n else _counted(xp, start, step, n, kind)
    acc = np.dtype(np.float32 if kind.itemsize == 2 else np.float64)
    start, step = (xp.asarray(x).astype(acc) for x in (start, step))
    lanes = 32 // kind.itemsize
    split = n - n % (2 * lanes)
    if xp is np:
        base = multiply_add(np, np.arange(0, split, lanes, acc), step, start).astype(kind).astype(acc)
        blocks = multiply_add(np, np.arange(lanes, dtype=acc), step, base[:, None]).reshape(split)
        rest = multiply_add(np, np.arange(split, n, dtype=acc), step, start)
        return np.concatenate([blocks, rest], dtype=kind, casting="unsafe")
    i = np.arange(n)  # no outer sum: its products would be rounded before
    base = multiply_add(xp, (i - i % lanes).astype(acc), step, start).astype(kind).astype(acc)
    return xp.where(i < split, multiply_add(xp, (i % lanes).astype(acc), step, base), multiply_add(xp, i.astype(acc), step, start)).astype(kind)


def multiply_add(xp, a, b, c):
    """a * b + c, rounded once: NumPy needs a wider type for that, XLA's compiler does so by itself."""
    if xp is not np:
        return a * b + c
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b + c).astype(a.dtype)


def _whole(start, step, n, kind) -> bool:
    """Whether all of these numbers are integers that the type holds, so that nothing is rounded."""
    exact = 1 << {2: 8, 4: 24, 8: 53}[kind.itemsize]
    return float(start).is_integer() and float(step).is_integer() and max(abs(start), abs(start + n * step)) <= exact


def _counted(xp, start, step, n, kind):
    return (xp.asarray(start).astype(np.int64) + xp.arange(n, dtype=np.int64) * xp.asarray(step).astype(np.int64)).astype(kind)


def _counted_numpy(start, step, n, to):
    """The same without large arrays on the way."""
    start, step = (x if x.__class__ is int else int(np.asarray(x).astype(np.int64)) for x in (start, step))
    last = start + step * (n - 1)
    if 0 < abs(step) < 2 ** 20 and abs(last - start) < 2 ** 30:  # NumPy counts them in floats
        return np.arange(start, last + (1 if step > 0 else -1), step, np.int64).astype(to, copy=False)
    values = np.arange(n, dtype=np.int64)
    if step != 1:
        values *= np.int64(step)
    if start != 0:
        values += np.int64(start)
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


_USUAL = 1 << 31  # ints below it need not be looked at further


@public(method=False)
def arange(*bounds, start=MISSING, end=MISSING, step=MISSING, out=None, dtype=None, layout=None, device=None, requires_grad=False,
           pin_memory=False) -> Tensor:
    """The numbers start, start + step, ... below end; int64 when all are ints, else the default float."""
    strided_only(layout, "arange.start_out")
    start, end, step = range_bounds("arange", bounds, start, end, step)
    usual = start.__class__ is int and end.__class__ is int and step.__class__ is int and -_USUAL < start < _USUAL and -_USUAL < end < _USUAL
    if not usual or not 0 < step < _USUAL:
        for x, argument, place in (start, "start", 1), (end, "end", 2), (step, "step", 3):
            refuse_learnable(x, "arange", argument, place)
        if any(isinstance(x, Tensor) and x.ndim for x in (start, end, step)):
            raise TypeError("arange(): a bound is no number")  # the wrapper says which
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
        integral = usual or all(isinstance(x, int) for x in (start, end, step))
        dtype = dt.int64 if integral else dt.get_default_dtype()
    elif _check_dtype(dtype) is dt.int64:  # torch counts with what that type holds of the bounds
        start, end, step = int(start), int(end), int(step)
        if not step:
            raise ValueError("step must be nonzero")
    dtype, place = _check_dtype(dtype), dev.resolve(device)
    if usual or all(isinstance(x, int) for x in (start, end, step)):
        n = max(0, -((start - end) // step))
    else:
        n = (end - start) / step
        if n >= 1 << 63:
            raise RuntimeError("invalid size, possible overflow?")
        n = max(0, math.ceil(n))
    if dtype.category in (dt.BOOL, dt.COMPLEX) or dtype.is_floating_point and dtype.itemsize == 1:
        raise not_implemented("arange_cpu", dtype)
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


@public(method=False)
def scalar_tensor(s, *, dtype=None, layout=None, device=None, requires_grad=False) -> Tensor:
    """A 0-dim tensor; the default float unless dtype is given."""
    return _finish(filled((), s, _float_or_default(dtype), dev.resolve(device)), requires_grad)
