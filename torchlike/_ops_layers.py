"""Operators of torch.ops.aten for functions of torch.nn.functional that take their arguments in another form: losses whose reduction
is a number."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ._ops_windows import WINDOWS
from ._public import FUNCTIONS
from ._tensor import Tensor
from .nn import functional

REDUCTIONS = ("none", "mean", "sum")


def _loss(f: Callable) -> Callable:
    """f whose reduction is a number, and comes after the weight."""
    weighted = "weight" in f.__annotations__ or f.__name__ == "binary_cross_entropy"

    def with_weight(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1) -> Tensor:
        return f(self, target, weight, reduction=REDUCTIONS[reduction])

    def run(self: Tensor, target: Tensor, reduction: int = 1, *rest: Any, **named: Any) -> Tensor:
        return f(self, target, **dict(zip(_REST.get(f.__name__, ()), rest)), reduction=REDUCTIONS[reduction], **named)
    return with_weight if weighted else run


_REST = {"smooth_l1_loss": ("beta",), "huber_loss": ("delta",)}


def _cross_entropy_loss(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100,
                        label_smoothing: float = 0.0) -> Tensor:
    return functional.cross_entropy(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction], label_smoothing=label_smoothing)


def _nll_loss(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100) -> Tensor:
    return functional.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


def _avg_pool(f: Callable) -> Callable:
    def run(self: Tensor, kernel_size: Any, stride: Any = (), *rest: Any, **named: Any) -> Tensor:
        return f(self, kernel_size, stride or None, *rest, **named)
    return run


def _batch_norm_no_training(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor, running_var: Tensor, momentum: float,
                            eps: float) -> tuple[Tensor, Tensor, Tensor]:
    made = functional.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    return made, input.new_zeros(0), input.new_zeros(0)


def _mean(f: Callable) -> Callable:
    """f whose reduction is the mean where none is given: Python's functions have none as their default."""
    signature = inspect.signature(f)

    def run(*args: Any, **named: Any) -> Tensor:
        return f(*args, **named) if "reduction" in signature.bind(*args, **named).arguments else f(*args, **named, reduction=1)
    return run


def _spread(f: Callable) -> Callable:
    """f of any number of tensors, which the operator has in a list."""
    return lambda tensors, *rest, **named: f(*tensors, *rest, **named)


def _assert_scalar(self: Any, assert_msg: str) -> None:
    if not self:
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None) -> None:
    for what, have, wanted in (("sizes", a.shape, size), ("strides", a.stride(), stride)):
        if wanted is not None and tuple(have) != tuple(wanted):
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {list(wanted)}, Got: {list(have)}")
    for what, have, wanted in (("dtype", a.dtype, dtype), ("layout", a.layout, layout)):
        if wanted is not None and have is not wanted:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {wanted}, Got: {have}")
    if device is not None and a.device.type != device.type:
        raise RuntimeError(f"Tensor device mismatch! Expected: {device}, Got: {a.device}")


def _to(self: Tensor, *args: Any, layout: Any = None, pin_memory: Any = None, **named: Any) -> Tensor:
    return self.to(*args, **named)


LAYERS: dict[str, Callable] = {
    "log_sigmoid": functional.logsigmoid,
    "to": _to,
    "_native_batch_norm_legit_no_training": _batch_norm_no_training,
    "_assert_scalar": _assert_scalar,
    "_assert_tensor_metadata": _assert_tensor_metadata,
    "tensordot": lambda self, other, dims_self, dims_other: FUNCTIONS["tensordot"](self, other, (dims_self, dims_other)),
    **{name: _mean(FUNCTIONS[name]) for name in ("kl_div", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "hinge_embedding_loss",
                                                 "margin_ranking_loss", "triplet_margin_loss", "ctc_loss")},
    **{name: _spread(FUNCTIONS[name]) for name in ("block_diag", "broadcast_tensors", "cartesian_prod", "meshgrid")},
    "cross_entropy_loss": _cross_entropy_loss, "nll_loss": _nll_loss, "nll_loss_nd": _nll_loss,
    **{f.__name__: _loss(f) for f in (functional.mse_loss, functional.l1_loss, functional.smooth_l1_loss, functional.huber_loss, functional.soft_margin_loss,
                                      functional.binary_cross_entropy)},
    "avg_pool2d": _avg_pool(functional.avg_pool2d), "avg_pool3d": _avg_pool(functional.avg_pool3d),
    **WINDOWS,
}
