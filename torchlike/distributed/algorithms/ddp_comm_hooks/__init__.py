"""How DistributedDataParallel's gradients travel: hooks for `register_comm_hook`."""
from __future__ import annotations

import enum
from functools import partial
from typing import Any

from . import default_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class DDPCommHookType(enum.Enum):
    """The hooks that have a name."""

    ALLREDUCE = partial(default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(default_hooks.bf16_compress_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let `model`'s gradients travel by a hook that has a name."""
    model.register_comm_hook(state, comm_hook_type.value)
