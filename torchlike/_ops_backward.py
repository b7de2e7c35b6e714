"""PyTorch's operators for derivatives, by their names in torch.ops.aten: what dispatch modes and classes see of a backward.

On plain tensors each is the engine's own derivative. Where a class or a mode is to see it, it is handed on under its name; only where the
derivative itself has to be differentiated, the engine's operation is recorded instead, which can be.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._arguments import as_dim
from ._core.aval import NUMBERS
from ._core.grad_mode import mode
from ._core.registry import OPS
from ._plainly import dispatching
from ._public import FUNCTIONS
from ._tensor import Tensor, apply
from .autograd.grad_mode import enable_grad

BACKWARDS: dict[str, Callable] = {}
REDUCTIONS = ("none", "mean", "sum")


def _by(name: str, inputs: tuple, statics: tuple, grads: tuple, needs: tuple, results: tuple = ()) -> tuple:
    """The derivative of operation `name` at these inputs, where `results` are what it made."""
    op = OPS[name]
    plan = op.plan(tuple([x._value.aval if isinstance(x, Tensor) else NUMBERS.get(x.__class__) for x in inputs]), statics)
    ins, outs = plan.saved(needs)
    return apply(op.backward, (*[inputs[i] for i in ins], *[results[i] for i in outs], *grads), (plan, needs))


def _seen(x: Any) -> bool:
    return isinstance(x, Tensor) and (x._dispatches or x._storage is None and type(x._value).__name__ == "Held")


def _in_order(name: str, args: tuple, kwargs: dict) -> tuple:
    """The arguments by position, those too that came under the operator's names for them; these leave `kwargs`."""
    from ._ops import aten
    found = list(args)
    for argument in getattr(aten, name).default._schema.arguments[len(args):]:
        if argument.kwarg_only or argument.name not in kwargs:
            break
        found.append(kwargs.pop(argument.name))
    return tuple(found)


def operator(f: Callable) -> Callable:
    """f as the operator of its name."""
    name = f.__name__.removesuffix("_op")

    def run(*args: Any, **kwargs: Any) -> Any:
        from . import _leaves
        if kwargs:
            args = _in_order(name, args, kwargs)
        if (_leaves.state.stack or not dispatching.disabled and any(map(_seen, args))) and not (
                mode.enabled and any(isinstance(a, Tensor) and a._edge is not None for a in args)):
            from ._ops import aten
            return _leaves.hand_on(getattr(aten, name).default, *[_leaves.shown(a._value) if _seen(a) and not a._dispatches else a for a in args], **kwargs)
        return f(*args, **kwargs)
    run.__name__ = name
    BACKWARDS[name] = run
    return run


def _single(op: str, name: str, result: bool = False, statics: Callable = lambda x, *rest: (), inputs: Callable = lambda *rest, **named: ()) -> None:
    """An operator `(grad, input or result, *rest)` that is the derivative of an operation of one tensor."""
    def run(grad_output: Tensor, self: Tensor, *rest: Any, **named: Any) -> Tensor:
        more = inputs(*rest, **named)
        needs = (True, *[False] * len(more))
        return _by(op, (self, *more), statics(self, *rest, **named), (grad_output,), needs, (self,) if result else ())[0]
    run.__name__ = name
    operator(run)


def _dim(x: Tensor, dim: int, input_dtype: Any) -> tuple[int]:
    return (as_dim(dim, x.ndim),)


_single("sigmoid", "sigmoid_backward", True)
_single("tanh", "tanh_backward", True)
_single("gelu", "gelu_backward", statics=lambda x, approximate="none": (approximate == "tanh",))
for _name in ("silu", "mish", "hardswish", "hardsigmoid"):
    _single(_name, f"{_name}_backward")
_single("leaky_relu", "leaky_relu_backward", inputs=lambda slope, is_result: (slope,))
_single("hardtanh", "hardtanh_backward", inputs=lambda low, high: (low, high))
_single("softplus", "softplus_backward", inputs=lambda beta, threshold: (beta, threshold))
_single("softmax", "_softmax_backward_data", True, statics=_dim)
_single("log_softmax", "_log_softmax_backward_data", True, statics=_dim)


@operator
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: float) -> Tensor:
    return grad_output.masked_fill(self <= threshold, 0)


@operator
def select_backward(grad_output: Tensor, input_sizes: list[int], dim: int, index: int) -> Tensor:
    made = grad_output.new_zeros(input_sizes)
    made.select(dim, index).copy_(grad_output)
    return made


@operator
def slice_backward(grad_output: Tensor, input_sizes: list[int], dim: int, start: int, end: int, step: int) -> Tensor:
    made = grad_output.new_zeros(input_sizes)
    made[(slice(None),) * (dim % len(input_sizes)) + (slice(start, end, step),)].copy_(grad_output)
    return made


