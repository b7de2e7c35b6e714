"""The `__torch_function__` of classes that take no function over, Parameter's among them: below Tensor, which asks for it."""
from __future__ import annotations

import threading


class _State(threading.local):
    disabled = 0  # blocks in which no class takes anything over
    modes: tuple = ()  # TorchFunctionModes that are on, the innermost last


state = _State()


class _Plainly:
    """The `__torch_function__` of a class that takes nothing over: what is made from its tensors are plain ones.

    An object, since a function would be bound to the tensor.
    """

    def __call__(self, func, types, args: tuple = (), kwargs: dict | None = None):
        from .overrides import DisableTorchFunctionSubclass
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


_disabled_torch_function_impl = _Plainly()
