"""A GradScaler for gradients in pieces: a step is skipped on all ranks if one finds an inf or NaN."""
from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ...amp.grad_scaler import GradScaler
from ...ops.from_data import tensor
from ..collectives import all_reduce
from ..process_group import ProcessGroup, ReduceOp, default_group

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """GradScaler whose `unscale_` asks all ranks of `process_group`."""

    def __init__(self, device: str = "cuda", init_scale: float = 2.0**16, backoff_factor: float = 0.5, growth_factor: float = 2.0,
                 growth_interval: int = 2000, enabled: bool = True, process_group: ProcessGroup | None = None) -> None:
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = default_group(process_group)

    def _unscale_grads(self, optimizer: Any) -> Tensor | None:
        found = super()._unscale_grads(optimizer)
        everywhere = tensor(0.0 if found is None else float(bool(found)))
        all_reduce(everywhere, ReduceOp.MAX, self.process_group)
        return everywhere > 0
