"""Loss scaling: gradients are computed of a scaled loss, so that they do not underflow, and unscaled before the step.

A step whose gradients hold an inf or NaN is skipped and the scale shrinks; after `growth_interval` good steps it grows.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterable
from typing import Any

import torchlike

from .._tensor import Tensor
from ..cuda import is_available as cuda_available

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far an optimizer has come since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales a loss, unscales the gradients, steps the optimizer unless they overflowed, and adapts the scale.

    Disabled, every method passes its arguments through; with `device="cuda"` and no GPU it disables itself and warns.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled and not cuda_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2
            )
            self._enabled = False
        if self._enabled:
            if not growth_factor > 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if not backoff_factor < 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._scale = float(init_scale)
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._growth_tracker = 0
            self._begin()

    def _begin(self) -> None:
        self._states: dict[int, OptState] = {}
        self._found_inf: dict[int, Tensor | None] = {}  # by optimizer: a 0-dim bool, None without any gradient

    def scale(self, outputs: Tensor | Iterable[Tensor]) -> Tensor | Iterable[Tensor]:
        """`outputs` times the scale; a tensor, or an iterable of tensors, nested or not."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of `optimizer`'s parameters by the scale, in place: before clipping, for one."""
        if not self._enabled:
            return
        state = self._states.get(id(optimizer), OptState.READY)
        if state is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._found_inf[id(optimizer)] = self._unscale_grads(optimizer)
        self._states[id(optimizer)] = OptState.UNSCALED

    def _unscale_grads(self, optimizer: Any) -> Tensor | None:
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(g.dtype is torchlike.float16 for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        with torchlike.no_grad():
            for g in grads:
                g.mul_(1.0 / self._scale)
            finite = [torchlike.isfinite(g).all() for g in grads]
            return torchlike.stack(finite).all().logical_not() if finite else None

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> float | None:
        """`optimizer.step(*args, **kwargs)` after unscaling, or nothing if a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._states.get(id(optimizer), OptState.READY)
        if state is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state is OptState.READY:
            self.unscale_(optimizer)
        found = self._found_inf[id(optimizer)]
        if found is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if found.item() else optimizer.step(*args, **kwargs)
        self._states[id(optimizer)] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the scale to the steps since the last call, or sets it to `new_scale`."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = self._checked(new_scale)
        else:
            found = [f for f in self._found_inf.values() if f is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(f.item() for f in found):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    self._scale *= self._growth_factor
                    self._growth_tracker = 0
        self._begin()

    @staticmethod
    def _checked(new_scale: float | Tensor) -> float:
        if isinstance(new_scale, float):
            return new_scale
        if not isinstance(new_scale, Tensor) or new_scale.numel() != 1 or new_scale.requires_grad:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                "requires_grad=False."
            )
        return float(new_scale.item())

    def get_scale(self) -> float:
        """The scale, 1.0 when disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale and its settings; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` of another scaler returned."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
