"""Fake quantization: modules that round as quantization would, for training that knows of it."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._qscheme import SCHEMES
from ..._quantized.qparams import choose_moving
from ..._tensor import Tensor
from ...nn.modules.module import Module
from ...ops.fake_quantization import fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine
from ...ops.from_data import tensor
from ...ops.queries import iinfo
from ._observers import _WithArguments
from .observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)

_AFFINE, _SYMMETRIC, _CHANNELS = SCHEMES["per_tensor_affine"], SCHEMES["per_tensor_symmetric"], SCHEMES["per_channel_symmetric"]


class FakeQuantizeBase(_WithArguments, ABC, Module):
    """A module that rounds as quantization would; both of its parts can be switched off, by buffers that are saved with it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=dt.uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=dt.uint8))

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


class FakeQuantize(FakeQuantizeBase):
    """x as `scale * (n - zero_point)` with integers n of quant_min..quant_max, by what an observer has seen. Gradients pass where nothing was clamped."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, observer: Any = MovingAverageMinMaxObserver, quant_min: int | None = None, quant_max: int | None = None, is_dynamic: bool = False,
                 **observer_kwargs: Any) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            limits = iinfo(getattr(getattr(observer, "p", None), "keywords", {}).get("dtype", observer_kwargs.get("dtype", dt.quint8)))
            if limits.min > quant_min:
                raise AssertionError("quant_min out of bound")
            if limits.max < quant_max:
                raise AssertionError("quant_max out of bound")
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        made = self.activation_post_process = observer(**observer_kwargs, is_dynamic=is_dynamic)
        self.quant_min, self.quant_max, self.is_dynamic, self.dtype, self.qscheme = made.quant_min, made.quant_max, made.is_dynamic, made.dtype, made.qscheme
        self.register_buffer("scale", tensor([1.0], dtype=dt.float32))
        self.register_buffer("zero_point", tensor([0], dtype=dt.float32 if made.qscheme is SCHEMES["per_channel_affine_float_qparams"] else dt.int32))
        self.ch_axis, self.is_per_channel = getattr(made, "ch_axis", -1), made.qscheme.name.startswith("per_channel")

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        return self.activation_post_process.calculate_qparams()

    def _look(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.activation_post_process(x)
        return self.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        """X, looked at and rounded."""
        seen = self.activation_post_process
        if self.observer_enabled[0] == 1:
            for held, made in zip((self.scale, self.zero_point), self._look(X.detach())):
                held.resize_(made.shape).copy_(made)
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.is_per_channel:
            return fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, seen.quant_min, seen.quant_max)
        return fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, seen.quant_min, seen.quant_max)

    def extra_repr(self) -> str:
        """What is on, and the scale."""
        seen = self.activation_post_process
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, quant_min={seen.quant_min}, quant_max={seen.quant_max}, "
                f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}")

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *others: Any) -> None:
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *others)


class FixedQParamsFakeQuantize(FakeQuantize):
    """The same with a scale and a zero point that are known. AssertionError for an observer that looks."""

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError("FixedQParamsFakeQuantize's observer must be a FixedQParamsObserver")
        self._observer_ctr = observer
        self.scale, self.zero_point = self.activation_post_process.scale, self.activation_post_process.zero_point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        """What is on, and the scale."""
        seen = self.activation_post_process
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, zero_point={self.zero_point}, "
                f"dtype={self.dtype}, quant_min={seen.quant_min}, quant_max={seen.quant_max}, qscheme={self.qscheme}")


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """The same with a moving average, whose scales are those of PyTorch's kernel for that: symmetric ones reach 128 steps down and 127 up,
    but only where numbers have both signs."""

    def __init__(self, observer: Any = MovingAverageMinMaxObserver, quant_min: int = 0, quant_max: int = 255, **observer_kwargs: Any) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
            raise AssertionError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver")
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=dt.int64))
        self.register_buffer("observer_enabled", tensor([1], dtype=dt.int64))
        self.is_symmetric_quant = self.qscheme in (_SYMMETRIC, _CHANNELS)

    def _look(self, x: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.activation_post_process
        seen(x)
        low, high = (t.reshape(-1).cpu().numpy().astype(np.float64) for t in (seen.min_val, seen.max_val))
        scale, zero_point = choose_moving(low, high, seen.quant_min, seen.quant_max, self.is_symmetric_quant)
        return tensor(scale, device=x.device), tensor(zero_point, device=x.device)

    def extra_repr(self) -> str:
        """What is on, and the scale."""
        seen = self.activation_post_process
        ends = f"qscheme={self.qscheme}, reduce_range={seen.reduce_range}"
        return (f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, zero_point={self.zero_point}, "
                f"dtype={self.dtype}, quant_min={seen.quant_min}, quant_max={seen.quant_max}, {ends}")


def _switch(name: str) -> Any:
    def switch(mod: Module) -> None:
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, name)()
    switch.__name__ = switch.__qualname__ = name
    switch.__doc__ = f"{name}() of a module that has it: for `model.apply`."
    return switch


disable_fake_quant, enable_fake_quant, disable_observer, enable_observer = map(_switch, ("disable_fake_quant", "enable_fake_quant", "disable_observer",
                                                                                         "enable_observer"))
default_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=dt.quint8, qscheme=_AFFINE, reduce_range=True)
default_weight_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=dt.qint8, qscheme=_SYMMETRIC,
                                                   reduce_range=False)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127, dtype=dt.qint8,
                                                               qscheme=_CHANNELS, reduce_range=False, ch_axis=0)
default_histogram_fake_quant = FakeQuantize.with_args(observer=HistogramObserver, quant_min=0, quant_max=255, dtype=dt.quint8, qscheme=_AFFINE, reduce_range=True)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=dt.quint8)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=dt.qint8,
                                                                      qscheme=_SYMMETRIC)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127,
                                                                                  dtype=dt.qint8, qscheme=_CHANNELS)
default_dynamic_fake_quant = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=True, dtype=dt.quint8,
                                                    averaging_constant=1)
default_embedding_fake_quant = FakeQuantize.with_args(observer=MovingAveragePerChannelMinMaxObserver, qscheme=SCHEMES["per_channel_affine_float_qparams"],
                                                      dtype=dt.quint8, quant_min=0, quant_max=255, ch_axis=0, averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_neg1to1_observer)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(observer=default_fixed_qparams_range_0to1_observer)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(observer=MovingAverageMinMaxObserver, quant_min=-127, quant_max=127,
                                                                                   dtype=dt.qint8, qscheme=_SYMMETRIC, eps=2 ** -12)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-127, quant_max=127, dtype=dt.qint8, qscheme=_CHANNELS, eps=2 ** -12)

__all__ = ["FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "default_affine_fixed_qparams_fake_quant", "default_dynamic_fake_quant",
           "default_embedding_fake_quant", "default_fixed_qparams_range_0to1_fake_quant", "default_fixed_qparams_range_neg1to1_fake_quant",
           "default_symmetric_fixed_qparams_fake_quant", "fused_per_channel_wt_fake_quant_range_neg_127_to_127", "fused_wt_fake_quant_range_neg_127_to_127",
           "FusedMovingAvgObsFakeQuantize", "default_fused_act_fake_quant", "default_fused_per_channel_wt_fake_quant",
           "default_fused_wt_fake_quant", "default_fake_quant", "default_histogram_fake_quant", "default_per_channel_weight_fake_quant",
           "default_weight_fake_quant", "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer"]
