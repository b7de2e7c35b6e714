"""torch.nn's layers in TorchScript, where torchlike's own source is not: each function is compiled in place of a method."""
from __future__ import annotations

import functools
from types import FunctionType

from ... import nn
from ..._tensor import Tensor
from ...nn import functional as F
from ...nn.modules import batchnorm, conv
from .operators import aten

# ruff: noqa: A002  (arguments as PyTorch calls them)


def _convolution(self, input: Tensor) -> Tensor:
    if self.padding_mode != "zeros":
        return self._function(F.pad(input, self._reversed_padding_repeated_twice, self.padding_mode), self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
    return self._function(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def _batch_norm(self, input: Tensor) -> Tensor:
    if input.dim() not in self._ndims:
        raise ValueError("expected {} input (got {}D input)".format(self._ndims, input.dim()))  # noqa: UP032
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


@functools.cache
def methods() -> dict[FunctionType, FunctionType]:
    """What is compiled in place of which method."""
    return {conv._Conv.forward: _convolution, batchnorm._BatchNorm.forward: _batch_norm, nn.Flatten.forward: _flatten}


def _flatten(self, input: Tensor) -> Tensor:
    return aten.flatten(input, self.start_dim, self.end_dim)
