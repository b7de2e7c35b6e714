"""Discrete Fourier transforms of torch.fft, on the FFTs of NumPy and JAX."""
from __future__ import annotations

import functools
import math

import numpy as np

from .. import _autocast
from .._arguments import as_dim, as_int, as_size, need_tensor, real
from .._core import dtype as dt
from .._core.errors import class_name
from .._core.layout import Layout, channels_last_strides, contiguous, contiguous_strides, is_contiguous, suggests_channels_last
from .._core.registry import Op
from .._public import called
from .._tensor import Tensor, apply
from .._writing import fill_out
from .creation import _check_dtype, _finish, arange, counted, dtype_into
from .joining import roll

NORMS = {None: "backward", "backward": "backward", "ortho": "ortho", "forward": "forward"}


def _scale(norm: str, n: int, inverse: bool) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "backward") == inverse else 1.0


def _resized(xp, x, dims, sizes):
    """x cut or filled with zeros to the transform's sizes."""
    for d, n in zip(dims, sizes):
        have = x.shape[d]
        if have > n:
            x = x[tuple(slice(n) if i == d else slice(None) for i in range(x.ndim))]
        elif have < n:
            x = xp.pad(x, [(0, n - have) if i == d else (0, 0) for i in range(x.ndim)])
    return x


def _lib(xp):
    if xp is not np:
        return xp.fft
    import scipy.fft  # at first use: it is slow to import. numpy.fft computes in double; scipy.fft keeps the precision
    return scipy.fft


def _as_complex(xp, x, out):
    return x.astype(out) if x.dtype != out else x


def _plain(xp, x, dims, sizes, inverse, factor):
    """The complex transform of exactly these sizes, times a factor."""
    f = _lib(xp).ifftn if inverse else _lib(xp).fftn
    y = f(x, axes=dims)
    factor = factor * (math.prod(sizes) if inverse else 1)
    return y if factor == 1 else y * np.asarray(factor, y.real.dtype)


def _c2c(xp, x, dims, sizes, inverse, norm):
    x = _resized(xp, x, dims, sizes)
    x = _as_complex(xp, x, np.result_type(x.dtype, np.complex64))
    return _plain(xp, x, dims, sizes, inverse, _scale(norm, math.prod(sizes), inverse))


def _unresized(xp, g, dims, shape):
    return _resized(xp, g, dims, [shape[d] for d in dims])


def _c2c_vjp(xp, g, plan):
    dims, sizes, inverse, norm = plan.statics
    g = _plain(xp, g, dims, sizes, not inverse, _scale(norm, math.prod(sizes), inverse))
    return (_unresized(xp, g, dims, plan.avals[0].shape),)


def _replaced(shape, dims, sizes):
    out = list(shape)
    for d, n in zip(dims, sizes):
        out[d] = n
    return tuple(out)


_C2C = Op("fft_c2c", _c2c, shape=lambda a, dims, sizes, inverse, norm: (_replaced(a.shape, dims, sizes), a.dtype.to_complex()), vjp=_c2c_vjp,
          torch_name="FftC2CBackward0")


def _half(x, dim, n):
    return x[tuple(slice(n) if i == dim else slice(None) for i in range(x.ndim))]


def _r2c(xp, x, dims, sizes, inverse, norm):
    x = _resized(xp, x, dims, sizes)
    factor = _scale(norm, math.prod(sizes), inverse)
    y = _lib(xp).rfftn(x, axes=dims)
    if inverse:  # of a real signal the inverse is the conjugate
        y = xp.conj(y)
    return y if factor == 1 else y * np.asarray(factor, y.real.dtype)


def _r2c_vjp(xp, g, plan):
    dims, sizes, inverse, norm = plan.statics
    full = _resized(xp, g, dims[-1:], sizes[-1:])
    y = _plain(xp, full, dims, sizes, not inverse, _scale(norm, math.prod(sizes), inverse))
    return (_unresized(xp, y.real, dims, plan.avals[0].shape),)


