"""Observers: modules that look at what passes through them, and say which scale and zero point would fit."""
from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..._core import dtype as dt
from ..._core.history import warn
from ..._qscheme import SCHEMES, qscheme
from ..._tensor import Tensor
from ...nn.modules.module import Module
from ...ops.basic import where
from ...ops.creation import full
from ...ops.from_data import tensor

_AFFINE, _SYMMETRIC, _CHANNELS = SCHEMES["per_tensor_affine"], SCHEMES["per_tensor_symmetric"], SCHEMES["per_channel_affine"]
_CHANNELS_SYMMETRIC, _FLOAT_ZERO_POINTS = SCHEMES["per_channel_symmetric"], SCHEMES["per_channel_affine_float_qparams"]
_EPS = 2.0 ** -23  # of float32
_RANGES = {**dict.fromkeys((dt.qint8, dt.int8), (-128, 127)), **dict.fromkeys((dt.quint8, dt.uint8), (0, 255)),
           **dict.fromkeys((dt.qint32, dt.int32), (-(1 << 31), (1 << 31) - 1)), dt.int16: (-(1 << 15), (1 << 15) - 1), dt.uint16: (0, (1 << 16) - 1),
           **dict.fromkeys((dt.quint4x2, dt.float8_e5m2, dt.float8_e4m3fn), (0, 15))}


