"""Running sums, products and extremes along a dimension; differences and trapezoids."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from .._arguments import as_dim, as_int, as_own_dim, refuse_learnable
from .._core import dtype as dt
from .._core.arrays import cast
from .._core.errors import class_name, not_implemented
from .._core.registry import Op
from .._public import named, public
from .._tensor import Tensor, apply
from .._writing import write_into
from .basic import without_imaginary
from .creation import _check_dtype
from .elements import plain_number
from .gathering import add_along, identity
from .joining import cat
from .log_sums import complex_logaddexp
from .materializing import materialized
from .reductions import _sum_dtype, result_type

BLOCK, FEW = 8, 32  # integers added up side by side; along a dimension that is not the last, where there are no more of it
WIDE = 256  # rows from so many elements on are combined one after the other in NumPy
LONG, LANES = 256, 1024  # vectors this long are cut on the CPU, until so many numbers are combined at once


def _wide(np_dtype):
    """The type in which torch's CPU kernels accumulate."""
    if np_dtype.kind in "fV":
        return np.dtype(np.float64) if np_dtype.itemsize >= 4 else np.dtype(np.float32)
    return np.dtype(np.complex128) if np_dtype.kind == "c" else np_dtype


class _Scan(NamedTuple):
    """A running combination: the NumPy ufunc, JAX's function, where it starts, and XLA's own scan."""

    ufunc: np.ufunc
    combine: Callable
    start: Callable
    whole: Callable


_SCANS = {
    "cumsum": _Scan(np.add, jnp.add, lambda dtype: 0, lax.cumsum),
    "cumprod": _Scan(np.multiply, jnp.multiply, lambda dtype: 1, lax.cumprod),
    "cummax": _Scan(np.maximum, jnp.maximum, lambda dtype: identity(dtype, "amax"), lax.cummax),
    "cummin": _Scan(np.minimum, jnp.minimum, lambda dtype: identity(dtype, "amin"), lax.cummin),
    "logcumsumexp": _Scan(np.logaddexp, jnp.logaddexp, lambda dtype: -np.inf, lax.cumlogsumexp),
}


# XLA's CPU scans take log(n) passes over memory;
# one pass over rows, as many columns as there are, is 2 to 4 times quicker.
def _rows(xs: tuple, combine, carry: tuple, dtypes, reverse: bool) -> tuple:
    """Scan over the first axis, row by row, from `carry` on."""

    def step(carry, row):
        carry = combine(carry, tuple(r.astype(c.dtype) for r, c in zip(row, carry)))
        return carry, tuple(c.astype(d) for c, d in zip(carry, dtypes))

    return lax.scan(step, carry, xs, reverse=reverse)[1]


def _last_row(xs: tuple, combine, carry: tuple) -> tuple:
    return lax.scan(lambda carry, row: (combine(carry, tuple(r.astype(c.dtype) for r, c in zip(row, carry))), None), carry, xs)[0]


