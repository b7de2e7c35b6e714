"""Steps for sparse gradients, which touch only the rows that the gradients name.

The operations have the shapes of the gradients as they come, not of their distinct rows, so that a training loop is one program.
"""

from __future__ import annotations

import numpy as np

from .._core.registry import Op
from .._public import SPARSE_FORMS
from .._tensor import Tensor, apply
from ..ops.positions import rows_add


def split(group: dict) -> tuple[dict, list[Tensor]]:
    """A group without its parameters of sparse gradients, and those."""
    if not SPARSE_FORMS:
        return group, []
    sparse = [p for p in group["params"] if p._grad is not None and p._grad._sparse]
    if not sparse:
        return group, sparse
    left = {id(p) for p in sparse}
    return {**group, "params": [p for p in group["params"] if id(p) not in left]}, sparse


def refuse(name: str, params: list[Tensor]) -> None:
    """torch's error for an optimizer that is made for strided gradients."""
    if any(p._grad._sparse for p in params):
        advice = ", please consider SparseAdam instead" if name == "Adam" else ""
        raise RuntimeError(f"{name} does not support sparse gradients{advice}")


def _distinct(xp, rows, g, n: int):
    """Rows of g added up where they are for one row; what is left over is for row n, which there is not."""
    if xp is np:
        found, inverse = np.unique(rows, return_inverse=True)
        return found, rows_add(len(found), inverse.reshape(-1), g.reshape(len(g), -1)).reshape(len(found), *g.shape[1:])
    found, inverse = xp.unique(rows, return_inverse=True, size=rows.shape[0], fill_value=n)
    return found, xp.zeros_like(g).at[inverse.reshape(-1)].add(g)


def _read(xp, x, rows):
    return x[rows] if xp is np else x.at[rows].get(mode="clip")


def _added(xp, x, rows, change):
    if xp is not np:
        return x.at[rows].add(change.astype(x.dtype), mode="drop")
    x = x.copy()
    x[rows] += change.astype(x.dtype)
    return x


def _adam(xp, p, mean, square, rows, g, size, beta1, beta2, eps):
    shape, size, beta1, beta2, eps = p.shape, *(xp.asarray(x, p.dtype) for x in (size, beta1, beta2, eps))
    p, mean, square = (x.reshape(-1, *g.shape[1:]) for x in (p, mean, square))
    rows, g = _distinct(xp, rows, g, p.shape[0])
    old_mean, old_square = _read(xp, mean, rows), _read(xp, square, rows)
    to_mean, to_square = (g - old_mean) * (1 - beta1), (g * g - old_square) * (1 - beta2)
    step = -size * ((old_mean + to_mean) / (xp.sqrt(old_square + to_square) + eps))
    made = _added(xp, p, rows, step), _added(xp, mean, rows, to_mean), _added(xp, square, rows, to_square)
    return [x.reshape(shape) for x in made]


def _adagrad(xp, p, total, rows, g, rate, eps):
    shape, rate, eps = p.shape, xp.asarray(rate, p.dtype), xp.asarray(eps, p.dtype)
    p, total = p.reshape(-1, *g.shape[1:]), total.reshape(-1, *g.shape[1:])
    rows, g = _distinct(xp, rows, g, p.shape[0])
    total = _added(xp, total, rows, g * g)
    return [_added(xp, p, rows, -rate * (g / (xp.sqrt(_read(xp, total, rows)) + eps))).reshape(shape), total.reshape(shape)]


def _like_first(n: int):
    return lambda p, *rest: [(p.shape, p.dtype)] * n


_ADAM = Op("optim_sparse_adam", _adam, shape=_like_first(3), vjp=False)
_ADAGRAD = Op("optim_sparse_adagrad", _adagrad, shape=_like_first(2), vjp=False)


def _written(op: Op, tensors: list[Tensor], grad: Tensor, numbers: tuple) -> None:
    made = apply(op, (*tensors, grad.flat(), grad._entries.to(tensors[0].dtype), *map(float, numbers)))
    for t, new in zip(tensors, made):
        t._assign(new)


def adam(p: Tensor, mean: Tensor, square: Tensor, grad: Tensor, numbers: tuple) -> None:
    """numbers: the step's size, both betas, eps."""
    if grad._nnz():
        _written(_ADAM, [p, mean, square], grad, numbers)


def adagrad(p: Tensor, total: Tensor, grad: Tensor, numbers: tuple) -> None:
    """numbers: the step's size, eps."""
    if grad._nnz():
        _written(_ADAGRAD, [p, total], grad, numbers)