class _PartialWrapper:
    """A class with some of its arguments (`p`), and ones that functions make at each construction."""

    def __init__(self, p: Callable, callable_args: dict[str, Callable] | None = None) -> None:
        self.p, self.callable_args = p, callable_args or {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fresh = {name: make() for name, make in self.callable_args.items() if name not in kwargs}
        return self.p(*args, **kwargs, **fresh)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """This with more arguments."""
        return _PartialWrapper(functools.partial(self, **kwargs))

    def with_callable_args(self, **kwargs: Callable) -> _PartialWrapper:
        """This with functions that give arguments."""
        return _PartialWrapper(self.p, {**self.callable_args, **kwargs})


class _WithArguments:
    """Classes that can be named with some of their arguments."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> _PartialWrapper:
        """The class with some of its arguments."""
        return _PartialWrapper(functools.partial(cls, **kwargs))

    @classmethod
    def with_callable_args(cls, **kwargs: Callable) -> _PartialWrapper:
        """The class with functions that give arguments."""
        return _PartialWrapper(functools.partial(cls), kwargs)


class ObserverBase(_WithArguments, ABC, Module):
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


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of ranges. Integers quant_min..quant_max are those of the type, of one bit less (`reduce_range`), or given."""

    _version = 3
    eps: Tensor

    def __init__(self, dtype: Any = dt.quint8, qscheme: qscheme = _AFFINE, reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme, self.reduce_range = qscheme, reduce_range
        if reduce_range:
            warn("reduce_range of observers is deprecated in PyTorch: quant_min and quant_max say the range")
        self.register_buffer("eps", tensor([eps], **(factory_kwargs or {})))
        if qscheme not in SCHEMES.values():
            raise AssertionError("an observer's qscheme is one of torch's, per tensor or per channel")
        if dtype not in _RANGES:
            raise AssertionError(f"Default Observer only works for {tuple(_RANGES)} data type")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            self._validate_qmin_qmax(quant_min, quant_max)
            if dtype in (dt.qint8, dt.int8) and quant_max - quant_min > 255:
                raise AssertionError("quantization range should be positive and not exceed the maximum bit range (=256).")
            self.quant_min, self.quant_max = (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)
        else:
            low, high = _RANGES[dtype]
            self.quant_min, self.quant_max = (low // 2, high // 2) if reduce_range and (low, high) in ((-128, 127), (0, 255)) else (low, high)

    def _validate_qmin_qmax(self, quant_min: int, quant_max: int) -> None:
        if not quant_min <= 0 <= quant_max:
            raise AssertionError("Used-specified quantization range must include 0.")
        if quant_min >= quant_max:
            raise AssertionError("qmin must be strictly less than qmax for user-specified quantization range.")

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        if local_metadata.get("version") in (None, 1):
            state_dict[prefix + "eps"] = tensor([_EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """Scales and zero points of ranges: tensors of one element each, or of one for each channel."""
        if not _observed(min_val, max_val):
            return tensor([1.0], device=min_val.device), tensor([0], device=min_val.device)
        low, high = min_val.clamp(max=0.0), max_val.clamp(min=0.0)
        steps = float(self.quant_max - self.quant_min)
        if self.qscheme in (_SYMMETRIC, _CHANNELS_SYMMETRIC):
            scale = (-low).maximum(high) / (steps / 2)
            scale = scale.maximum(self.eps)
            middle = 0
            if self.dtype in (dt.quint8, dt.uint8):
                middle = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
            elif self.dtype is dt.uint16:
                middle = 1 << 15
            zero_point = full(tuple(low.shape), middle, dtype=dt.int64, device=low.device)
        elif self.qscheme is _FLOAT_ZERO_POINTS:
            scale = (max_val - min_val) / steps
            scale = where(scale > self.eps, scale, 1.0)
            zero_point = -min_val / scale
        else:
            scale = ((high - low) / steps).maximum(self.eps)
            zero_point = (self.quant_min - (low / scale).round().to(dt.int32)).clamp(self.quant_min, self.quant_max)
        return scale.reshape(-1) if not scale.ndim else scale, zero_point.reshape(-1) if not zero_point.ndim else zero_point

    def reset_min_max_vals(self) -> None:
        """NotImplementedError where a class has no ranges."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


_ObserverBase = UniformQuantizationObserverBase


def _observed(min_val: Tensor, max_val: Tensor) -> bool:
    """Whether there is a range; AssertionError for one that ends before it begins."""
    if not min_val.numel() or not max_val.numel() or (not min_val.ndim and min_val.item() == float("inf") and max_val.item() == float("-inf")):
        warn("must run observer before calling calculate_qparams. Returning default values.")
        return False
    if (min_val > max_val).any():
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the largest element so far."""

    min_val: Tensor
    max_val: Tensor

    def __init__(self, dtype: Any = dt.quint8, qscheme: qscheme = _AFFINE, reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any) -> None:
        if qscheme not in (_AFFINE, _SYMMETRIC):
            raise NotImplementedError(f"{type(self).__name__}'s qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine.")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.register_buffer("min_val", tensor(float("inf"), **(factory_kwargs or {})))
        self.register_buffer("max_val", tensor(float("-inf"), **(factory_kwargs or {})))
        if qscheme is _SYMMETRIC and reduce_range and dtype is dt.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig: Tensor) -> Tensor:
        """x_orig, looked at."""
        if x_orig.numel():
            self._take(*x_orig.detach().to(self.min_val.dtype).aminmax())
        return x_orig

    def _take(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(low.minimum(self.min_val))
        self.max_val.copy_(high.maximum(self.max_val))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget the range."""
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """A moving average of least and largest elements."""

    def __init__(self, averaging_constant: float = 0.01, dtype: Any = dt.quint8, qscheme: qscheme = _AFFINE, reduce_range: bool = False,
                 quant_min: int | None = None, quant_max: int | None = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any) -> None:
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(f"MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging constant of {averaging_constant}")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _take(self, low: Tensor, high: Tensor) -> None:
        if self.min_val.item() != float("inf") or self.max_val.item() != float("-inf"):
            low = self.min_val + self.averaging_constant * (low - self.min_val)
            high = self.max_val + self.averaging_constant * (high - self.max_val)
        self.min_val.copy_(low)
        self.max_val.copy_(high)


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the largest element so far for each index along `ch_axis`."""

    min_val: Tensor
    max_val: Tensor

    def __init__(self, ch_axis: int = 0, dtype: Any = dt.quint8, qscheme: qscheme = _CHANNELS, reduce_range: bool = False, quant_min: int | None = None,
                 quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any) -> None:
        if qscheme not in (_CHANNELS, _CHANNELS_SYMMETRIC, _FLOAT_ZERO_POINTS):
            raise NotImplementedError(f"{type(self).__name__}'s qscheme only support torch.per_channel_symmetric, torch.per_channel_affine and "
                                      "torch.per_channel_affine_float_qparams.")
        if is_dynamic:
            raise NotImplementedError(f"{type(self).__name__} doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", tensor([], **(factory_kwargs or {})))
        self.register_buffer("max_val", tensor([], **(factory_kwargs or {})))
        if qscheme is _CHANNELS_SYMMETRIC and reduce_range and dtype is dt.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig: Tensor) -> Tensor:
        """x_orig, looked at."""
        if x_orig.numel():
            x = x_orig.detach().to(self.min_val.dtype)
            low, high = x.transpose(0, self.ch_axis).flatten(1).aminmax(dim=1)
            if self.min_val.numel() and self.max_val.numel():
                low, high = self._joined(low, high)
            self.min_val.resize_(low.shape).copy_(low)
            self.max_val.resize_(high.shape).copy_(high)
        return x_orig

    def _joined(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return low.minimum(self.min_val), high.maximum(self.max_val)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scales and zero points."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        """The ranges."""
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        for name in ("min_val", "max_val"):
            if prefix + name + "s" in state_dict and (local_metadata.get("version") or 1) < 3:
                state_dict[prefix + name] = state_dict.pop(prefix + name + "s")
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def reset_min_max_vals(self) -> None:
        """Forget the ranges."""
        self.min_val, self.max_val = tensor([]), tensor([])


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Moving averages of least and largest elements for each channel."""

    def __init__(self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: Any = dt.quint8, qscheme: qscheme = _CHANNELS, reduce_range: bool = False,
                 quant_min: int | None = None, quant_max: int | None = None, eps: float = _EPS, is_dynamic: bool = False, **kwargs: Any) -> None:
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, eps=eps, is_dynamic=is_dynamic, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return self.min_val + self.averaging_constant * (low - self.min_val), self.max_val + self.averaging_constant * (high - self.max_val)


class _Still(ObserverBase):
    """Observers that look at nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """x."""
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """There is no range."""
        raise Exception(f"calculate_qparams should not be called for {type(self).__name__}")  # noqa: TRY002  (torch's class)


class PlaceholderObserver(_Still):
    """Says a type and looks at nothing: of what is quantized as it comes, or rounded to float16."""

    def __init__(self, dtype: Any = dt.float32, custom_op_name: str = "", compute_dtype: Any = None, quant_min: int | None = None, quant_max: int | None = None,
                 qscheme: qscheme | None = None, eps: float | None = None, is_dynamic: bool = False) -> None:
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme, self.quant_min, self.quant_max = qscheme or _AFFINE, quant_min, quant_max
        self.eps, self.custom_op = _EPS if eps is None else eps, custom_op_name
        if compute_dtype:
            warn("compute_dtype of PlaceholderObserver is deprecated in PyTorch: is_dynamic says it")

    def extra_repr(self) -> str:
        """The type."""
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(_Still):
    """Keeps copies of all that passes."""

    def __init__(self, dtype: Any = dt.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        """x, kept."""
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Tensor]:
        """The copies."""
        return self.tensor_val


class NoopObserver(_Still):
    """Says a type."""

    def __init__(self, dtype: Any = dt.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name


class ReuseInputObserver(_Still):
    """Says that the observer of the input serves."""

    def __init__(self) -> None:
        super().__init__(dt.quint8, is_dynamic=False)


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: float, zero_point: int, dtype: Any = dt.quint8, qscheme: qscheme = _AFFINE, quant_min: int = 0, quant_max: int = 255,
                 is_dynamic: bool = False, **kwargs: Any) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", tensor([scale], dtype=dt.float32))
        self.register_buffer("zero_point", tensor([zero_point], dtype=dt.int32))
        self.dtype, self.qscheme = dtype, qscheme

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        """X."""
        return X

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        return self.scale, self.zero_point


def get_observer_state_dict(mod: Module) -> OrderedDict:
    """What the observers of a model have seen, by names."""
    state = mod.state_dict()
    found = OrderedDict((name, x) for name, x in state.items() if "activation_post_process" in name)
    found._metadata = state._metadata
    return found
