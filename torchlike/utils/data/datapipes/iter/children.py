"""One pipe as several: each child iterates, and what one has read before the others waits for them in a buffer."""
from __future__ import annotations

import copy as copies
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal

from .._common import StreamWrapper, check_picklable
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["DemultiplexerIterDataPipe", "ForkerIterDataPipe"]


class _Parent(IterDataPipe):
    """What children share: the source, which is read once for all, and who of them still reads."""

    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int, step: str) -> None:
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        if buffer_size < 0:
            warnings.warn(f"Unlimited buffer size is set for `{step}`, please be aware of OOM at random places", UserWarning, stacklevel=3)
        self.reset()

    def reset(self) -> None:
        self._source: Iterator | None = None
        self._stopped = [True] * self.num_instances
        self._exhausted = False
        self._run = object()  # iterators of an earlier run, which may end later, have no say in this one
        self._clear()

    def _clear(self) -> None:
        raise NotImplementedError

    def _next(self, child: int) -> Any:
        """A child's next sample, or StopIteration."""
        raise NotImplementedError

    def samples(self, child: int) -> Iterator:
        """What a child iterates over."""
        if self._source is None and self._stopped[child]:
            self._source, self._exhausted = iter(self.main_datapipe), False
            self._stopped = [False] * self.num_instances
        run = self._run
        try:
            while run is self._run and not self._stopped[child]:
                try:
                    sample = self._next(child)
                except StopIteration:
                    return
                yield sample
        finally:
            if run is self._run:
                self._stopped[child] = True
                if all(self._stopped):
                    self._source = None
                    self._left(child)

    def _left(self, child: int) -> None:
        """The last child has stopped."""

    def _read(self) -> Any:
        try:
            return next(self._source)
        except StopIteration:
            self._exhausted = True
            raise

    def every_child_exhausted(self) -> bool:
        return self._exhausted and all(self._stopped)

    def __getstate__(self) -> Any:
        unread = ("_source", "_run", "_stopped", "_exhausted", "_buffer", "_buffers", "_base", "_positions")
        return self._hooked({name: x for name, x in self.__dict__.items() if name not in unread})

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.reset()


class _ChildDataPipe(IterDataPipe):
    _is_child_datapipe = True

    def __init__(self, main_datapipe: _Parent, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator:
        return self.main_datapipe.samples(self.instance_id)

    def __len__(self) -> int:
        return self.main_datapipe.child_length()

    def _set_main_datapipe_valid_iterator_id(self) -> None:
        """The children of one parent iterate together; one that begins again begins again for all."""
        parent = self.main_datapipe
        if parent._valid_iterator_id is None:
            parent._valid_iterator_id = 0
        elif parent._valid_iterator_id == self._valid_iterator_id:
            parent._valid_iterator_id += 1
            if not parent.every_child_exhausted():
                warnings.warn("Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and each child DataPipe will read "
                              "from the start again.", UserWarning, stacklevel=2)
            parent.reset()
        self._valid_iterator_id = parent._valid_iterator_id

    def _check_valid_iterator_id(self, number: int) -> bool:
        return number == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


def _checked_count(num_instances: int) -> int:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    return num_instances


def _same(sample: Any) -> Any:
    return sample


class _ForkerIterDataPipe(_Parent):
    """All children get all samples. The buffer has those from number `_base` on."""

    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int, copy: str | None) -> None:
        if copy not in (None, "shallow", "deep"):
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        self.copy_fn = {None: _same, "shallow": copies.copy, "deep": copies.deepcopy}[copy]
        super().__init__(datapipe, num_instances, buffer_size, "fork")

    def _clear(self) -> None:
        self._buffer: deque = deque()
        self._base, self._positions = 0, [0] * self.num_instances

    def _next(self, child: int) -> Any:
        at = self._positions[child] - self._base
        if at == len(self._buffer):
            if self._exhausted:
                raise StopIteration
            self._buffer.append(self._read())
        sample = self._buffer[at]
        self._positions[child] += 1
        if min(self._positions) > self._base:
            self._base += 1
            self._buffer.popleft()
        if len(self._buffer) > self.buffer_size >= 0:
            raise BufferError(f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient.")
        return self.copy_fn(sample)

    def _left(self, child: int) -> None:
        StreamWrapper.close_streams(list(self._buffer))
        self._buffer.clear()

    def child_length(self) -> int:
        return len(self.main_datapipe)

    __len__ = child_length


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """A list of pipes that all have the samples of this one."""

    def __new__(cls, datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000, copy: Literal["shallow", "deep"] | None = None) -> Any:
        if _checked_count(num_instances) == 1:
            return datapipe
        parent = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(parent, i) for i in range(num_instances)]


class _DemultiplexerIterDataPipe(_Parent):
    """Each sample is for one child."""

    def __init__(self, datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable, drop_none: bool, buffer_size: int) -> None:
        self.classifier_fn, self.drop_none = classifier_fn, drop_none
        super().__init__(datapipe, num_instances, buffer_size, "demux")

    def _clear(self) -> None:
        self._buffers: list[deque] = [deque() for _ in range(self.num_instances)]

    def _next(self, child: int) -> Any:
        if self._buffers[child]:
            return self._buffers[child].popleft()
        if self._exhausted:
            raise StopIteration
        while True:
            sample = self._read()
            owner = self.classifier_fn(sample)
            if owner is None and self.drop_none:
                StreamWrapper.close_streams(sample)
                continue
            if owner is None or not 0 <= owner < self.num_instances:
                raise ValueError(f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {owner} is returned.")
            if owner == child:
                return sample
            self._buffers[owner].append(sample)
            if sum(map(len, self._buffers)) > self.buffer_size >= 0:
                raise BufferError(f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient.")

    def child_length(self) -> int:
        raise TypeError


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """A list of pipes, of which each has the samples that the function gives its number for."""

    def __new__(cls, datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable, drop_none: bool = False, buffer_size: int = 1000) -> Any:
        _checked_count(num_instances)
        check_picklable(classifier_fn)
        parent = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(parent, i) for i in range(num_instances)]
