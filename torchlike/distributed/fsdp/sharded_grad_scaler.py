"""A GradScaler for gradients in pieces: a step is skipped on all ranks if one finds an inf or NaN."""
from __future__ import annotations

from typing import Any

from ..._functions import torch
from ..._tensor import Tensor
from ...amp.grad_scaler import GradScaler
from ..collectives import all_reduce
from ..process_group import ProcessGroup, ReduceOp, default_group

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """GradScaler whose `unscale_` asks all ranks of `process_group`."""

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, backoff_factor: float = 0.5, growth_factor: float = 2.0,
                 growth_interval: int = 2000, enabled: bool = True, process_group: ProcessGroup | None = None) -> None:
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = default_group(process_group)

    def _unscale_grads_(self, optimizer: Any, inv_scale: Tensor | None, found_inf: Tensor, allow_fp16: bool) -> dict[Any, Tensor]:
        found = super()._unscale_grads_(optimizer, inv_scale, found_inf, allow_fp16)
        everywhere = torch.tensor(max((f.item() for f in found.values()), default=0.0))  # all ranks take part, also those without a gradient
        all_reduce(everywhere, ReduceOp.MAX, self.process_group)
        return {device: everywhere.to(device) for device in found or (self._scale.device,)}
