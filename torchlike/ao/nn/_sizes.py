"""What a layer was made with, as the first arguments of its forms in quantization."""
from __future__ import annotations

from ...nn.modules.module import Module


def of_linear(m: Module) -> tuple:
    """(in_features, out_features, whether there is a bias)."""
    return m.in_features, m.out_features, m.bias is not None


def of_conv(m: Module) -> tuple:
    """(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, whether there is a bias, padding_mode)."""
    return m.in_channels, m.out_channels, m.kernel_size, m.stride, m.padding, m.dilation, m.groups, m.bias is not None, m.padding_mode
