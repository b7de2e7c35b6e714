"""Loss scaling: gradients are computed of a scaled loss, so that they do not underflow, and unscaled before the step.

A step whose gradients hold an inf or NaN is skipped and the scale shrinks; after `growth_interval` good steps it grows.
"""

from __future__ import annotations

import enum
import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, overload

import torchlike

from .._tensor import Tensor
from ..cuda import is_available as cuda_available

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far an optimizer has come since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


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
            self._init_scale, self._init_growth_tracker = init_scale, 0
            self._scale: Tensor | None = None  # both are made by the first `scale`, on the device of the losses
            self._growth_tracker: Tensor | None = None
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _begun(self, device: Any) -> Tensor:
        """The scale as a tensor."""
        if self._scale is None:
            self._scale = torchlike.full((), self._init_scale, dtype=torchlike.float32, device=device)
            self._growth_tracker = torchlike.full((), self._init_growth_tracker, dtype=torchlike.int32, device=device)
        return self._scale

    def _need_begun(self, name: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier "
                                 "in the iteration.")
        return self._scale

    @overload
    def scale(self, outputs: Tensor) -> Tensor: ...
    @overload
    def scale(self, outputs: list[Tensor]) -> list[Tensor]: ...
    @overload
    def scale(self, outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]: ...
    @overload
    def scale(self, outputs: Iterable[Tensor]) -> Iterable[Tensor]: ...
    def scale(self, outputs: Tensor | Iterable[Tensor]) -> Tensor | Iterable[Tensor]:
        """`outputs` times the scale; a tensor, or an iterable of tensors, nested or not."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._begun(outputs.device).to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of `optimizer`'s parameters by the scale, in place: before clipping, for one."""
        if not self._enabled:
            return
        self._need_begun("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, self._scale.reciprocal(), torchlike.zeros(()), False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(self, optimizer: Any, inv_scale: Tensor | None, found_inf: Tensor, allow_fp16: bool) -> dict[Any, Tensor]:
        """Gradients times `inv_scale`; for each device 1.0 where one of them was not finite, else `found_inf`."""
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not allow_fp16 and any(p.grad.dtype is torchlike.float16 for p in parameters):
            raise ValueError("Attempting to unscale FP16 gradients.")
        finite: dict[Any, list[Tensor]] = defaultdict(list)
        with torchlike.no_grad():
            for p in parameters:
                if p.grad.is_sparse and p.grad.dtype is torchlike.float16:  # entries of one place may be finite, and their sum not
                    p.grad = p.grad.coalesce()
                g = p.grad._values() if p.grad.is_sparse else p.grad
                finite[g.device].append(torchlike.isfinite(g).all())
                if inv_scale is not None:
                    g.mul_(inv_scale.to(g.device))
            return {device: torchlike.where(torchlike.stack(each).all(), found_inf.to(device), torchlike.ones((), device=device))
                    for device, each in finite.items()}

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> float | None:
        """`optimizer.step(*args, **kwargs)` after unscaling, or nothing if a gradient is not finite.

        An optimizer with `_step_supports_amp_scaling` sees to both itself: it finds `grad_scale` (None once unscaled) and `found_inf` among
        its attributes, or gets the scaler if its `step` takes a `grad_scaler`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._need_begun("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_of_its_own(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_of_its_own(self, optimizer: Any, state: dict[str, Any], args: tuple, kwargs: dict[str, Any]) -> float | None:
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn("GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future GradScaler registers "
                          "`grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.", FutureWarning,
                          stacklevel=3)
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale = self._need_begun("step")
        optimizer.grad_scale = None if state["stage"] is OptState.UNSCALED else scale
        optimizer.found_inf = sum(f.to(scale.device) for f in state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _maybe_opt_step(self, optimizer: Any, state: dict[str, Any], *args: Any, **kwargs: Any) -> float | None:
        return None if any(f.item() for f in state["found_inf_per_device"].values()) else optimizer.step(*args, **kwargs)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Where gradients are not finite, which stay as they are."""
        self._need_begun("_check_inf_per_device")
        found = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = self._unscale_grads_(optimizer, None, torchlike.zeros(()), True)
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapts the scale to the steps since the last call, or sets it to `new_scale`."""
        if not self._enabled:
            return
        scale = self._need_begun("update")
        if new_scale is not None:
            scale.fill_(self._checked(new_scale))
        else:
            found = [f for state in self._per_optimizer_states.values() for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(f.item() for f in found):
                scale.mul_(self._backoff_factor)
                self._growth_tracker.fill_(0)
            elif self._growth_tracker.item() + 1 == self._growth_interval:
                grown = scale * self._growth_factor
                if torchlike.isfinite(grown).item():
                    scale.copy_(grown)
                self._growth_tracker.fill_(0)
            else:
                self._growth_tracker.add_(1)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

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

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale, 1.0 when disabled."""
        return (self._init_scale if self._scale is None else self._scale.item()) if self._enabled else 1.0

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

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
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` of another scaler returned."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        """What pickle writes down: numbers, from which the copy makes its own tensors. Not between `unscale_` and `update`."""
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update().")
            state |= {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker(), "_scale": None, "_growth_tracker": None}
        return state
