"""What scaled training does to gradients and to the scale, as one call each: Megatron's and fairscale's optimizers do so without a GradScaler."""
from __future__ import annotations

from collections.abc import Sequence

from .._core import dtype as dt
from .._core.errors import not_implemented
from .._public import FUNCTIONS, called
from .._tensor import Tensor
from ..autograd.grad_mode import no_grad
from .joining import stack


def _demand(t: Tensor, name: str, kind: dt.dtype, word: str) -> None:
    if t.numel() != 1:
        raise RuntimeError(f"{name} must be a 1-element tensor.")
    if t.dtype is not kind:
        raise RuntimeError(f"{name} must be {word} tensor.")


def _amp_foreach_non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply tensors in place by `inv_scale`; `found_inf` becomes 1.0 where an element of one is not finite. Both are float32 and have one element."""
    _demand(inv_scale, "inv_scale", dt.float32, "a float")
    _demand(found_inf, "found_inf", dt.float32, "a float")
    if not self:
        return
    with no_grad():
        for t in self:
            if t.dtype.category < dt.FLOAT:
                raise not_implemented("_amp_foreach_non_finite_check_and_unscale_cpu", t.dtype)
        finite = stack([t.isfinite().all().to(found_inf.device) for t in self]).all()
        factor = inv_scale.reshape(())
        for t in self:
            t.mul_(factor.to(t.device))
        found_inf.masked_fill_(~finite, 1.0)


def _amp_update_scale_(self: Tensor, growth_tracker: Tensor, found_inf: Tensor, scale_growth_factor: float, scale_backoff_factor: float,
                       growth_interval: int) -> Tensor:
    """The scale after a step, in place: shrunk where something was not finite, grown after so many steps without, unless it would be infinite.
    `growth_tracker` counts these steps, as an int32 of one element."""
    for t, name, kind, word in ((growth_tracker, "growth_tracker", dt.int32, "an int"), (self, "current_scale", dt.float32, "a float"),
                                (found_inf, "found_inf", dt.float32, "a float")):
        _demand(t, name, kind, word)
    with no_grad():
        bad = found_inf.reshape(self.shape) != 0
        count = growth_tracker.reshape(self.shape) + 1
        full = (count == growth_interval) & ~bad
        grown = self * scale_growth_factor
        growth_tracker.copy_((count * ~(bad | full)).reshape(growth_tracker.shape))
        self.copy_((self * scale_backoff_factor).where(bad, grown.where(full & grown.isfinite(), self)))
    return self


FUNCTIONS.update({f.__name__: called(f) for f in (_amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_)})
