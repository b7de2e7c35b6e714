"""One iterator at a time: what is put around the `__iter__` of each class of IterDataPipe."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

_FEEDBACK = ("\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this issue: "
             "https://github.com/pytorch/data/issues/45.")


def described(pipe: Any) -> str:
    """A pipe with its arguments, as far as it kept them."""
    names = set(inspect.signature(type(pipe)).parameters)
    kept = [(name, getattr(pipe, name)) for name in dir(type(pipe)) + list(vars(pipe)) if name in names]
    shown = {name: x.__name__ if inspect.isfunction(x) else repr(x) for name, x in sorted(kept)}
    return f"{type(pipe).__name__}({', '.join(f'{name}={text}' for name, text in shown.items())})"


def _begin(pipe: Any) -> int:
    """A new iterator: the number that is valid from now on."""
    if getattr(pipe, "_is_child_datapipe", False) is True:
        pipe._set_main_datapipe_valid_iterator_id()
    else:
        pipe._valid_iterator_id = 0 if pipe._valid_iterator_id is None else pipe._valid_iterator_id + 1
        pipe._number_of_samples_yielded = 0
        pipe.reset()
    return pipe._valid_iterator_id


def _check(pipe: Any, number: int) -> None:
    if getattr(pipe, "_is_child_datapipe", False) is True:
        if not pipe._check_valid_iterator_id(number):
            raise RuntimeError("This iterator has been invalidated, because a new iterator has been created from one of the ChildDataPipes of "
                               f"{described(pipe.main_datapipe)}.{_FEEDBACK}")
    elif pipe._valid_iterator_id != number:
        raise RuntimeError(f"This iterator has been invalidated because another iterator has been created from the same IterDataPipe: {described(pipe)}\n"
                           "This may be caused by multiple references to the same IterDataPipe. We recommend using `.fork()` if that is necessary."
                           + _FEEDBACK)


class _Valid:
    """An iterator that looks before each sample whether it is still the valid one; otherwise it is the iterator it stands for."""

    def __init__(self, inner: Iterator, pipe: Any, number: int) -> None:
        self.iterator, self.datapipe, self.iterator_id = inner, pipe, number

    def __iter__(self) -> _Valid:
        return self

    def __next__(self) -> Any:
        _check(self.datapipe, self.iterator_id)
        sample = next(self.iterator)
        if self.iterator is not self.datapipe:
            self.datapipe._number_of_samples_yielded += 1
        return sample

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iterator, name)


def _explain(error: Exception, pipe: Any) -> None:
    """Say in an exception's text which pipe it came through."""
    words = f"thrown by __iter__ of {described(pipe)}"
    if not error.args or not isinstance(error.args[0], str):
        error.args = (f"\nThis exception is {words}",)
    elif "thrown by __iter__ of" not in error.args[0] and "single iterator per IterDataPipe constraint" not in error.args[0]:
        error.args = (f"{error.args[0]}\nThis exception is {words}", *error.args[1:])


def guard(cls: type) -> None:
    """Wrap the `__iter__` that a class defines itself."""
    own, advance = vars(cls).get("__iter__"), vars(cls).get("__next__")
    if own is None:
        return
    if inspect.isgeneratorfunction(own):
        @functools.wraps(own)
        def generated(self: Any, *args: Any, **kwargs: Any) -> Iterator:
            samples = own(self, *args, **kwargs)
            number = _begin(self)
            try:
                for sample in samples:
                    self._number_of_samples_yielded += 1
                    yield sample
                    _check(self, number)
            except Exception as error:
                _explain(error, self)
                raise
            finally:
                samples.close()
        cls.__iter__ = generated
        return

    @functools.wraps(own)
    def made(self: Any, *args: Any, **kwargs: Any) -> Iterator:
        inner = own(self, *args, **kwargs)
        return _Valid(inner, self, _begin(self))
    cls.__iter__ = made
    if advance is not None:
        @functools.wraps(advance)
        def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
            sample = advance(self, *args, **kwargs)
            self._number_of_samples_yielded += 1
            return sample
        cls.__next__ = counted