def _r2c_shape(a, dims, sizes, inverse, norm):
    return _replaced(a.shape, dims, (*sizes[:-1], sizes[-1] // 2 + 1)), a.dtype.to_complex()


_R2C = Op("fft_r2c", _r2c, shape=_r2c_shape, vjp=_r2c_vjp, torch_name="FftR2CBackward0")


def _c2r(xp, x, dims, sizes, inverse, norm):
    """The real transform of a half spectrum: complex over the other dimensions, then c2r over the last."""
    n = sizes[-1]
    x = _resized(xp, x, dims, (*sizes[:-1], n // 2 + 1))
    x = _as_complex(xp, x, np.result_type(x.dtype, np.complex64))
    if not inverse:
        x = xp.conj(x)
    y = _lib(xp).irfftn(x, s=sizes, axes=dims)
    factor = _scale(norm, math.prod(sizes), inverse) * math.prod(sizes)
    return y if factor == 1 else y * np.asarray(factor, y.dtype)


def _c2r_vjp(xp, g, plan):
    dims, sizes, inverse, norm = plan.statics
    last, n = dims[-1], sizes[-1]
    y = _lib(xp).rfftn(g, axes=dims)
    if not inverse:
        y = xp.conj(y)
    twice = np.full(n // 2 + 1, 2.0)
    twice[0] = 1
    if n % 2 == 0:
        twice[-1] = 1
    weight = (twice * _scale(norm, math.prod(sizes), inverse)).astype(y.real.dtype)
    y = y * weight.reshape([-1 if i == last else 1 for i in range(y.ndim)])
    return (_unresized(xp, y, dims, plan.avals[0].shape),)


_C2R = Op("fft_c2r", _c2r, shape=lambda a, dims, sizes, inverse, norm: (_replaced(a.shape, dims, sizes), a.dtype.to_real()), vjp=_c2r_vjp,
          torch_name="FftC2RBackward0")


# -- layouts: torch's transforms run over rows of a matrix, its batch dimensions in their order in memory ------------------------


def _transform(op: Op, x: Tensor, dims: tuple, sizes: tuple, inverse: bool, norm: str) -> Tensor:
    made = apply(op, (x,), (dims, sizes, inverse, norm))
    layout = _laid_out(x._layout or contiguous(x._value.aval.shape), made._value.aval.shape, dims, sizes, op.name, inverse)
    made._layout = None if is_contiguous(layout) else layout
    return made


def _conjugate(op: Op, x: Tensor, dims: tuple, sizes: tuple, norm: str) -> Tensor:
    """The inverse transform of a real signal: torch conjugates the forward one, later."""
    return _transform(op, x, dims, sizes, False, {"backward": "forward", "forward": "backward"}.get(norm, norm)).conj()


@functools.lru_cache(maxsize=4096)
def _laid_out(a: Layout, shape: tuple, dims: tuple, sizes: tuple, name: str, inverse: bool) -> Layout:
    """The layout of a transform of `a`, which is cut or filled to `sizes` first; `shape` is the result's."""
    last = dims[-1]
    have = [n if d != last or name != "fft_c2r" else n // 2 + 1 for d, n in zip(dims, sizes)]
    cut = _replaced(a.shape, dims, have)
    if any(a.shape[d] < n for d, n in zip(dims, have)):
        a = Layout(cut, (channels_last_strides if len(a.shape) in (4, 5) and suggests_channels_last(a) else contiguous_strides)(cut))
    else:
        a = Layout(cut, a.strides)
    if name == "fft_c2r":
        if len(dims) > 1:
            a = _rows(a, a.shape, _in_order(a, dims[:-1]))
        return _rows(a, shape, (last,))
    if name == "fft_c2c":
        return _rows(a, shape, _in_order(a, dims))
    if inverse and len(dims) > 1:  # torch transforms the last dimension first
        a = _rows(a, shape, (last,))
        return _rows(a, shape, _in_order(a, dims[:-1]))
    return _rows(a, shape, (*_in_order(a, dims[:-1]), last))


def _in_order(a: Layout, dims: tuple) -> tuple:
    return tuple(sorted(dims, key=lambda d: -a.strides[d]))


def _rows(a: Layout, shape: tuple, dims: tuple) -> Layout:
    """The layout of a transform over `dims` in this order: the others of `a` outside them."""
    order = [*_in_order(a, tuple(d for d in range(len(shape)) if d not in dims)), *dims]
    strides = [0] * len(shape)
    for d, stride in zip(order, contiguous_strides([shape[d] for d in order])):
        strides[d] = stride
    return Layout(shape, tuple(strides))


# -- arguments -------------------------------------------------------------------------------------------------------------


def _input(x, name: str, complex_ok: bool = True) -> Tensor:
    need_tensor(x, f"fft_{name}", "'input' (position 1)")
    if x.dtype.category == dt.COMPLEX and not complex_ok:
        if name.startswith("ihfft") and name != "ihfft":
            raise RuntimeError(f"Only supports floating-point dtypes, but found: {x.dtype.short}")
        whose = f"{name} expects a real" if name[-1] == "t" else "rfftn expects a real-valued"
        raise RuntimeError(f"{whose} input tensor, but got {x.dtype.short}")
    if x.dtype is dt.complex32:
        raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
    if x.dtype in (dt.float16, dt.bfloat16):
        raise RuntimeError(f"Unsupported dtype {x.dtype.short}")
    return x.to(dt.get_default_dtype()) if x.dtype.category < dt.FLOAT else x


def _norm(norm, name: str) -> str:
    if norm is not None and not isinstance(norm, str):
        raise TypeError(f"fft_{name}(): argument 'norm' must be str, not {class_name(norm)}")
    if norm not in NORMS:
        raise RuntimeError(f"Invalid normalization mode: \"{norm}\"")
    return NORMS[norm]


def _sizes(x, s, dim, name: str, half: bool):
    """(dims, sizes) of a transform over several dimensions; half: the last size is of a half spectrum's signal."""
    if dim is not None:
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        if dims and not x.ndim:
            raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
        dims = tuple([as_dim(d, x.ndim) for d in dims])
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    elif s is not None:
        if len(s) > x.ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions.")
        dims = tuple(range(x.ndim - len(s), x.ndim))
    else:
        dims = tuple(range(x.ndim))
    if s is not None:
        s = as_size(*s) if isinstance(s, (tuple, list)) else (as_int(s, "n", symbolic=True),)
        if len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = [x.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims)]
    if half and dims and (s is None or s[-1] == -1):
        sizes[-1] = 2 * (x.shape[dims[-1]] - 1)
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return dims, tuple(sizes)


def _into(out: Tensor | None, made: Tensor, name: str) -> Tensor:
    if out is None:
        return made
    if isinstance(out, Tensor) and (made.is_complex() != out.is_complex() or out.dtype.category < dt.FLOAT):
        kind = "complex" if made.is_complex() else "floating point"
        raise RuntimeError(f"{name[:-1] + 'n' if name[-1] == '2' else name} expects a {kind} output tensor, but got {out.dtype.short}")
    return fill_out(out, made.contiguous())


def _one(name: str, op, inverse: bool, real: bool = False, half: bool = False):
    def f(input, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        x, way = _input(input, name, not real), _norm(norm, name)
        if n is not None and as_int(n, "n", symbolic=True) < 0:  # -1 means a whole dimension among several only
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
        dims, sizes = _sizes(x, n, (dim,), name, half)
        if inverse and op is not _C2R and not x.is_complex():
            return _into(out, _conjugate(op, x, dims, sizes, way), name)
        return _into(out, _transform(op, x, dims, sizes, inverse, way), name)
    return _named(f, name)


def _many(name: str, op, inverse: bool, real: bool = False, half: bool = False, two: bool = False):
    def n_dim(input, s=None, dim=None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        x, way = _input(input, name, not real), _norm(norm, name)
        dims, sizes = _sizes(x, s, dim, name, half)
        if not dims:
            if real or half:
                raise RuntimeError(f"{name} must transform at least one axis")
            return _into(out, x if x.is_complex() else x.to(x.dtype.to_complex()), name)
        if inverse and op is _R2C and len(dims) == 1:
            return _into(out, _conjugate(op, x, dims, sizes, way), name)
        return _into(out, _transform(op, x, dims, sizes, inverse, way), name)

    def two_dim(input, s=None, dim=(-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        if dim is None:
            raise TypeError(f"fft_{name}(): argument 'dim' must be tuple of ints, not NoneType")
        return n_dim(input, s, dim, norm, out=out)
    return _named(two_dim if two else n_dim, name)


def _named(f, name: str):
    f.__name__ = f.__qualname__ = f"fft_{name}"
    f.__doc__ = f"torch.fft.{name}."
    return called(_autocast.wrap(f))


fft, ifft = _one("fft", _C2C, False), _one("ifft", _C2C, True)
rfft, irfft = _one("rfft", _R2C, False, real=True), _one("irfft", _C2R, True, half=True)
ihfft, hfft = _one("ihfft", _R2C, True, real=True), _one("hfft", _C2R, False, half=True)
fftn, ifftn = _many("fftn", _C2C, False), _many("ifftn", _C2C, True)
fft2, ifft2 = _many("fft2", _C2C, False, two=True), _many("ifft2", _C2C, True, two=True)
rfftn, irfftn = _many("rfftn", _R2C, False, real=True), _many("irfftn", _C2R, True, half=True)
rfft2, irfft2 = _many("rfft2", _R2C, False, real=True, two=True), _many("irfft2", _C2R, True, half=True, two=True)
ihfftn, hfftn = _many("ihfftn", _R2C, True, real=True), _many("hfftn", _C2R, False, half=True)
ihfft2, hfft2 = _many("ihfft2", _R2C, True, real=True, two=True), _many("hfft2", _C2R, False, half=True, two=True)


def _frequencies(name: str, half: bool):
    """The frequencies of the bins of fft ([0, 1, ..., -1] / (n d)) or of rfft ([0, 1, ..., n // 2] / (n d))."""
    def f(n: int, d: float = 1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
        n = as_int(n, "n", f"fft_{name}(): ", " (position 1)", symbolic=True)
        dtype = dtype_into(out, dtype)
        if dtype is not None and _check_dtype(dtype).category < dt.FLOAT:
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        duration = n * real(d, f"fft_{name}", "d", 2)
        count = int(n / 2) + 1 if half else n
        if count < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
        k = arange(count, dtype=dtype or dt.get_default_dtype(), layout=layout, device=device)
        if not half:
            k = roll(k - n // 2, -(n // 2))
        made = k * (1.0 / duration if duration else math.copysign(math.inf, duration))
        return _finish(made, requires_grad, counted(out, count), True)
    return _named(f, name)


fftfreq, rfftfreq = _frequencies("fftfreq", False), _frequencies("rfftfreq", True)


def _shifted(input, dim, way):
    dims = tuple(range(input.ndim)) if dim is None else tuple(dim) if isinstance(dim, (tuple, list)) else (as_int(dim, "dim"),)
    if dims and not input.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    dims = tuple(as_dim(d, input.ndim) for d in dims)
    shifts = tuple(input.shape[d] // 2 if way > 0 else (input.shape[d] + 1) // 2 for d in dims)
    return roll(input, shifts, dims)


@called
def fftshift(input, dim=None) -> Tensor:
    """The zero frequency moved to the middle."""
    return _shifted(input, dim, 1)


@called
def ifftshift(input, dim=None) -> Tensor:
    """The inverse of fftshift."""
    return _shifted(input, dim, -1)
