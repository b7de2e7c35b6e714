"""Operators of torch.ops.aten that are the gradient of another one: of pads, pools, resampling, losses, norms, look-ups.

Each runs its forward on the arguments it was given (of linear ones only the shape is known: on zeros) and asks the engine for the gradient. Where an
argument is part of a graph, so is the result.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ._core.grad_mode import mode
from ._ops_backward import BACKWARDS, REDUCTIONS, operator
from ._ops_windows import WINDOWS, upsampling
from ._public import FUNCTIONS
from ._tensor import Tensor, apply
from .autograd import grad
from .autograd.grad_mode import enable_grad
from .nn import functional
from .ops.matmul import UNREAD


def _gradients(forward: Callable, inputs: tuple, grad_output: Tensor, mask: tuple | None = None) -> tuple:
    """The gradients of forward(*inputs) by the inputs that are tensors and in the mask, which are None elsewhere."""
    wanted = [isinstance(x, Tensor) and (mask is None or mask[i]) for i, x in enumerate(inputs)]
    graph = mode.enabled and any(isinstance(x, Tensor) and x.requires_grad for x in (*inputs, grad_output))
    with enable_grad():
        leaves = [x.detach().requires_grad_() if want and not (graph and x.requires_grad) else x for x, want in zip(inputs, wanted)]
        out = forward(*leaves)
        made = iter(grad(out, [x for x, want in zip(leaves, wanted) if want], grad_output, create_graph=graph, allow_unused=True))
    return tuple(next(made) if want else None for want in wanted)


def _of_first(name: str, forward: Callable, parameters: str) -> None:
    """The operator `name(grad, x, ...)`: the gradient by x of forward(x, ...)."""
    def run(grad_output: Tensor, self: Tensor, *rest: Any) -> Tensor:
        return _gradients(lambda x: forward(x, *rest), (self,), grad_output)[0]
    _define(run, name, parameters)


def _of_shape(name: str, forward: Callable, parameters: str) -> None:
    """The operator `name(grad, ...)` of a linear forward, which takes zeros in a shape: forward(make zeros, ...) returns the input and the result."""
    def run(grad_output: Tensor, *rest: Any) -> Tensor:
        found: list[Tensor] = []

        def zeros(sizes: Any) -> Tensor:
            found.append(grad_output.detach().new_zeros(sizes).requires_grad_())
            return found[0]
        graph = mode.enabled and grad_output.requires_grad
        with enable_grad():
            out = forward(zeros, *rest)
        return grad(out, found, grad_output, create_graph=graph)[0]
    _define(run, name, parameters)


def _define(run: Callable, name: str, parameters: str) -> None:
    """Publish `run`, whose parameters by position have these names, with defaults after `=`, as an operator."""
    parts = [p.strip().partition("=") for p in parameters.split(",")]
    made = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=_DEFAULTS[x] if eq else inspect.Parameter.empty) for n, eq, x in parts]
    signature = inspect.Signature(made)

    def bound(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return run(*given.args)
    bound.__name__, bound.__signature__ = name, signature
    operator(bound)


_DEFAULTS = {"None": None, "1": 1, "False": False}


# -- of one tensor ------------------------------------------------------------------------------------------------------------

for _name in ("hardshrink", "softshrink"):
    _of_first(f"{_name}_backward", getattr(functional, _name), f"{'grad_out' if _name == 'hardshrink' else 'grad_output'}, self, lambd")
_of_first("logit_backward", FUNCTIONS["logit"], "grad_output, self, eps=None")
_of_first("log_sigmoid_backward", lambda x, buffer: functional.logsigmoid(x), "grad_output, self, buffer")
_of_first("infinitely_differentiable_gelu_backward", functional.gelu, "grad, self")
_of_first("cumprod_backward", lambda x, dim, output: x.cumprod(dim), "grad, input, dim, output")
_of_first("gather_backward", lambda x, dim, index, sparse: x.gather(dim, index), "grad, self, dim, index, sparse_grad")
_of_first("masked_select_backward", lambda x, mask: x.masked_select(mask), "grad, input, mask")
_of_first("_pdist_backward", lambda x, p, pdist: functional.pdist(x, p), "grad, self, p, pdist")
_of_first("_cdist_backward", lambda x1, x2, p, cdist: FUNCTIONS["cdist"](x1, x2, p), "grad, x1, x2, p, cdist")
_of_first("rrelu_with_noise_backward", lambda x, noise, lower, upper, training, is_result: x * noise if training else functional.leaky_relu(
    x, (lower + upper) / 2), "grad_output, self, noise, lower, upper, training, self_is_result")

_of_first("soft_margin_loss_backward", lambda x, target, reduction: functional.soft_margin_loss(x, target, reduction=REDUCTIONS[reduction]),
          "grad_output, self, target, reduction")
_of_first("multi_margin_loss_backward", lambda x, target, p, margin, weight, reduction: functional.multi_margin_loss(
    x, target, p, margin, weight, reduction=REDUCTIONS[reduction]), "grad_output, self, target, p, margin, weight=None, reduction=1")
_of_first("multilabel_margin_loss_backward", lambda x, target, reduction, is_target: functional.multilabel_margin_loss(
    x, target, reduction=REDUCTIONS[reduction]), "grad_output, self, target, reduction, is_target")

for _n in (1, 2, 3):
    for _kind in ("reflection", "replication"):
        _of_first(f"{_kind}_pad{_n}d_backward", WINDOWS[f"{_kind}_pad{_n}d"], "grad_output, self, padding")
for _n in (2, 3):
    def _averages(x: Tensor, size: Any, stride: Any, padding: Any, ceil_mode: bool, include: bool, divisor: int | None, _n: int = _n) -> Tensor:
        return getattr(functional, f"avg_pool{_n}d")(x, size, stride or None, padding, ceil_mode, include, divisor)
    _of_first(f"avg_pool{_n}d_backward", _averages, "grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override")


def _averaged(grad_output: Tensor, self: Tensor) -> Tensor:
    n = 2 if self.ndim < 5 else 3
    return _gradients(lambda x: getattr(functional, f"adaptive_avg_pool{n}d")(x, tuple(grad_output.shape[-n:])), (self,), grad_output)[0]


for _n in (2, 3):
    _define(_averaged, f"_adaptive_avg_pool{_n}d_backward", "grad_output, self")


def _placed(n: int) -> Callable:
    """What a pool that kept the places of its maxima hands back to them; by its input it has a gradient, of zeros."""
    def run(grad_output: Tensor, self: Tensor, *rest: Any) -> Tensor:
        planes = apply(UNREAD, (self,)).flatten(-n) if self.requires_grad else grad_output.new_zeros((*self.shape[:-n], self.shape[-n:].numel()))
        return planes.scatter_add(-1, rest[-1].flatten(-n), grad_output.flatten(-n)).reshape(self.shape)
    return run


for _n in (2, 3):
    _define(_placed(_n), f"adaptive_max_pool{_n}d_backward", "grad_output, self, indices")
    _define(_placed(_n), f"max_pool{_n}d_with_indices_backward", "grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices")
    _define(_placed(_n), f"fractional_max_pool{_n}d_backward", "grad_output, self, kernel_size, output_size, indices")


# -- of linear functions of a tensor whose shape is known ---------------------------------------------------------------------

_SCALES = {1: "scales", 2: "scales_h, scales_w", 3: "scales_d, scales_h, scales_w"}


def _resampled(mode: str, n: int, antialias: bool) -> None:
    name, aligns, scales = upsampling(mode, n, antialias), "nearest" not in mode, "=None, ".join(_SCALES[n].split(", ")) + "=None"

    def forward(zeros: Callable, output_size: Any, input_size: Any, *rest: Any) -> Tensor:
        return WINDOWS[name](zeros(input_size), output_size, *(rest[:1] if aligns else ()), **dict(zip(_SCALES[n].split(", "), rest[aligns:])))
    _of_shape(f"{name}_backward", forward, f"grad_output, output_size, input_size, {'align_corners, ' * aligns}{scales}")


for _mode, _dims in (("nearest", (1, 2, 3)), ("nearest-exact", (1, 2, 3)), ("linear", (1,)), ("bilinear", (2,)), ("bicubic", (2,)), ("trilinear", (3,))):
    for _n in _dims:
        _resampled(_mode, _n, False)
for _mode in ("bilinear", "bicubic"):
    _resampled(_mode, 2, True)
_of_shape("trace_backward", lambda zeros, sizes: zeros(sizes).trace(), "grad, sizes")
_of_shape("unfold_backward", lambda zeros, sizes, dim, size, step: zeros(sizes).unfold(dim, size, step), "grad_in, input_sizes, dim, size, step")
_of_shape("index_select_backward", lambda zeros, sizes, dim, index: zeros(sizes).index_select(dim, index), "grad, self_sizes, dim, index")


def _selected(zeros: Callable, dim: int, indices: Tensor, sizes: Any, keepdim: bool) -> Tensor:
    found = zeros(sizes).gather(dim, indices if keepdim or not len(sizes) else indices.unsqueeze(dim))
    return found if keepdim or not len(sizes) else found.squeeze(dim)


_of_shape("value_selecting_reduction_backward", _selected, "grad, dim, indices, sizes, keepdim")


@operator
def masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: list[int]) -> Tensor:
    found, made = grad_output.masked_select(mask), grad_output.new_zeros(sizes)
    return FUNCTIONS["cat"]((found, made.flatten()[found.numel():])).reshape(sizes)


@operator
def affine_grid_generator_backward(grad: Tensor, size: list[int], align_corners: bool) -> Tensor:
    n = len(size) - 2
    theta = grad.new_zeros(size[0], n, n + 1)
    return _gradients(lambda t: functional.affine_grid(t, list(size), align_corners), (theta,), grad)[0]


@operator
def embedding_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Tensor:
    if sparse:
        return BACKWARDS["embedding_sparse_backward"](grad, indices, num_weights, padding_idx, scale_grad_by_freq)
    return BACKWARDS["embedding_dense_backward"](grad, indices, num_weights, padding_idx, scale_grad_by_freq)


@operator
def embedding_sparse_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    weight = grad.new_zeros(num_weights, grad.shape[-1])
    padding = None if padding_idx < 0 else padding_idx
    return _gradients(lambda w: functional.embedding(indices, w, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=True), (weight,), grad)[0]


# -- of several tensors, as a mask asks for ------------------------------------------------------------------------------------

for _n in (2, 3):
    def _sampled(grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool, output_mask: Any) -> tuple:
        return _gradients(lambda x, g: FUNCTIONS["grid_sampler"](x, g, interpolation_mode, padding_mode, align_corners), (input, grid), grad_output, output_mask)
    _define(_sampled, f"grid_sampler_{_n}d_backward", "grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask")


@operator
def native_batch_norm_backward(grad_out: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
                               save_mean: Tensor | None, save_invstd: Tensor | None, train: bool, eps: float, output_mask: list[bool]) -> tuple:
    shape = (1, -1, *(1,) * (input.ndim - 2))
    dims = [d for d in range(input.ndim) if d != 1]
    mean, scale = (save_mean, save_invstd) if train else (running_mean, (running_var + eps).rsqrt())
    centered = (input - mean.reshape(shape)) * scale.reshape(shape)
    g = grad_out if weight is None else grad_out * weight.reshape(shape)
    if train:
        g = g - g.mean(dims, keepdim=True) - centered * (g * centered).mean(dims, keepdim=True)
    made = (g * scale.reshape(shape), (grad_out * centered).sum(dims), grad_out.sum(dims))
    return tuple(x.to(like.dtype) if wanted else None for x, like, wanted in zip(made, (input, *(input if weight is None else weight,) * 2), output_mask))


@operator
def native_group_norm_backward(grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, N: int, C: int, HxW: int, group: int,
                               output_mask: list[bool]) -> tuple:
    parts = (N, group, C // group, HxW)
    centered = (input.reshape(parts) - mean.reshape(N, group, 1, 1)) * rstd.reshape(N, group, 1, 1)
    given = grad_out.reshape(parts)
    g = given if weight is None else given * weight.reshape(1, group, -1, 1)
    g = (g - g.mean((2, 3), keepdim=True) - centered * (g * centered).mean((2, 3), keepdim=True)) * rstd.reshape(N, group, 1, 1)
    made = g.reshape(input.shape), (given * centered).sum((0, 3)).reshape(C), given.sum((0, 3)).reshape(C)
    return tuple(x if wanted else None for x, wanted in zip(made, output_mask))


@operator
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad_output * (mask.to(grad_output.dtype) * scale)


@operator
def _prelu_kernel_backward(grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple:
    return FUNCTIONS["where"](self > 0, grad_output, weight * grad_output), FUNCTIONS["where"](self > 0, 0.0, self * grad_output)


@operator
def _weight_norm_interface_backward(grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int) -> tuple:
    return _gradients(lambda v, g: FUNCTIONS["_weight_norm"](v, g, dim), (saved_v, saved_g), grad_w)


@operator
def conv_tbc_backward(self: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> tuple:
    return _gradients(lambda x, w, b: FUNCTIONS["conv_tbc"](x, w, b, pad), (input, weight, bias), self)
