"""The losses of torch.nn.functional in TorchScript. They are compiled, not called."""
# ruff: noqa: UP006, UP007, UP035, UP045, A002  (the types as TorchScript calls them, the arguments as PyTorch does)
import math
from typing import Optional, Union

from ..._tensor import Tensor
from .operators import aten


def _reduction(reduction: str) -> int:
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _old(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> int:
    """The reduction, also as it was said before there was one."""
    if size_average is None and reduce is None:
        return _reduction(reduction)
    if reduce is not None and not reduce:
        return 0
    return 1 if size_average is None or size_average else 2


def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
             weight: Optional[Tensor] = None) -> Tensor:
    if weight is not None:
        raise RuntimeError("mse_loss with weights is not written in TorchScript by torchlike")
    a, b = aten.broadcast_tensors([input, target])
    return aten.mse_loss(a, b, _old(size_average, reduce, reduction))


def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    a, b = aten.broadcast_tensors([input, target])
    return aten.l1_loss(a, b, _old(size_average, reduce, reduction))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:
    a, b = aten.broadcast_tensors([input, target])
    if beta == 0.0:
        return aten.l1_loss(a, b, _old(size_average, reduce, reduction))
    return aten.smooth_l1_loss(a, b, _old(size_average, reduce, reduction), beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    a, b = aten.broadcast_tensors([input, target])
    return aten.huber_loss(a, b, _reduction(reduction), delta)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                         reduction: str = "mean") -> Tensor:
    if weight is not None:
        weight = aten.expand(weight, target.size())
    return aten.binary_cross_entropy(input, target, weight, _old(size_average, reduce, reduction))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                                     reduce: Optional[bool] = None, reduction: str = "mean", pos_weight: Optional[Tensor] = None) -> Tensor:
    return aten.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _old(size_average, reduce, reduction))


def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100,
                  reduce: Optional[bool] = None, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    return aten.cross_entropy_loss(input, target, weight, _old(size_average, reduce, reduction), ignore_index, label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100,
             reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return aten.nll_loss_nd(input, target, weight, _old(size_average, reduce, reduction), ignore_index)


def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    if reduction == "batchmean":
        return aten.kl_div(input, target, 2, log_target=log_target) / input.size(0)
    return aten.kl_div(input, target, _old(size_average, reduce, reduction), log_target=log_target)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Optional[bool] = None,
                          reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return aten.cosine_embedding_loss(input1, input2, target, margin, _old(size_average, reduce, reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Optional[bool] = None,
                        reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return aten.margin_ranking_loss(input1, input2, target, margin, _old(size_average, reduce, reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None,
                         reduction: str = "mean") -> Tensor:
    return aten.hinge_embedding_loss(input, target, margin, _old(size_average, reduce, reduction))


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                        size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return aten.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, _old(size_average, reduce, reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Optional[bool] = None, eps: float = 1e-8,
                     reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return aten.poisson_nll_loss(input, target, log_input, full, eps, _old(size_average, reduce, reduction))


def soft_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return aten.soft_margin_loss(input, target, _old(size_average, reduce, reduction))


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                      reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return aten.multi_margin_loss(input, target, p, margin, weight, _old(size_average, reduce, reduction))


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    return aten.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction), zero_infinity)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Union[Tensor, float], full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    if isinstance(var, float):
        spread = aten.full_like(input, var)
    else:
        spread = aten.clone(var)
    if spread.size() != input.size():
        if input.size()[:-1] == spread.size():
            spread = spread.unsqueeze(-1)
        elif not (input.size()[:-1] == spread.size()[:-1] and spread.size(-1) == 1):
            raise ValueError("var is of incorrect size")
    aten.clamp_(spread.detach(), min=eps)
    loss = 0.5 * (aten.log(spread) + (input - target) ** 2 / spread)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    return loss


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None,
                                reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    loss = -(target * aten.log_sigmoid(input) + (1 - target) * aten.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(input.dim() - 1) / input.size(input.dim() - 1)
    how = _old(size_average, reduce, reduction)
    if how == 0:
        return loss
    if how == 1:
        return loss.mean()
    return loss.sum()
