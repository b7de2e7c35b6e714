"""torch.utils._mode_utils: blocks in which no class's `__torch_dispatch__` is called."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from .._plainly import _DisableTorchDispatch


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """Inside the block, tensors of classes with `__torch_dispatch__` are what they were made of."""
    with _DisableTorchDispatch():
        yield


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all are the first."""
    return all(m is modes[0] for m in modes)
