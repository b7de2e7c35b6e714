"""Sums and means of consecutive rows picked from a table: bags of embeddings."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.arrays import cast
from ..._core.halves import widened
from ..._core.registry import Op
from ..._core.scipy_extension import extension, worth
from ..._tensor import Tensor, apply, as_tensor_value
from ...ops.positions import rows_add
from ...ops.quotients import over
from .embedding import narrow

_SOME = 1 << 17  # numbers, of all calls, from which on SciPy's sparse product is worth loading
_TURN, _WIDE, _ENOUGH = 8, 8, 1 << 9  # on the CPU: rows of a bag that are added at once; columns and elements of a result from which on that pays


def _lengths(xp, starts, n: int):
    return xp.diff(xp.concatenate([starts, xp.full((1,), n, starts.dtype)]))


def _over_lengths(xp, sums, starts, n: int):
    """Means of bags; each quotient is rounded once (see quotients.py)."""
    counts = xp.broadcast_to(xp.maximum(_lengths(xp, starts, n), 1).astype(sums.dtype)[:, None], sums.shape)
    return sums / (counts if xp is np else lax.optimization_barrier(counts))


def bag_of(xp, starts, n: int):
    """Of each of n elements; bags of no elements have none."""
    return xp.searchsorted(starts, xp.arange(n, dtype=starts.dtype), side="right") - 1


def _summed(weight: np.ndarray, index: np.ndarray, starts: np.ndarray, scale) -> np.ndarray:
    """In NumPy: a product with a sparse matrix, which makes no array of all the rows that are picked."""
    bags, width = starts.size, weight.shape[1]
    if weight.dtype.char in "fd" and weight.flags.c_contiguous and index.size and worth("_sparsetools", index.size * width, _SOME):
        if index.min() >= 0 and index.max() < len(weight):  # the product does not look itself
            out = np.zeros((bags, width), weight.dtype)
            factors = np.ones(index.size, weight.dtype) if scale is None else np.ascontiguousarray(scale)
            extension("sparse", "_sparsetools").csr_matvecs(bags, len(weight), width, np.append(starts, index.size).astype(np.int64), index.astype(np.int64),
                                                            factors, weight.reshape(-1), out.reshape(-1))
            return out
    rows = widened(weight[index])
    if scale is not None:
        rows = rows * widened(scale)[:, None]
    out, filled = np.zeros((bags, width), rows.dtype), _lengths(np, starts, index.size) > 0
    if filled.any():
        out[filled] = np.add.reduceat(rows, starts[filled], axis=0)
    return out


def _kernel(xp, weight, index, starts, scale, each, mean):
    flat = index.reshape(-1)
    if starts is None and (xp is not np or not flat.size):
        rows = xp.take(weight, index if xp is np else narrow(index, len(weight)), axis=0, mode="clip")
        wide = rows if scale is None else rows * scale[..., None]
        made = wide.sum(1, dtype=np.float32 if weight.dtype.itemsize == 2 else weight.dtype)
        return cast(xp, over(xp, made, max(each, 1)) if mean else made, weight.dtype)
    starts = np.arange(len(index)) * each if starts is None else starts
    scale = None if scale is None else scale.reshape(-1)
    if xp is np:
        made = _summed(weight, flat, starts, scale)
    else:
        rows = jnp.take(weight, narrow(flat, len(weight)), axis=0, mode="clip")
        rows = rows.astype(np.float32 if rows.dtype.itemsize == 2 else rows.dtype)
        rows = rows if scale is None else rows * scale.astype(rows.dtype)[:, None]
        made = jnp.zeros((starts.size, rows.shape[1]), rows.dtype).at[bag_of(jnp, starts, flat.size)].add(rows, indices_are_sorted=True)
    if mean:
        made = _over_lengths(xp, made, starts, flat.size)
    return cast(xp, made, weight.dtype)


def _vjp(xp, g, weight, index, starts, scale, each, mean, needs, plan):
    rows, flat = weight.shape[0], index.reshape(-1)
    if starts is None:
        g = xp.repeat(over(xp, g, max(each, 1)) if mean else g, each, axis=0)
    else:
        if mean:
            g = _over_lengths(xp, g, starts, flat.size)
        g = g[bag_of(xp, starts, flat.size)]
    gw = gs = None
    if needs[0]:
        part = g if scale is None else g * scale.reshape(-1)[:, None]
        gw = rows_add(rows, flat, part) if xp is np else jnp.zeros((rows, g.shape[1]), g.dtype).at[flat].add(part)
    if scale is not None and needs[3]:
        gs = (g * xp.take(weight, flat, axis=0)).sum(1).reshape(scale.shape)
    return gw, None, None, gs


_BAG_SUMS = Op("embedding_bag", _kernel, vjp=_vjp,
               shape=lambda w, i, starts, scale, each, mean: (((i if starts is None else starts).shape[0], w.shape[1]), w.dtype))


# XLA's CPU backend fuses the look-up into the sum, which then takes one element after the other: a row of each bag after the other is up to ten times quicker


def _by_turns(weight, index, scale):
    """Sums of the rows of weight that each row of index names, times `scale`: some rows of every bag at a time."""
    kind = np.float32 if weight.dtype.itemsize == 2 else weight.dtype
    at, factors = narrow(index, len(weight)).T, None if scale is None else scale.T

    def added(total, at, factors):
        for k in range(len(at)):
            rows = jnp.take(weight, at[k], axis=0, mode="clip")
            total = total + (rows if factors is None else rows * factors[k][:, None]).astype(kind)
        return total

    def of(x, *shape):
        return None if x is None else x[:whole].reshape(*shape, _TURN, x.shape[1])
    turns = len(at) // _TURN
    whole, total = turns * _TURN, jnp.zeros((len(index), weight.shape[1]), kind)
    if turns:
        total = lax.scan(lambda total, some: (added(total, *some), None), total, (of(at, turns), of(factors, turns)))[0]
    return added(total, at[whole:], None if factors is None else factors[whole:])


def _pays(index, starts, width: int, each: int) -> bool:
    return starts is None and each > 1 and width >= _WIDE and index.shape[0] * width >= _ENOUGH


@_BAG_SUMS.kernel_for("cpu")
def _on_cpu(weight, index, starts, scale, each, mean):
    if not _pays(index, starts, weight.shape[1], each):
        return NotImplemented
    made = _by_turns(weight, index, scale)
    return cast(jnp, over(jnp, made, each) if mean else made, weight.dtype)


@_BAG_SUMS.backward.kernel_for("cpu")
def _backward_on_cpu(*args):
    *arrays, g, plan, needs = args
    given = dict(zip(plan.saved(needs)[0], arrays))
    weight, index, starts, scale = map(given.get, range(4))
    each, mean = plan.statics
    if plan.avals[2] is not None or index is None or not needs[0] or not _pays(index, starts, g.shape[1], each):
        return NotImplemented
    if mean:
        g = over(jnp, g, each)
    rows, width = plan.avals[0].shape
    at, factors = narrow(index, rows).T, None if scale is None else scale.T

    def added(total, some):
        at, factors = some
        return total.at[at].add(g if factors is None else g * factors[:, None]), None
    made = [lax.scan(added, jnp.zeros((rows, width), g.dtype), (at, factors))[0]]
    if needs[3]:
        made.append((g[:, None] * jnp.take(weight, index, axis=0, mode="clip")).sum(2))
    return made


def bag_sums(weight: Tensor, index: Tensor, starts: np.ndarray | None, scale: Tensor | None, mean: bool) -> Tensor:
    """Rows of weight (rows, width) summed or averaged per bag, to (bags, width): index (bags, each), or (n) whose bags begin at `starts`, in order and the
    first at 0. Each row counts `scale` times, of index's shape; of an empty bag come zeros."""
    if starts is None:
        return apply(_BAG_SUMS, (weight, index, None, scale), (index.shape[1], mean))
    each, rest = divmod(index.shape[0], starts.size)
    if not rest and each and (np.diff(starts) == each).all():
        shape = starts.size, each
        return apply(_BAG_SUMS, (weight, index.reshape(shape), None, None if scale is None else scale.reshape(shape)), (each, mean))
    return apply(_BAG_SUMS, (weight, index, as_tensor_value(starts, index.device), scale), (0, mean))
