"""gradcheck and gradgradcheck: derivatives against finite differences."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from .._core.history import warn
from .._tensor import Tensor
from . import _jacobians as jacobians
from ._jacobians import as_tuple, part
from .engine import Gradients, grad
from .function import Function

if TYPE_CHECKING:
    from ..sparse.checking import Moved

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation: vmap of the derivative is not the derivative of each."
_UNDEFINED = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'


class GradcheckError(RuntimeError):
    """gradcheck failed; the text names output, input and both Jacobians."""


def gradcheck(func: Callable, inputs: Tensor | Sequence[Tensor], *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
              masked: bool | None = None) -> bool:
    """Whether derivatives of func agree with finite differences, for each float64 or complex128 input that requires grad.

    The backward is checked, or with `check_forward_ad` forward differentiation (too); `fast_mode` compares one random direction instead of every
    element; `check_batched_...` holds vmap of a derivative against the derivative of each. A backward is also asked for gradients of zero, and
    with `check_undefined_grad` for those of outputs that nothing used. Of sparse inputs elements that are not specified are checked as zeros, or
    with `masked` left out; forward derivatives by them are not supported.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    check = _Check(func, as_tuple(inputs), eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode, bool(masked))
    try:
        if check.nothing_to_differentiate():
            return True
        if check_backward_ad:
            check.backward()
        if check_forward_ad:
            check.forward()
        if check_batched_forward_grad:
            check.batched_forward()
        if check_backward_ad:
            check.gradients_of_zero()
            if check_batched_grad:
                check.batched()
            if check_undefined_grad:
                check.undefined()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@contextmanager
def _one(make: Callable, step: np.ndarray) -> Iterator[Tensor]:
    yield make(step)


