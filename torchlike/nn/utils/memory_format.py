"""Convolution weights in another memory format."""
from __future__ import annotations

from typing import Any

from torchlike.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from torchlike.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, memory_format: Any, kinds: tuple[type, ...]) -> Module:
    for child in module.modules():
        if isinstance(child, kinds):
            child.weight.data = child.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """The weights of all Conv2d and ConvTranspose2d in `module`."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """The weights of all Conv3d and ConvTranspose3d in `module`."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
