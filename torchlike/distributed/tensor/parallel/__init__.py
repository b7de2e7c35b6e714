"""torch.distributed.tensor.parallel: layers of which each rank has a part."""
from .api import parallelize_module
from .loss import loss_parallel
from .style import ColwiseParallel, ParallelStyle, PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput, RowwiseParallel, SequenceParallel

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
           "loss_parallel", "parallelize_module"]