def _scan_cpu(xs: tuple, dim: int, combine, start: tuple, dtypes, reverse: bool = False) -> tuple:
    """Arrays of one shape scanned together. Few long vectors are cut into columns, each of which goes on from what those before it
    come to."""
    n, lanes, ndim = xs[0].shape[dim], xs[0].size // xs[0].shape[dim], xs[0].ndim
    columns, rows = min(LANES // lanes, math.isqrt(n)), tuple(jnp.moveaxis(x, dim, 0) for x in xs)
    nothing = [jnp.full((), s, _wide(d)) for s, d in zip(start, dtypes)]
    if columns < 2 or n < LONG:
        made = _rows(rows, combine, tuple(jnp.full(rows[0].shape[1:], s) for s in nothing), dtypes, reverse)
        return tuple(jnp.moveaxis(y, 0, dim) for y in made)
    if reverse:
        return tuple(jnp.flip(y, dim) for y in _scan_cpu(tuple(jnp.flip(x, dim) for x in xs), dim, combine, start, dtypes))
    length, shape = -(-n // columns), rows[0].shape
    more = [(0, length * columns - n)] + [(0, 0)] * (ndim - 1)
    rows = [jnp.pad(x, more, constant_values=jnp.asarray(s, x.dtype)).reshape(columns, length, *shape[1:]) for x, s in zip(rows, start)]
    rows = tuple(jnp.swapaxes(materialized(x), 0, 1) for x in rows)
    ends = _last_row(rows, combine, tuple(jnp.full(rows[0].shape[1:], s) for s in nothing))
    before = _scan_cpu(ends, 0, combine, start, [s.dtype for s in nothing])
    before = tuple(jnp.concatenate([jnp.full((1, *b.shape[1:]), s), b[:-1]]) for b, s in zip(before, nothing))
    made = _rows(rows, combine, before, dtypes, False)
    return tuple(jnp.moveaxis(jnp.swapaxes(y, 0, 1).reshape(-1, *shape[1:])[:n], 0, dim) for y in made)


def _integer_sums(x):
    """Running sums of integers along the last dimension, in any order as exact: within blocks from all of their elements at once, which
    becomes vector instructions (a third of the time of `_scan_cpu`, which copies the numbers transposed), then the same of the blocks' sums."""
    n = x.shape[-1]
    blocks = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -n % BLOCK)]).reshape(*x.shape[:-1], -1, BLOCK)
    inside = jnp.where(np.tri(BLOCK, dtype=bool), blocks[..., None, :], 0).sum(-1, dtype=x.dtype)
    ends = inside[..., -1]
    before = (_integer_sums(ends) if ends.shape[-1] >= LONG else lax.cumsum(ends, ends.ndim - 1)) - ends
    return (inside + before[..., None]).reshape(*x.shape[:-1], -1)[..., :n]


def _integer_sums_along(x, dim: int, reverse: bool):
    flipped = (lambda y: jnp.flip(y, -1)) if reverse else lambda y: y
    return jnp.moveaxis(flipped(_integer_sums(flipped(jnp.moveaxis(x, dim, -1)))), -1, dim)


def _row_by_row(ufunc, x, dim, dtype):
    """NumPy goes down one column after the other, which takes twice as long, and 30 times where there are two rows."""
    wide = x.astype(dtype)
    rows = np.moveaxis(wide, dim, 0)
    last = rows[0]
    for row in rows[1:]:
        last = ufunc(last, row, out=row)
    return wide.astype(x.dtype, copy=False)


def running(xp, x, dim: int, name: str, reverse: bool = False):
    """x combined from the start to each element along dim, in torch's accumulation type; NaN stays once met. reverse: from the end."""
    if x.ndim == 0 or not x.size:
        return x
    scan = _SCANS[name]
    if xp is np:
        return np.flip(_running_numpy(np.flip(x, dim), dim, scan.ufunc), dim) if reverse else _running_numpy(x, dim, scan.ufunc)
    if x.dtype == np.bool_:
        return running(xp, x.astype(np.int8), dim, name, reverse).astype(np.bool_)

    def on_cpu(x):
        if name == "cumsum" and x.dtype.kind in "iu" and x.shape[dim] >= LONG and (dim % x.ndim == x.ndim - 1 or x.size <= FEW * x.shape[dim]):
            return _integer_sums_along(x, dim, reverse)
        return _scan_cpu((x,), dim, lambda a, b: (scan.combine(a[0], b[0]),), (scan.start(x.dtype),), (x.dtype,), reverse)[0]
    return lax.platform_dependent(x, cpu=on_cpu, default=lambda x: scan.whole(x, dim, reverse=reverse))


def _running_numpy(x, dim, ufunc):
    n, extreme = x.shape[dim], ufunc in (np.maximum, np.minimum)
    if n == 1:
        return x
    if x.size >= WIDE * n and (n <= FEW or dim % x.ndim < x.ndim - 1):
        return _row_by_row(ufunc, x, dim, x.dtype if extreme else _wide(x.dtype))
    wide = _wide(x.dtype)
    if extreme or wide == x.dtype:
        return ufunc.accumulate(x, axis=dim)
    whole = x.astype(wide)  # NumPy's own conversion on the way takes three times as long
    return ufunc.accumulate(whole, axis=dim, out=whole).astype(x.dtype)


def reverse_cumsum(xp, g, dim):
    """Sums from each element to the end: the adjoint of cumsum."""
    return running(xp, g, dim, "cumsum", reverse=True)


