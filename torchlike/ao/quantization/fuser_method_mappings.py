"""Which function makes one module of a layer and what follows it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...nn.modules import activation, batchnorm, conv
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn import intrinsic

__all__ = ["fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method"]
_WITH_NORM = {conv.Conv1d: intrinsic.ConvBn1d, conv.Conv2d: intrinsic.ConvBn2d, conv.Conv3d: intrinsic.ConvBn3d}
_WITH_BOTH = {conv.Conv1d: intrinsic.ConvBnReLU1d, conv.Conv2d: intrinsic.ConvBnReLU2d, conv.Conv3d: intrinsic.ConvBnReLU3d}
_WITH_RELU = {conv.Conv1d: intrinsic.ConvReLU1d, conv.Conv2d: intrinsic.ConvReLU2d, conv.Conv3d: intrinsic.ConvReLU3d}


def _check_modes(names: str, *modules: Module) -> None:
    if len({m.training for m in modules}) > 1:
        raise AssertionError(f"{names} both must be in the same mode (train or eval).")


def _check_norm(layer: Module, bn: Module, size: str, of: str, end: str = "") -> None:
    if bn.num_features != getattr(layer, size):
        raise AssertionError(f"Output {'channel of Conv2d' if size == 'out_channels' else 'features of Linear'} must match num_features of {of}{end}")
    if not bn.affine:
        raise AssertionError(f"Only support fusing {of} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(f"Only support fusing {of} with tracking_running_stats set to True")


def fuse_conv_bn(is_qat: bool, conv: Module, bn: Module) -> Module:
    """A convolution and its normalization: one convolution in eval mode, for training a pair. AssertionError where the modes differ."""
    _check_modes("Conv and BN", conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_norm(conv, bn, "out_channels", "BatchNorm2d", ".")
    if type(conv) not in _WITH_NORM:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn)}")
    return _WITH_NORM[type(conv)](conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Module, bn: Module, relu: Module) -> Module:
    """The same with ReLU behind."""
    _check_modes("Conv and BN", conv, bn, relu)
    if is_qat:
        _check_norm(conv, bn, "out_channels", "BatchNorm2d")
    table = _WITH_BOTH if is_qat else _WITH_RELU
    if type(conv) not in table:
        raise NotImplementedError(f"Cannot fuse {'train' if is_qat else 'eval'} modules: {(conv, bn, relu)}")
    return table[type(conv)](conv, bn, relu) if is_qat else table[type(conv)](fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Module, bn: Module) -> Module:
    """A linear layer and its normalization."""
    _check_modes("Linear and BN", linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _check_norm(linear, bn, "out_features", "BatchNorm1d")
    return intrinsic.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Module, bn: Module) -> Module:
    """A transposed convolution and its normalization; not for training."""
    _check_modes("ConvTranspose and BN", convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")  # noqa: TRY002  (as torch)
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _joined(kind: type) -> Callable:
    return lambda is_qat, first, second: kind(first, second)


DEFAULT: dict[tuple, Callable] = {
    (Linear, batchnorm.BatchNorm1d): fuse_linear_bn, (Linear, activation.ReLU): _joined(intrinsic.LinearReLU),
    (batchnorm.BatchNorm2d, activation.ReLU): _joined(intrinsic.BNReLU2d), (batchnorm.BatchNorm3d, activation.ReLU): _joined(intrinsic.BNReLU3d)}
for _conv, _transposed, _norm in ((conv.Conv1d, conv.ConvTranspose1d, batchnorm.BatchNorm1d), (conv.Conv2d, conv.ConvTranspose2d, batchnorm.BatchNorm2d),
                                  (conv.Conv3d, conv.ConvTranspose3d, batchnorm.BatchNorm3d)):
    DEFAULT |= {(_conv, _norm): fuse_conv_bn, (_conv, _norm, activation.ReLU): fuse_conv_bn_relu, (_conv, activation.ReLU): _joined(_WITH_RELU[_conv]),
                (_transposed, _norm): fuse_convtranspose_bn}


def get_fuser_method(op_list: tuple, additional_fuser_method_mapping: dict[tuple, Any] | None = None) -> Callable:
    """What fuses modules of these classes. AssertionError where nothing does."""
    found = (additional_fuser_method_mapping or {}).get(op_list) or DEFAULT.get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return found
