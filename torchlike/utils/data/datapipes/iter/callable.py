"""Functions of samples."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..._utils.collate import default_collate
from .._common import StreamWrapper, check_arguments, check_picklable, columns, length_of
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["CollatorIterDataPipe", "FilterIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """fn of each sample, or of some of its columns: the result takes their place, or goes to `output_col` (-1: behind the last)."""

    def __init__(self, datapipe: IterDataPipe, fn: Callable, input_col: Any = None, output_col: Any = None) -> None:
        check_picklable(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col
        check_arguments(fn, input_col)

    def _apply_fn(self, sample: Any) -> Any:
        made = columns(self.fn, sample, self.input_col)
        if self.input_col is None:
            return made
        changed = list(sample) if isinstance(sample, tuple) else sample
        if self.output_col == -1:
            changed.append(made)
        elif self.output_col is not None:
            changed[self.output_col] = made
        elif isinstance(self.input_col, (list, tuple)):
            changed[self.input_col[0]] = made
            for column in sorted(self.input_col[1:], reverse=True):
                del changed[column]
        else:
            changed[self.input_col] = made
        return tuple(changed) if isinstance(sample, tuple) else changed

    def __iter__(self) -> Iterator:
        for sample in self.datapipe:
            yield self._apply_fn(sample)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)[0]


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches made into tensors."""

    def __init__(self, datapipe: IterDataPipe, conversion: Callable = default_collate, collate_fn: Callable | None = None) -> None:
        super().__init__(datapipe, fn=conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples for which the function is true."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable, input_col: Any = None) -> None:
        check_picklable(filter_fn)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col
        check_arguments(filter_fn, input_col)

    def __iter__(self) -> Iterator:
        for sample in self.datapipe:
            keep = columns(self.filter_fn, sample, self.input_col)
            if not isinstance(keep, bool):
                raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(keep))
            if keep:
                yield sample
            else:
                StreamWrapper.close_streams(sample)
