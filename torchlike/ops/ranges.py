"""Factories beyond filling: spaced numbers, identity matrices, strided and shared memory, complex numbers."""

from __future__ import annotations

import builtins
import os
import weakref

import numpy as np
from jax import lax

from .._arguments import as_int, as_size, real, refuse_learnable
from .._core import device as dev
from .._core import dtype as dt
from .._core.aval import broadcast_shapes
from .._core.errors import class_name, not_implemented
from .._core.history import warn
from .._core.layout import Layout, contiguous, is_dense
from .._core.registry import Op, Plan, common_device
from .._core.rng_dtypes import cpp_type
from .._core.room import need_count
from .._public import public
from .._tensor import Tensor, apply
from .blocks import BLOCK
from .complex_parts import joined
from .creation import _check_dtype, _counted, _empty_check, _finish, constant, dtype_into, multiply_add, strided_only, written
from .elements import held
from .from_data import from_numpy, place
from .joining import cat
from .narrow import NARROW
from .pointwise import _plain_number, fused, number

# -- spaced numbers ----------------------------------------------------------------------------------------------------


def _narrowed(xp, x, kind: np.dtype):
    """float32 rounded to 16 bits, still float32: products, sums and quotients of such numbers are rounded there as in 16 bits."""
    if xp is np:
        return np.asarray(x, kind).astype(np.float32)
    info = xp.finfo(kind)
    return lax.reduce_precision(xp.asarray(x, np.float32), info.nexp, info.nmant)


def _narrow_linspace(xp, start, end, steps, kind: np.dtype):
    """torch rounds to 16 bits at each step."""
    def rounded(x):
        return _narrowed(xp, x, kind)

    start, end, count = rounded(start), rounded(end), np.float32(steps - 1)
    step, i = rounded(rounded(end - start) / rounded(count)), np.arange(steps, dtype=np.float32)
    return rounded(xp.where(i < steps // 2, start + rounded(rounded(i) * step), end - rounded(rounded(count - i) * step)))


def _linspace(xp, start, end, steps, dtype, device, add=multiply_add):
    """Both halves count from their own end, so that the last number is exactly `end`."""
    kind = dtype.np
    wide = np.dtype(np.float64) if kind.kind in "iu" else kind
    start, end = xp.asarray(start), xp.asarray(end)
    start, end = start.astype(kind).astype(wide), end.astype(kind).astype(wide)
    if steps <= 1:  # bool has no more
        return start.reshape(1)[:steps].astype(kind)
    if dtype in NARROW:
        return _narrow_linspace(xp, start, end, steps, kind).astype(kind)
    step = (end - start) / np.asarray(steps - 1, wide)
    i, half = np.arange(steps), steps // 2
    if xp is np:
        values = np.empty(steps, wide)
        for begin in builtins.range(0, steps, BLOCK):
            part = i[begin:begin + BLOCK]
            few = min(max(half - begin, 0), part.size)
            values[begin:begin + few] = add(np, part[:few].astype(wide), step, start)
            values[begin + few:begin + BLOCK] = add(np, (part[few:] - (steps - 1)).astype(wide), step, end)
    else:
        values = xp.where(i < half, add(xp, i.astype(wide), step, start), add(xp, (i - (steps - 1)).astype(wide), step, end))
    return (xp.trunc(values) if kind.kind in "iu" else values).astype(kind)


_LINSPACE = Op("linspace", _linspace, shape=lambda start, end, steps, dtype, device: ((steps,), dtype), vjp=False)


def _logspace(xp, start, end, base, steps, dtype, device):
    wide = dt.float64 if dtype.np.kind in "iu" else dt.float32 if dtype.itemsize == 2 else dtype
    powers = xp.power(xp.asarray(base).astype(wide.np), _linspace(xp, start, end, steps, wide, device, fused))
    return powers.astype(dtype.np)


_LOGSPACE = Op("logspace", _logspace, shape=lambda start, end, base, steps, dtype, device: ((steps,), dtype), vjp=False)


def _ends(name: str, start, end, steps, dtype):
    """(start, end, steps, dtype) of a spaced range, checked."""
    pair = [x if isinstance(x, Tensor) else _plain_number(number(x)) for x in (start, end) if not isinstance(x, str)]
    if len(pair) < 2 or not hasattr(steps, "__index__") or isinstance(steps, bool):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got "
            f"({class_name(start)}, {class_name(end)}, {class_name(steps)})"
        )
    for x in pair:
        if isinstance(x, Tensor) and x.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got start with {x.ndim} dimension(s)."
            )
    steps = as_int(steps, "steps")
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    complex_ = any(x.dtype.is_complex if isinstance(x, Tensor) else isinstance(x, builtins.complex) for x in pair)
    if dtype is None:
        dtype = dt.complex_of(dt.get_default_dtype()) if complex_ else dt.get_default_dtype()
    elif complex_ and not dtype.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {cpp_type(dt.complex_of(dt.get_default_dtype()).np)} can't be safely cast to passed dtype "
                           f"{dtype.short}")
    dtype = _check_dtype(dtype)
    if dtype is dt.bool_ and steps > 1:
        raise not_implemented(f"{name}_cpu", dt.bool_)
    if steps > 1 and not dtype.is_complex:
        for x in pair:
            if not isinstance(x, Tensor):
                held(x, dtype)  # raises where it does not fit
    return *pair, steps, dtype


