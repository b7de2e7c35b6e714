"""Which operations can be quantized, and how their results are observed.

An operation is named as a graph's node names it: a class of modules, a function, or a method's name.
"""
from __future__ import annotations

import operator
from typing import Any

import torchlike as torch  # its functions as graphs have them

from ....fx.node import Node
from ....nn import functional
from ....nn.modules import activation, batchnorm, channelshuffle, conv, dropout, instancenorm, normalization, pixelshuffle, pooling, rnn
from ....nn.modules.linear import Identity, Linear
from ....nn.modules.module import Module
from ....nn.utils.parametrize import type_before_parametrizations
from ...nn import intrinsic, qat
from ..qconfig_mapping import FIXED

LAYERS = {conv.Conv1d, conv.Conv2d, conv.Conv3d, Linear}
_FUSED = {intrinsic.ConvReLU1d, intrinsic.ConvReLU2d, intrinsic.ConvReLU3d, intrinsic.LinearReLU}
TRAINED = {qat.Conv1d, qat.Conv2d, qat.Conv3d, qat.Linear, *(getattr(intrinsic.qat, n) for n in intrinsic.qat.__all__ if n[0].isupper())}
WEIGHTED = {*LAYERS, *_FUSED, *TRAINED}  # modules whose weights are quantized
RECURRENT = {rnn.GRUCell, rnn.LSTMCell, rnn.RNNCell, rnn.LSTM, rnn.GRU}  # with inputs quantized as they come
PRODUCTS = {functional.linear, functional.conv1d, functional.conv2d, functional.conv3d}  # functions whose second argument is a weight
SUMS = {operator.add, torch.add, operator.mul, torch.mul}
RELUS = {activation.ReLU, functional.relu, torch.relu}
DEFAULT = {activation.ELU, activation.LeakyReLU, activation.Hardswish, instancenorm.InstanceNorm1d, instancenorm.InstanceNorm2d, instancenorm.InstanceNorm3d,
           dropout.Dropout, activation.PReLU, functional.elu, functional.hardswish, functional.leaky_relu, functional.dropout, functional.group_norm,
           functional.instance_norm, batchnorm.BatchNorm2d, batchnorm.BatchNorm3d, intrinsic.BNReLU2d, intrinsic.BNReLU3d, normalization.LayerNorm,
           functional.layer_norm}
COPIES = {pooling.AdaptiveAvgPool1d, pooling.AdaptiveAvgPool2d, pooling.AdaptiveAvgPool3d, pooling.AvgPool1d, pooling.AvgPool2d, pooling.AvgPool3d,
          activation.Hardtanh, pooling.MaxPool1d, pooling.MaxPool2d, pooling.MaxPool3d, activation.ReLU, activation.ReLU6, torch.adaptive_avg_pool1d,
          functional.adaptive_avg_pool2d, functional.adaptive_avg_pool3d, functional.hardtanh, functional.hardtanh_, functional.interpolate,
          functional.max_pool1d, functional.max_pool2d, functional.max_pool3d, functional.relu, functional.relu6, torch.avg_pool1d,
          functional.avg_pool2d, functional.avg_pool3d, torch.clamp, torch.flatten, torch.mean, operator.floordiv, "clamp", "mean", "relu",
          "relu_"}
SHAPES = {torch.narrow, torch.transpose, torch.repeat_interleave, torch.squeeze, torch.stack, torch.unsqueeze,
          functional.pixel_shuffle, functional.pixel_unshuffle, Identity, pixelshuffle.PixelShuffle, pixelshuffle.PixelUnshuffle, "contiguous", "detach", "detach_",
          "permute", "repeat", "repeat_interleave", "reshape", "resize_", "squeeze", "squeeze_", "transpose", "unsqueeze", "unsqueeze_", "view"}
SHARED = {*COPIES, *SHAPES, torch.cat}  # results are of the input's scale
# what computes on quantized tensors (torch.channel_shuffle has no observers of its own)
COMPUTED = {*COPIES, *SHAPES, torch.cat, torch.channel_shuffle, channelshuffle.ChannelShuffle}
NORMS = {functional.layer_norm, functional.group_norm, functional.instance_norm}  # functions whose weights stay floats
WEIGHTS = {**dict.fromkeys(PRODUCTS, (1, 2)), functional.layer_norm: (2, 3), functional.group_norm: (2, 3), functional.instance_norm: (3, 4)}
_OTHERS = {"masked_fill": (1, 2), "permute": None, "repeat": None, "reshape": None, "size": (1,), "transpose": None, "unsqueeze": (1,), "unsqueeze_": (1,),
           "view": None}


def kind_of(node: Any, modules: dict[str, Module]) -> Any:
    """The operation of a node, or None for what is none."""
    if not isinstance(node, Node):
        return None
    if node.op == "call_module":
        return type_before_parametrizations(modules[node.target])
    return node.target if node.op in ("call_function", "call_method") else None


def quantizable(kind: Any) -> bool:
    """Whether there is a quantized form of an operation."""
    return kind in WEIGHTED or kind in RECURRENT or kind in PRODUCTS or kind in SUMS or kind in DEFAULT or kind in SHARED or kind in FIXED or \
        kind is torch.matmul


def place_of(node: Node, arg: Any) -> str:
    """What an argument is to a node: `weight`, `bias` or `activation`."""
    places = WEIGHTS.get(node.target) if node.op == "call_function" else None
    for n, name in enumerate(("weight", "bias")):
        if (places and places[n] < len(node.args) and node.args[places[n]] is arg) or node.kwargs.get(name) is arg:
            return name
    return "activation"


def plain_arguments(node: Node) -> list[Node]:
    """The arguments of a method that are sizes, positions, masks, and so are never observed."""
    if node.op != "call_method" or node.target not in _OTHERS:
        return []
    places = _OTHERS[node.target]
    found: list[Node] = []
    for n, arg in enumerate(node.args):
        if n and (places is None or n in places):
            found += [a for a in (arg if isinstance(arg, (list, tuple)) else [arg]) if isinstance(a, Node)]
    return found
