"""How DistributedDataParallel's gradients travel: hooks for `register_comm_hook`."""
from __future__ import annotations

import enum
from functools import partial
from typing import Any

from . import debugging_hooks as debugging
from . import default_hooks as default
from . import powerSGD_hook as powerSGD  # noqa: N812  (torch's name)
from . import quantization_hooks as quantization

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _plain(model: Any, state: Any, hook: Any) -> None:
    model.register_comm_hook(state, hook)


def _low_rank(model: Any, state: Any, hook: Any, rank: int) -> None:
    model.register_comm_hook(powerSGD.PowerSGDState(state, matrix_approximation_rank=rank), hook)


class DDPCommHookType(enum.Enum):
    """The hooks that have a name. `value(model=..., state=process_group)` lets a model's gradients travel so."""

    # to Python 3.13 a partial function is a method, unless it is said to be a member
    ALLREDUCE = enum.member(partial(_plain, hook=default.allreduce_hook))
    FP16_COMPRESS = enum.member(partial(_plain, hook=default.fp16_compress_hook))
    BF16_COMPRESS = enum.member(partial(_plain, hook=default.bf16_compress_hook))
    QUANTIZE_PER_TENSOR = enum.member(partial(_plain, hook=quantization.quantization_pertensor_hook))
    QUANTIZE_PER_CHANNEL = enum.member(partial(_plain, hook=quantization.quantization_perchannel_hook))
    POWER_SGD = enum.member(partial(_low_rank, hook=powerSGD.powerSGD_hook, rank=1))
    POWER_SGD_RANK2 = enum.member(partial(_low_rank, hook=powerSGD.powerSGD_hook, rank=2))
    BATCHED_POWER_SGD = enum.member(partial(_low_rank, hook=powerSGD.batched_powerSGD_hook, rank=1))
    BATCHED_POWER_SGD_RANK2 = enum.member(partial(_low_rank, hook=powerSGD.batched_powerSGD_hook, rank=2))
    NOOP = enum.member(partial(_plain, hook=debugging.noop_hook))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let `model`'s gradients travel by a hook that has a name; `state` is a process group or None."""
    comm_hook_type.value(model=model, state=state)