@public(method=False)
def linspace(
    start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """`steps` numbers from start to end, both included, equally spaced."""
    strided_only(layout, "linspace.out")
    start, end, steps, dtype = _ends("linspace", start, end, steps, dtype_into(out, dtype))
    made = apply(_LINSPACE, (start, end), (steps, dtype, dev.resolve(device)))
    return _finish(made, requires_grad, out, True)


@public(method=False)
def logspace(
    start,
    end,
    steps,
    base: float = 10.0,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """base to the powers linspace(start, end, steps)."""
    strided_only(layout, "logspace.out")
    start, end, steps, dtype = _ends("logspace", start, end, steps, dtype_into(out, dtype))
    made = apply(_LOGSPACE, (start, end, real(base, "logspace", "base", 4)), (steps, dtype, dev.resolve(device)))
    return _finish(made, requires_grad, out, True)


def _range(xp, start, step, n, dtype, device):
    if dtype.np.kind in "iu":
        return _counted(xp, start, step, n, dtype.np)
    return (xp.asarray(start).astype(np.float64) + np.arange(n, dtype=np.float64) * xp.asarray(step).astype(np.float64)).astype(dtype.np)


_RANGE = Op("range", _range, shape=lambda start, step, n, dtype, device: ((n,), dtype), vjp=False)


@public(method=False)
def range(
    start: float, end: float, step: float = 1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """start, start + step, ... up to and including end; arange leaves the end out, and is preferred."""
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
        "builtin. Instead, use torch.arange, which produces values in [start, end).")
    strided_only(layout, "range.out")
    for k, (x, argument) in enumerate(((start, "start"), (end, "end"), (step, "step")), 1):
        refuse_learnable(x, "range", argument, k)
    start, end, step = (x.item() if isinstance(x, (Tensor, np.generic)) else x for x in (start, end, step))
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not np.isfinite(start) or not np.isfinite(end):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0) != (end >= start) and start != end:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    dtype = dtype_into(out, dtype)
    dtype = dt.get_default_dtype() if dtype is None else _check_dtype(dtype)
    made = apply(_RANGE, (start, step), (int((end - start) / step) + 1, dtype, dev.resolve(device)))
    return _finish(made, requires_grad, out, True)


_EYE = Op(
    "eye",
    lambda xp, n, m, dtype, device: xp.eye(n, m, dtype=dtype.np),
    shape=lambda n, m, dtype, device: ((n, m), dtype),
    vjp=False,
)


@public(method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """An n x m matrix with ones on the diagonal."""
    strided_only(layout, "eye.m_out")
    sizes = []
    for x, name, position in ((n, "n", 1), (n if m is None else m, "m", 2)):
        if isinstance(x, bool) or not hasattr(x, "__index__"):
            raise TypeError(f"eye(): argument '{name}' (position {position}) must be int, not {class_name(x)}")
        x = x.__index__()
        if x < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {x}")
        sizes.append(x)
    need_count(tuple(sizes))
    dtype = dtype_into(out, dtype)
    kind = dt.get_default_dtype() if dtype is None else _check_dtype(dtype)
    made = apply(_EYE, (), (*sizes, kind, dev.resolve(device)))
    return _finish(made, requires_grad, out)


@public(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements as columns."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else as_int(N, "N")
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    if n == 0:
        return x.new_empty((x.shape[0], 0))
    ones = x.new_ones((x.shape[0], 1), dtype=dt.int64 if x.dtype.category < dt.FLOAT else x.dtype)
    columns = ones if n == 1 else cat([ones, x.to(ones.dtype).unsqueeze(1).expand(-1, n - 1).cumprod(1)], 1)
    return columns if increasing else columns.flip(1)


# -- memory ------------------------------------------------------------------------------------------------------------


def _strided(t: Tensor, shape: tuple, strides: tuple) -> Tensor:
    """t, dense, with its elements said to lie so."""
    t._layout = None if strides == contiguous(shape).strides else Layout(shape, strides, 0)
    return t


def strided_memory(shape: tuple, strides: tuple, dtype, device) -> Tensor:
    """Memory of a shape and strides; a window of a longer vector where the strides leave gaps or overlap."""
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    _empty_check(shape)
    if any(s < 0 for s in strides):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    if 0 in shape or is_dense(Layout(shape, strides, 0)):
        return _strided(constant(shape, written(None, dtype), dtype, device), shape, strides)
    length = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    if length * dtype.itemsize >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    return constant((length,), written(None, dtype), dtype, device).as_strided(shape, strides).detach()


@public(method=False)
def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """Memory of a given shape and strides; its content is undefined in torch, and zero here (`_core.unwritten`)."""
    strided_only(layout, "empty_strided")
    kind = dt.get_default_dtype() if dtype is None else _check_dtype(dtype)
    return _finish(strided_memory(as_size(size), as_size(stride), kind, dev.resolve(device)), requires_grad)


@public(method=False)
def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """Memory whose dimensions lie in the given order, the outermost first."""
    shape, order = as_size(size), as_size(physical_layout)
    if len(order) != len(shape):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    for i, d in enumerate(order):
        if not 0 <= d < len(shape):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {d} at index {i}).  NB: negative dims not "
                               "currently supported; file an issue if you want it.")
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= shape[d] or 1
    return empty_strided(shape, strides, dtype=dtype, device=device, requires_grad=requires_grad)


def new_empty_strided(
    self, size, stride, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> Tensor:
    """empty_strided with self's dtype and device."""
    kind = self.dtype if dtype is None else _check_dtype(dtype)
    place = self.device if device is None else dev.canonical(device)
    return _finish(strided_memory(as_size(size), as_size(stride), kind, place), requires_grad)


Tensor.new_empty_strided = new_empty_strided


@public(method=False)
def frombuffer(buffer, *, dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector that shares the memory of a Python buffer."""
    kind = _check_dtype(dtype)
    try:
        size = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not size:
        raise ValueError(
            "both buffer length (0) and count (-1) must not be 0"
            if count
            else f"both buffer length (0) and count ({count}) must not be 0"
        )
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    if count == 0 or count < -1:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if count == -1 and (size - offset) % kind.itemsize:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({kind.itemsize})"
        )
    if count > 0 and offset + count * kind.itemsize > size:
        raise ValueError(
            f"requested buffer length ({count} * {kind.itemsize} bytes) after offset ({offset} bytes) must not be greater than actual "
            f"buffer length ({size} bytes)"
        )
    from .._host import READ_ONLY_BUFFER, share
    return _finish(share(np.frombuffer(buffer, kind.np, count, offset), READ_ONLY_BUFFER), requires_grad)


_files: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # storage -> the file's memory (somebody may still read it) and its name


def file_of(storage) -> str | None:
    """The name of the file that a storage's elements are written to."""
    return _files[storage][1] if storage in _files else None


@public(method=False)
def from_file(
    filename,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """The first `size` elements of a file; shared: writes to the tensor go to the file, which grows to hold them."""
    kind = dt.get_default_dtype() if dtype is None else _check_dtype(dtype)
    need = (size or 0) * kind.itemsize
    try:
        if shared:
            with open(filename, "ab") as file:
                file.truncate(builtins.max(need, file.tell()))
        there = os.path.getsize(filename)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from None
    if there < need:
        raise RuntimeError(f"file <{filename}> size <{there}> is smaller than the required mapping size <{need}>")
    if not need:
        return constant((0,), 0, kind, dev.resolve(device))
    array = np.memmap(filename, kind.np, "r+" if shared else "r", shape=(size,)).view(np.ndarray)
    if not shared:  # mapped, so that a large file is read where somebody looks
        return _finish(place(array, dev.resolve(device)), requires_grad)
    made = from_numpy(array)
    _files[made._ensure_storage()] = array, os.fspath(filename)
    return _finish(made, requires_grad)


# -- complex numbers ---------------------------------------------------------------------------------------------------


def _parts(name: str, a: Tensor, b: Tensor) -> None:
    floats = (dt.float16, dt.float32, dt.float64)
    if a.dtype not in floats or b.dtype not in floats:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {a.dtype.short} and {b.dtype.short}"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {a.dtype.short} but got scalar type {b.dtype.short} for second argument"
        )


class _FromParts(Op):
    """An op of two real inputs with a complex result, whose parts its kernel gives."""

    pointwise = True

    def make(self, avals, statics):
        kind = dt.complex_of(avals[0].dtype)
        shape, kernel = broadcast_shapes(avals[0].shape, avals[1].shape), self.kernel
        return Plan(
            self,
            avals,
            statics,
            (shape, kind),
            lambda xp, a, b: joined(xp, *kernel(xp, a, b), kind.np),
            common_device(self, avals, statics),
        )


_COMPLEX = _FromParts(
    "complex",
    lambda xp, re, im: (re, im),
    vjp=lambda xp, g: (xp.real(g), xp.imag(g)),
)


def _polar_vjp(xp, g, r, angle):
    cos, sin = xp.cos(angle), xp.sin(angle)
    return xp.real(g) * cos + xp.imag(g) * sin, r * (xp.imag(g) * cos - xp.real(g) * sin)


_POLAR = _FromParts(
    "polar",
    lambda xp, r, angle: (r * xp.cos(angle), r * xp.sin(angle)),
    vjp=_polar_vjp,
)


@public(method=False, out=True)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """real + 1j * imag."""
    _parts("complex", real, imag)
    return apply(_COMPLEX, (real, imag))


@public(method=False, out=True)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """abs * exp(1j * angle)."""
    _parts("polar", abs, angle)
    return apply(_POLAR, (abs, angle))