def _cumprod_vjp(xp, g, x, out, plan):
    """Before the first zero sum(g * out) / x; at it the products are taken anew without it; after it nothing."""
    dim, dtype = plan.statics
    x = x.astype(dtype.np)
    if not x.size or x.ndim == 0:
        return g
    conj = xp.conj if x.dtype.kind == "c" else lambda v: v
    one = np.ones((), x.dtype)

    def with_zeros(g, x, out):
        zero = x == 0
        first = zero & (running(xp, zero.astype(np.int32), dim, "cumsum") == 1)
        without = running(xp, xp.where(first, one, x), dim, "cumprod")
        return xp.where(
            first,
            reverse_cumsum(xp, g * conj(without), dim),
            reverse_cumsum(xp, g * conj(out), dim) / conj(xp.where(zero, one, x)),
        )

    def plain(g, x, out):
        return reverse_cumsum(xp, g * conj(out), dim) / conj(x)

    if xp is np:
        return (plain if x.all() else with_zeros)(g, x, out)

    @jax.custom_jvp
    def gradient(g, x, out):
        return lax.cond(xp.all(x != 0), plain, with_zeros, g, x, out)

    @gradient.defjvp
    def _(primals, tangents):  # the places of zeros, at which the forms above part, have derivatives of their own
        (g, x, out), (dg, dx, _) = primals, tangents
        return gradient(g, x, out), jax.jvp(lambda g, x: _products_without(g, conj(x), dim), (g, x), (dg, dx))[1]
    return gradient(g, x, out)


def _products_without(g, x, dim: int):
    """sum over j >= i of g_j times the product of x_0 ... x_j without x_i, for each i, whatever zeros there are: the product before
    i, times s_i = g_i + x_(i + 1) s_(i + 1)."""
    n = x.shape[dim]

    def after(later, earlier):
        (a, s), (b, t) = later, earlier
        return a * b, t + b * s
    before = jnp.concatenate([jnp.ones_like(lax.slice_in_dim(x, 0, 1, axis=dim)), lax.slice_in_dim(x, 0, n - 1, axis=dim)], dim)
    next_ = jnp.concatenate([lax.slice_in_dim(x, 1, n, axis=dim), jnp.ones_like(lax.slice_in_dim(x, 0, 1, axis=dim))], dim)
    _, s = lax.associative_scan(after, (next_, g), reverse=True, axis=dim)
    return lax.associative_scan(jnp.multiply, before, axis=dim) * s


def _scan_shape(a, dim, dtype):
    return a.shape, dtype


CUMSUM = Op(
    "cumsum",
    lambda xp, x, dim, dtype: running(xp, cast(xp, x, dtype.np), dim, "cumsum"),
    shape=_scan_shape,
    vjp=lambda xp, g, plan: reverse_cumsum(xp, g, plan.statics[0]),
)
_CUMPROD = Op(
    "cumprod",
    lambda xp, x, dim, dtype: running(xp, cast(xp, x, dtype.np), dim, "cumprod"),
    shape=_scan_shape,
    vjp=_cumprod_vjp,
)


@public(out=True)
def cumsum(input, dim, *, dtype=None) -> Tensor:
    """Running sums along dim; integers are summed as int64."""
    _refuse_bool("cumsum", input, dtype)
    if dtype is not None:
        input = without_imaginary(input, dtype)
    return apply(CUMSUM, (input,), (as_dim(dim, input.ndim), _sum_dtype(input, dtype)))


def _refuse_bool(name: str, input: Tensor, dtype) -> None:
    if dtype is dt.bool_ and input.ndim and input.numel():  # others have nothing to add
        raise not_implemented(f"{name}_out_cpu", dt.bool_)


@public(out=True)
def cumprod(input, dim, *, dtype=None) -> Tensor:
    """Running products along dim; integers are multiplied as int64."""
    _refuse_bool("cumprod", input, dtype)
    if dtype is not None:
        input = without_imaginary(input, dtype)
    return apply(_CUMPROD, (input,), (as_dim(dim, input.ndim), _sum_dtype(input, dtype)))


