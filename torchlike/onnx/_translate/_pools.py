"""Pools."""
from __future__ import annotations

from typing import Any

import numpy as np

from ..._examples.sizes import Dyn
from .._graph import Graph, Var
from ._layers import batched, several
from ._table import translates, whole


def _window(kernel: Any, stride: Any, pads: list, dilation: Any = None) -> dict:
    made = {"kernel_shape": list(kernel), "strides": list(stride), "pads": [a for a, _ in pads] + [b for _, b in pads]}
    return made if dilation is None else {**made, "dilations": list(dilation)}


@translates("max_pool")
def _max_pool(g: Graph, x: Var, kernel: tuple, stride: tuple, pads: tuple, dilation: tuple, sizes: tuple) -> Var:
    n = len(kernel)
    g.title = f"max_pool{n}d"
    ceil, low = False, [a for a, _ in pads]
    if any(isinstance(b, Dyn) or b != a for a, b in pads):  # what a window hangs over the edge
        ceil, pads = True, tuple((a, a) for a in low)
    return batched(g, x, n, lambda x: g.op("MaxPool", x, **_window(kernel, stride, pads, dilation), ceil_mode=int(ceil)))


@translates("max_pool_indices")
def _max_pool_indices(g: Graph, x: Var, kernel: tuple, stride: tuple, pads: tuple, dilation: tuple, sizes: tuple) -> Any:
    n = len(kernel)
    g.title = f"max_pool{n}d_with_indices"
    if x.ndim != n + 2:
        return NotImplemented
    values, places = g.op("MaxPool", x, n=2, **_window(kernel, stride, pads, dilation))
    plane = g.count(x, range(2, x.ndim))
    return values, g.op("Mod", places, g.op("Squeeze", g.size(plane), [0]) if isinstance(plane, Dyn) else g.const(np.asarray(plane)))


@whole("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(g: Graph, x: Var, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_pad: bool, divisor: Any = None) -> Any:
    n = int(g.called[8])
    if divisor is not None:
        return NotImplemented
    kernel, padding = several(kernel, n), several(padding, n)
    stride = kernel if stride is None or stride == () else several(stride, n)
    window = _window(kernel, stride, [(p, p) for p in padding])
    return batched(g, x, n, lambda x: g.op("AveragePool", x, **window, ceil_mode=int(ceil_mode), count_include_pad=int(count_pad)))


@translates("avg_pool")
def _sum_pool(g: Graph, x: Var, kernel: tuple, stride: tuple, pads: tuple, dilation: tuple, sizes: tuple) -> Var:
    """Sums: what is divided by how many there are comes after it."""
    mean = batched(g, x, len(kernel), lambda x: g.op("AveragePool", x, **_window(kernel, stride, pads), count_include_pad=1))
    return g.op("Mul", mean, g.scalar(float(np.prod(kernel)), x.dtype))


def _adaptive(g: Graph, x: Var, size: Any, kind: str) -> Any:
    n = int(g.called[-2])
    spatial = x.shape[-n:]
    size = [s if want is None else want for s, want in zip(spatial, several(size, n) if size is not None else [None] * n)]
    if all(s == 1 for s in size):
        return g.op(f"Reduce{kind}", x, list(range(-n, 0)), keepdims=1)
    if any(isinstance(s, Dyn) or isinstance(o, Dyn) or s % o for s, o in zip(spatial, size)):
        return NotImplemented
    kernel = [s // o for s, o in zip(spatial, size)]
    pool = "AveragePool" if kind == "Mean" else "MaxPool"
    return batched(g, x, n, lambda x: g.op(pool, x, **_window(kernel, kernel, [(0, 0)] * n)))


@whole("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def _adaptive_avg(g: Graph, x: Var, size: Any) -> Any:
    return _adaptive(g, x, size, "Mean")


@whole("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", when=lambda x, size, return_indices=False: not return_indices)
def _adaptive_max(g: Graph, x: Var, size: Any, return_indices: bool = False) -> Any:
    return _adaptive(g, x, size, "Max")
