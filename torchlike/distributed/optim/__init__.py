"""torch.distributed.optim: optimizers whose states are divided between processes."""
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