def _in_place(f):
    """cumsum_ and cumprod_ keep self's dtype: integers are not widened."""
    name = f.__name__

    def write(self, dim, *, dtype=None) -> Tensor:
        if dtype is not None and _check_dtype(dtype) is not self.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {self.dtype.short} and output tensor dtype {dtype.short} should match"
            )
        if self.dtype is dt.bool_ and self.numel() and self.ndim:
            raise not_implemented(f"{name}_out_cpu", dt.bool_)
        self._check_write()
        return write_into(self, f(self, dim, dtype=self.dtype))

    write.__name__ = write.__qualname__ = name + "_"
    write.__doc__ = f"{name} written into self."
    setattr(Tensor, name + "_", write)


_in_place(cumsum)
_in_place(cumprod)

# -- extremes ----------------------------------------------------------------------------------------------------------


def _running(xp, x, dim, name):
    """(values, index of the last element that set them)."""
    if x.ndim == 0 or not x.size:
        return [x, xp.zeros(x.shape, np.int64)]
    if xp is np:
        values = running(xp, x, dim, name)
        sets = x == values
        if x.dtype.kind in "fV":
            sets = sets | (x != x)
        return [values, running(xp, xp.where(sets, np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)]), 0), dim, "cummax")]
    of = x.astype(np.int8) if x.dtype == np.bool_ else x
    positions = lax.broadcasted_iota(np.int32, x.shape, dim)  # no dimension is longer

    def last(a, b):
        sets = (b[0] >= a[0] if name == "cummax" else b[0] <= a[0]) | (b[0] != b[0])
        return tuple(jnp.where(sets, new, old) for old, new in zip(a, b))

    def on_cpu(x):
        return _scan_cpu((x, positions), dim, last, (_SCANS[name].start(x.dtype), 0), (x.dtype, positions.dtype))
    values, index = lax.platform_dependent(of, cpu=on_cpu, default=lambda x: lax.associative_scan(last, (x, positions), axis=dim))
    return [values.astype(x.dtype), index.astype(np.int64)]


def _running_vjp(xp, g0, out1, plan):
    a = plan.avals[0]
    return g0 if not a.shape else add_along(xp, a.shape, out1, plan.statics[0], g0)


def _running_extreme(name, largest):
    op = Op(
        name,
        lambda xp, x, dim: _running(xp, x, dim, name),
        vjp=_running_vjp,
        shape=lambda a, dim: [(a.shape, a.dtype), (a.shape, dt.int64)],
    )
    made = result_type(name)

    def f(input, dim: int) -> made:
        if input.dtype.is_complex:
            raise not_implemented(f"{name}_cpu", input.dtype)
        if not input.ndim and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {as_int(dim, 'dim')}")
        return made(*apply(op, (input,), (as_dim(dim, input.ndim),)))

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"Running {'max' if largest else 'min'}ima along dim, and the index of the last element that set them."
    return public(out=True)(f)


cummax, cummin = _running_extreme("cummax", True), _running_extreme("cummin", False)


def _complex_running(xp, x, dim):
    """One element after the other, as torch: an angle is that of the sum, however often it went round."""
    rows = xp.moveaxis(x, dim, 0)
    nothing = xp.full(rows.shape[1:], -np.inf, x.dtype)
    if xp is np:
        sums = itertools.islice(itertools.accumulate(rows, lambda a, b: complex_logaddexp(np, b, a), initial=nothing), 1, None)
        return np.moveaxis(np.stack(list(sums)) if len(rows) else rows, 0, dim)

    def step(carry, row):
        carry = complex_logaddexp(jnp, row, carry)
        return carry, carry
    return jnp.moveaxis(lax.scan(step, nothing, rows)[1] if len(rows) else rows, 0, dim)


def _logcumsumexp(xp, x, dim):
    if x.ndim == 0:
        return x
    if x.dtype.kind == "c":
        return _complex_running(xp, x, dim)
    return running(xp, x, dim, "logcumsumexp")


