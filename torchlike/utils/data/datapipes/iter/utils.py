"""The beginning of most pipes."""
from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator

from .._common import length_of
from ..datapipe import IterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The samples of any iterable, of a deep copy at each iteration unless `deepcopy=False`."""

    def __init__(self, iterable: Iterable, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:  # a generator, for one
                warnings.warn("The input iterable can not be deepcopied, please be aware of in-place modification would affect source data.", stacklevel=2)
        yield from source

    def __len__(self) -> int:
        return length_of(self, self.iterable)[0]
