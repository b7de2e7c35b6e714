"""`torch.jit` decorators and questions: with no second language here, they say no or hand back their argument."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .._core.shown import Shown
from .._exporting import state as exporting
from ..nn.modules.module import Module
from ..nn.modules.utils import typename
from ..nn.parameter import is_lazy

T = TypeVar("T")


def is_scripting() -> bool:
    """False: Python itself runs."""
    return False


def is_tracing() -> bool:
    """Whether `torch.onnx.export(dynamo=False)`, `torch.jit.trace` or `save` runs a model on its examples. What was traced is run as it is later, and asks again."""
    return exporting.traced or exporting.example


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """Returns `obj` itself: recording compiles a scripted function as it does every other. RuntimeError for lazy modules that wait for a first call."""
    if isinstance(obj, Module):
        refuse_uninitialized(obj)
    return obj


def refuse_uninitialized(module: Module) -> None:
    """RuntimeError where a module's parameters or buffers have no shape yet."""
    for m in module.modules():
        for kind, tensors in (("parameters", m._parameters), ("buffers", m._buffers)):
            for name, t in tensors.items():
                if t is not None and is_lazy(t):
                    raise RuntimeError(f"'{typename(m)}' has uninitialized {kind} {name}. Did you forget to run a forward pass?")


def script_if_tracing(fn: T) -> T:
    """Returns `fn` itself, since nothing is being traced."""
    return fn


def ignore(drop: bool | Callable = False, **kwargs: Any) -> Callable:
    """Decorator, with or without arguments: left to Python, where everything is."""
    if callable(drop):
        return drop
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    return lambda fn: fn


def unused(fn: T) -> T:
    """Decorator: never compiled by TorchScript; returns `fn` itself."""
    return fn


def export(fn: T) -> T:
    """Decorator: an entry point for TorchScript; returns `fn` itself."""
    return fn


def interface(obj: T) -> T:
    """Decorator of a class that says what others implement; returns it."""
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    if obj.__bases__ not in ((object,), (Module,)):
        raise RuntimeError("TorchScript interface does not support inheritance yet. Please directly inherit from 'object' or 'nn.Module'.")
    return obj


def script_method(fn: T) -> T:
    """Decorator of a ScriptModule's methods; returns `fn` itself."""
    return fn


class ScriptModule(Module):
    """A module of older programs, written for TorchScript: here it is like any other. Those that `torch.jit.load` reads are such modules."""


class Error(RuntimeError, metaclass=Shown):
    """What a `raise` becomes in a program that `torch.jit.load` read."""

    __module__ = "torch.jit"


def _overload(func: T) -> T:
    """Decorator of one signature of a function that has several; returns `func` itself."""
    return func


_overload_method = _overload


def annotate(the_type: Any, the_value: T) -> T:
    """Returns `the_value`; the type is for TorchScript's compiler."""
    return the_value