def _logcumsumexp_vjp(xp, g, x, out, plan):
    """exp(x) * sum(g * exp(-out)) from each element on, in logarithms so that nothing overflows."""
    dim = plan.statics[0]
    if x.ndim == 0:
        return g
    if x.dtype.kind == "c":
        return reverse_cumsum(xp, g * xp.conj(xp.exp(-out)), dim) * xp.conj(xp.exp(x))

    if xp is not np:
        return _carried(g, x, out, dim)

    def part(g):
        low = np.asarray(-np.inf, g.dtype)
        log_g = xp.where(g > 0, xp.log(xp.where(g > 0, g, np.ones((), g.dtype))), low)
        scaled = xp.where(log_g == low, low, log_g - out)
        return xp.exp(xp.flip(_logcumsumexp(xp, xp.flip(scaled, dim), dim), dim) + x)

    return part(g) - part(-g)


def _carried(g, x, out, dim):
    """The same as a sum that shrinks from step to step by exp(out - next out), so that it is linear in g to who differentiates it."""
    following = jnp.concatenate([lax.slice_in_dim(out, 1, None, axis=dim), lax.slice_in_dim(out, out.shape[dim] - 1, None, axis=dim)], dim)
    shrinks = jnp.exp(jnp.where(following == out, 0, out - following))

    def combine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]

    def on_cpu(shrinks, g):
        return _scan_cpu((shrinks, g), dim, combine, (1, 0), (g.dtype, g.dtype), True)[1]
    total = lax.platform_dependent(shrinks, g, cpu=on_cpu, default=lambda *xs: lax.associative_scan(combine, xs, reverse=True, axis=dim)[1])
    return jnp.exp(x - out) * total


_LOGCUMSUMEXP = Op("logcumsumexp", _logcumsumexp, shape=lambda a, dim: (a.shape, a.dtype), vjp=_logcumsumexp_vjp)


@public(out=True)
def logcumsumexp(input, dim: int) -> Tensor:
    """log(cumsum(exp(input))) along dim, without overflow."""
    d = as_dim(dim, input.ndim)
    if input.dtype.category < dt.FLOAT:
        raise not_implemented("logcumsumexp_out_cpu", input.dtype)
    return apply(_LOGCUMSUMEXP, (input,), (d,))


# -- differences, integrals --------------------------------------------------------------------------------------------


