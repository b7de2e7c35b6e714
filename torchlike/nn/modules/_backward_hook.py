"""BackwardHook: watches the gradients of one call of a module."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlike._core.history import warn
from torchlike._tensor import Tensor
from torchlike.autograd.function import Function
from torchlike.autograd.grad_mode import is_grad_enabled


def _watched(callback: Callable[[tuple], tuple], tensors: list[Tensor], zeros: bool) -> tuple:
    """The same tensors behind an identity whose backward passes the gradients through `callback`.

    `zeros`: the callback sees zeros, not None, for tensors without a gradient.
    """
    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx: Any, *values: Tensor) -> tuple:
            ctx.set_materialize_grads(zeros)
            ctx.mark_non_differentiable(*[v for v in values if not v.requires_grad])
            return values

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> tuple:
            return callback(grads)

    return BackwardHookFunction.apply(*tensors)


def _spread(indices: list[int], values: Any, size: int) -> tuple:
    """`values` at their `indices` in a tuple of `size`, None elsewhere."""
    filled: list[Any] = [None] * size
    for index, value in zip(indices, values):
        filled[index] = value
    return tuple(filled)


class BackwardHook:
    """Runs a module's full backward hooks for one call: identities around its inputs and outputs see the gradients."""

    def __init__(self, module: Any, user_hooks: list[Callable], user_pre_hooks: list[Callable]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: tuple | None = None
        self.input_indices: list[int] | None = None
        self.n_inputs = -1

    def setup_input_hook(self, args: tuple) -> tuple:
        indices = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self.n_inputs = len(args)
        if not self._differentiable([args[i] for i in indices]):
            return args
        self.input_indices = indices
        return self._replaced(args, indices, self._on_grad_input, zeros=True)

    def setup_output_hook(self, result: Any) -> Any:
        outputs = result if isinstance(result, tuple) else (result,)
        indices = [i for i, r in enumerate(outputs) if isinstance(r, Tensor)]
        self.output_indices, self.n_outputs = indices, len(outputs)
        if not self._differentiable([outputs[i] for i in indices]):
            return result
        replaced = self._replaced(outputs, indices, self._on_grad_output, zeros=False)
        return replaced if isinstance(result, tuple) else replaced[0]

    @staticmethod
    def _differentiable(tensors: list[Tensor]) -> bool:
        return is_grad_enabled() and any(t.requires_grad for t in tensors)

    @staticmethod
    def _replaced(values: tuple, indices: list[int], callback: Callable[[tuple], tuple], zeros: bool) -> tuple:
        new = list(values)
        for index, tensor in zip(indices, _watched(callback, [values[i] for i in indices], zeros)):
            new[index] = tensor
        return type(values)(*new) if hasattr(values, "_fields") else tuple(new)

    def _on_grad_output(self, grads: tuple) -> tuple:
        self.grad_outputs = _spread(self.output_indices, grads, self.n_outputs)
        for hook in self.user_pre_hooks:
            new = hook(self.module, self.grad_outputs)
            if new is not None:
                self.grad_outputs = self._checked(new, self.n_outputs, "Backward pre hook", "grad_output")
        grads = tuple(self.grad_outputs[i] for i in self.output_indices)
        if self.input_indices is None:
            self._run_without_input_grads()
        return grads

    def _run_without_input_grads(self) -> None:
        """No input requires grad: the hooks run as soon as the gradients of the outputs are known."""
        warn("Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require gradients. See "
             "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for more details.")
        for hook in self.user_hooks:
            new = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
            if new is not None and not (isinstance(new, tuple) and all(g is None for g in new)):
                raise RuntimeError("Backward hook for Modules where no input requires gradient should always return "
                                   "None or None for all gradients.")
        self.grad_outputs = None

    def _on_grad_input(self, grads: tuple) -> tuple:
        if self.grad_outputs is None:  # the gradient reached the inputs without passing through the outputs
            return grads
        grad_inputs = _spread(self.input_indices, grads, self.n_inputs)
        for hook in self.user_hooks:
            new = hook(self.module, grad_inputs, self.grad_outputs)
            if new is not None:
                grad_inputs = self._checked(new, self.n_inputs, "Backward hook", "grad_input")
        self.grad_outputs = None
        return tuple(grad_inputs[i] for i in self.input_indices)

    @staticmethod
    def _checked(new: Any, expected: int, hook: str, what: str) -> tuple:
        new = new if isinstance(new, tuple) else (new,)
        if len(new) != expected:
            raise RuntimeError(f"{hook} returned an invalid number of {what}, got {len(new)}, but expected {expected}")
        return new
