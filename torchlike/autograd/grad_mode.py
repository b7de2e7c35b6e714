"""no_grad, enable_grad, set_grad_enabled, inference_mode: context managers that are decorators too."""
from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from typing import Any, Self, TypeVar, overload

from .._core.errors import class_name
from .._core.grad_mode import inference, mode

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]

_F = TypeVar("_F", bound=Callable)


def context_decorator(make: Callable, func: Callable) -> Callable:
    """`func`, each call of which runs inside a context of `make`; a generator has one around each of its steps."""
    if inspect.isgeneratorfunction(func):
        @functools.wraps(func)
        def generate(*args, **kwargs):
            iterator = func(*args, **kwargs)
            try:
                with make():
                    item = iterator.send(None)
                while True:
                    try:
                        got = yield item
                    except GeneratorExit:
                        with make():
                            iterator.close()
                        raise
                    except BaseException as error:
                        with make():
                            item = iterator.throw(error)
                    else:
                        with make():
                            item = iterator.send(got)
            except StopIteration as end:
                return end.value
        return generate

    @functools.wraps(func)
    def run(*args, **kwargs):
        with make():
            return func(*args, **kwargs)
    return run


class DecoratorContextManager:
    """A setting that holds inside `with` or inside a decorated function (generators keep it between yields)."""

    def clone(self) -> Self:
        return self.__class__()

    def __call__(self, func: _F) -> _F:
        if inspect.isclass(func):
            warnings.warn("Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To "
                          "preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
                          FutureWarning, stacklevel=2)
            func.__init__ = self(func.__init__)
            return func
        return context_decorator(self.clone, func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *exc: Any) -> None:
        raise NotImplementedError


class _Fixed(DecoratorContextManager):
    enabled = True

    @overload
    def __new__(cls, func: None = None) -> Self: ...
    @overload
    def __new__(cls, func: _F) -> _F: ...
    def __new__(cls, func=None):
        self = super().__new__(cls)
        return self if func is None else self(func)

    def __init__(self):
        pass

    def __enter__(self) -> None:
        self.before, mode.enabled = mode.enabled, self.enabled

    def __exit__(self, *exc: Any) -> None:
        mode.enabled = self.before


class no_grad(_Fixed):
    """Operations are not recorded for differentiation."""

    enabled = False


class enable_grad(_Fixed):
    """Operations are recorded for differentiation."""


def _boolean(x: bool, name: str) -> bool:
    if not isinstance(x, bool):
        raise TypeError(f"{name}(): argument 'enabled' (position 1) must be bool, not {class_name(x)}")
    return x


def _switched(enabled: bool) -> bool:
    """Record from now on or not; what was before."""
    before, mode.enabled = mode.enabled, enabled
    return before


class set_grad_enabled(DecoratorContextManager):
    """Switches at once; as a context manager it switches back at the end."""

    def __init__(self, mode: bool):
        self.enabled = _boolean(mode, "set_grad_enabled")
        self.before = _switched(mode)

    def __call__(self, func: _F) -> _F:
        mode.enabled = self.before
        return super().__call__(func)

    def __enter__(self) -> None:
        mode.enabled = self.enabled

    def __exit__(self, *exc: Any) -> None:
        mode.enabled = self.before

    def clone(self) -> Self:
        return self.__class__(self.enabled)


class inference_mode(DecoratorContextManager):
    """no_grad, and tensors made inside can never take part in differentiation."""

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: _F) -> _F: ...
    def __new__(cls, mode=True):
        self = super().__new__(cls)
        if not isinstance(mode, bool):  # a function
            self.enabled = True
            return self(mode)
        return self

    def __init__(self, mode: bool = True):
        self.enabled = bool(mode)

    def __enter__(self) -> None:
        self.before = mode.enabled, mode.inference
        mode.enabled, mode.inference = not self.enabled, self.enabled
        inference[0] += 1

    def __exit__(self, *exc: Any) -> None:
        mode.enabled, mode.inference = self.before
        inference[0] -= 1

    def clone(self) -> Self:
        return self.__class__(self.enabled)


class _Threads(threading.local):
    several = True


_threads = _Threads()


class set_multithreading_enabled(DecoratorContextManager):
    """Kept and told, and otherwise without effect: the backward walk is one thread, XLA's own threads run the work."""

    def __init__(self, mode: bool):
        self.mode = _boolean(mode, "set_multithreading_enabled")
        self.prev, _threads.several = _threads.several, mode

    def __enter__(self) -> None:
        _threads.several = bool(self.mode)

    def __exit__(self, *exc: Any) -> None:
        _threads.several = self.prev

    def clone(self) -> Self:
        return self.__class__(self.mode)


def is_multithreading_enabled() -> bool:
    """What set_multithreading_enabled said last in this thread."""
    return _threads.several


def is_grad_enabled() -> bool:
    """Whether operations are recorded for differentiation in this thread."""
    return mode.enabled


def is_inference_mode_enabled() -> bool:
    """Whether inference_mode is on in this thread."""
    return mode.inference
