"""What all data pipes are: iterables (IterDataPipe) or look-ups (MapDataPipe) whose registered steps are their methods."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ..dataset import Dataset, IterableDataset
from . import _iteration

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe"]

_T_co = TypeVar("_T_co", covariant=True)


class DataChunk(list):
    """A batch of samples."""

    def __init__(self, items: Iterable) -> None:
        super().__init__(items)
        self.items = list(self)

    def as_str(self, indent: str = "") -> str:
        """The samples as text."""
        return indent + "[" + ", ".join(map(str, self)) + "]"

    def raw_iterator(self) -> Iterator:
        """The samples."""
        yield from self.items


class _Pipe:
    """What both kinds have in common. The names of a kind's steps, and hooks of tools, belong to the class of the kind."""

    functions: dict[str, Callable]
    reduce_ex_hook: Callable | None = None
    getstate_hook: Callable | None = None
    str_hook: Callable | None = None
    repr_hook: Callable | None = None

    def __getattr__(self, name: str) -> Callable:
        if name in self.functions:
            return functools.partial(self.functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Make a function a method of every pipe of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False) -> None:
        """Make a pipe that takes another one first a method of every pipe of this kind."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = lambda source, *args, **kwargs: cls_to_register(source, *args, **kwargs)

    def __getstate__(self) -> Any:
        return self._hooked(self.__dict__)

    def _hooked(self, state: Any) -> Any:
        hook = self._kind.getstate_hook
        return state if hook is None else hook(state)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._kind.reduce_ex_hook is not None:
            try:
                return self._kind.reduce_ex_hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable | None) -> None:
        """What changes a pipe's state before it is pickled."""
        if cls._kind.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls._kind.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable | None) -> None:
        """What pickles a pipe, or raises NotImplementedError."""
        if cls._kind.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls._kind.reduce_ex_hook = hook_fn

    def __repr__(self) -> str:
        return type(self).__qualname__ if self.repr_hook is None else self.repr_hook(self)

    def __str__(self) -> str:
        return type(self).__qualname__ if self.str_hook is None else self.str_hook(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]


class IterDataPipe(_Pipe, IterableDataset[_T_co]):
    """Samples by iteration. A pipe has one iterator at a time: a new one calls `reset()`, and the last one is no longer valid."""

    functions: dict[str, Callable] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _iteration.guard(cls)

    def __iter__(self) -> Iterator[_T_co]:
        return self

    def reset(self) -> None:
        """Make ready for a new iterator."""


class MapDataPipe(_Pipe, Dataset[_T_co]):
    """Samples by index or key."""

    functions: dict[str, Callable] = {}


IterDataPipe._kind, MapDataPipe._kind = IterDataPipe, MapDataPipe


class _SerializationWrapper:
    """A pipe around another one, whose state is that other pipe: loaders of libraries hand this to their workers."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __getstate__(self) -> tuple:
        return (self._datapipe,)

    def __setstate__(self, state: tuple) -> None:
        self.__init__(*state)

    def __len__(self) -> int:
        try:
            return len(self._datapipe)
        except Exception as e:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from e


class _IterDataPipeSerializationWrapper(_SerializationWrapper, IterDataPipe):
    """The samples of another pipe."""

    def __init__(self, datapipe: IterDataPipe) -> None:
        super().__init__(datapipe)
        self._datapipe_iter: Iterator | None = None

    def __iter__(self) -> Iterator:
        self._datapipe_iter = iter(self._datapipe)
        return self

    def __next__(self) -> Any:
        if self._datapipe_iter is None:
            raise AssertionError("Iterator has not been initialized; call __iter__() before __next__()")
        return next(self._datapipe_iter)


class _MapDataPipeSerializationWrapper(_SerializationWrapper, MapDataPipe):
    """The samples of another pipe."""

    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]
