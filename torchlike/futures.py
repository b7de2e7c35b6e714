"""torch.futures: results that arrive later."""
from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ._core.shown import Shown

__all__ = ["Future", "collect_all", "wait_all"]


T = TypeVar("T")


class Future(Generic[T], metaclass=Shown):
    """A value, or an exception, that some thread sets once."""

    def __init__(self, *, devices: Any = None) -> None:
        self._ready, self._lock = threading.Event(), threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self._given = False  # whether the exception is one that set_exception() was given
        self._callbacks: list[Callable] = []

    def done(self) -> bool:
        """Whether there is a value or an exception."""
        return self._ready.is_set()

    def wait(self) -> Any:
        """The value, once it is there; raises what was set as exception."""
        self._ready.wait()
        if self._error is not None:
            try:
                raise self._error
            finally:
                del self  # else the error holds this frame, which holds it: all that the caller's frames hold would wait for the garbage collector
        return self._value

    def value(self) -> Any:
        """The value of a future that is done."""
        if not self.done():
            raise RuntimeError("Future.value() called before the future is done; wait() waits for it")
        return self.wait()

    def _settle(self, value: Any, error: BaseException | None) -> list[Callable[[], None]]:
        """Complete, which wakes who waits: the callbacks, for the caller to run."""
        with self._lock:
            if self.done():
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once.")
            self._value, self._error = value, error
            self._ready.set()
        callbacks, self._callbacks = self._callbacks, []
        return callbacks

    def _complete(self, value: Any, error: BaseException | None) -> None:
        for run in self._settle(value, error):
            run()

    def set_result(self, result: Any) -> None:
        """Complete with a value."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete with an exception."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._given = True
        self._complete(None, result)

    def _when_done(self, run: Callable[[], None]) -> None:
        with self._lock:
            if not self.done():
                self._callbacks.append(run)
                return
        run()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of callback(self), which runs as soon as this one is done; what callback raises is there the cause of a RuntimeError."""
        after = Future()

        def run() -> None:
            try:
                result = callback(self)
            except Exception as error:
                failed = _callback_failed(error)
                failed.__cause__ = error
                after._complete(None, failed)
            else:
                after.set_result(result)
        self._check_callable("then", callback)
        self._when_done(run)
        return after

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Run callback(self) as soon as this one is done. What it raises is logged."""
        def run() -> None:
            try:
                callback(self)
            except Exception as error:
                logging.getLogger(__name__).error("%s", _callback_failed(error))
        self._check_callable("add_done_callback", callback)
        self._when_done(run)

    @staticmethod
    def _check_callable(name: str, callback: Any) -> None:
        if not callable(callback):
            raise TypeError(f"{name}(): incompatible function arguments: the callback must be callable, not {type(callback).__name__}")

    def __reduce_ex__(self, protocol: int) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")


def _callback_failed(error: Exception) -> RuntimeError:
    return RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")


Future.__module__ = "torch"


def collect_all(futures: list[Future]) -> Future:
    """The future of the list of futures, done when all of them are; of the first one's exception, if there is one. A callback or a call of another
    process that failed ends the waiting at once."""
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    out, left, lock = Future(), [len(futures)], threading.Lock()

    def finish(error: BaseException | None) -> None:
        with lock:
            if out.done():
                return
            callbacks = out._settle(futures if error is None else None, error)
        for run in callbacks:
            run()

    def one_less(future: Future) -> None:
        with lock:
            left[0] -= 1
            last = not left[0]
        if future._error is not None and not future._given:
            finish(future._error)
        elif last:
            finish(next((future._error for future in futures if future._error is not None), None))
    for future in futures:
        future._when_done(lambda future=future: one_less(future))
    if not futures:
        finish(None)
    return out


def wait_all(futures: list[Future]) -> list:
    """Their values, once all are there."""
    return [future.wait() for future in collect_all(futures).wait()]
