"""Matrix products and attention."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._examples.sizes import Dyn
from .._graph import Graph, Var
from ._layers import alone
from ._pointwise import common
from ._table import translates, whole


@translates("linear", "linear_alone", called="linear")
def _linear(g: Graph, x: Var, w: Var, b: Var | None = None) -> Var:
    if x.ndim == 2:
        return g.op("Gemm", x, w, b, alpha=1.0, beta=1.0, transA=0, transB=1)
    made = g.op("MatMul", x, g.moved(w, 0, 1))
    return made if b is None else g.op("Add", made, b)


@translates("matmul", "mv", "dot")
def _matmul(g: Graph, x: Var, y: Var) -> Var:
    return g.op("MatMul", *common(g, x, y))


@whole("einsum", when=lambda equation, *operands: isinstance(equation, str))
def _einsum(g: Graph, *args: Any) -> Var:
    """The function has its equation first, the engine's operation last and without spaces."""
    equation, operands = (args[0], args[1:]) if isinstance(args[0], str) else (args[-1], args[:-1])
    xs = operands[0] if len(operands) == 1 and isinstance(operands[0], tuple) else operands
    return g.op("Einsum", *xs, equation=equation.replace(" ", ""))


def _causal(g: Graph, rows: Any, columns: Any, dtype: dt.dtype) -> Var:
    """0 where a query may look, -inf where not."""
    allowed = -np.inf
    if not isinstance(rows, Dyn) and not isinstance(columns, Dyn):
        return g.const(np.where(np.tri(rows, columns, dtype=bool), 0, allowed).astype(dtype.np))
    zero, one = g.const(np.asarray(0)), g.const(np.asarray(1))
    queries = g.op("Range", zero, g.op("Squeeze", g.size(rows), [0]), one)
    keys = queries if rows == columns else g.op("Range", zero, g.op("Squeeze", g.size(columns), [0]), one)
    return g.op("Where", g.op("GreaterOrEqual", g.op("Unsqueeze", queries, [1]), keys), g.scalar(0.0, dtype), g.scalar(allowed, dtype))


def _repeated(g: Graph, x: Var, groups: int) -> Var:
    """Heads that several queries share, once for each."""
    *lead, heads, n, width = x.shape
    made = g.op("Unsqueeze", x, [x.ndim - 2])
    made = g.op("Expand", made, [1] * len(lead) + [1, groups, 1, 1])
    made.shape = (*lead, heads, groups, n, width)
    made = g.reshape(made, (*lead, heads * groups, n, width))
    made.shape = (*lead, heads * groups, n, width)
    return made


@translates("attention", called="scaled_dot_product_attention")
def _attention(g: Graph, q: Var, k: Var, v: Var, mask: Var | None, drop: Any, keep_scale: Any, scale: Any, causal: bool) -> Any:
    if q.ndim > 2 and k.ndim > 2 and q.shape[-3] != k.shape[-3] and k.shape[-3] != 1:
        groups = q.shape[-3] // k.shape[-3]
        k, v = _repeated(g, k, groups), _repeated(g, v, groups)
    scores = g.op("MatMul", q, g.moved(k, k.ndim - 2, k.ndim - 1))
    if scale != 1:
        scores = g.op("Mul", scores, g.scalar(scale, q.dtype))
    if causal:
        scores = g.op("Add", scores, _causal(g, q.shape[-2], k.shape[-2], q.dtype))
    if mask is not None and mask.dtype is dt.bool_:
        mask = g.op("Where", mask, g.scalar(0.0, q.dtype), g.scalar(-np.inf, q.dtype))
    if mask is not None:
        scores = g.op("Add", scores, g.cast(mask, q.dtype, q.dtype if mask.dtype is None else None))
    weights = g.op("Softmax", scores, axis=-1)
    if mask is not None and not mask.constant:  # a row of which all is hidden gives zeros
        weights = g.op("Where", g.op("IsNaN", weights), g.scalar(0.0, q.dtype), weights)
    if drop is not None:
        weights = g.op("Dropout", weights, g.const(np.asarray(1 - 1 / keep_scale, np.float32)), g.const(np.asarray(True)))
    return alone(g, g.op("MatMul", weights, v))


@translates("euclidean_dist", called="cdist")
def _distance(g: Graph, a: Var, b: Var) -> Var:
    difference = g.op("Sub", g.op("Unsqueeze", a, [a.ndim - 1]), g.op("Unsqueeze", b, [b.ndim - 2]))
    return g.op("ReduceL2", difference, [-1], keepdims=0)
