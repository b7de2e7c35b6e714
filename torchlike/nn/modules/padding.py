"""Padding layers: circular, constant, reflection, replication and zeros in 1, 2 and 3 dimensions."""
from __future__ import annotations

from torchlike._tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn.common_types import _size_any_t
from torchlike.nn.modules._forward import own_forward
from torchlike.nn.modules.module import Module
from torchlike.nn.modules.utils import _ntuple, _pair, _quadruple

__all__ = ["CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
           "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
           "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d"]

_sextuple = _ntuple(6)


class _PadNd(Module):
    """`padding` says how much to add before and after each dimension, the last one first; or one number for all."""

    __constants__ = ["padding"]
    _tuple = staticmethod(_pair)
    _mode = "constant"

    def __init__(self, padding: _size_any_t) -> None:
        super().__init__()
        self.padding = self._tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"
    _ndims: tuple[int, ...] = ()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._ndims:
            raise ValueError(f"expected {self._ndims[0]}D or {self._ndims[1]}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: _size_any_t, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with its other end."""

    _tuple, _ndims = staticmethod(_pair), (2, 3)


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with their other ends."""

    _tuple, _ndims = staticmethod(_quadruple), (3, 4)


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with their other ends."""

    _tuple, _ndims = staticmethod(_sextuple), (4, 5)


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`."""

    _tuple = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`."""

    _tuple = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`."""

    _tuple = staticmethod(_sextuple)


class ReflectionPad1d(_ReflectionPadNd):
    """Pads the last dimension with its mirror image, the edge not repeated."""

    _tuple = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads the last two dimensions with their mirror images."""

    _tuple = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads the last three dimensions with their mirror images."""

    _tuple = staticmethod(_sextuple)


class ReplicationPad1d(_ReplicationPadNd):
    """Pads the last dimension with its edge."""

    _tuple = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads the last two dimensions with their edges."""

    _tuple = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads the last three dimensions with their edges."""

    _tuple = staticmethod(_sextuple)


class _ZeroPad:
    """ConstantPad with 0."""

    def __init__(self, padding: _size_any_t) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Pads the last dimension with 0."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Pads the last two dimensions with 0."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Pads the last three dimensions with 0."""


own_forward(_ReflectionPadNd, _ReplicationPadNd)
