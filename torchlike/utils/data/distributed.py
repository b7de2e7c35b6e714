"""The sampler of one process among several that share an epoch."""
from __future__ import annotations

import math
from collections.abc import Iterator

from torchlike._functions import torch
from torchlike.ops.random import Generator

from .dataset import Dataset
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, from `rank` on, of an order that all processes share.

    The order is shuffled with `seed + epoch` (call `set_epoch` before each epoch). The end is padded from the start so
    that all processes get equally many, or cut off with `drop_last`.
    """

    def __init__(self, dataset: Dataset, num_replicas: int | None = None, rank: int | None = None,
                 shuffle: bool = True, seed: int = 0, drop_last: bool = False) -> None:
        if num_replicas is None:
            num_replicas = _process_group().get_world_size()
        if rank is None:
            rank = _process_group().get_rank()
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = torch.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        # a data set smaller than the number of processes is repeated, several times if need be
        indices = [indices[i % n] for i in range(self.total_size)]
        return iter(indices[self.rank::self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Shuffle the next iteration as epoch `epoch`."""
        self.epoch = epoch


def _process_group():
    from torchlike import distributed  # above this package

    return distributed
