"""Common divisors and multiples, mantissas and exponents, and other small functions of numbers."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jax import lax

from .._arguments import as_dims, as_int, flag, need_tensor
from .._core import dtype as dt
from .._core.derivative import Derivative
from .._core.errors import class_name, not_implemented
from .._core.registry import Elementwise, Op
from .._public import public
from .._tensor import Tensor, apply
from .named_results import named_result
from .pointwise import _pow_kernel as power_kernel
from .pointwise import conj, operands
from .reductions import reduced


def _integers(name: str, kernel):
    """Publish a function of two integer tensors."""
    op = Elementwise(name, kernel)

    def f(input, other) -> Tensor:
        input, other = operands(name, input, other, ())
        out = apply(op, (input, other))
        if out.dtype.category != dt.INT:
            raise not_implemented(f"{name}_cpu", out.dtype)
        return out
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"torch.{name}(input, other), for integers."
    return public(inplace=True, out=True)(f)


def _xor(xp, x, dims, keepdim):
    """The bits of all numbers, as 64-bit ones, joined by exclusive or."""
    kind = x.dtype.kind
    if xp is np:
        bits = x.astype(np.uint64) if kind in "biu" else x.astype(np.float64).view(np.uint64)
        return np.bitwise_xor.reduce(bits, axis=dims, keepdims=keepdim)
    bits = x.astype(np.uint64) if kind in "biu" else lax.bitcast_convert_type(x.astype(np.float64), np.uint64)
    made = lax.reduce(bits, np.uint64(0), lax.bitwise_xor, dims)
    return xp.expand_dims(made, dims) if keepdim else made


_HASH = Op("hash_tensor", _xor, shape=lambda a, dims, keepdim: (reduced(a.shape, dims, keepdim), dt.uint64), vjp=False)


@public(out=True)
def hash_tensor(input, dim=(), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """One 64-bit number of all elements along dim, which tells tensors apart: their bits joined by exclusive or."""
    if mode:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.dtype.is_complex:
        raise not_implemented("xor_sum_cpu", input.dtype)
    dims = as_dims(dim, input.ndim)
    if not input.numel() and dim in ((), []):
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    for d in dims:
        if not input.shape[d]:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    return apply(_HASH, (input,), (dims, keepdim if keepdim.__class__ is bool else flag(keepdim)))


def _gcd(xp, x, y):
    """By Euclid's algorithm; jax.numpy's never ends for the least number, which has no absolute value."""
    if xp is np:
        return np.gcd(x, y)
    one = np.ones((), x.dtype)

    def step(pair):
        a, b = pair
        return xp.where(a == 0, a, lax.rem(b, xp.where(a == 0, one, a))), xp.where(a == 0, b, a)
    return lax.while_loop(lambda pair: xp.any(pair[0] != 0), step, tuple(xp.broadcast_arrays(xp.abs(x), xp.abs(y))))[1]


def _lcm(xp, x, y):
    if xp is np:
        return np.lcm(x, y)
    divisor, kind = _gcd(xp, x, y), np.dtype(np.int64 if x.dtype == np.int64 else np.int32)  # C computes smaller numbers as int
    return xp.abs(lax.div(x, xp.where(divisor == 0, np.ones((), x.dtype), divisor)).astype(kind) * y.astype(kind)).astype(x.dtype)


gcd, lcm = _integers("gcd", _gcd), _integers("lcm", _lcm)


def _ldexp(xp, x, y):
    return x * xp.exp2(y) if y.dtype.kind != "c" else x * xp.power(xp.asarray(2, y.dtype), y)


def _ldexp_vjp(xp, g, x, y, out, needs):
    """torch takes the power in the type of `other`: of integers it is an integer, which is zero for negative exponents."""
    y = y.astype(np.int64) if y.dtype == np.bool_ else y if y.dtype.kind in "iu" else y.astype(g.dtype)
    gx = g * conj(xp, power_kernel(xp, xp.full(y.shape, 2, dtype=y.dtype), y)) if needs[0] else None
    return gx, g * conj(xp, out * np.asarray(math.log(2), out.dtype)) if needs[1] else None


_LDEXP = Elementwise("ldexp", _ldexp, promote="float")
_LDEXP.derivative, _LDEXP.differentiable = Derivative(_LDEXP, _ldexp_vjp), True


@public(inplace=True, out=True)
def ldexp(input, other: Tensor) -> Tensor:
    """input * 2 ** other."""
    input, other = operands("ldexp", input, other, ())
    if other.dtype is dt.bool_ and input.dtype.category == dt.FLOAT:
        raise not_implemented("ldexp_cpu_exp", dt.bool_)
    return apply(_LDEXP, (input, other))


_Frexp = named_result("frexp", "mantissa", "exponent")


def _frexp(xp, x):
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    m, e = xp.frexp(wide)
    finite = xp.isfinite(wide)
    return [xp.where(finite, m, wide).astype(x.dtype), xp.where(finite, e, xp.zeros_like(e)).astype(np.int32)]


_FREXP = Op("frexp", _frexp, shape=lambda a: [(a.shape, a.dtype), (a.shape, dt.int32)],
            vjp=lambda xp, g0, out1: (xp.ldexp(g0, -out1).astype(g0.dtype),))


@public(out=True)
def frexp(input) -> _Frexp:
    """(mantissa, exponent): input = mantissa * 2 ** exponent with 0.5 <= |mantissa| < 1."""
    if need_tensor(input, "frexp", "'input' (position 1)").dtype.category != dt.FLOAT:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return _Frexp(*apply(_FREXP, (input,)))


@public()
def positive(input) -> Tensor:
    """input itself; not for bools."""
    if need_tensor(input, "positive", "'input' (position 1)").dtype is dt.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@public(method=False)
def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """Flat indices as one index per dimension of `shape`."""
    if not isinstance(indices, Tensor):
        raise TypeError(f"unravel_index(): argument 'indices' (position 1) must be Tensor, not {class_name(indices)}")
    if indices.dtype.category != dt.INT:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [math.prod(sizes[i + 1:]) for i in range(len(sizes))]
    indices = indices.to(dt.int64)
    return tuple((indices // step) % n for step, n in zip(steps, sizes))


def _covariance_inputs(input, name: str):
    if input.ndim > 2:
        raise RuntimeError(f"{name}(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions")
    if input.dtype is dt.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    return input.reshape(1, -1) if input.ndim < 2 else input


@public()
def cov(input, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariance matrix of variables in rows, observations in columns."""
    x = _covariance_inputs(input, "cov")
    correction = as_int(correction, "correction")
    n, weights = x.shape[1], None
    for w, what in ((fweights, "fweights"), (aweights, "aweights")):
        if w is None:
            continue
        if w.ndim > 1:
            raise RuntimeError(f"cov(): expected {what} to have one or fewer dimensions but got {what} with {w.ndim} dimensions")
        if (w.dtype.category != dt.INT) if w is fweights else (w.dtype.category != dt.FLOAT):
            raise RuntimeError(f"cov(): expected {what} to have {'integral' if w is fweights else 'floating point'} dtype but got {what} with "
                               f"{w.dtype.short} dtype")
        if w.numel() != n:
            raise RuntimeError(f"cov(): expected {what} to have the same numel as there are observations in the input but got "
                               f"{w.numel()} != {n}")
        if bool((w < 0).any()):
            raise RuntimeError(f"cov(): {what} cannot be negative")
        weights = w if weights is None else weights * w
    if weights is None:
        centred = scaled = x - x.sum(1, keepdim=True) / n
        norm = max(n - correction, 0)
    else:
        total = weights.sum()
        centred = x - (x * weights).sum(1, keepdim=True) / total
        scaled = centred * weights
        norm = (total - correction * ((weights * aweights).sum() / total if aweights is not None else 1)).clamp(min=0)
    out = (scaled @ centred.T.conj()) / norm
    return out.squeeze()


@public()
def corrcoef(input) -> Tensor:
    """The matrix of correlation coefficients of variables in rows."""
    _covariance_inputs(input, "corrcoef")
    c = cov(input)
    if not c.ndim:
        return c / c
    deviation = (c.diagonal().real if c.is_complex() else c.diagonal()).sqrt()
    out = c / deviation.unsqueeze(1) / deviation
    return out if c.is_complex() else out.clamp(-1, 1)
