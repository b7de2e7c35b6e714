"""Losses of numbers against numbers: mse, l1, smooth_l1, huber, and the Poisson and Gaussian likelihoods."""
from __future__ import annotations

import math

from ..._arguments import real
from ..._core import dtype as dt
from ..._core.history import warn
from ..._tensor import Tensor, apply
from ...ops.blocks import in_blocks
from ...ops.choosing import choose
from ...ops.limits import within
from .common import const, demand_within, need, not_implemented, reduced, reduction_of
from .loss_op import Loss


def _sized(input: Tensor, target: Tensor, weight=None) -> tuple[Tensor, Tensor]:
    """Both tensors in their common shape; torch's warning when they differ."""
    if target.size() != input.size():
        warn(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to incorrect "
             "results due to broadcasting. Please ensure they have the same size.")
    if weight is not None and weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    from ...ops.joining import broadcast_tensors
    return (input, target) if target.size() == input.size() else broadcast_tensors(input, target)


def _float_result(kernel: str, input: Tensor, target: Tensor) -> None:
    common = dt.promote_types(input.dtype, target.dtype)
    if common.category != dt.FLOAT:
        raise not_implemented(kernel, common)


_MSE = Loss("mse_loss", lambda xp, x, t: (x - t) * (x - t), (
    lambda xp, g, x, t: g * 2 * (x - t), lambda xp, g, x, t: g * 2 * (t - x)))


def mse_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction: str = "mean", weight=None) -> Tensor:
    """(input - target)^2; with weight the mean is weighted."""
    reduction = reduction_of(size_average, reduce, reduction)
    x, t = _sized(input, target, weight)
    _float_result("mse_cpu", x, t)
    if weight is None:
        return apply(_MSE, (x, t), (reduction,))
    return _weighted(apply(_MSE, (x, t), ("none",)), weight, reduction)


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return reduced(loss, reduction)


def l1_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction: str = "mean", weight=None) -> Tensor:
    """|input - target|; with weight the mean is weighted."""
    reduction = reduction_of(size_average, reduce, reduction)
    x, t = _sized(input, target, weight)
    loss = (x - t).abs()
    return reduced(loss, reduction) if weight is None else _weighted(loss, weight, reduction)


@in_blocks
def _smooth(xp, x, t, beta):
    d = xp.abs(x - t)
    return choose(xp, d < beta, const(d, 0.5) * d * d / beta, d - const(d, 0.5) * beta)


@in_blocks
def _smooth_slope(xp, x, t, beta):
    d = x - t
    return choose(xp, xp.abs(d) < beta, d / beta, xp.sign(d))


_SMOOTH_L1 = Loss("smooth_l1_loss", _smooth, torch_name="SmoothL1LossBackward0", grads=(
    lambda xp, g, x, t, beta: g * _smooth_slope(xp, x, t, beta), lambda xp, g, x, t, beta: -g * _smooth_slope(xp, x, t, beta), None))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2 (Girshick 2015)."""
    reduction = reduction_of(size_average, reduce, reduction)
    x, t = _sized(input, target)
    beta = real(beta, "smooth_l1_loss", "beta", 4)
    if beta == 0.0:
        return reduced((x - t).abs(), reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    _float_result("smooth_l1_cpu", x, t)
    return apply(_SMOOTH_L1, (x, t, beta), (reduction,))


@in_blocks
def _huber(xp, x, t, delta):
    d = xp.abs(x - t)
    return choose(xp, d <= delta, const(d, 0.5) * d * d, delta * (d - const(d, 0.5) * delta))


def _huber_slope(xp, x, t, delta):
    return within(xp, x - t, -delta, delta)


_HUBER = Loss("huber_loss", _huber, promote="same", grads=(
    lambda xp, g, x, t, delta: g * _huber_slope(xp, x, t, delta), lambda xp, g, x, t, delta: -g * _huber_slope(xp, x, t, delta), None))


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight=None) -> Tensor:
    """d^2 / 2 where d = |input - target| <= delta, else delta (d - delta / 2) (Huber 1964)."""
    reduction = reduction_of(None, None, reduction)
    x, t = _sized(input, target, weight)
    delta = real(delta, "huber_loss", "delta", 4)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _float_result("huber_cpu", x, t)
    if weight is None:
        return apply(_HUBER, (x, t, delta), (reduction,))
    return reduced(apply(_HUBER, (x, t, delta), ("none",)) * weight, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average=None, eps: float = 1e-8,
                     reduce=None, reduction: str = "mean") -> Tensor:
    """exp(input) - target * input, or input - target * log(input + eps); full adds Stirling's approximation of log(target!)."""
    reduction = reduction_of(size_average, reduce, reduction)
    return _poisson(need(input, "poisson_nll_loss"), need(target, "poisson_nll_loss", "target", 2), log_input, full, real(eps, "poisson_nll_loss", "eps", 5), reduction)


def _poisson(input, target, log_input, full, eps, reduction) -> Tensor:
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2 with var at least eps; full adds log(2 pi) / 2 (Nix & Weigend 1994)."""
    negative = ValueError("var has negative entry/entries")
    if isinstance(var, float):
        if var < 0:
            raise negative
        from ...ops.creation import full_like
        var = full_like(input, var)
    else:
        demand_within(var, 0, math.inf, negative, nan=True)
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.ndim == var.ndim and all(a == b or b == 1 for a, b in zip(input.size(), var.size()))):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    from ...autograd.grad_mode import no_grad
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)