class _Undefined(Function):
    """Lets no gradient through."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return None


class _Check:
    def __init__(self, func, inputs: tuple, eps, atol, rtol, nondet_tol, dtypes, fast, masked) -> None:
        self.func, self.inputs, self.eps, self.atol, self.rtol = func, inputs, eps, atol, rtol
        self.nondet_tol, self.dtypes, self.fast, self.masked = nondet_tol, dtypes, fast, masked
        self.checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
        for i in self.checked:
            x = inputs[i]
            if x.dtype.name not in ("float64", "complex128"):
                warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the "
                     "inputs are not of double precision floating point or complex. ")
            values = x._entries if x._sparse else x
            if any(not stride and size > 1 for stride, size in zip(values.stride(), values.shape)):
                raise RuntimeError(f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                                   "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck.")
        if not self.checked:
            raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")
        self.outputs = self._outputs()
        if any(o._sparse for o in self.outputs):
            raise ValueError("Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck.")
        draw = np.random.default_rng(0)
        self.along = {i: self._random(draw, inputs[i])[None] if fast else jacobians.directions(inputs[i]) for i in self.checked}
        self.weights = [self._random(draw, o).real for o in self.outputs]
        self._moved = self._sparse_inputs()
        self._differences: dict[int, list[np.ndarray]] = {}

    @staticmethod
    def _random(draw, x: Tensor) -> np.ndarray:
        made = draw.uniform(0.1, 1.0, tuple(x.shape)) + (1j * draw.uniform(0.1, 1.0, tuple(x.shape)) if x.dtype.is_complex else 0)
        return np.asarray(made / max(np.linalg.norm(made), 1e-12))

    def _sparse_inputs(self) -> dict[int, Moved]:
        """What moves the sparse ones among the inputs. Directions are left no elements but those."""
        if not any(self.inputs[i]._sparse for i in self.checked):
            return {}
        from ..sparse.checking import Moved
        moved = {i: Moved(self.inputs[i], self.masked) for i in self.checked if self.inputs[i]._sparse}
        for i, m in moved.items():
            self.along[i] = self.along[i] * m.specified
        return moved

    def _outputs(self, at: dict[int, Tensor] | None = None) -> list[Tensor]:
        return [o for o in as_tuple(self.func(*self._inputs_at(at))) if o.requires_grad]

    def _inputs_at(self, at: dict[int, Tensor] | None) -> tuple:
        return tuple(at.get(i, x) for i, x in enumerate(self.inputs)) if at else self.inputs

    def _differences_of(self, i: int, outputs_at: Callable) -> list[np.ndarray]:
        """Differences of what `outputs_at(inputs in the place of some)` returns."""
        if i not in self._moved:
            return jacobians.numerical(lambda _: outputs_at(None), self.inputs[i], self.along[i], self.eps)
        still = {j: m.by(np.zeros(m.specified.shape)) for j, m in self._moved.items()}  # all specify the same elements when one is moved
        moved = functools.partial(_one, self._moved[i].by)
        return jacobians.numerical(lambda x: outputs_at(still if x is None else still | {i: x}), self.inputs[i], self.along[i], self.eps, moved)

    def nothing_to_differentiate(self) -> bool:
        """Whether no output depends on an input; then differences have to be nothing, too."""
        if self.outputs:
            return False

        def all_outputs(at: dict[int, Tensor] | None) -> list[Tensor]:
            return [o for o in as_tuple(self.func(*self._inputs_at(at))) if o.dtype.category >= 2]
        for i in self.checked:
            if any(abs(n).max(initial=0) > 0 for n in self._differences_of(i, all_outputs)):
                raise GradcheckError("Numerical gradient for function expected to be zero")
        return True

    def _numerical(self, i: int) -> list[np.ndarray]:
        if i not in self._differences:
            self._differences[i] = self._differences_of(i, self._outputs)
        return self._differences[i]

    def _compare(self, k: int, i: int, numerical: np.ndarray, found: np.ndarray, of: str, mode: str = "") -> None:
        atol = self.atol
        if self.fast:  # each element may differ by atol, and these are weighed sums of all elements
            u = self.along[i]
            atol *= (u.real.sum() + u.imag.sum()) * self.weights[k].sum()
        if np.allclose(found, numerical, self.rtol, atol):
            return
        shown = [x.item() if x.size == 1 and self.fast else jacobians.numbers_like(self.inputs[i], x) for x in (numerical, found)]
        text = f"{of}Jacobian {mode}mismatch for output {k} with respect to input {i},\nnumerical:{shown[0]}\nanalytical:{shown[1]}\n"
        if self.fast:
            text += "\nThese are derivatives along one random direction, weighed at random: fast_mode=False compares every element.\n"
        raise GradcheckError(text)

    # -- backward --------------------------------------------------------------------------------------------------------

    def backward(self) -> None:
        complex_ = any(o.dtype.is_complex for o in self.outputs)
        for which in ("imaginary", "real") if complex_ else (None,):
            for k, output in enumerate(self.outputs):
                of = f"While considering the {which} part of complex outputs only, " if output.dtype.is_complex else ""
                for i in self.checked:
                    found = self._analytical(k, i, which)
                    numerical = part(self._numerical(i)[k], which)
                    self._compare(k, i, numerical @ self.weights[k].reshape(-1) if self.fast else numerical, found, of)

    def _analytical(self, k: int, i: int, which: str | None) -> np.ndarray:
        output, source = self.outputs[k], self.inputs[i]
        if self.fast:
            weights = self.weights[k] * (1j if which == "imaginary" and output.dtype.is_complex else 1)

            def run() -> np.ndarray:
                return jacobians.along_all(jacobians.vector_jacobian(output, source, weights), source, self.along[i])
        else:
            def run() -> np.ndarray:
                return jacobians.backward(output, source, self.along[i], which)
        found, again = run(), run()
        if found.size and np.abs(found - again).max() > self.nondet_tol:
            raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
                                 "values, although analytical gradient matches numerical gradient."
                                 f"The tolerance for nondeterminism was {self.nondet_tol}.")
        return found

    def gradients_of_zero(self) -> None:
        """A backward is linear."""
        sources = [self.inputs[i] for i in self.checked]
        for g, x in zip(grad(self.outputs, sources, self._zeros(), True, allow_unused=True), sources):
            if g is None:
                continue
            if g._sparse:
                from ..sparse.checking import incorrect
                if wrong := incorrect(g, x):
                    raise GradcheckError(wrong)
            if jacobians.array(g).any():
                raise GradcheckError("backward not multiplied by grad_output")
            if self.dtypes and g.dtype is not x.dtype:
                raise GradcheckError("grad is incorrect type")

    def _zeros(self) -> list[Tensor]:
        return [jacobians.tensor_like(o, np.zeros(tuple(o.shape))) for o in self.outputs]

    def batched(self) -> None:
        draw = np.random.default_rng(1)
        for k, output in enumerate(self.outputs):
            weights = [jacobians.tensor_like(output, self._random(draw, output)) for _ in range(2)]

            def run(w: Tensor, many: bool, output=output):
                return grad(output, [self.inputs[i] for i in self.checked], w, True, allow_unused=True, is_grads_batched=many)
            self._hold_batched(k, run, weights)

    def _hold_batched(self, k: int, run: Callable, weights: list[Tensor]) -> None:
        from ..ops.joining import stack
        each = [run(w, False) for w in weights]
        try:
            together = run(stack(weights), True)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{_BATCHED}") from error
        for i, found, *expected in zip(self.checked, together, *each):
            if found is not None and not np.allclose(jacobians.array(found), [jacobians.array(e) for e in expected]):
                raise GradcheckError(f"\nFor output {k} and input {i}:\n\n{_BATCHED}\n\nGot:\n{found}\n\nExpected:\n{expected}\n")

    def undefined(self) -> None:
        """A backward bears that nothing used an output."""
        n = len(self.outputs)
        for left_out in [set(range(n)), *([{k} for k in range(n)] if n > 1 else [])]:
            sources = [self.inputs[i] for i in self.checked]
            outputs = [_Undefined.apply(o) if k in left_out else o for k, o in enumerate(self._outputs())]
            try:
                found = grad(outputs, sources, self._zeros(), allow_unused=True)
            except RuntimeError as error:
                _tell_of_undefined()
                raise GradcheckError(f"Expected backward function to handle undefined output grads. {_UNDEFINED}") from error
            if any(g is not None and jacobians.array(g).any() for g in found):
                _tell_of_undefined()
                raise GradcheckError(f"Expected all input grads to be undefined or zero when all output grads are undefined or zero. {_UNDEFINED}")

    # -- forward ---------------------------------------------------------------------------------------------------------

    def forward(self) -> None:
        if self._moved:
            raise NotImplementedError("torchlike: gradcheck of forward derivatives by sparse inputs. Hand in their values, or take torch.sparse.as_sparse_gradcheck.")
        for i in self.checked:
            x, along = self.inputs[i], self.along[i]
            found = jacobians.forward(self.func, self.inputs, i, along)
            numerical = self._numerical(i)
            halves = [("", slice(None))]
            if x.dtype.is_complex and not self.fast:
                n = x.numel()
                halves = [(f"While considering the {name} part of complex inputs only, ", rows)
                          for name, rows in (("imaginary", slice(n, None)), ("real", slice(n)))]
            for k, (n, f) in enumerate(zip(numerical, found)):
                for of, rows in halves:
                    weights = self.weights[k].reshape(-1)
                    pair = (n[rows] @ weights, f[rows] @ weights) if self.fast else (n[rows], f[rows])
                    self._compare(k, i, *pair, of, "computed with forward mode ")

    def batched_forward(self) -> None:
        from ..func import vmap
        draw = np.random.default_rng(2)
        for i in self.checked:
            x = self.inputs[i]
            given = [jacobians.tensor_like(x, self._random(draw, x)) for _ in range(2)]

            def run(t: Tensor, many: bool, i=i):
                def one(t: Tensor) -> tuple:
                    return tuple(jacobians.tangents(self.func, self.inputs, i, t))
                return vmap(one)(t) if many else one(t)
            self._hold_batched(0, run, given)


def _tell_of_undefined() -> None:
    warnings.warn("Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing callers of this "
                  'function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the feature', stacklevel=4)


def gradgradcheck(func: Callable, inputs: Tensor | Sequence[Tensor], grad_outputs: Gradients | None = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
                  check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
                  fast_mode: bool = False, masked: bool = False) -> bool:
    """gradcheck of the backward: second derivatives against finite differences of first ones."""
    parts = as_tuple(inputs)
    if grad_outputs is None:
        from ..testing import make_tensor
        outputs = [o for o in as_tuple(func(*parts)) if o.requires_grad]
        grads = tuple(make_tensor(o.shape, dtype=o.dtype, device=o.device, low=-1, high=1, requires_grad=True, noncontiguous=gen_non_contig_grad_outputs)
                      for o in outputs)
    else:
        grads = as_tuple(grad_outputs)
    n = len(parts)

    def first(*args):
        args = tuple(x if not isinstance(x, Tensor) or not isinstance(p, Tensor) or x.requires_grad or not p.requires_grad
                     else x.requires_grad_() for x, p in zip(args, (*parts, *grads)))
        sources = [x for x in args[:n] if isinstance(x, Tensor) and x.requires_grad]
        outputs = [o for o in as_tuple(func(*args[:n])) if o.requires_grad]
        return tuple(g for g in grad(outputs, sources, args[n:], create_graph=True, allow_unused=True) if g is not None)
    return gradcheck(first, (*parts, *grads), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked)
