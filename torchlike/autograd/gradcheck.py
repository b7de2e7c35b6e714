"""gradcheck and gradgradcheck: analytic gradients against finite differences."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from .._tensor import Tensor, as_tensor_value
from .engine import grad


class GradcheckError(RuntimeError):
    """gradcheck failed; the text names output, input and both Jacobians."""


def _tensors(x) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _outputs(func: Callable, inputs: tuple) -> list[Tensor]:
    return [o for o in _tensors(func(*inputs)) if isinstance(o, Tensor) and o.dtype.category >= 2]


@contextmanager
def _written(source: Tensor, values: np.ndarray) -> Iterator[None]:
    """The input itself holds other values: func may reach it otherwise than as its argument, as a module does its parameters."""
    data = source.data
    before = data.clone()
    data.copy_(as_tensor_value(values))
    try:
        yield
    finally:
        data.copy_(before)


def _numerical(func: Callable, inputs: tuple, which: int, eps: float) -> list[np.ndarray]:
    """Central differences of every output by input `which`: (input size, output size) each."""
    source = inputs[which]
    base = np.array(source.detach()._host_array())
    columns: list[list] = []
    steps = [eps] if not source.dtype.is_complex else [eps, 1j * eps]
    for i in range(base.size):
        slopes = []
        for step in steps:
            ends = []
            for sign in (1, -1):
                moved = base.copy()
                moved.reshape(-1)[i] += sign * step
                with _written(source, moved):
                    ends.append([o.detach()._host_array().reshape(-1).astype(np.complex128 if o.dtype.is_complex else np.float64)
                                 for o in _outputs(func, inputs)])
            slopes.append([(a - b) / (2 * eps) for a, b in zip(*ends)])
        columns.append([s[0] if len(s) == 1 else s for s in zip(*slopes)])
    n = len(_outputs(func, inputs))
    return [np.array([c[k] for c in columns]) for k in range(n)]


def _analytical(output: Tensor, source: Tensor) -> np.ndarray:
    """(input size, output size) by one backward per output element."""
    columns = []
    flat = output.reshape(-1)
    for k in range(flat.numel()):
        unit = np.zeros(flat.numel(), output.dtype.np)
        unit[k] = 1
        g, = grad(flat, source, as_tensor_value(unit), retain_graph=True, allow_unused=True) if output.requires_grad else (None,)
        columns.append(np.zeros(source.numel(), source.dtype.np) if g is None else g.detach()._host_array().reshape(-1))
    return np.array(columns).T.reshape(source.numel(), flat.numel())


def gradcheck(func: Callable, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
              masked: bool | None = None) -> bool:
    """Whether backward agrees with finite differences of func, for each float64 or complex128 input that requires grad."""
    try:
        _check(func, _tensors(inputs), eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs: tuple, eps: float, atol: float, rtol: float, nondet_tol: float) -> None:
    checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")
    for i in checked:
        if inputs[i].dtype.name not in ("float64", "complex128"):
            import warnings
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail if all "
                          "the inputs are not of double precision floating point or complex. ", stacklevel=3)
    outputs = _outputs(func, inputs)
    for i in checked:
        numerical = _numerical(func, inputs, i, eps)
        for k, (output, n) in enumerate(zip(outputs, numerical)):
            a = _analytical(output, inputs[i])
            again = _analytical(output, inputs[i])
            if a.size and np.abs(a - again).max() > nondet_tol:
                raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
                                     "values, although analytical gradient matches numerical gradient.")
            if n.ndim == 3 or a.dtype.kind == "c" or n.dtype.kind == "c":
                ok = _complex_close(n, a, output, inputs[i], atol, rtol)
            else:
                ok = np.allclose(a, n, rtol, atol)
            if not ok:
                raise GradcheckError(f"Jacobian mismatch for output {k} with respect to input {i},\nnumerical:{n}\nanalytical:{a}\n")


def _complex_close(n, a, output: Tensor, source: Tensor, atol: float, rtol: float) -> bool:
    """torch's convention: the gradient of real L is dL/dRe + i dL/dIm; for complex outputs L = Re(output element)."""
    if source.dtype.is_complex:
        real, imaginary = n[:, 0], n[:, 1]
        return np.allclose(a, real.real + 1j * imaginary.real, rtol, atol)
    return np.allclose(a, n.real, rtol, atol)


def gradgradcheck(func: Callable, inputs, grad_outputs=None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
                  check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
                  fast_mode: bool = False, masked: bool = False) -> bool:
    """gradcheck of the backward: second derivatives against finite differences of first ones."""
    parts = _tensors(inputs)
    if grad_outputs is None:
        draw = np.random.default_rng(0)
        made = [draw.standard_normal(tuple(o.shape)) + (1j * draw.standard_normal(tuple(o.shape)) if o.dtype.is_complex else 0)
                for o in _outputs(func, parts)]
        grads = tuple(as_tensor_value(np.asarray(m).astype(o.dtype.np)).requires_grad_() for m, o in zip(made, _outputs(func, parts)))
    else:
        grads = _tensors(grad_outputs)
    n = len(parts)

    def first(*args):
        sources = [x for x in args[:n] if isinstance(x, Tensor) and x.requires_grad]
        return grad(_outputs(func, args[:n]), sources, args[n:], create_graph=True, allow_unused=True, materialize_grads=True)
    return gradcheck(first, (*parts, *grads), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol)
