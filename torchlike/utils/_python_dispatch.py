"""torch.utils._python_dispatch: modes that stand before every leaf operation of the thread."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import _leaves
from .._tensor import Tensor


class TorchDispatchMode:
    """Inside the block, leaf operations come as `__torch_dispatch__(self, func, types, args, kwargs)`: func is an operator of torch.ops.aten.

    Inside that method the mode is off and nothing is differentiated; the operations outside it are, with what the method returns.
    """

    def __init__(self, _dispatch_key: Any = None) -> None:
        pass

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        _leaves.push(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _leaves.pop()


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls what was called."""

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    stack = _leaves.state.stack
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return list(_leaves.state.stack)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on."""
    return bool(_leaves.state.stack)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    before, _leaves.state.stack = _leaves.state.stack, ()
    try:
        yield list(before)
    finally:
        _leaves.state.stack = before


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether t is of a subclass that says which tensors it holds (`__tensor_flatten__`) and how it is made of them."""
    return isinstance(t, Tensor) and type(t) is not Tensor and all(callable(getattr(t, name, None)) for name in ("__tensor_flatten__", "__tensor_unflatten__"))
