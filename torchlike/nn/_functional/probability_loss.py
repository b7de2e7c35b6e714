"""Losses of probabilities: binary cross-entropy, Kullback-Leibler divergence, logistic margins."""
from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.history import warn
from ..._core.registry import Elementwise
from ..._tensor import Tensor, apply
from ...ops.blocks import in_blocks
from ...ops.choosing import choose
from ...ops.exponentials import log1p, softplus
from ...ops.unary import logistic
from ...ops.underivable import refuse_gradient
from .activation import logsigmoid
from .common import const, demand_within, need, not_implemented, reduced, reduction_of
from .loss_op import Loss

# -- binary cross-entropy ----------------------------------------------------------------------------------------------------


def _logs(xp, x):
    """log(x) and log(1 - x), not below -100."""
    low = const(x, -100)
    return xp.maximum(xp.log(x), low), xp.maximum(log1p(xp, -x), low)


def _times(w, r):
    return r if w is None else r * w


def _bce(xp, x, t, w):
    yes, no = _logs(xp, x)
    return _times(w, (t - 1) * no - t * yes)


def _bce_grad(xp, g, x, t, w):
    return _times(w, g * (x - t) / xp.maximum((1 - x) * x, const(x, np.float32(1e-12))))


def _bce_target_grad(xp, g, x, w):
    return _times(w, -(g * (xp.log(x) - log1p(xp, -x))))


_BCE = Loss("binary_cross_entropy", _bce, (_bce_grad, _bce_target_grad, None))


def binary_cross_entropy(input: Tensor, target: Tensor, weight=None, size_average=None, reduce=None, reduction: str = "mean") -> Tensor:
    """-(target log(input) + (1 - target) log(1 - input)), logarithms not below -100; input in [0, 1]."""
    reduction = reduction_of(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. Please ensure "
                         "they have the same size.")
    if weight is not None:
        try:
            weight = weight.expand(np.broadcast_shapes(target.shape, weight.shape))
        except ValueError:
            raise RuntimeError(f"Attempting to broadcast a dimension of length {weight.shape[-1]} at -1! Mismatching argument at index 1 had "
                               f"{weight.size()}; but expected shape should be broadcastable to {list(target.size())}") from None
    for other in (target, weight):
        if other is not None and other.dtype is not input.dtype:
            raise RuntimeError(f"Found dtype {other.dtype.short} but expected {input.dtype.short}")
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("binary_cross_entropy", input.dtype)
    demand_within(input, 0, 1, RuntimeError("all elements of input should be between 0 and 1"))
    refuse_gradient(weight, "binary_cross_entropy", "weight")
    return apply(_BCE, (input, target, weight), (reduction,))


@in_blocks
def _logits(xp, x, t, w, positive):
    below = softplus(xp, -x)  # -log(sigmoid(x))
    if positive is not None:
        below = below * ((positive - 1) * t + 1)
    return _times(w, (1 - t) * x + below)


@in_blocks
def _logits_grad(xp, g, x, t, w, positive):
    if positive is None:
        return _times(w, g * (logistic(xp, x) - t))
    return _times(w, g * (1 - t - ((positive - 1) * t + 1) * logistic(xp, -x)))


def _logits_target_grad(xp, g, x, w, positive):
    slope = -x if positive is None else (positive - 1) * softplus(xp, -x) - x
    return _times(w, g * slope)


_BCE_LOGITS = Loss("binary_cross_entropy_with_logits", _logits, (_logits_grad, _logits_target_grad, None, None))
_BCE_LOGITS.edge_order = 0, 1


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight=None, size_average=None, reduce=None, reduction: str = "mean",
                                     pos_weight=None) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow; pos_weight multiplies the positive term."""
    reduction = reduction_of(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("log_sigmoid_cpu", input.dtype)
    if target.dtype.category < dt.FLOAT:
        raise RuntimeError(f"result type {input.dtype.short} can't be cast to the desired output type {target.dtype.short}")
    for x, name in ((weight, "weight"), (pos_weight, "pos_weight")):
        refuse_gradient(x, "binary_cross_entropy_with_logits", name)
    return apply(_BCE_LOGITS, (input, target, weight, pos_weight), (reduction,))


# -- divergence --------------------------------------------------------------------------------------------------------------


def _kl(xp, t, x, log_target):
    if log_target:
        return xp.exp(t) * (t - x)
    return choose(xp, t == 0, const(t, 0), t * xp.log(choose(xp, t == 0, const(t, 1), t))) - t * x


def _kl_target_grad(xp, g, t, x, log_target):
    if log_target:
        return g * xp.exp(t) * (t - x + 1)
    return g * (xp.log(t) + t / t - x)  # not a number at 0


_KL = Elementwise("kl_div", _kl, torch_name="SubBackward0", grads=(
    _kl_target_grad, lambda xp, g, t, log_target: -g * (xp.exp(t) if log_target else t)))


def kl_div(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target (log(target) - input), input a log-probability; 'batchmean' divides the sum by the batch size."""
    batchmean = reduction == "batchmean" and size_average is None and reduce is None
    if not batchmean:
        reduction = reduction_of(size_average, reduce, reduction)
        if reduction == "mean":
            warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the batch "
                 "size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                 "major release.")
    loss = _kl_loss(need(input, "kl_div"), need(target, "kl_div", "target", 2), log_target)
    if batchmean:
        return loss.sum() / input.size(0) if input.ndim else loss.sum()
    return reduced(loss, reduction)


def _kl_loss(input: Tensor, target: Tensor, log_target: bool) -> Tensor:
    if input.dtype.category < dt.FLOAT or target.dtype.category < dt.FLOAT:
        raise RuntimeError("kl_div: Integral inputs not supported.")
    return apply(_KL, (target, input), (bool(log_target),))


# -- logistic margins --------------------------------------------------------------------------------------------------------

_SOFT_MARGIN = Loss("soft_margin_loss", lambda xp, x, t: softplus(xp, -t * x), promote="same", grads=(
    lambda xp, g, x, t: -g * t * logistic(xp, -t * x), lambda xp, g, x, t: -g * x * logistic(xp, -t * x)))


def soft_margin_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)) for targets 1 and -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    need(input, "soft_margin_loss")
    need(target, "soft_margin_loss", "target", 2)
    if input.dtype.category < dt.FLOAT:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype.short}")
    refuse_gradient(target, "soft_margin_loss", "target")
    return apply(_SOFT_MARGIN, (input, target), (reduction,))


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight=None, size_average=None, reduce=None, reduction: str = "mean") -> Tensor:
    """The mean over classes (the last dimension) of the binary cross-entropy of sigmoid(input)."""
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(input.dim() - 1) / input.size(input.dim() - 1)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return reduced(loss, reduction)
