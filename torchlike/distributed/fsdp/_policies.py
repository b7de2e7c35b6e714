"""How `fully_shard` computes and where it keeps parameters."""
from __future__ import annotations

from dataclasses import dataclass

from ..._core.dtype import dtype

__all__ = ["CPUOffloadPolicy", "MixedPrecisionPolicy", "OffloadPolicy"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """param_dtype: of gathered parameters, and of floating-point inputs where `cast_forward_inputs`; reduce_dtype: in which gradients are summed
    (param_dtype where it is None); output_dtype: of floating-point outputs. None leaves a dtype as it is."""
    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters, gradients and optimizer states stay on the mesh's device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Sharded parameters, their gradients and optimizer states lie in the host's memory."""
    pin_memory: bool = True


for _cls in (MixedPrecisionPolicy, OffloadPolicy, CPUOffloadPolicy):
    _cls.__module__ = "torch.distributed.fsdp"
