"""PyTorch's dispatch keys, as far as programs name them: to leave autocast's kernels of an operation of torch.library aside."""
from __future__ import annotations

import enum
import threading
from collections.abc import Iterable


class DispatchKey(enum.Enum):
    """A layer of PyTorch's dispatcher that kernels are registered for."""

    CPU, CUDA, XPU, Meta = "CPU", "CUDA", "XPU", "Meta"
    AutocastCPU, AutocastCUDA, AutocastXPU = "AutocastCPU", "AutocastCUDA", "AutocastXPU"


class DispatchKeySet:
    """A set of dispatch keys; `a | b` joins two."""

    def __init__(self, keys: DispatchKey | Iterable[DispatchKey]) -> None:
        self._keys = frozenset([keys] if isinstance(keys, DispatchKey) else keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether the key is in the set."""
        return key in self._keys


class _Excluded(threading.local):
    keys: DispatchKeySet = DispatchKeySet(())


excluded = _Excluded()


class _ExcludeDispatchKeyGuard:
    """Context manager: in this thread, kernels of these keys are passed over."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._mine = keys

    def __enter__(self) -> None:
        self._before = excluded.keys
        excluded.keys = self._before | self._mine

    def __exit__(self, *error: object) -> None:
        excluded.keys = self._before
