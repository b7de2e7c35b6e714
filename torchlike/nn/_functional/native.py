"""The functions of this folder under torch's own names, where signatures differ: arguments in another order, reductions as
numbers (0 none, 1 mean, 2 sum)."""
from __future__ import annotations

from ..._public import in_place, public
from ..._tensor import Tensor
from . import (
    conv,
    ctc,
    group_normalization,
    margin_loss,
    normalization,
    piecewise,
    pooling,
    probability_loss,
    regression_loss,
)
from . import (
    dropout as _dropout,
)
from . import (
    embedding as _embedding,
)
from . import (
    embedding_bag as _bags,
)
from .common import need

_REDUCTIONS = ("none", "mean", "sum")

# -- the same signature ------------------------------------------------------------------------------------------------------

for _f in (conv.conv1d, conv.conv2d, conv.conv3d, conv.conv_transpose1d, conv.conv_transpose2d, conv.conv_transpose3d, conv.conv_tbc,
           pooling.avg_pool1d, pooling.adaptive_avg_pool1d, normalization.rms_norm):
    public(method=False)(_f)


# -- activations, dropout ----------------------------------------------------------------------------------------------------


@public(method=False)
def selu(input: Tensor) -> Tensor:
    """nn.functional.selu."""
    return piecewise.selu(input)


@public(method=False)
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """nn.functional.celu."""
    return piecewise.celu(input, alpha)


@public(method=False)
def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator=None) -> Tensor:
    """nn.functional.rrelu."""
    return piecewise.rrelu(input, lower, upper, training)


@public(method=False, out=True)
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """nn.functional.threshold."""
    return piecewise.threshold(input, threshold, value)


def _published_dropout(name: str, f) -> None:
    def run(input: Tensor, p: float, train: bool) -> Tensor:
        return f(input, p, train)
    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"nn.functional's dropout of this kind: {name}(input, p, train)."
    public(method=False)(run)
    public(method=False)(in_place(run, name + "_"))


for _name, _f in (("dropout", _dropout.dropout), ("feature_dropout", _dropout.dropout2d), ("alpha_dropout", _dropout.alpha_dropout),
                  ("feature_alpha_dropout", _dropout.feature_alpha_dropout)):
    _published_dropout(_name, _f)

# -- pooling -----------------------------------------------------------------------------------------------------------------


def _published_max_pool(n: int) -> None:
    f = getattr(pooling, f"max_pool{n}d")

    def run(input: Tensor, kernel_size, stride=(), padding=0, dilation=1, ceil_mode: bool = False) -> Tensor:
        return f(input, kernel_size, stride or None, padding, dilation, ceil_mode)
    run.__name__ = run.__qualname__ = f"max_pool{n}d"
    run.__doc__ = "nn.functional's max pooling, without indices."
    public(method=False)(run)


for _n in (1, 2, 3):
    _published_max_pool(_n)


@public(method=False)
def max_pool1d_with_indices(input: Tensor, kernel_size, stride=(), padding=0, dilation=1, ceil_mode: bool = False) -> tuple[Tensor, Tensor]:
    """The maxima and their positions."""
    return pooling.max_pool1d_with_indices(input, kernel_size, stride or None, padding, dilation, ceil_mode)


@public(method=False)
def adaptive_max_pool1d(input: Tensor, output_size) -> tuple[Tensor, Tensor]:
    """The maxima and their positions."""
    return pooling.adaptive_max_pool1d_with_indices(input, output_size)


# -- norms and tables --------------------------------------------------------------------------------------------------------


@public(method=False)
def layer_norm(input: Tensor, normalized_shape, weight=None, bias=None, eps: float = 1e-5, cudnn_enable: bool = True) -> Tensor:
    """nn.functional.layer_norm."""
    return normalization.layer_norm(input, normalized_shape, weight, bias, eps)


@public(method=False)
def group_norm(input: Tensor, num_groups: int, weight=None, bias=None, eps: float = 1e-5, cudnn_enabled: bool = True) -> Tensor:
    """nn.functional.group_norm."""
    return group_normalization.group_norm(input, num_groups, weight, bias, eps)


@public(method=False)
def batch_norm(input: Tensor, weight, bias, running_mean, running_var, training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    """nn.functional.batch_norm without its checks of sizes and eps, with weight and bias first."""
    return normalization.batch_norm_moments(need(input, "batch_norm"), running_mean, running_var, weight, bias, training, momentum, eps)[0]


@public(method=False)
def instance_norm(input: Tensor, weight, bias, running_mean, running_var, use_input_stats: bool, momentum: float, eps: float,
                  cudnn_enabled: bool) -> Tensor:
    """nn.functional.instance_norm, with weight and bias first."""
    return group_normalization.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@public(method=False)
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """nn.functional.embedding with the table first; padding_idx -1 means none."""
    return _embedding.embedding(indices, weight, None if padding_idx == -1 else padding_idx, None, 2.0, scale_grad_by_freq, sparse)


@public(method=False)
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0, sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None) -> tuple[Tensor, ...]:
    """nn.functional.embedding_bag with the table first, and what its kernel notes: each index's bag, the bags' lengths, where maxima come from."""
    if mode not in (0, 1, 2):
        raise RuntimeError(f"embedding_bag: mode has to be 0 (sum), 1 (mean) or 2 (max), not {mode}")
    made = _bags.embedding_bag(indices, weight, offsets, None, 2.0, scale_grad_by_freq, ("sum", "mean", "max")[mode], sparse, per_sample_weights,
                               include_last_offset, padding_idx)
    return made, *_bags.notes(indices, weight, offsets, mode, made.shape[0], padding_idx)


# -- losses ------------------------------------------------------------------------------------------------------------------


@public(method=False)
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """nn.functional.kl_div."""
    from .common import reduced
    return reduced(probability_loss._kl_loss(input, target, log_target), _REDUCTIONS[reduction])


@public(method=False)
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight=None, pos_weight=None, reduction: int = 0) -> Tensor:
    """nn.functional.binary_cross_entropy_with_logits."""
    return probability_loss.binary_cross_entropy_with_logits(input, target, weight, reduction=_REDUCTIONS[reduction], pos_weight=pos_weight)


@public(method=False)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """nn.functional.cosine_embedding_loss."""
    return margin_loss.cosine_embedding_loss(input1, input2, target, margin, reduction=_REDUCTIONS[reduction])


@public(method=False)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """nn.functional.hinge_embedding_loss."""
    return margin_loss.hinge_embedding_loss(input, target, margin, reduction=_REDUCTIONS[reduction])


@public(method=False)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """nn.functional.margin_ranking_loss, which refuses shapes that differ in their number of dimensions."""
    return margin_loss.ranking_loss(input1, input2, target, margin, _REDUCTIONS[reduction])


@public(method=False)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """nn.functional.poisson_nll_loss."""
    return regression_loss._poisson(input, target, log_input, full, eps, _REDUCTIONS[reduction])


@public(method=False)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6,
                        swap: bool = False, reduction: int = 0) -> Tensor:
    """nn.functional.triplet_margin_loss."""
    return margin_loss.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_REDUCTIONS[reduction])


@public(method=False)
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths, target_lengths, blank: int = 0, reduction: int = 0,
             zero_infinity: bool = False) -> Tensor:
    """nn.functional.ctc_loss."""
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _REDUCTIONS[reduction], zero_infinity)
