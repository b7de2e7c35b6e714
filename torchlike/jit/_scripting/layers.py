"""torch.nn's layers in TorchScript, where torchlike's own source is not: each function is compiled in place of a method."""
# ruff: noqa: UP006, UP035, UP045, A002  (the types as TorchScript calls them, the arguments as PyTorch does)
from __future__ import annotations

import warnings
from types import FunctionType
from typing import List, Optional

from ... import nn
from ..._tensor import Tensor
from ...nn import functional as F
from ...nn.modules import batchnorm, conv, instancenorm, padding
from .operators import aten


def _convolution(self, input: Tensor) -> Tensor:
    if self.padding_mode != "zeros":
        return self._function(F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
    return self._function(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def _with_weight(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode != "zeros":
        return self._function(F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode), weight, bias, self.stride, 0, self.dilation, self.groups)
    return self._function(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


def _transposed(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    if output_size is None:
        return self._function(input, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups, self.dilation)
    spatial = len(self.kernel_size)
    outer = 2 if input.dim() == spatial + 2 else 1
    if len(output_size) == outer + spatial:
        output_size = output_size[outer:]
    if len(output_size) != spatial:
        raise ValueError(f"for {input.dim()}D input, output_size must have {spatial} or {outer + spatial} elements (got {len(output_size)})")
    more: List[int] = []
    stride: List[int] = list(self.stride)
    pads: List[int] = list(self.padding)
    dilation: List[int] = list(self.dilation)
    kernel: List[int] = list(self.kernel_size)
    for d in range(spatial):
        low = (input.size(d + outer) - 1) * stride[d] - 2 * pads[d] + dilation[d] * (kernel[d] - 1) + 1
        if output_size[d] < low or output_size[d] > low + stride[d] - 1:
            raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {low} to {low + stride[d] - 1}")
        more.append(output_size[d] - low)
    return self._function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)


def _check_dim(self, input: Tensor) -> None:
    if input.dim() not in self._ndims:
        raise ValueError(f"expected {self._ndims} input (got {input.dim()}D input)")


def _batch_norm(self, input: Tensor) -> Tensor:
    self._check_input_dim(input)
    if self.track_running_stats:
        if self.momentum is None:
            factor = 0.0
        else:
            factor = self.momentum
        if self.training:
            aten.add_(self.num_batches_tracked, 1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training, factor, self.eps)
    return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.0 if self.momentum is None else self.momentum, self.eps)


def _sync_batch_norm(self, input: Tensor) -> Tensor:
    if input.dim() < 2:
        raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
    if self.track_running_stats:
        if self.training:
            aten.add_(self.num_batches_tracked, 1)
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps)
    return F.batch_norm(input, None, None, self.weight, self.bias, True, self.momentum, self.eps)


def _instance_norm(self, input: Tensor) -> Tensor:
    if input.dim() not in self._ndims:
        raise ValueError(f"expected {self._ndims} input (got {input.dim()}D input)")
    place = input.dim() - (self._ndims[1] - 1)
    if input.size(place) != self.num_features:
        if self.affine:
            raise ValueError(f"expected input's size at dim={place} to match num_features ({self.num_features}), but got: {input.size(place)}.")
        warnings.warn(f"input's size at dim={place} does not match num_features. You can silence this warning by not passing in num_features, "  # noqa: B028
                      "which is not used because affine=False")
    if place == 0:
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
    return self._apply_instance_norm(input)


def _apply_instance_norm(self, input: Tensor) -> Tensor:
    return aten.instance_norm(input, self.weight, self.bias, self.running_mean, self.running_var, self.training or not self.track_running_stats,
                              0.0 if self.momentum is None else self.momentum, self.eps, True)


def _flatten(self, input: Tensor) -> Tensor:
    return aten.flatten(input, self.start_dim, self.end_dim)


def _adaptive_average(self, input: Tensor) -> Tensor:
    sizes: List[int] = []
    if isinstance(self.output_size, tuple):
        for i, n in enumerate(self.output_size):
            sizes.append(input.size(i - len(self.output_size)) if n is None else n)
        return self._function(input, sizes)
    return self._function(input, self.output_size)


def _circular_pad(self, input: Tensor) -> Tensor:
    if input.dim() not in self._ndims:
        raise ValueError(f"expected {self._ndims[0]}D or {self._ndims[1]}D input (got {input.dim()}D input)")
    return F.pad(input, self.padding, self._mode)


def methods() -> dict[FunctionType, FunctionType]:
    """What is compiled in place of which method."""
    return {**{c.forward: _convolution for c in (nn.Conv1d, nn.Conv2d, nn.Conv3d)},
            **{c.forward: _adaptive_average for c in (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)},
            conv._Conv._conv_forward: _with_weight, conv._ConvTransposeNd.forward: _transposed,
            batchnorm._BatchNorm.forward: _batch_norm, batchnorm._NormBase._check_input_dim: _check_dim,
            batchnorm.SyncBatchNorm.forward: _sync_batch_norm, instancenorm._InstanceNorm.forward: _instance_norm,
            instancenorm._InstanceNorm._apply_instance_norm: _apply_instance_norm, nn.Flatten.forward: _flatten,
            padding._CircularPadNd.forward: _circular_pad}
