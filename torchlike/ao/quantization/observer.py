"""What every observer and every fake quantization has: the bases that users derive theirs from, and that libraries (fvcore) ask for."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ..._core.dtype import uint8
from ..._tensor import Tensor
from ...nn.modules.module import Module
from ...ops.from_data import tensor


class _Factory:
    """A class with some of its arguments: given ones, and ones that a function makes at each construction."""

    def __init__(self, make: Callable, given: dict[str, Any], made: dict[str, Callable]) -> None:
        self.make, self.given, self.made = make, given, made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fresh = {name: make() for name, make in self.made.items() if name not in kwargs}
        return self.make(*args, **{**self.given, **fresh, **kwargs})

    def with_args(self, **kwargs: Any) -> _Factory:
        """This with more arguments."""
        return _Factory(self, kwargs, {})

    def with_callable_args(self, **kwargs: Callable) -> _Factory:
        """This with functions that give arguments."""
        return _Factory(self.make, self.given, {**self.made, **kwargs})


class ObserverBase(ABC, Module):
    """A module that looks at what passes through it, and says which scale and zero point would fit."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """x, looked at."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> _Factory:
        """The class with some of its arguments."""
        return _Factory(cls, kwargs, {})

    @classmethod
    def with_callable_args(cls, **kwargs: Callable) -> _Factory:
        """The class with functions that give arguments."""
        return _Factory(cls, {}, kwargs)


class FakeQuantizeBase(ABC, Module):
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

    @classmethod
    def with_args(cls, **kwargs: Any) -> _Factory:
        """The class with some of its arguments."""
        return _Factory(cls, kwargs, {})
