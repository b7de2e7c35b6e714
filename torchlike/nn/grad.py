"""Gradients of convolutions with respect to input and weight, as functions of shapes and the output's gradient."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlike._tensor import Tensor
from torchlike.autograd.engine import grad
from torchlike.autograd.grad_mode import enable_grad
from torchlike.nn import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(function: Callable, input: Tensor, weight: Tensor, of: int, grad_output: Tensor,
              options: tuple) -> Tensor:
    """The gradient of a convolution, linear in both arguments, by its own backward."""
    tensors = [input, weight]
    tensors[of] = grad_output.new_zeros(tensors[of].shape).requires_grad_()
    with enable_grad():
        output = function(tensors[0], tensors[1], None, *options)
    differentiable = grad_output.requires_grad or tensors[1 - of].requires_grad
    return grad(output, tensors[of], grad_output, create_graph=differentiable)[0]


def _of_shape(size: Any, like: Tensor) -> Tensor:
    return like.new_zeros(tuple(size))


def conv1d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `F.conv1d` with respect to its input of `input_size`."""
    return _gradient(F.conv1d, _of_shape(input_size, weight), weight, 0, grad_output,
                     (stride, padding, dilation, groups))


def conv1d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `F.conv1d` with respect to its weight of `weight_size`."""
    return _gradient(F.conv1d, input, _of_shape(weight_size, input), 1, grad_output,
                     (stride, padding, dilation, groups))


def conv2d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `F.conv2d` with respect to its input of `input_size`."""
    return _gradient(F.conv2d, _of_shape(input_size, weight), weight, 0, grad_output,
                     (stride, padding, dilation, groups))


def conv2d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `F.conv2d` with respect to its weight of `weight_size`."""
    return _gradient(F.conv2d, input, _of_shape(weight_size, input), 1, grad_output,
                     (stride, padding, dilation, groups))


def conv3d_input(input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `F.conv3d` with respect to its input of `input_size`."""
    return _gradient(F.conv3d, _of_shape(input_size, weight), weight, 0, grad_output,
                     (stride, padding, dilation, groups))


def conv3d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `F.conv3d` with respect to its weight of `weight_size`."""
    return _gradient(F.conv3d, input, _of_shape(weight_size, input), 1, grad_output,
                     (stride, padding, dilation, groups))
