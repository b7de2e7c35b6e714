"""ExpandedWeight: a parameter whose gradient is one per example of the batch, left in `grad_sample`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlike._kinds import signature_of
from torchlike._tensor import Tensor
from torchlike.autograd.function import Function
from torchlike.func import vjp, vmap
from torchlike.nn import functional as F

__all__ = ["ExpandedWeight"]


class ExpandedWeight(Tensor):
    """Stands for a parameter in one call of a module; only layers that treat every example by itself take it."""

    def __new__(cls, orig_weight: Tensor, batch_size: int, loss_reduction: str) -> ExpandedWeight:
        if not isinstance(orig_weight, Tensor):
            raise RuntimeError(f"Can only make Expanded Weights of Tensors, got {type(orig_weight).__name__}")
        if not orig_weight.requires_grad:
            raise RuntimeError("Can only build ExpandedWeights objects of tensors that requires_grad")
        return Tensor._make_subclass(cls, orig_weight, True)

    def __init__(self, orig_weight: Tensor, batch_size: int, loss_reduction: str) -> None:
        self.orig_weight, self.batch_size, self.loss_reduction = orig_weight, batch_size, loss_reduction

    # what may be asked of it besides being handed to a layer
    shape = property(lambda self: self.orig_weight.shape)
    dtype = property(lambda self: self.orig_weight.dtype)
    device = property(lambda self: self.orig_weight.device)
    is_cuda = property(lambda self: self.orig_weight.is_cuda)
    data = property(lambda self: self.orig_weight.data)

    def data_ptr(self) -> int:
        return self.orig_weight.data_ptr()

    def get_device(self) -> int:
        return self.orig_weight.get_device()

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func not in LAYERS:
            raise RuntimeError(f"Expanded Weights encountered but cannot handle function {func.__name__}")
        named = signature_of(func).bind(*args, **kwargs or {}).arguments
        return _PerExample.apply(func, tuple(named), *named.values())


def _check_linear(named: dict[str, Any]) -> None:
    if named["input"].dim() <= 1:
        raise RuntimeError("Input does not have a batch dimension. Expanded Weights expected input of at least rank 2, got of rank "
                           f"{named['input'].dim()}")


def _check_convolution(named: dict[str, Any]) -> None:
    rank = len(named["weight"].shape)
    if named["input"].dim() != rank:
        raise RuntimeError(f"Expanded Weights only support convolution with batched input, got an unbatched input of dim {named['input'].dim()}, expected "
                           f"input of dim {rank}")


def _check_embedding(named: dict[str, Any]) -> None:
    if named["input"].dim() == 1:
        raise RuntimeError(f"Expanded Weights needs an input with a batch size, got a 1D tensor, {named['input']}")


def _check_layer_norm(named: dict[str, Any]) -> None:
    if named["input"].dim() <= len(named["normalized_shape"]):
        raise RuntimeError("Expanded Weights: Layer norm should not normalize over batch dimension for per sample gradientcomputations but got that "
                           f"normalized shape, {named['normalized_shape']}, matched input shape.")


LAYERS: dict[Callable, Callable | None] = {
    F.linear: _check_linear, F.conv1d: _check_convolution, F.conv2d: _check_convolution, F.conv3d: _check_convolution, F.embedding: _check_embedding,
    F.layer_norm: _check_layer_norm, F.group_norm: None, F.instance_norm: None}
# arguments that write somewhere, or change how gradients of the whole batch are added up; torch's gradient for an example has the padding in it
EFFECTS = {F.embedding: {"padding_idx": None, "max_norm": None, "scale_grad_by_freq": False, "sparse": False},
           F.instance_norm: {"running_mean": None, "running_var": None}}


class _PerExample(Function):
    """A layer whose backward leaves the weights' gradients for each example in `grad_sample`."""

    @staticmethod
    def forward(ctx: Any, func: Callable, names: tuple[str, ...], *values: Any) -> Tensor:
        named = dict(zip(names, values))
        _check_batch(func, named)
        if LAYERS[func] is not None:
            LAYERS[func](named)
        ctx.func, ctx.named = func, named
        return func(**{name: _plain(v) for name, v in named.items()})

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        func, named = ctx.func, ctx.named
        expanded = {name: v for name, v in named.items() if isinstance(v, ExpandedWeight)}
        if any(isinstance(v, Tensor) and v.requires_grad for name, v in named.items() if name not in expanded and name != "input"):
            raise RuntimeError("ExpandedWeights currently does not support a mixture of ExpandedWeight parameters and normal Parameters. Please file and "
                               "issue with pytorch/pytorch")
        fixed = {name: _plain(v) for name, v in named.items() if name != "input"}
        effects = EFFECTS.get(func, {})
        if func is not F.instance_norm or named.get("use_input_stats", True):
            fixed |= {name: effects[name] for name in effects.keys() & fixed.keys()}

        def of_one(x: Tensor, g: Tensor) -> tuple:
            def layer(*weights: Tensor) -> Tensor:
                return func(x.unsqueeze(0), **(fixed | dict(zip(expanded, weights))))
            return vjp(layer, *[w.orig_weight.detach() for w in expanded.values()])[1](g.unsqueeze(0))
        x = named["input"]
        for w, found in zip(expanded.values(), vmap(of_one)(x.detach(), grad)):
            _leave(w, found)
        into = vjp(lambda x: func(x, **fixed), x.detach())[1](grad)[0] if x.requires_grad else None
        return None, None, *[into if name == "input" else None for name in named]


def _plain(value: Any) -> Any:
    return value.orig_weight if isinstance(value, ExpandedWeight) else value


def _leave(weight: ExpandedWeight, found: Tensor) -> None:
    """Add to the parameter's `grad_sample`; the mean over the batch divided each example's gradient by its size."""
    if weight.loss_reduction == "mean":
        found = found * weight.batch_size
    before = getattr(weight.orig_weight, "grad_sample", None)
    weight.orig_weight.grad_sample = found if before is None else before + found


def _check_batch(func: Callable, named: dict[str, Any]) -> None:
    x = named["input"]
    if isinstance(x, ExpandedWeight):
        raise RuntimeError("Expanded Weights do not support inputs that are also ExpandedWeights. Input must be a Tensor, got "
                           f"{type(x).__name__} in function {func.__name__}")
    if not isinstance(x, Tensor):
        raise RuntimeError("Expanded Weights requires a Tensor as the first input to get the batch dimension, got "
                           f"{type(x).__name__} in function {func.__name__}")
    if x.dim() == 0:
        raise RuntimeError(f"Expanded Weights requires a batch dimension but got an input of size 0 in function {func.__name__}")
    if x.shape[0] == 0:
        raise RuntimeError(f"0 is not a valid batch size for Expanded Weights but got input tensor of {x} in function {func.__name__}")
    for w in named.values():
        if isinstance(w, ExpandedWeight) and w.batch_size != x.shape[0]:
            raise RuntimeError(f"Expected ExpandedWeights to have batch size matching input but got input batch size of {x.shape[0]} with ExpandedWeight of "
                               f"batch size {w.batch_size}")
