"""Parallel wrappers."""
from torchlike.nn.parallel.data_parallel import DataParallel, data_parallel
from torchlike.nn.parallel.distributed import DistributedDataParallel
from torchlike.nn.parallel.parallel_apply import parallel_apply
from torchlike.nn.parallel.replicate import replicate
from torchlike.nn.parallel.scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]
