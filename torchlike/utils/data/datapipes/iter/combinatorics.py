"""The order of samples."""
from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from typing import Any

from torchlike._core.dtype import int64
from torchlike._functions import torch

from ...sampler import Sampler, SequentialSampler
from .._common import Shuffles, length_of
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler makes of a pipe with a length."""

    def __init__(self, datapipe: IterDataPipe, sampler: type[Sampler] = SequentialSampler, sampler_args: tuple | None = None,
                 sampler_kwargs: dict | None = None) -> None:
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe, self.sampler_args, self.sampler_kwargs = datapipe, sampler_args or (), sampler_kwargs or {}
        self.sampler_kwargs["data_source"] = datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_of(self, self.sampler)[0]


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffles, IterDataPipe):
    """Samples in random order: each is drawn from a buffer of `buffer_size`. Without a seed torch's generator draws one per iteration."""

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        self._buffer: list = []
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._enabled, self._seed, self._rng = buffer_size, True, None, random.Random()

    def __iter__(self) -> Iterator:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = self._buffer
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
            else:
                i = self._rng.randint(0, len(buffer) - 1)
                drawn, buffer[i] = buffer[i], sample
                yield drawn
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def reset(self) -> None:
        self._buffer = []
        if self._enabled:
            self._rng.seed(torch.empty((), dtype=int64).random_().item() if self._seed is None else self._seed)
            self._seed = None

    def __len__(self) -> int:
        return length_of(self, self.datapipe)[0]

    def __getstate__(self) -> Any:
        return self._hooked((self.datapipe, self.buffer_size, self._enabled, self._seed, self._buffer, self._rng.getstate(), self._valid_iterator_id,
                             self._number_of_samples_yielded))

    def __setstate__(self, state: tuple) -> None:
        (self.datapipe, self.buffer_size, self._enabled, self._seed, self._buffer, drawn, self._valid_iterator_id, self._number_of_samples_yielded) = state
        self._rng = random.Random()
        self._rng.setstate(drawn)
