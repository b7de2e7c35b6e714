"""torch.nn.functional in TorchScript. These functions are compiled, not called; `aten.name` is the operator of that name."""
# ruff: noqa: UP006, UP035, UP045, A002  (the types as TorchScript calls them, the arguments as PyTorch does)
import math
from typing import List, Optional, Union

from ..._tensor import Tensor
from ..script import annotate
from .operators import aten

# -- activations --------------------------------------------------------------------------------------------------------------


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.relu_(input) if inplace else aten.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.hardtanh_(input, 0.0, 6.0) if inplace else aten.relu6(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    return aten.hardtanh_(input, min_val, max_val) if inplace else aten.hardtanh(input, min_val, max_val)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    return aten.threshold_(input, threshold, value) if inplace else aten.threshold(input, threshold, value)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return aten.elu_(input, alpha) if inplace else aten.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.selu_(input) if inplace else aten.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return aten.celu_(input, alpha) if inplace else aten.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return aten.leaky_relu_(input, negative_slope) if inplace else aten.leaky_relu(input, negative_slope)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    return aten.rrelu_(input, lower, upper, training) if inplace else aten.rrelu(input, lower, upper, training)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.silu_(input) if inplace else aten.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.mish_(input) if inplace else aten.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.hardswish_(input) if inplace else aten.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return aten.hardsigmoid_(input) if inplace else aten.hardsigmoid(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    return aten.glu(input, dim)


def tanh(input: Tensor) -> Tensor:
    return aten.tanh(input)


def sigmoid(input: Tensor) -> Tensor:
    return aten.sigmoid(input)


def softsign(input: Tensor) -> Tensor:
    return input / (aten.abs(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    return input - aten.tanh(input)


def _softmax_dim(ndim: int) -> int:
    return 0 if ndim == 0 or ndim == 1 or ndim == 3 else 1


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(input.dim())
    return aten.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(input.dim())
    return aten.log_softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        dim = _softmax_dim(input.dim())
    return aten.softmax(-input, dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    gumbels = -aten.log(aten.exponential_(aten.empty_like(logits)))
    soft = aten.softmax((logits + gumbels) / tau, dim)
    if hard:
        index = aten.argmax(soft, dim, True)
        return aten.scatter(aten.zeros_like(logits), dim, index, 1.0) - soft.detach() + soft
    return soft


# -- dropout ------------------------------------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return aten.dropout_(input, p, training) if inplace else aten.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    return aten.alpha_dropout_(input, p, training) if inplace else aten.alpha_dropout(input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    return aten.feature_alpha_dropout_(input, p, training) if inplace else aten.feature_alpha_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    batched = input.dim() == 3
    if not batched:
        input = aten.unsqueeze_(input, 0) if inplace else aten.unsqueeze(input, 0)
    out = aten.feature_dropout_(input, p, training) if inplace else aten.feature_dropout(input, p, training)
    if not batched:
        out = aten.squeeze_(out, 0) if inplace else aten.squeeze(out, 0)
    return out


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return aten.feature_dropout_(input, p, training) if inplace else aten.feature_dropout(input, p, training)


dropout3d = dropout2d


# -- normalization ------------------------------------------------------------------------------------------------------------


def _check_batch(size: List[int]) -> None:
    count = size[0]
    for i in range(len(size) - 2):
        count *= size[i + 2]
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    if training:
        _check_batch(input.size())
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None,
                  bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    return aten.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    return aten.layer_norm(input, normalized_shape, weight, bias, eps, True)


def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    return aten.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-5) -> Tensor:
    _check_batch([input.size(0) * input.size(1) // num_groups, num_groups] + input.size()[2:])
    return aten.group_norm(input, num_groups, weight, bias, eps, True)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    dim = input.dim()
    squares = aten.unsqueeze(aten.mul(input, input), 1)
    if dim == 3:
        squares = aten.squeeze(aten.avg_pool2d(aten.pad(squares, [0, 0, size // 2, (size - 1) // 2]), [size, 1], 1), 1)
    else:
        sizes = input.size()
        squares = aten.view(squares, [sizes[0], 1, sizes[1], sizes[2], -1])
        squares = aten.pad(squares, [0, 0, 0, 0, size // 2, (size - 1) // 2])
        squares = aten.view(aten.squeeze(aten.avg_pool3d(squares, [size, 1, 1], 1), 1), sizes)
    return input / aten.pow(aten.add(aten.mul(squares, alpha), k), beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    return input / aten.expand_as(aten.clamp_min(aten.norm(input, p, [dim], True), eps), input)


# -- embeddings ---------------------------------------------------------------------------------------------------------------


def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    if padding_idx is not None:
        if padding_idx < 0:
            padding_idx = weight.size(0) + padding_idx
    else:
        padding_idx = -1
    if max_norm is not None:
        input = input.contiguous()
        aten.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return aten.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2.0,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Optional[Tensor] = None,
                  include_last_offset: bool = False, padding_idx: Optional[int] = None) -> Tensor:
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences.")
        offsets = aten.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    how = 0 if mode == "sum" else 1 if mode == "mean" else 2
    if max_norm is not None:
        aten.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return aten.embedding_bag(weight, input, offsets, scale_grad_by_freq, how, sparse, per_sample_weights, include_last_offset, padding_idx)[0]


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Optional[int] = None, ceil_mode: bool = False) -> Tensor:
    if stride is not None:
        out = aten.avg_pool1d(aten.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    else:
        out = aten.avg_pool1d(aten.pow(input, norm_type), kernel_size, padding=0, ceil_mode=ceil_mode)
    return aten.pow(aten.mul(aten.mul(aten.sign(out), aten.relu(aten.abs(out))), float(kernel_size)), 1.0 / norm_type)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: List[int], stride: Optional[List[int]] = None, ceil_mode: bool = False) -> Tensor:
    high = kernel_size[0]
    wide = kernel_size[0] if len(kernel_size) == 1 else kernel_size[1]
    if stride is not None:
        out = aten.avg_pool2d(aten.pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    else:
        out = aten.avg_pool2d(aten.pow(input, norm_type), kernel_size, padding=0, ceil_mode=ceil_mode)
    return aten.pow(aten.mul(aten.mul(aten.sign(out), aten.relu(aten.abs(out))), float(high * wide)), 1.0 / norm_type)


def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return aten.pad(input, pad, mode, value)


# -- torch and torch.functional -----------------------------------------------------------------------------------------------


def _assert(condition: bool, message: str) -> None:
    assert condition, message


def unique(input: Tensor, sorted: bool = True) -> Tensor:
    return aten._unique2(input, sorted)[0]


# -- sizes --------------------------------------------------------------------------------------------------------------------


def _resized(input: Tensor, size: Optional[List[int]], scale_factor: Optional[List[float]]) -> List[int]:
    spatial = input.dim() - 2
    out = annotate(List[int], [])
    if size is not None:
        for i in range(spatial):
            out.append(size[0] if len(size) == 1 else size[i])
    elif scale_factor is not None:
        for i in range(spatial):
            out.append(int(math.floor(float(input.size(i + 2)) * (scale_factor[0] if len(scale_factor) == 1 else scale_factor[i]))))
    else:
        raise ValueError("either size or scale_factor should be defined")
    return out


def interpolate(input: Tensor, size: Optional[Union[int, List[int]]] = None, scale_factor: Optional[Union[float, List[float]]] = None, mode: str = "nearest",
                align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    sizes: Optional[List[int]] = None
    if size is not None:
        if isinstance(size, int):
            sizes = [size]
        else:
            sizes = size
    factors: Optional[List[float]] = None
    if scale_factor is not None:
        if isinstance(scale_factor, float):
            factors = [scale_factor]
        else:
            factors = scale_factor
    dim = input.dim()
    corners = False
    if align_corners is not None:
        if mode == "nearest" or mode == "area" or mode == "nearest-exact":
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
        corners = align_corners
    if recompute_scale_factor is not None and recompute_scale_factor:
        sizes = _resized(input, sizes, factors)
        factors = None
    if mode == "area":
        area = _resized(input, sizes, factors)
        if dim == 3:
            return aten.adaptive_avg_pool1d(input, area)
        if dim == 4:
            return aten.adaptive_avg_pool2d(input, area)
        return aten.adaptive_avg_pool3d(input, area)
    if sizes is not None:
        sizes = _resized(input, sizes, None)
    if factors is not None and len(factors) == 1:
        one = factors[0]
        factors = [one for i in range(dim - 2)]
    if antialias:
        if mode == "bilinear" and dim == 4:
            return aten._upsample_bilinear2d_aa(input, sizes, corners, factors)
        if mode == "bicubic" and dim == 4:
            return aten._upsample_bicubic2d_aa(input, sizes, corners, factors)
        raise ValueError("Anti-alias option is only supported for bilinear and bicubic modes")
    if dim == 3 and mode == "nearest":
        return aten.upsample_nearest1d(input, sizes, factors)
    if dim == 4 and mode == "nearest":
        return aten.upsample_nearest2d(input, sizes, factors)
    if dim == 5 and mode == "nearest":
        return aten.upsample_nearest3d(input, sizes, factors)
    if dim == 3 and mode == "nearest-exact":
        return aten._upsample_nearest_exact1d(input, sizes, factors)
    if dim == 4 and mode == "nearest-exact":
        return aten._upsample_nearest_exact2d(input, sizes, factors)
    if dim == 5 and mode == "nearest-exact":
        return aten._upsample_nearest_exact3d(input, sizes, factors)
    if dim == 3 and mode == "linear":
        return aten.upsample_linear1d(input, sizes, corners, factors)
    if dim == 4 and mode == "bilinear":
        return aten.upsample_bilinear2d(input, sizes, corners, factors)
    if dim == 5 and mode == "trilinear":
        return aten.upsample_trilinear3d(input, sizes, corners, factors)
    if dim == 4 and mode == "bicubic":
        return aten.upsample_bicubic2d(input, sizes, corners, factors)
    raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dim}D) for the modes: nearest | linear | bilinear | bicubic | "
                              f"trilinear | area | nearest-exact (got {mode})")


def upsample(input: Tensor, size: Optional[Union[int, List[int]]] = None, scale_factor: Optional[Union[float, List[float]]] = None, mode: str = "nearest",
             align_corners: Optional[bool] = None) -> Tensor:
    return interpolate(input, size, scale_factor, mode, align_corners)


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None) -> Tensor:
    how = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    outside = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    return aten.grid_sampler(input, grid, how, outside, align_corners if align_corners is not None else False)


def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    return aten.affine_grid_generator(theta, size, align_corners if align_corners is not None else False)
