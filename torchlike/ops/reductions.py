"""Reductions over dimensions: sums, means, extremes, logic, variance."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import overload

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from .._arguments import as_dim, as_dims, flag
from .._core import dtype as dt
from .._core.arrays import cast, spread
from .._core.errors import class_name, not_implemented
from .._core.halves import widened
from .._core.history import warn
from .._core.registry import Op
from .._kinds import combination
from .._public import EVERY_DIM, named, public
from .._tensor import Tensor, apply
from .._writing import fill_out, fill_outs
from .basic import without_imaginary
from .choosing import choose
from .creation import _check_dtype
from .elements import plain_number
from .extreme_places import first_found, place_of
from .lanes import by_lanes
from .named_results import named_result
from .quotients import over
from .totals import MANY, product, total

_FLOAT32 = np.dtype(np.float32)
SHORT = 16  # elements along a dimension up to which XLA finds the extreme of it in vector instructions


def reduced(shape: tuple, dims: tuple, keepdim: bool) -> tuple:
    """The shape after reducing dims."""
    if keepdim:
        return tuple(1 if i in dims else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in dims)


def restore(xp, g, shape: tuple, dims: tuple, keepdim: bool):
    """A reduced array with its reduced dimensions back, of size one."""
    return g if keepdim else g.reshape(tuple(1 if i in dims else n for i, n in enumerate(shape)))


def accumulator(np_dtype):
    """The type in which sums of np_dtype are taken."""
    return np.float32 if np_dtype.itemsize == 2 and np_dtype.kind in "fV" else np_dtype


def _sum(xp, x, dims, keepdim, dtype):
    if x.dtype == np.bool_ and dtype.np.kind in "iu":
        x = x.astype(dtype.np)
    if xp is np and x.dtype == dtype.np and x.dtype.kind == "f" and x.dtype.itemsize > 2:
        return np.asarray(total(x, dims, keepdim))
    if xp is np and x.dtype == np.float16 and dtype.np == np.float16:
        return cast(np, np.asarray(total(cast(np, x, _FLOAT32), dims, keepdim)), dtype.np)
    if xp is not np and dtype.np.kind in "iu" and x.dtype.kind in "iu":
        return by_lanes(x.astype(dtype.np), dims, keepdim, partial(jnp.sum, dtype=dtype.np), jnp.add)
    return cast(xp, x.sum(axis=dims, keepdims=keepdim, dtype=accumulator(dtype.np)), dtype.np)


def _sum_vjp(xp, g, plan):
    dims, keepdim, _ = plan.statics
    shape = plan.avals[0].shape
    return spread(xp, restore(xp, g, shape, dims, keepdim), shape)


def _reduction(name: str, kernel, vjp=None) -> tuple[Op, Op]:
    """One operation over all dimensions and one over named ones: torch's graph tells them apart."""
    def shape(a, dims, keepdim, dtype):
        return reduced(a.shape, dims, keepdim), dtype
    return Op(name, kernel, shape=shape, vjp=vjp), Op(f"{name}_dim", kernel, shape=shape, vjp=vjp, torch_name=f"{name.capitalize()}Backward1")


SUM, _SUM_DIM = _reduction("sum", _sum, _sum_vjp)


def _bound_sum(plan) -> Callable | None:
    """NumPy's sum of few floats, which `_sum` comes to."""
    (a,), (dims, keepdim, dtype) = plan.avals, plan.statics
    if a.numel >= MANY or dtype is not a.dtype or dtype not in (dt.float32, dt.float64):
        return None
    return lambda x: np.asarray(np.add.reduce(x, dims, None, None, keepdim))


SUM.bound = _SUM_DIM.bound = _bound_sum


def _sum_dtype(t: Tensor, dtype):
    if dtype is not None:
        return _check_dtype(dtype)
    return dt.int64 if t.dtype.category < dt.FLOAT else t.dtype


