"""Sums of a few weighted rows of a matrix: what pooling over regions and deformable convolutions are.

`index` and `weight` have a row for each row of the result. With NumPy they are a sparse matrix, whose product leaves out
zeros; in a compiled program they are gathers, and additions one term after the other.

On the CPU the sparse matrix is several times quicker than what XLA makes of the gathers (roi_align: 36 against 335 ms), so such an operation runs at once, on
the host. It also ends the program before it: one with a changing number of regions in it would be another at every step,
with all of a detector's backbone.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from .._core import executor
from .._core.program import Program, state
from .._core.registry import Op
from .._core.value import is_tracer
from .._tensor import Tensor, apply, as_tensor_value


def run(op: Op, tensors: tuple[Tensor | None, ...], statics: tuple) -> Any:
    """The operation, now where its tensors lie on the CPU, recorded elsewhere and inside transformations."""
    known = [t for t in tensors if t is not None]
    if (any(t.device.type != "cpu" or is_tracer(t._current().array) for t in known) or state.program.__class__ is not Program
            or executor.options.tier == "compiled"):
        return apply(op, tensors, statics)
    out = op.plan(tuple(None if t is None else t._aval for t in tensors), statics).numpy(*[None if t is None else t._host_array() for t in tensors])
    return tuple(as_tensor_value(x) for x in out) if isinstance(out, list) else as_tensor_value(out)


def matrix(index, weight, rows: int):
    """The sparse matrix with weight[r, t] at (r, index[r, t])."""
    from scipy.sparse import csr_array  # at first use: few programs need it

    kept = weight != 0
    starts = np.zeros(len(index) + 1, np.int64)
    np.cumsum(kept.sum(1), out=starts[1:])
    return csr_array((weight[kept], index[kept], starts), shape=(len(index), rows))


def computed(xp, x):
    """x as NumPy computes it: there 16-bit floats are slow, and sparse matrices do without them."""
    return x.astype(np.float32) if xp is np and x.dtype.itemsize == 2 else x


def combined(xp, x, index, weight):
    """sum over t of weight[r, t] x[index[r, t]]."""
    x, weight = computed(xp, x), computed(xp, weight)
    if xp is np:
        return matrix(index, weight, len(x)) @ x
    return (weight[..., None] * x[index]).sum(1)


def spread(xp, g, index, weight, rows: int):
    """The adjoint of `combined`: weight[r, t] g[r] added up at index[r, t]."""
    g, weight = computed(xp, g), computed(xp, weight)
    if xp is np:
        return matrix(index, weight, rows).T @ g

    def add(t, out):
        return out.at[index[:, t]].add(weight[:, t, None] * g)
    return lax.fori_loop(0, index.shape[1], add, jnp.zeros((rows, g.shape[1]), g.dtype))


def products(xp, x, g, index):
    """g[r] · x[index[r, t]]: the derivative of `combined` by its weights."""
    x, g = computed(xp, x), computed(xp, g)
    return xp.stack([xp.einsum("rc,rc->r", x[index[:, t]], g) for t in range(index.shape[1])], 1)
