"""torch.distributed.optim: optimizers whose states, or parameters, are divided between processes."""
from typing import Any as _Any

from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


def __getattr__(name: str) -> _Any:
    if name == "DistributedOptimizer":  # loads RPC
        from .optimizer import DistributedOptimizer
        return DistributedOptimizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
