"""What every fake quantization has: the base that users derive theirs from, and that libraries (fvcore) ask for."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..._core.dtype import uint8
from ..._tensor import Tensor
from ...nn.modules.module import Module
from ...ops.from_data import tensor
from .observer import _WithArguments


class FakeQuantizeBase(_WithArguments, ABC, Module):
    """A module that rounds as quantization would; both of its parts can be switched off, by buffers that are saved with it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=uint8))

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """x, looked at and rounded."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Whether it rounds."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """No rounding."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Whether it looks."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """No looking."""
        self.enable_observer(False)
