"""Batch normalization in evaluation folded into the layer before it."""
from __future__ import annotations

import copy
from typing import Any

from torchlike._tensor import Tensor
from torchlike.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_stats(bn: Any) -> None:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of the convolution that also does what `bn` does after it. Both must be in evaluation mode."""
    _check(conv, bn)
    _check_stats(bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps,
                                                    bn.weight, bn.bias, transpose)
    return fused


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                         bn_w: Tensor | None, bn_b: Tensor | None, transpose: bool = False) -> tuple[Parameter,
                                                                                                     Parameter]:
    """The weight and bias of the fused convolution."""
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of the Linear that also does what `bn` does after it. Both must be in evaluation mode."""
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
                             f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}")
    _check_stats(bn)
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps,
                                                      bn.weight, bn.bias)
    return fused


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                           bn_w: Tensor, bn_b: Tensor) -> tuple[Parameter, Parameter]:
    """The weight and bias of the fused Linear."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _fused(weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, bn_w: Tensor | None,
           bn_b: Tensor | None, shape: list[int]) -> tuple[Parameter, Parameter]:
    scale = (var + eps).rsqrt()
    if bn_w is not None:
        scale = scale * bn_w
    new_bias = ((-mean if bias is None else bias - mean) * scale)
    if bn_b is not None:
        new_bias = new_bias + bn_b
    return (Parameter((weight * scale.reshape(shape)).detach().to(weight.dtype), weight.requires_grad),
            Parameter(new_bias.detach().to(weight.dtype), bias is not None and bias.requires_grad))