@public(out=True)
def diff(input, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences along dim, of prepend, input and append joined."""
    n = as_int(n, "n")
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = as_dim(dim, input.ndim)
    for t in (prepend, append):
        if t is not None and t.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for k in range(input.ndim) if t is not None else ():
            if k != d and t.shape[k] != input.shape[k]:
                raise RuntimeError("diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
                                   f"input.size({k}) = {input.shape[k]}, but got tensor.size({k}) = {t.shape[k]}")
    if n == 0:
        return input.clone()
    parts = [t for t in (prepend, input, append) if t is not None]
    if len(parts) > 1:
        input = cat(parts, d)
    for _ in range(min(n, input.shape[d])):
        size = input.shape[d]
        after, before = input.narrow(d, 1, size - 1), input.narrow(d, 0, size - 1)
        input = after.logical_xor(before) if input.dtype is dt.bool_ else after - before
    return input


def _neighbours(y: Tensor, x, dx, dim: int, name: str):
    """(sums of neighbours of y, their distances) along dim."""
    if y.dtype is dt.bool_:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    d = as_dim(dim, y.ndim)
    size = y.shape[d]
    sums = y.narrow(d, min(1, size), max(size - 1, 0)) + y.narrow(d, 0, max(size - 1, 0))
    if x is None:
        return sums, dx, d
    if x.ndim == 1:
        if x.shape[0] != size:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape([size if k == d else 1 for k in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape([1] * (y.ndim - x.ndim) + list(x.shape))
    return sums, diff(x, dim=d), d


def _only_one(x, dx, name: str):
    if x is not None and dx is not None:
        raise TypeError("trapezoid() received an invalid combination of arguments: x and dx exclude each other")
    dx = 1 if dx is None else plain_number(dx)
    if isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return dx


@public(names=("trapz",), method=False)
def trapezoid(y: Tensor, x=None, *, dx=None, dim: int = -1) -> Tensor:
    """The integral of y along dim by the trapezoidal rule, at points x or dx apart."""
    dx = _only_one(x, dx, "trapezoid")
    d = as_own_dim(dim, y.ndim)
    if not y.shape[d]:
        return y.new_zeros([*y.shape[:d], *y.shape[d + 1:]])
    if x is None and y.dtype is not dt.bool_:  # in this order sums of integers of 8 bits are int64
        return named((y.sum(d) - (y.select(d, 0) + y.select(d, -1)) * 0.5) * dx, "MulBackward1")
    sums, distance, d = _neighbours(y, x, dx, dim, "trapezoid")
    return named((sums * distance).sum(d) / 2, "DivBackward1")


@public(method=False)
def cumulative_trapezoid(y: Tensor, x=None, *, dx=None, dim: int = -1) -> Tensor:
    """Running integrals of y along dim by the trapezoidal rule."""
    if not y.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    sums, distance, d = _neighbours(y, x, _only_one(x, dx, "cumulative_trapezoid"), dim, "cumulative_trapezoid")
    return cumsum(distance / 2 * sums, d) if x is None else cumsum(sums * distance, d) / 2


@public(method=False)
def gradient(input, *, spacing=None, dim=None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Central differences along each dimension of dim; one-sided of order edge_order at the ends.

    spacing: a number, one number a dimension, or one vector of coordinates a dimension.
    """
    dims = range(input.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (as_int(dim, "dim"),)
    dims = [as_dim(d, input.ndim) for d in dims]
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    refuse_learnable(spacing, "gradient", "spacing")
    steps = (
        [1.0] * len(dims)
        if spacing is None
        else list(spacing)
        if isinstance(spacing, (tuple, list))
        else [spacing] * len(dims)
    )
    if len(steps) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length {len(dims)}, "
            f"but got a list of length {len(steps)}"
        )
    if len(set(dims)) != len(dims):
        raise RuntimeError(
            f"dim {next(d for i, d in enumerate(dims) if d in dims[:i])} appears multiple times in the list of dims"
        )
    if input.dtype is dt.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if isinstance(spacing, (tuple, list)) and any(isinstance(h, Tensor) for h in steps):
        for i, h in enumerate(steps):
            if not isinstance(h, Tensor):
                raise TypeError(f"expected Tensor as element {i} in argument 1, but got {class_name(h)}")
            if h.ndim != 1:
                raise RuntimeError(f"torch.gradient expected each element of spacing to have one dimension, but got an element with {h.ndim} dimensions!")
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_gradient_along(input, d, h, edge_order) for d, h in zip(dims, steps))


def _gradient_along(t: Tensor, d: int, spacing, edge_order: int) -> Tensor:
    """By weights of neighbours, which keep an infinity apart from what lies beside it."""
    n = t.shape[d]

    def at(i: int, m: int = 1) -> Tensor:
        return t.narrow(d, i, m)

    if isinstance(spacing, Tensor) and spacing.ndim:
        h = diff(spacing).reshape([n - 1 if k == d else 1 for k in range(t.ndim)])
        step = [h.narrow(d, i, 1) for i in ((0, n - 2) if n < 4 else (0, 1, n - 3, n - 2))]
        near, far = h.narrow(d, 0, n - 2), h.narrow(d, 1, n - 2)
        inner = (-far / (near * (near + far)) * at(0, n - 2) + (far - near) / (near * far) * at(1, n - 2) + near / (far * (near + far)) * at(2, n - 2)
                 if n > 2 else None)
        ends = [(step[0], step[-1 if n < 4 else 1]), (step[-1], step[0 if n < 4 else -2])]
    else:
        h = spacing.item() if isinstance(spacing, Tensor) else spacing
        inner = (at(2, n - 2) - at(0, n - 2)) / (2 * h) if n > 2 else None
        ends = [(h, h), (h, h)]
    if edge_order == 1:
        first, last = (at(1) - at(0)) / ends[0][0], (at(n - 1) - at(n - 2)) / ends[1][0]
    else:
        def end(places: tuple, near, far, sign: int) -> Tensor:
            """The slope at the first place, of the parabola through all three."""
            x, y, z = map(at, places)
            return sign * ((near + far) / (near * far) * y - (2 * near + far) / (near * (near + far)) * x - near / (far * (near + far)) * z)
        first, last = end((0, 1, 2), *ends[0], 1), end((n - 1, n - 2, n - 3), *ends[1], -1)
    return cat([first, *(() if inner is None else (inner,)), last], d)
