"""torch.autocast: matrix products and convolutions in 16 bits, losses in 32."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from .. import _autocast
from .._autocast import DEFAULTS, state
from .._core import device as dev
from .._core import dtype as dt
from .._tensor import Tensor
from ..cuda import is_available as cuda_available

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_F = TypeVar("_F", bound=Callable)


def _kind(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    kind = device_type if device_type in DEFAULTS else dev.device(device_type).type
    if kind not in DEFAULTS:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return kind


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """`value` with the floating point tensors in it, at any depth and on that kind of device, in `dtype`; those of float64 stay."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() and value.device.type == device_type and value.dtype is not dt.float64 else value
    if isinstance(value, str | bytes | np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        made = (_cast(v, device_type, dtype) for v in value)
        return type(value)(made) if isinstance(value, list | tuple) else made
    return value


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows that kind of device."""
    return (device_type if device_type in DEFAULTS or not isinstance(device_type, str) else dev.device(device_type).type) in DEFAULTS


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for that kind of device."""
    return _kind(device_type) in state.enabled


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switch autocast for that kind of device, in this thread."""
    kind = _kind(device_type)
    others = {k: v for k, v in state.enabled.items() if k != kind}
    _autocast.set_enabled({**others, kind: state.dtypes[kind]} if enabled else others)


def get_autocast_dtype(device_type: str) -> dt.dtype:
    """The dtype that autocast computes in on that kind of device."""
    kind = _kind(device_type)
    return state.enabled.get(kind, state.dtypes[kind])


def set_autocast_dtype(device_type: str, dtype: dt.dtype) -> None:
    """Set the dtype that autocast computes in on that kind of device."""
    kind = _kind(device_type)
    state.dtypes[kind] = dtype
    if kind in state.enabled:
        _autocast.set_enabled({**state.enabled, kind: dtype})


def is_autocast_cache_enabled() -> bool:
    """torch's cache of cast weights; here XLA removes repeated casts, with or without it."""
    return state.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Remembered for `is_autocast_cache_enabled`."""
    state.cache = enabled


def clear_autocast_cache() -> None:
    """Nothing is cached."""


class autocast:
    """Context manager and decorator. `dtype`: bfloat16 on the CPU and TPU, float16 on CUDA unless given.

    Raises ValueError and RuntimeError for a `device_type` that is no string or unknown; warns and stays off for a dtype
    that the device does not compute in, or without a GPU.
    """

    def __init__(
        self, device_type: str, dtype: dt.dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.device = _kind(device_type)
        if dtype is not None and not isinstance(dtype, dt.dtype):
            raise ValueError(f"Expected `dtype` of type `torch.dtype`, got: `{type(dtype)}`")
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and self.device == "cuda" and not cuda_available():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in (dt.bfloat16, dt.float16):
            words = "CPU" if self.device == "cpu" else self.device.upper()
            warnings.warn(
                f"In {words} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{words} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._switch = _autocast.switched(self.device, self.fast_dtype if enabled else None)

    def __enter__(self) -> autocast:
        self._switch.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._switch.__exit__(*exc)

    def __call__(self, func: _F) -> _F:
        if not callable(func):
            raise TypeError(f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as a context manager? "
                            "For example:\n    with torch.autocast(device_type=...):\n        output = model(input)")

        @functools.wraps(func)
        def run(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return run


def _cast_all(x: Any, kind: str, dtype: dt.dtype) -> Any:
    if isinstance(x, Tensor):
        eligible = x.is_floating_point() and x.device.type == kind and x.dtype is not dt.float64
        return x.to(dtype) if eligible else x
    if isinstance(x, dict):
        return {_cast_all(k, kind, dtype): _cast_all(v, kind, dtype) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_cast_all(y, kind, dtype) for y in x)
    return x


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: dt.dtype | None = None) -> Callable:
    """Decorator for `Function.forward`: with `cast_inputs`, its tensors are cast and autocast is off inside."""
    kind = _kind(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def run(ctx, *args, **kwargs):
        ctx._dtype = get_autocast_dtype(kind)
        on = is_autocast_enabled(kind)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with _autocast.disabled(kind):
            return fwd(ctx, *_cast_all(args, kind, cast_inputs), **_cast_all(kwargs, kind, cast_inputs))

    return run


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorator for `Function.backward`: autocast is as it was in `forward`."""
    kind = _kind(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def run(ctx, *args, **kwargs):
        with _autocast.switched(kind, ctx._dtype if ctx._fwd_used_autocast else None):
            return bwd(ctx, *args, **kwargs)

    return run
