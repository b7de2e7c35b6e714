"""Checks of functions that pipes are given, lengths, settings of shufflers, and streams that are closed when they are dropped."""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Sized
from typing import Any


def length_of(owner: Any, *pipes: Any) -> list[int]:
    """The lengths of pipes, or torch's TypeError about the pipe that is made of them."""
    if not all(isinstance(p, Sized) for p in pipes):
        raise TypeError(f"{type(owner).__name__} instance doesn't have valid length")
    return [len(p) for p in pipes]


def check_picklable(fn: Callable) -> None:
    """Warn of a function that cannot be sent to a worker."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    inner = fn.func if isinstance(fn, functools.partial) else fn
    code = getattr(inner, "__code__", None)
    local = bool(code.co_flags & inspect.CO_NESTED) if code else "<locals>" in getattr(inner, "__qualname__", type(inner).__qualname__)
    kind = "Local" if local else "Lambda" if getattr(inner, "__name__", "") == "<lambda>" else None
    if kind:
        warnings.warn(f"{kind} function is not supported by pickle, please use regular python function or functools.partial instead.", stacklevel=3)


def check_arguments(fn: Callable, input_col: Any) -> None:
    """Raise where fn cannot be called with the columns."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except ValueError:  # built in
        return
    wanted = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    inner = fn.func if isinstance(fn, functools.partial) else fn
    name = getattr(inner, "__name__", repr(inner))
    if by_name:
        raise ValueError(f"The function {name} takes {len(by_name)} non-default keyword-only parameters, which is not allowed.")
    if len(parameters) < wanted:
        if not any_number:
            raise ValueError(f"The function {name} takes {len(parameters)} parameters, but {wanted} are required.")
    elif any(p.default is p.empty for p in by_place[wanted:]) or (len(by_place) < wanted and not any_number):
        raise ValueError(f"The function {name} takes {len(by_place)} positional parameters, but {wanted} are required.")


def columns(fn: Callable, sample: Any, input_col: Any) -> Any:
    """fn of a sample, or of some columns of it."""
    if input_col is None:
        return fn(sample)
    if isinstance(input_col, (list, tuple)):
        return fn(*(sample[c] for c in input_col))
    return fn(sample[input_col])


class Shuffles:
    """The settings of a pipe that shuffles."""

    def set_shuffle(self, shuffle: bool = True) -> Any:
        """Whether to shuffle at all."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Any:
        """The seed of the next iteration."""
        self._seed = seed
        return self


class StreamWrapper:
    """An open file that is closed when nobody holds it any more."""

    def __init__(self, file_obj: Any, parent_stream: StreamWrapper | None = None, name: str | None = None) -> None:
        self.closed, self.child_counter, self.close_on_last_child = False, 0, False
        self.file_obj, self.parent_stream, self.name = file_obj, parent_stream, name
        if parent_stream is not None:
            if not isinstance(parent_stream, StreamWrapper):
                raise RuntimeError(f"Parent stream should be StreamWrapper, {type(parent_stream)} was given")
            parent_stream.child_counter += 1

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close what streams are in a sample."""
        if isinstance(v, StreamWrapper):
            v.close()
        elif depth <= 10 and isinstance(v, (dict, list, tuple)):
            for x in v.values() if isinstance(v, dict) else v:
                cls.close_streams(x, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def close(self, *args: Any, **kwargs: Any) -> None:
        """Close the file, and the one it came from after the last of its children."""
        if self.closed:
            return
        parent = self.parent_stream
        if parent is not None:
            parent.child_counter -= 1
            if not parent.child_counter and parent.close_on_last_child:
                parent.close()
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)
        self.closed = True

    def autoclose(self) -> None:
        """Close after the last child."""
        self.close_on_last_child = True
        if not self.child_counter:
            self.close()

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __iter__(self) -> Iterable:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __repr__(self) -> str:
        return f"StreamWrapper<{self.file_obj!r}>" if self.name is None else f"StreamWrapper<{self.name},{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, file_obj: Any) -> None:
        self.__init__(file_obj)