@operator
def embedding_dense_backward(grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    flat = indices.reshape(-1)
    if padding_idx >= 0:
        grad_output = grad_output.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    rows = grad_output.reshape(-1, grad_output.shape[-1])
    if scale_grad_by_freq:
        rows = rows / FUNCTIONS["bincount"](flat, minlength=num_weights)[flat].unsqueeze(-1)
    return rows.new_zeros(num_weights, rows.shape[-1]).index_add_(0, flat, rows)


@operator
def native_layer_norm_backward(grad_out: Tensor, input: Tensor, normalized_shape: list[int], mean: Tensor, rstd: Tensor, weight: Tensor | None,
                               bias: Tensor | None, output_mask: list[bool]) -> tuple:
    centered = (input - mean) * rstd
    dims, lead = list(range(input.ndim - len(normalized_shape), input.ndim)), list(range(input.ndim - len(normalized_shape)))
    g = grad_out if weight is None else grad_out * weight
    x = (g - g.mean(dims, keepdim=True) - centered * (g * centered).mean(dims, keepdim=True)) * rstd if output_mask[0] else None
    total = lambda t: t.sum(lead) if lead else t  # noqa: E731
    return x, total(grad_out * centered) if output_mask[1] else None, total(grad_out) if output_mask[2] else None


@operator
def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    g = (self - target) * grad_output * 2
    return g / self.numel() if reduction == 1 else g


@operator
def convolution_backward(grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: list[int] | None, stride: list[int], padding: list[int],
                          dilation: list[int], transposed: bool, output_padding: list[int], groups: int, output_mask: list[bool]) -> tuple:
    from ._ops import aten
    with enable_grad():
        x, w = input.detach().requires_grad_(), weight.detach().requires_grad_()
        out = aten.convolution.default(x, w, None, stride, padding, dilation, transposed, output_padding, groups)
    out.backward(grad_output)
    bias = grad_output.sum((0, *range(2, grad_output.dim()))) if output_mask[2] else None
    return x.grad if output_mask[0] else None, w.grad if output_mask[1] else None, bias


@operator
def diagonal_backward(grad_output: Tensor, input_sizes: list[int], offset: int, dim1: int, dim2: int) -> Tensor:
    made = grad_output.new_zeros(input_sizes)
    made.diagonal(offset, dim1, dim2).copy_(grad_output)
    return made


@operator
def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    return _by("glu", (self,), (dim % self.ndim,), (grad_output,), (True,))[0]


@operator
def elu_backward(grad_output: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, self_or_result: Tensor) -> Tensor:
    if is_result:
        raise NotImplementedError("torchlike: aten.elu_backward of the result. Hand the input in, with is_result=False.")
    return _by("elu", (self_or_result, float(alpha), float(scale), float(input_scale)), (), (grad_output,), (True, False, False, False))[0]


@operator
def binary_cross_entropy_backward(grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1) -> Tensor:
    return _by("binary_cross_entropy", (self, target, weight), (REDUCTIONS[reduction],), (grad_output,), (True, False, False))[0]


@operator
def smooth_l1_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    return _by("smooth_l1_loss", (self, target, float(beta)), (REDUCTIONS[reduction],), (grad_output,), (True, False, False))[0]


@operator
def huber_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    return _by("huber_loss", (self, target, float(delta)), (REDUCTIONS[reduction],), (grad_output,), (True, False, False))[0]


def _picked(self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
    """For each target the index (with the classes' dimension) and its weight."""
    kept = target != ignore_index
    index = target.masked_fill(kept.logical_not(), 0)
    factor = kept.to(self.dtype) if weight is None else weight[index] * kept
    dim = 1 if self.ndim > 1 else 0
    return index.unsqueeze(dim), factor


@operator
def nll_loss_forward(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> tuple[Tensor, Tensor]:
    index, factor = _picked(self, target, weight, ignore_index)
    dim = 1 if self.ndim > 1 else 0
    loss, total = -self.gather(dim, index).squeeze(dim) * factor, factor.sum()
    return (loss, total.new_zeros(())) if reduction == 0 else (loss.sum() / total if reduction == 1 else loss.sum(), total)


@operator
def nll_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
                      total_weight: Tensor) -> Tensor:
    index, factor = _picked(self, target, weight, ignore_index)
    g = -grad_output * factor
    dim = 1 if self.ndim > 1 else 0
    return self.new_zeros(self.shape).scatter(dim, index, (g / total_weight if reduction == 1 else g).unsqueeze(dim))


for _form in ("forward", "backward"):  # of targets with places
    def _placed(*args: Any, _form: str = _form) -> Any:
        return BACKWARDS[f"nll_loss_{_form}"](*args)
    _placed.__name__ = f"nll_loss2d_{_form}"
    operator(_placed)
