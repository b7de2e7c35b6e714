"""Staging: the copy of a state that `async_save` writes while a program goes on."""
from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..._tensor import Tensor
from ._nesting import mapped

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """What `async_save` asks for the copy: a state, or a Future of one."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `synchronize_staging` is to be called once saving has begun."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Future | dict[str, Any]:
        """The copy."""
        raise NotImplementedError(f"{self.__class__.__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait for it."""

    def close(self) -> None:
        """No more copies are made."""


@dataclass
class StagingOptions:
    """How DefaultStager copies: `use_async_staging` in a thread; the other settings change nothing, as arrays are XLA's."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


def _kept(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state as it is now: later writes do not reach it."""
    return mapped(lambda t: t.detach().clone(), state_dict)


def _on_host(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Its tensors on the CPU (those of classes of their own, as DTensors, where they are)."""
    return mapped(lambda t: t.cpu() if type(t) is Tensor else t, state_dict)


class DefaultStager(AsyncStager):
    """Takes the state as it is when `stage` is called, and moves it to the CPU, in a thread or at once."""

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = StagingOptions() if config is None else config
        self._executor = ThreadPoolExecutor(1) if self._config.use_async_staging else None
        self._staging_future: Future | None = None

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> Future | dict[str, Any]:
        """The copy; a Future of it with `use_async_staging`."""
        kept = _kept(state_dict)
        if self._executor is None:
            return _on_host(kept)
        self._staging_future = self._executor.submit(_on_host, kept)
        return self._staging_future

    def synchronize_staging(self) -> None:
        """Wait for the last copy."""
        if self._staging_future is not None:
            self._staging_future.result()

    def close(self) -> None:
        """End the thread."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)


class BlockingAsyncStager(AsyncStager):
    """Copies to the CPU at once. The settings change nothing."""

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """The copy."""
        return _on_host(_kept(state_dict))
