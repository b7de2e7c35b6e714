"""Parallel wrappers."""
import typing as _typing
from importlib import import_module

from torchlike.nn.parallel.data_parallel import DataParallel, data_parallel
from torchlike.nn.parallel.parallel_apply import parallel_apply
from torchlike.nn.parallel.replicate import replicate
from torchlike.nn.parallel.scatter_gather import gather, scatter

if _typing.TYPE_CHECKING:
    from torchlike.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


def __getattr__(name: str) -> _typing.Any:
    """What needs torch.distributed is imported when it is asked for."""
    if name in ("DistributedDataParallel", "distributed"):
        module = import_module("torchlike.nn.parallel.distributed")
        return module if name == "distributed" else module.DistributedDataParallel
    raise AttributeError(f"module 'torch.nn.parallel' has no attribute {name!r}: torch.nn.parallel.{name} is not supported yet by torchlike")
