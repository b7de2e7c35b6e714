"""Gathering and scattering with several index arrays, and a number where a mask holds."""
from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from .._core.arrays import conform
from .._core.overwrite import changeable
from .._core.registry import Op
from .choosing import choose
from .positions import combine_at, rows_add
from .scattering import changed_at


def _split(index, dims, ndim):
    """The full index tuple: arrays at dims, slices elsewhere."""
    full = [slice(None)] * ndim
    for d, i in zip(dims, index):
        full[d] = i
    return tuple(full)


def _take(xp, x, *rest):
    *index, dims = rest
    if len(index) == 1 and xp is not np:
        return xp.take(x, index[0], axis=dims[0], mode="wrap")
    if len(index) == 1 and x.flags.c_contiguous:  # of another array NumPy takes from a copy of all of it
        return np.take(x, index[0], axis=dims[0])
    return x[_split(index, dims, x.ndim)]


def take_shape(a, *rest):
    *index, dims = rest
    broadcast = np.broadcast_shapes(*(i.shape for i in index))
    if list(dims) == list(range(dims[0], dims[-1] + 1)):
        return (*a.shape[:dims[0]], *broadcast, *a.shape[dims[-1] + 1:]), a.dtype
    return (*broadcast, *(n for d, n in enumerate(a.shape) if d not in dims)), a.dtype


def _scatter_add(xp, zeros, index, g):
    if xp is not np:
        return changed_at(zeros, index, g, "add")
    combine_at(np.add, zeros, index, g)
    return zeros


def _take_vjp(xp, gs, plan, i0, i1=None, i2=None, i3=None, i4=None, i5=None):
    a, dims = plan.avals[0], plan.statics[0]
    index = [i for i in (i0, i1, i2, i3, i4, i5) if i is not None]
    if xp is np and len(index) == 1 and dims[0] == 0 and len(a.shape) == 2:
        return (rows_add(a.shape[0], index[0].reshape(-1), gs[0].reshape(index[0].size, a.shape[1])),)
    return (_scatter_add(xp, xp.zeros(a.shape, gs[0].dtype), _split(index, dims, len(a.shape)), gs[0]),)


class _Take(Op):
    """Gathering: its derivative reads all index inputs."""

    picks = True

    def saved(self, plan, needs):
        return tuple(range(1, len(plan.avals))), ()


def _take_derivative(wide=False):
    class TakeDerivative:
        kernel_names = []

        def bind(self, plan, needs):
            def run(xp, arrays):
                *index, g = arrays
                g = g.astype(np.float32) if wide else g
                return [g.astype(plan.avals[0].dtype.np) for g in _take_vjp(xp, [g], plan, *index)]
            return run
    return TakeDerivative()


INDEX = _Take("index", _take, shape=take_shape)
INDEX.derivative = _take_derivative()

# The same for numbers of 16 bits, whose gradients are summed up in 32: torch's index_select does, in its first and last dimension
INDEX_WIDE = _Take("index_wide", _take, shape=take_shape)
INDEX_WIDE.derivative = _take_derivative(wide=True)


@INDEX.kernel_for("cpu")
@INDEX_WIDE.kernel_for("cpu")
def _take_on_cpu(x, *rest):
    """Elements of an inner dimension, each from its own place: XLA gathers whole slices the index first, and copies them into order where
    that is not the last thing a program does, in three to five times the time."""
    *index, dims = rest
    first, last = dims[0], dims[-1]
    if not first or last - first + 1 != len(dims) or not x.size or not all(i.size for i in index):
        return NotImplemented
    lead, behind, n = x.shape[:first], x.shape[last + 1:], math.prod(x.shape[first:last + 1])
    kind, at = np.int32 if n < 1 << 31 else np.int64, np.zeros((), np.int32)
    for i, size in zip(index, x.shape[first:last + 1]):
        i = i.astype(kind)
        at = at * size + jnp.where(i < 0, i + size, i)
    places = jnp.broadcast_to(at.reshape(-1, *(1,) * len(behind)), (*lead, at.size, *behind))
    made = jnp.take_along_axis(x.reshape(*lead, n, *behind), places, first, mode="promise_in_bounds")
    return made.reshape(*lead, *at.shape, *behind)


def _put(xp, x, value, *rest):
    *index, dims, accumulate = rest
    full = _split(index, dims, x.ndim)
    value = value.astype(x.dtype)
    if xp is not np:
        return changed_at(x, full, value, "add" if accumulate else "set")
    out = changeable(x)
    if accumulate:
        combine_at(np.add, out, full, value)
    else:
        out[full] = value
    return out


class _Put(Op):
    """Scattering: its derivative reads all index inputs."""

    def saved(self, plan, needs):
        return tuple(range(2, len(plan.avals))), ()


class _PutDerivative:
    """What was overwritten has no gradient. Of numbers written to the same place each has that place's, whichever of them stayed, as in torch."""

    kernel_names: list[str] = []

    def bind(self, plan, needs):
        dims, accumulate = plan.statics

        def run(xp, arrays):
            *index, g = arrays
            grads = []
            if needs[0]:
                grads.append(g if accumulate else _put(xp, g, xp.zeros((), g.dtype), *index, dims, False))
            if needs[1]:
                grads.append(g[_split(index, dims, g.ndim)])
            return [conform(xp, made, a) for made, a in zip(grads, [a for a, need in zip(plan.avals, needs) if need])]
        return run


INDEX_PUT = _Put("index_put", _put, shape=lambda a, *rest: (a.shape, a.dtype))
INDEX_PUT.derivative = _PutDerivative()
INDEX_PUT.overwrites = True


def _over(xp, mask, rank: int, dim: int):
    """A mask of the dimensions from dim on, so that it broadcasts to all of them."""
    return mask.reshape((*mask.shape, *(1,) * (rank - dim - mask.ndim)))


def _put_mask(xp, x, mask, value, dim):
    return choose(xp, _over(xp, mask, x.ndim, dim), value, x)


def _put_mask_vjp(xp, g, mask, needs, dim):
    where, zero = _over(xp, mask, g.ndim, dim), xp.zeros((), g.dtype)
    return choose(xp, where, zero, g) if needs[0] else None, None, xp.sum(choose(xp, where, g, zero)) if needs[2] else None


# One number where a mask holds. Nobody has to know the positions: they would end the program, and their count make it a new one
INDEX_PUT_MASK = Op("index_put_mask", _put_mask, shape=lambda a, mask, value, dim: (a.shape, a.dtype), vjp=_put_mask_vjp, torch_name="IndexPutBackward0")


# The one element of a vector, as a 0-dim tensor that is no view of it
ONLY = Op("only", lambda xp, x: x.reshape(()), shape=lambda a: ((), a.dtype), vjp=lambda xp, g: g.reshape((1,)))
