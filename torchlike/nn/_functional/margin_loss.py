"""Losses that ask for a margin: ranking, hinge, triplet, cosine, multi-class and multi-label."""
from __future__ import annotations

import numpy as np

from ..._arguments import real
from ..._core import dtype as dt
from ..._core.registry import Op
from ..._public import named
from ..._tensor import Tensor, apply
from ...ops.basic import where
from ...ops.choosing import choose
from ...ops.underivable import refuse_gradient
from .common import demand_within, need, not_implemented, reduced, reduction_of
from .distance import pairwise_distance

# -- pairs and triplets ------------------------------------------------------------------------------------------------------


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average=None, reduce=None,
                        reduction: str = "mean") -> Tensor:
    """max(0, margin - target (input1 - input2)) for targets 1 and -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: "
                           f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} ")
    return ranking_loss(input1, input2, target, margin, reduction)


def ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    """margin_ranking_loss of all shapes that broadcast."""
    return reduced((-target * (input1 - input2) + real(margin, "margin_ranking_loss", "margin", 4)).clamp_min(0), reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average=None, reduce=None, reduction: str = "mean") -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    need(input, "hinge_embedding_loss")
    need(target, "hinge_embedding_loss", "target", 2)
    margin = real(margin, "hinge_embedding_loss", "margin", 3)
    zero = input.new_zeros(())
    near, far = where(target != -1, input, zero), where(target != 1, (margin - input).clamp_min(0), zero)
    return reduced(far + near, reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average=None, reduce=None,
                          reduction: str = "mean") -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    reduction, margin = reduction_of(size_average, reduce, reduction), real(margin, "cosine_embedding_loss", "margin", 4)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and {list(input2.shape)}.")
    eps = 1e-12
    product = (input1 * input2).sum(-1)
    cos = product / (((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)).sqrt()
    zero = cos.new_zeros(())
    near, far = where(target == 1, 1 - cos, zero), where(target == -1, (cos - margin).clamp_min(0), zero)
    return reduced(near + far, reduction)


def _same_rank(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
                           f"{anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")


def _triplet(anchor, positive, negative, margin, swap, distance, reduction) -> Tensor:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
                        swap: bool = False, size_average=None, reduce=None, reduction: str = "mean") -> Tensor:
    """max(0, margin + |anchor - positive|_p - |anchor - negative|_p) (Balntas et al. 2016)."""
    reduction = reduction_of(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    margin = real(margin, "triplet_margin_loss", "margin", 4)
    _same_rank(anchor, positive, negative)
    return _triplet(anchor, positive, negative, margin, swap, lambda a, b: pairwise_distance(a, b, p, eps), reduction)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function=None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    """triplet_margin_loss with any distance; by default pairwise_distance."""
    reduction = reduction_of(None, None, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _same_rank(anchor, positive, negative)
    return _triplet(anchor, positive, negative, margin, swap, distance_function or pairwise_distance, reduction)


# -- classes and labels ------------------------------------------------------------------------------------------------------


def _matrix(input: Tensor) -> bool:
    """Whether input is a batch; RuntimeError for other shapes than (), (C) and (N, C)."""
    if input.ndim > 2 or not (input.shape[-1] if input.ndim else 1):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    return input.ndim == 2


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight=None, size_average=None, reduce=None,
                      reduction: str = "mean") -> Tensor:
    """sum over j != y of weight[y] max(0, margin - x[y] + x[j])^p, divided by the number of classes."""
    reduction = reduction_of(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    margin = real(margin, "multi_margin_loss", "margin", 4, "Number")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    batched = _matrix(input)
    x = input if batched else input.reshape(1, -1)
    n, classes = x.shape
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if target.ndim > 1 or target.numel() != n:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected "
                           f"target size [{n}], but got {list(target.shape)}. Input has shape {list(input.shape)}.")
    if target.dtype is not dt.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.short}")
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("multi_margin_loss_cpu_kernel", input.dtype)
    refuse_gradient(weight, "multi_margin_loss", "weight")
    demand_within(target, 0, classes - 1, RuntimeError("target out of range"))
    y = target.clamp(0, classes - 1).reshape(n, 1)  # what is out of range fails at the next observation
    gaps = (margin - x.gather(1, y) + x).relu()  # a gap of just zero has no slope
    if p == 2:
        gaps = gaps * gaps
    if weight is not None:
        gaps = gaps * weight[y]
    loss = gaps.scatter(1, y, 0.0).sum(1) / classes
    return named(reduced(loss if batched or target.ndim else loss.squeeze(0), reduction), "MultiMarginLossBackward0", input)


def _label_pairs(xp, x, target):
    """(which labels count: those before the first -1, which classes are labels)."""
    valid = xp.cumsum((target < 0).astype(np.int64), axis=-1) == 0
    hot = (target[..., None] == np.arange(x.shape[-1])) & valid[..., None]
    return valid, xp.any(hot, axis=-2)


def _label_gaps(xp, x, target):
    valid, is_label = _label_pairs(xp, x, target)
    labelled = xp.take_along_axis(x, xp.clip(target, 0, x.shape[-1] - 1), -1)
    gap = 1 - labelled[..., :, None] + x[..., None, :]
    return choose(xp, valid[..., :, None] & ~is_label[..., None, :] & (gap > 0), gap, np.zeros((), x.dtype))


def _label_margins(xp, x, target):
    return xp.sum(_label_gaps(xp, x, target), axis=(-1, -2)) / np.asarray(x.shape[-1], x.dtype)


def _label_margins_vjp(xp, g, x, target):
    hit = (_label_gaps(xp, x, target) > 0).astype(x.dtype)
    valid, _ = _label_pairs(xp, x, target)
    down = choose(xp, valid, xp.sum(hit, axis=-1), np.zeros((), x.dtype))
    hot = (target[..., None] == np.arange(x.shape[-1])).astype(x.dtype)
    slope = xp.sum(hit, axis=-2) - xp.squeeze(xp.matmul(down[..., None, :], hot), -2)
    return g[..., None] * slope / np.asarray(x.shape[-1], x.dtype), None


_LABEL_MARGINS = Op("multilabel_margin_loss", _label_margins, shape=lambda x, t: (x.shape[:-1], x.dtype), vjp=_label_margins_vjp)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average=None, reduce=None, reduction: str = "mean") -> Tensor:
    """sum over labels y and non-labels j of max(0, 1 - x[y] + x[j]) / classes; labels end at the first -1."""
    reduction = reduction_of(size_average, reduce, reduction)
    if not (_matrix(input) or input.ndim):
        return multilabel_margin_loss(input.reshape(1), target.reshape(1), reduction=reduction)
    if target.shape != input.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    if target.dtype is not dt.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.short}")
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("multilabel_margin_loss_forward_out_frame", input.dtype)
    demand_within(target, -1, input.shape[-1] - 1, RuntimeError("argument #2 'target' is out of range"))
    return named(reduced(apply(_LABEL_MARGINS, (input, target)), reduction), "MultilabelMarginLossBackward0", input)
