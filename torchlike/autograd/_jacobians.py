"""Derivatives of a function three ways: by differences, by its backward, and forward.

All are real-linear maps: an input is moved along a direction (for complex ones, 1 or 1j times an element), and of complex outputs either
part is looked at alone.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from .._tensor import Tensor, as_tensor_value
from . import forward_ad
from .engine import grad


def as_tuple(x) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def tensor_like(x: Tensor, values) -> Tensor:
    """Numbers as a tensor of x's shape and type."""
    return as_tensor_value(np.asarray(values).astype(x.dtype.np).reshape(tuple(x.shape)), x.device)


def numbers_like(x: Tensor, values: np.ndarray) -> Tensor:
    """Numbers, of any shape, as a tensor of x's precision."""
    kind = x.dtype.to_complex() if values.dtype.kind == "c" else x.dtype.to_real()
    return as_tensor_value(np.asarray(values).astype(kind.np), x.device)


def part(values: np.ndarray, which: str | None) -> np.ndarray:
    """The real or the imaginary part; None: the values are real."""
    return values.imag if which == "imaginary" and values.dtype.kind == "c" else values.real


def array(x: Tensor) -> np.ndarray:
    """A tensor's elements, a sparse one's too; of a class with `__torch_dispatch__` one by one, as it says."""
    x = x.detach()
    if x._dispatches:
        return np.array([e.item() for e in x.reshape(-1)], x.dtype.np).reshape(tuple(x.shape))
    return (x.to_dense() if x._sparse else x)._host_array()


def directions(x: Tensor) -> np.ndarray:
    """One direction per element, and for complex inputs another per element."""
    units = np.eye(x.numel())
    if x.dtype.is_complex:
        units = np.concatenate([units, 1j * units])
    return units.reshape(len(units), *x.shape)


@contextmanager
def _written(source: Tensor, values: np.ndarray) -> Iterator[None]:
    """The input itself holds other values: func may reach it otherwise than as its argument, as a module does its parameters."""
    data = source.data
    before = data.clone()
    data.copy_(tensor_like(source, values))
    try:
        yield
    finally:
        data.copy_(before)


def _numbers(outputs: list[Tensor]) -> list[np.ndarray]:
    return [array(o).reshape(-1).astype(np.complex128 if o.dtype.is_complex else np.float64) for o in outputs]


@contextmanager
def _moved(source: Tensor, base: np.ndarray, step: np.ndarray) -> Iterator[None]:
    with _written(source, base + step):
        yield None  # the input itself


def numerical(outputs_of: Callable, source: Tensor, along: np.ndarray, eps: float, moved: Callable | None = None) -> list[np.ndarray]:
    """Central differences of each of the outputs: (directions, elements of the output).

    `outputs_of(x)` computes them with x in the place of the source, which `moved(step)` makes; or with None, while the source holds other values.
    """
    moved = moved or functools.partial(_moved, source, np.array(array(source)))
    rows: list[list[np.ndarray]] = []
    seen: list = []  # shapes and dtypes of the outputs
    for direction in along:
        ends = []
        for sign in (1, -1):
            with moved(sign * eps * direction) as other:
                outputs = outputs_of(other)
                ends.append(_numbers(outputs))
            made = [(o.shape, o.dtype) for o in outputs]
            seen = seen or made
            for (shape, dtype), (first, kind) in zip(made, seen):
                if shape != first:
                    raise AssertionError(f"Expected `func` to return outputs with the same shape when inputs are perturbed by {eps}, but got: shapes {first} "
                                         f"and {shape}.")
                if dtype is not kind:
                    raise AssertionError(f"Expected `func` to return outputs with the same dtype when inputs are perturbed by {eps}, but got: dtypes {kind} "
                                         f"and {dtype}.")
        rows.append([(a - b) / (2 * eps) for a, b in zip(*ends)])
    shapes = [row.shape for row in rows[0]] if rows else [(o.numel(),) for o in outputs_of(None)]
    return [np.array([row[k] for row in rows]).reshape(len(rows), *shape) for k, shape in enumerate(shapes)]


def vector_jacobian(output: Tensor, source: Tensor, weights: np.ndarray) -> Tensor | None:
    """The gradient that one backward gives."""
    g, = grad(output, source, tensor_like(output, weights), retain_graph=True, allow_unused=True)
    return g


def along_all(g: Tensor | None, source: Tensor, along: np.ndarray) -> np.ndarray:
    """What a gradient says of each direction."""
    if g is None:
        return np.zeros(len(along))
    return (along.reshape(len(along), source.numel()) @ array(g).reshape(-1).conj()).real


def backward(output: Tensor, source: Tensor, along: np.ndarray, which: str | None) -> np.ndarray:
    """The same matrix by one backward per element of the output."""
    gradients = np.zeros((output.numel(), source.numel()), np.result_type(along, np.complex128 if source.dtype.is_complex else np.float64))
    for k, row in enumerate(gradients):
        weights = np.zeros(output.numel(), np.complex128)
        weights[k] = 1j if which == "imaginary" and output.dtype.is_complex else 1
        g = vector_jacobian(output, source, weights if output.dtype.is_complex else weights.real)
        if g is not None:
            row[:] = array(g).reshape(-1)
    return (along.reshape(len(along), source.numel()) @ gradients.conj().T).real  # of all at once: along each alone it takes longer than the backwards


def forward(func: Callable, inputs: tuple, which: int, along: np.ndarray) -> list[np.ndarray]:
    """The same matrices by forward differentiation, a direction at a time."""
    rows: list[list[np.ndarray]] = []
    for direction in along:
        rows.append(_numbers(tangents(func, inputs, which, tensor_like(inputs[which], direction))))
    return [np.array(column) for column in zip(*rows)]


def tangents(func: Callable, inputs: tuple, which: int, tangent: Tensor) -> list[Tensor]:
    """The tangents of the outputs that have a derivative, where one input has one."""
    with forward_ad.dual_level():
        args = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
        for i, x in enumerate(inputs):
            if i == which or isinstance(x, Tensor) and x.requires_grad:
                args[i] = forward_ad.make_dual(args[i], tangent if i == which else args[i] * 0)
        outputs = [o for o in as_tuple(func(*args)) if isinstance(o, Tensor) and o.dtype.category >= 2]
        found = [forward_ad.unpack_dual(o) for o in outputs]
        return [d.primal.detach() * 0 if d.tangent is None else d.tangent for d in found]
