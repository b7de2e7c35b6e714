"""The `__torch_function__` of classes that take no function over, Parameter's among them: below Tensor, which asks for it."""
from __future__ import annotations

import threading
from collections.abc import Callable
from types import MethodWrapperType


class _State(threading.local):
    disabled = 0  # blocks in which no class takes anything over
    modes: tuple = ()  # TorchFunctionModes that are on, the innermost last
    passed_over = False  # the next question whether somebody takes over is answered with no


state = _State()


class _Dispatching(threading.local):
    disabled = 0  # blocks in which classes with `__torch_dispatch__` are as plain
    target = None  # what an in-place operation writes that is under way on tensors of such classes: see _dispatch/writes.py
    asked = 0  # how often one of them was
    functional = 0  # functions under `torch.func.functionalize`, which graphs of `make_fx` take without writes
    open_ended = False  # views are made for an index that has a slice without an end


dispatching = _Dispatching()
keeps_tangents: list[Callable] = []  # asked about what a class with `__torch_dispatch__` returned, while there is forward differentiation: autograd/_tangents.py
rules: dict[str, dict[type, Callable]] = {}  # by an operator's name, what a class of tensors or modes does with it: torch.library.register_torch_dispatch
refuses_out: list[Callable] = []  # asked about what is written by `out=`, while there is forward differentiation


class DisableTorchFunctionSubclass:
    """No class takes anything over inside the block."""

    def __enter__(self) -> None:
        state.disabled += 1

    def __exit__(self, *exc) -> None:
        state.disabled -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Neither a class nor a mode takes anything over inside the block."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes, state.modes = state.modes, ()

    def __exit__(self, *exc) -> None:
        super().__exit__(*exc)
        state.modes = self._modes


class _Plainly:
    """The `__torch_function__` of a class that takes nothing over: what is made from its tensors are plain ones.

    An object, since a function would be bound to the tensor.
    """

    def __call__(self, func, types, args: tuple = (), kwargs: dict | None = None):
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


_disabled_torch_function_impl = _Plainly()


class _DisableTorchDispatch:
    """No class's `__torch_dispatch__` is called inside the block."""

    def __enter__(self) -> None:
        dispatching.disabled += 1

    def __exit__(self, *exc) -> None:
        dispatching.disabled -= 1


def _disabled_torch_dispatch_impl(func, types, args: tuple = (), kwargs: dict | None = None):
    """The `__torch_dispatch__` of a class that takes no operation over: the operation itself, on what its instances were made of."""
    with _DisableTorchDispatch():
        return func(*args, **(kwargs or {}))


_ACCESS = {"__get__": "fget", "__set__": "fset", "__delete__": "fdel"}


def plain_function(f):
    """The function that a dispatching one stands for (to `__torch_function__`, to `__torch_dispatch__`, or both); another function stays.

    Handlers get `property.__get__` for a property that is read: what it stands for is the getter.
    """
    if isinstance(f, MethodWrapperType) and isinstance(f.__self__, property):
        f = getattr(f.__self__, _ACCESS[f.__name__])
    while not isinstance(f, type) and (hasattr(f, "_dispatches") or hasattr(f, "_hands_on")):
        f = f.__wrapped__
    return f