@public(out=True)
def sum(input, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """The sum over dim (all dimensions by default); integers are summed as int64."""
    if dtype is not None:
        input = without_imaginary(input, dtype)
    return apply(SUM if dim is None else _SUM_DIM, (input,), (as_dims(dim, input._value.aval.ndim), keepdim if keepdim.__class__ is bool else flag(keepdim),
                                                              _sum_dtype(input, dtype)))


def summed(xp, x, dims, keepdims: bool = False):
    """xp.sum; with NumPy without its Python, which takes longer than few numbers do."""
    return np.add.reduce(x, dims, None, None, keepdims) if xp is np else xp.sum(x, axis=dims, keepdims=keepdims)


def average(xp, x, dims: tuple, keepdims: bool = True):
    """xp.mean; of real numbers in NumPy without its Python, which takes longer than few numbers do."""
    if xp is not np or x.dtype.kind != "f" or x.dtype.itemsize < 4:
        return xp.mean(x, axis=dims, keepdims=keepdims)
    n = 1
    for d in dims:
        n *= x.shape[d]
    return total(x, dims, keepdims) / x.dtype.type(n)


def _mean(xp, x, dims, keepdim, dtype):
    if dtype.np == x.dtype:
        if x.dtype.itemsize > 2:
            if xp is np or x.dtype.kind != "f":
                return cast(xp, average(xp, x, dims, keepdim), x.dtype)
            return over(xp, x.sum(axis=dims, keepdims=keepdim), math.prod(x.shape[d] for d in dims))
        wide = cast(xp, x, _FLOAT32) if x.dtype == np.float16 else x
        return cast(xp, wide.mean(axis=dims, keepdims=keepdim, dtype=np.float32), x.dtype)
    return cast(xp, x.mean(axis=dims, keepdims=keepdim, dtype=accumulator(dtype.np)), dtype.np)


def _mean_vjp(xp, g, plan):
    shape, dims = plan.avals[0].shape, plan.statics[0]
    n = 1
    for d in dims:
        n *= shape[d]
    return _sum_vjp(xp, g / np.asarray(n or 1, g.dtype), plan)


_MEAN, _MEAN_DIM = _reduction("mean", _mean, _mean_vjp)


def _bound_mean(plan) -> Callable | None:
    """The mean of few floats, to which `_mean` comes."""
    a, dims = plan.avals[0], plan.statics[0]
    add, count = _bound_sum(plan), a.dtype.np.type(math.prod([a.shape[d] for d in dims]))
    return add and (lambda x: np.asarray(add(x) / count))


_MEAN.bound = _MEAN_DIM.bound = _bound_mean


@public(out=True)
def mean(input, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """The mean over dim; floating and complex types only."""
    d = input.dtype if dtype is None else _check_dtype(dtype)
    if dtype is not None:
        input = without_imaginary(input, d)
    if d.category < dt.FLOAT:
        raise RuntimeError(f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be either a floating point or complex dtype. "
                           f"Got: {d.short}")
    return apply(_MEAN if dim is None else _MEAN_DIM, (input,), (as_dims(dim, input._value.aval.ndim), keepdim if keepdim.__class__ is bool else flag(keepdim), d))


def _prod(xp, x, dims, keepdim, dtype):
    if xp is np and x.dtype == dtype.np and x.dtype.kind == "f" and x.dtype.itemsize > 2:
        return np.asarray(product(x, dims, keepdim))
    if xp is np:
        return np.prod(x.astype(accumulator(dtype.np)), axis=dims, keepdims=keepdim, dtype=accumulator(dtype.np)).astype(dtype.np)
    return _product(x.astype(accumulator(dtype.np)), dims, keepdim).astype(dtype.np)


def _product(x, dims, keepdim):
    """In a compiled program."""
    return by_lanes(x, dims, keepdim, partial(jnp.prod, dtype=x.dtype), jnp.multiply)


def _prod_vjp(xp, g, x, plan):
    """The product over x; where there are zeros, products of the others."""
    dims, keepdim, dtype = plan.statics
    kind = np.dtype(accumulator(dtype.np))
    g, x = restore(xp, g, x.shape, dims, keepdim).astype(kind), x.astype(kind)
    conj = xp.conj if kind.kind == "c" else lambda v: v
    if g.shape == x.shape:  # products of one number, whose gradient is part of a graph in torch: as a function of x it is constant
        return g if xp is np or not x.ndim else xp.where(x == x, g, g)

    def whole(x):
        if xp is not np:
            return _product(x, dims, True)
        return np.asarray(product(x, dims, True)) if kind.kind == "f" else np.prod(x, axis=dims, keepdims=True)

    def plain(g, x):
        return g * conj(whole(x) / x)
    if xp is np:
        zero = x == 0
        if not zero.any():
            return plain(g, x)
        filled, count = np.where(zero, kind.type(1), x), zero.sum(axis=dims, keepdims=True)
        return g * conj(np.where(count == zero, whole(filled), kind.type(0)) / filled)

    def with_zeros(g, x):
        return conj(jax.vjp(whole, x)[1](conj(g))[0])
    return lax.cond(xp.all(x != 0), plain, with_zeros, g, x) if x.size else xp.zeros_like(x)


_PROD, _PROD_DIM = _reduction("prod", _prod, _prod_vjp)


@public(out=True)
def prod(input, dim=EVERY_DIM, keepdim: bool = False, *, dtype=None) -> Tensor:
    """The product over one dimension, or over all."""
    if dtype is not None:
        input = without_imaginary(input, dtype)
    n = input._value.aval.ndim
    dims = tuple(range(n)) if dim is EVERY_DIM else as_dims(as_dim(dim, n), n)
    return apply(_PROD if dim is EVERY_DIM else _PROD_DIM, (input,), (dims, keepdim if keepdim.__class__ is bool else flag(keepdim), _sum_dtype(input, dtype)))


# -- extremes --------------------------------------------------------------------------------------------------------------


def _need_elements(name: str, t: Tensor, dims: tuple, given) -> None:
    shape = t._value.aval.shape
    for d in dims:
        if shape and shape[d] == 0:
            if given is None:
                said = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
                raise IndexError(said) if name[:3] == "arg" else RuntimeError(f"{said} Specify the reduction dim with the 'dim' argument.")
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def _computed(xp, *arrays) -> list:
    """16-bit floats as NumPy computes them."""
    return [widened(x) for x in arrays] if xp is np else arrays


def _extreme_vjp(xp, g, x, out, plan):
    """Gradient shared evenly among equal extremes (amax, amin, max() and min() of all elements)."""
    dims, keepdim = plan.statics
    shape = plan.avals[0].shape
    g, x, out = _computed(xp, g, x, out)
    hit = (x == restore(xp, out, shape, dims, keepdim)).astype(g.dtype)
    return restore(xp, g, shape, dims, keepdim) * hit / summed(xp, hit, dims, True)


def shared_gradient(xp, g, x, out):
    """g shared by the elements equal to out, one of them all; the others' is zero also where g is not finite. NaNs count as equal."""
    hit = (x == out) | ((x != x) & (out != out))
    return xp.where(hit, g / xp.sum(hit).astype(g.dtype), xp.zeros((), g.dtype))


def _of_all_vjp(xp, g, x, out):
    return shared_gradient(xp, *_computed(xp, g, x, out))


_NUMPYS = (dt.float32, dt.float64, dt.int64, dt.int32, dt.uint8, dt.bool_)


def _extreme(name):
    """amax or amin, and the operation that max() or min() of all elements is."""
    def kernel(xp, x, dims, keepdim):
        return getattr(xp, name)(widened(x) if xp is np else x, axis=dims, keepdims=keepdim)

    def shape(a, dims, keepdim):
        if a.dtype.category == dt.COMPLEX:
            raise not_implemented(f"{name}_values_cpu", a.dtype)
        return reduced(a.shape, dims, keepdim), a.dtype

    def of_all(a, dims, keepdim):
        if a.dtype.category == dt.COMPLEX:
            raise not_implemented(f"{name}_all", a.dtype)
        return (), a.dtype
    op = Op("a" + name, kernel, shape=shape, vjp=_extreme_vjp)
    ufunc = {"max": np.maximum, "min": np.minimum}[name]

    def bound(plan) -> Callable | None:
        """NumPy's function without its Python, which takes longer than few numbers do."""
        (a,), (dims, keepdim) = plan.avals, plan.statics
        return (lambda x: np.asarray(ufunc.reduce(x, dims, None, None, keepdim))) if a.dtype in _NUMPYS and a.numel < MANY else None

    def f(input, dim=(), keepdim: bool = False) -> Tensor:
        dims = as_dims(dim, input._value.aval.ndim)
        _need_elements("a" + name, input, dims, None if dim == () else dim)
        return apply(op, (input,), (dims, keepdim if keepdim.__class__ is bool else flag(keepdim)))
    f.__name__ = f.__qualname__ = "a" + name
    f.__doc__ = f"The {name}imum over dim; equal extremes share the gradient."
    whole = Op(f"{name}_of_all", kernel, shape=of_all, vjp=_of_all_vjp, torch_name=f"{name.capitalize()}Backward1")
    op.compares = whole.compares = True
    op.bound = whole.bound = bound
    return public(out=True)(f), whole


amax, _MAX_OF_ALL = _extreme("max")
amin, _MIN_OF_ALL = _extreme("min")


def _index_gradient(xp, g, index, plan):
    """Gradient of `x along dim at index` (keepdim form or not)."""
    dim, keepdim = plan.statics
    a = plan.avals[0]
    if not a.shape:
        return g
    if not keepdim:
        kept = reduced(a.shape, (dim,), True)
        g, index = g.reshape(kept), index.reshape(kept)
    positions = np.arange(a.shape[dim]).reshape([-1 if i == dim else 1 for i in range(a.ndim)])
    return choose(xp, positions == index, g, xp.zeros((), g.dtype))


def _arg_extreme(xp, x, dim, keepdim, largest):
    """(value, first index) along dim; NaN counts as the extreme."""
    if x.ndim == 0:
        return [x, xp.zeros((), np.int64)]
    index = _first_extreme(xp, x, dim, True, largest)
    if xp is np and x.ndim == 2 and dim == 1:  # the usual case, in a third of the time
        value = x[np.arange(len(x)), index[:, 0]]
        return [value[:, None], index] if keepdim else [value, index[:, 0]]
    value = xp.take_along_axis(x, index, dim)
    if not keepdim:
        value, index = xp.squeeze(value, dim), xp.squeeze(index, dim)
    return [value, index]


def _first_extreme(xp, x, dim, keepdim, largest):
    x = x.astype(np.int8) if x.dtype == np.bool_ else x
    if xp is not np and SHORT < x.shape[dim] < 1 << 31:
        return lax.platform_dependent(lax.stop_gradient(x), cpu=lambda x: first_found(x, dim, keepdim, largest).astype(np.int64),
                                      default=lambda x: _searched(x, dim, keepdim, largest))
    return _searched(x, dim, keepdim, largest)


def _searched(x, dim, keepdim, largest):
    if x.__class__ is np.ndarray:
        index = x.argmax(axis=dim, keepdims=keepdim) if largest else x.argmin(axis=dim, keepdims=keepdim)
        return index if index.dtype == np.int64 else index.astype(np.int64)
    return place_of(x, dim, keepdim, largest).astype(np.int64)



def _dim_extreme(name, largest):
    def shape(a, dim, keepdim):
        if a.dtype.category == dt.COMPLEX:
            raise RuntimeError(f"{name}(): does not support complex input")
        kept = reduced(a.shape, (dim,) if a.shape else (), keepdim)
        return [(kept, a.dtype), (kept, dt.int64)]
    op = Op(f"{name}_dim", lambda xp, x, dim, keepdim: _arg_extreme(xp, x, dim, keepdim, largest), torch_name=f"{name.capitalize()}Backward0", shape=shape,
            vjp=lambda xp, g0, out1, plan: _index_gradient(xp, g0, out1, plan))
    return op


def result_type(name: str) -> type:
    """torch.return_types.<name>, of values and indices."""
    return named_result(name, "values", "indices")


def _max_or_min(name, whole_op, largest, pairwise):
    dim_op, made = _dim_extreme(name, largest), result_type(name)

    @overload
    def f(input: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def f(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...
    @overload
    def f(input: Tensor, dim: int, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> made: ...
    def f(input, dim=EVERY_DIM, keepdim: bool = False, *, other: Tensor | None = None, out=None):
        if isinstance(dim, Tensor) and keepdim is False:
            other, dim = dim, EVERY_DIM
        if dim is EVERY_DIM:
            if other is None:
                dims = tuple(range(input._value.aval.ndim))
                _need_elements(name, input, dims, None)
                r, called = apply(whole_op, (input,), (dims, False)), f"{name}_of_all"
            else:
                r, called = pairwise()(input, other), f"{name}imum"
            return r if out is None else fill_out(out, r, name=called)
        d = as_dim(dim, input._value.aval.ndim)
        _need_elements(name, input, (d,) if input._value.aval.ndim else (), dim)
        r = made(*apply(dim_op, (input,), (d, keepdim if keepdim.__class__ is bool else flag(keepdim))))
        return r if out is None else fill_outs(out, r, name)
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"The {name}imum: of all elements, along dim with indices, or of two tensors."
    return public()(f)


def _pairwise(name):
    from . import pointwise
    return getattr(pointwise, name)


max = _max_or_min("max", _MAX_OF_ALL, True, lambda: _pairwise("maximum"))
min = _max_or_min("min", _MIN_OF_ALL, False, lambda: _pairwise("minimum"))


def _arg(name, largest):
    def kernel(xp, x, dim, keepdim):
        if dim is None or not x.ndim:
            x, dim, keepdim = x.reshape(-1), 0, False
        return _first_extreme(xp, x, dim, keepdim, largest)
    op = Op(name, kernel, vjp=False, shape=lambda a, dim, keepdim: (
        () if dim is None else reduced(a.shape, (dim,) if a.shape else (), keepdim), dt.int64))

    def f(input, dim=None, keepdim: bool = False) -> Tensor:
        n = input._value.aval.ndim
        if input.dtype.category in (dt.BOOL, dt.COMPLEX):
            raise RuntimeError(f"{name}(): does not support {'bool' if input.dtype is dt.bool_ else 'complex'} input")
        if dim is None:
            _need_elements(name, input, tuple(range(n)), None)
            r = apply(op, (input,), (None, False))
            return r.reshape((1,) * n) if keepdim else r
        d = as_dim(dim, n)
        _need_elements(name, input, (d,) if n else (), dim)
        return apply(op, (input,), (d, keepdim if keepdim.__class__ is bool else flag(keepdim)))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"The index of the first {'max' if largest else 'min'}imum along dim, or in the flattened tensor."
    return public(out=True)(f)


argmax, argmin = _arg("argmax", True), _arg("argmin", False)


def _logic(name):
    def kernel(xp, x, dims, keepdim):
        r = getattr(x, name)(axis=dims, keepdims=keepdim)
        return r.astype(np.uint8) if x.dtype == np.uint8 else r
    op = Op(name, kernel, vjp=False,
            shape=lambda a, dims, keepdim: (reduced(a.shape, dims, keepdim), dt.uint8 if a.dtype is dt.uint8 else dt.bool_))
    reduce = {"any": np.logical_or, "all": np.logical_and}[name].reduce

    def bound(plan) -> Callable | None:
        """NumPy's function without its Python."""
        (a,), (dims, keepdim) = plan.avals, plan.statics
        return (lambda x: np.asarray(reduce(x, dims, None, None, keepdim))) if a.dtype is dt.bool_ else None
    op.bound = bound

    def f(input, dim=None, keepdim: bool = False) -> Tensor:
        dims = () if dim.__class__ in (tuple, list) and not dim else as_dims(dim, input._value.aval.ndim)  # no dimensions: each element for itself
        return apply(op, (input,), (dims, keepdim if keepdim.__class__ is bool else flag(keepdim)))
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Whether {name} element along dim is nonzero."
    return public(out=True)(f)


any, all = _logic("any"), _logic("all")

# -- variance --------------------------------------------------------------------------------------------------------------


def _var(xp, x, dims, keepdim, correction):
    return cast(xp, _deviation(xp, x, dims, keepdim, correction), _real(x.dtype))


def _deviation(xp, x, dims, keepdim, correction):
    """The variance, in the type of sums. Of equal numbers it is exactly zero, as programs ask: they have no distance from the first, while their
    mean is rounded. XLA fuses that subtraction; NumPy makes it only where the first is the last, too."""
    n = 1
    for d in dims:
        n *= x.shape[d]
    wide = cast(xp, x, np.dtype(accumulator(x.dtype)))
    if n > 1:
        first, last = (wide[tuple(one if d in dims else slice(None) for d in range(wide.ndim))] for one in (slice(1), slice(-1, None)))
        if xp is not np or (first == last).any():
            wide = wide - first
    centered = wide - average(xp, wide, dims)
    square = centered * centered if x.dtype.kind != "c" else (centered * xp.conj(centered)).real
    total = summed(xp, square, dims, keepdim)
    free = n - correction
    if free > 0:
        return over(xp, total, free)
    return total / xp.zeros((), total.dtype)


def _real(np_dtype):
    return np.empty(0, np_dtype).real.dtype if np_dtype.kind == "c" else np_dtype


def _var_vjp(xp, g, x, plan):
    dims, keepdim, correction = plan.statics
    n = 1
    for d in dims:
        n *= x.shape[d]
    free = n - correction
    centered = x - average(xp, x, dims)
    scale = np.asarray(2.0 / free if free else np.inf, g.dtype)
    return restore(xp, g, x.shape, dims, keepdim) * centered * scale


_VAR = Op("var", _var, vjp=_var_vjp, shape=lambda a, dims, keepdim, correction: (reduced(a.shape, dims, keepdim), a.dtype.to_real()))


def _std(xp, x, dims, keepdim, correction):
    return cast(xp, xp.sqrt(_deviation(xp, x, dims, keepdim, correction)), _real(x.dtype))


def _std_vjp(xp, g, x, out, plan):
    """The gradient of a zero deviation is zero."""
    dims, keepdim, _ = plan.statics
    full = restore(xp, out, x.shape, dims, keepdim)
    scaled = _var_vjp(xp, g, x, plan) / (2 * xp.where(full == 0, xp.ones((), full.dtype), full))
    return choose(xp, full == 0, xp.zeros((), scaled.dtype), scaled)


_STD = Op("std", _std, vjp=_std_vjp, shape=lambda a, dims, keepdim, correction: (reduced(a.shape, dims, keepdim), a.dtype.to_real()))


def _variance_args(input, dim, unbiased, correction, keepdim, name):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if input.dtype.category < dt.FLOAT:
        raise RuntimeError(f"{name if '_' in name else 'std and var'} only support floating point and complex dtypes")
    if unbiased is not None:
        if correction is not None:
            raise combination(name, (input,), {"unbiased": unbiased, "correction": correction})
        if not isinstance(unbiased, bool):
            raise TypeError(f"argument 'unbiased' must be bool, not {class_name(unbiased)}")
        correction = int(unbiased)
    shape = input._value.aval.shape
    dims, correction = as_dims(dim, len(shape)), 1 if correction is None else plain_number(correction)
    if correction >= math.prod([shape[d] for d in dims]):
        warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by "
             "output numel).")
    return dims, keepdim if keepdim.__class__ is bool else flag(keepdim), correction


@public(out=True)
def var(input, dim=None, unbiased=None, keepdim: bool = False, *, correction=None) -> Tensor:
    """The variance over dim, divided by N - correction (1 by default)."""
    return apply(_VAR, (input,), _variance_args(input, dim, unbiased, correction, keepdim, "var"))


@public(out=True)
def std(input, dim=None, unbiased=None, keepdim: bool = False, *, correction=None) -> Tensor:
    """The square root of var."""
    return apply(_STD, (input,), _variance_args(input, dim, unbiased, correction, keepdim, "std"))


@public(method=False)
def var_mean(input, dim=None, unbiased=None, keepdim: bool = False, *, correction=None) -> tuple[Tensor, Tensor]:
    """(var, mean)."""
    statics = _variance_args(input, dim, unbiased, correction, keepdim, "var_mean")
    return named(apply(_VAR, (input,), statics), "VarMeanBackward0"), named(mean(input, statics[0], keepdim), "VarMeanBackward0")


@public(method=False)
def std_mean(input, dim=None, unbiased=None, keepdim: bool = False, *, correction=None) -> tuple[Tensor, Tensor]:
    """(std, mean)."""
    statics = _variance_args(input, dim, unbiased, correction, keepdim, "std_mean")
    return named(apply(_STD, (input,), statics), "StdMeanBackward0"), named(mean(input, statics[0], keepdim), "StdMeanBackward0")
