"""What a collective with `async_op=True` returns: work to wait for."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .._tensor import Tensor
from .store import DistNetworkError


class Work:
    """`ready` is a future of NumPy results; `finish(results)` writes them into the tensors, once, in the thread that asks."""

    def __init__(self, ready: concurrent.futures.Future, finish: Callable[[Any], list[Tensor]]) -> None:
        self._ready, self._finish = ready, finish
        self._tensors: list[Tensor] | None = None
        self._source = -1

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Until the results are in the tensors. RuntimeError after `timeout`, or what went wrong."""
        if self._tensors is None:
            try:
                results = self._ready.result(None if timeout is None else timeout.total_seconds())
            except concurrent.futures.TimeoutError:
                raise RuntimeError("Operation timed out!") from None
            self._tensors = self._finish(results)
        return True

    def is_completed(self) -> bool:
        if self._ready.done() and self._ready.exception() is None:
            self.wait()
        return self._ready.done()

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        return self._ready.exception() if self._ready.done() else None

    def result(self) -> list[Tensor]:
        self.wait()
        return self._tensors

    def source_rank(self) -> int:
        """Where a received tensor came from."""
        return self._source

    def synchronize(self) -> None:
        self.wait()

    def get_future(self) -> Any:
        """A torch.futures.Future of the tensors; it has them when this call returns."""
        from ..futures import Future
        future = Future()
        future.set_result(self.result())
        return future


class Receiving(Work):
    """A tensor on its way: `receive(seconds)` takes it in, or gives None where it has not come by then."""

    def __init__(self, receive: Callable[[float | None], tuple[int, Any] | None], finish: Callable[[Any], list[Tensor]]) -> None:
        super().__init__(concurrent.futures.Future(), finish)
        self._receive = receive
        self._receiving = threading.Lock()
        self.after: list[Receiving] = []  # receives that were asked for earlier, which the next messages are for

    def when_taken(self, call: Callable[[], Any]) -> None:
        """Let `call` be called when the message is there."""
        self._ready.add_done_callback(lambda _: call())

    def _taken(self, seconds: float | None) -> bool:
        with self._receiving:
            if self._ready.done():
                return True
            while self.after:
                if not self.after[0]._taken(seconds):
                    return False
                self.after.pop(0)
            try:
                arrived = self._receive(seconds)
            except DistNetworkError:  # there may be a next time
                raise
            except Exception as error:
                self._ready.set_exception(error)
                return True
            if arrived is None:
                return False
            self._source = arrived[0]
            self._ready.set_result(arrived[1])
        return True

    def wait(self, timeout: timedelta | None = None) -> bool:
        if not self._taken(None if timeout is None else timeout.total_seconds()):
            raise RuntimeError("Operation timed out!")
        return super().wait()

    def is_completed(self) -> bool:
        return self._taken(0.0) and super().is_completed()
