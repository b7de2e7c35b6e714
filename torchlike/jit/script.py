"""`torch.jit` decorators and questions: programs run as they are written, so marks are for what is saved only."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .._core.shown import Shown
from .._exporting import state as exporting
from ..nn.modules.module import Module
from ..nn.modules.utils import typename
from ..nn.parameter import is_lazy
from ._deprecated import deprecated
from .save import compiled, remember_scripted
from .script_function import scripted

T = TypeVar("T")
IGNORED = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
UNUSED = "unused (ignored and replaced with raising of an exception)"
EXPORTED = "export (compile this function even if nothing calls it)"


def is_scripting() -> bool:
    """False: Python itself runs."""
    return False


def is_tracing() -> bool:
    """Whether `torch.onnx.export(dynamo=False)`, `torch.jit.trace` or `save` runs a model on its examples. What was traced is run as it is later, and asks again."""
    return exporting.traced or exporting.example


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """A module or function that can be saved as TorchScript, and runs as it is written: recording compiles it as it does every other.

    A module is returned itself, a function as a ScriptFunction that calls it. RuntimeError for lazy modules that wait for a first call.
    """
    deprecated("script")
    if isinstance(obj, Module):
        refuse_uninitialized(obj)
        if not isinstance(obj, ScriptModule):
            remember_scripted(obj)
    return scripted(obj) if inspect.isfunction(obj) else obj


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
    """Decorator, with or without arguments: what is left to Python; TorchScript has no form for its calls, unless they may be dropped."""
    if callable(drop):
        return _marked(drop, IGNORED)
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    return lambda fn: _marked(fn, UNUSED if drop or kwargs.get("drop_on_export") else IGNORED)


def unused(fn: T) -> T:
    """Decorator: never compiled by TorchScript, where a call of it is an error; returns `fn` itself."""
    return _marked(fn, UNUSED)


def export(fn: T) -> T:
    """Decorator: a method that is compiled though nothing calls it; returns `fn` itself."""
    return _marked(fn, EXPORTED)


def _marked(f: T, mark: str) -> T:
    try:
        (f.fget if isinstance(f, property) else f)._torchscript_modifier = mark
    except AttributeError:  # a method or a builtin function, which holds nothing
        pass
    return f


def interface(obj: T) -> T:
    """Decorator of a class that says what others implement; returns it."""
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    if obj.__bases__ not in ((object,), (Module,)):
        raise RuntimeError("TorchScript interface does not support inheritance yet. Please directly inherit from 'object' or 'nn.Module'.")
    return obj


def script_method(fn: T) -> T:
    """Decorator of a ScriptModule's methods, which are compiled when it is saved; returns `fn` itself."""
    return _marked(fn, EXPORTED)


class _OfScripted(type):
    """What was traced or scripted is an instance, though it stays what it was."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or cls is ScriptModule and type.__instancecheck__(Module, x) and compiled(x)


class ScriptModule(Module, metaclass=_OfScripted):
    """What `torch.jit.load` reads, what was traced or scripted, and modules of older programs, written for TorchScript: these can be saved, too."""

    def __init__(self) -> None:
        super().__init__()
        remember_scripted(self)


class Error(RuntimeError, metaclass=Shown):
    """What a `raise` becomes in a program that `torch.jit.load` read."""

    __module__ = "torch.jit"


_OVERLOADS: dict[str, list[Callable]] = {}  # by the name that they share


def _overload(func: T) -> T:
    """Decorator of one signature of a function or method that has several; returns `func` itself."""
    found = _OVERLOADS.setdefault(f"{func.__module__}.{func.__qualname__}", [])
    if not any(f.__code__ is func.__code__ for f in found):
        found.append(func)
    return func


_overload_method = _overload


def overloads(f: Callable) -> list[Callable]:
    """The signatures that were declared for a function or method."""
    return _OVERLOADS.get(f"{f.__module__}.{f.__qualname__}", []) if _OVERLOADS and hasattr(f, "__qualname__") else []


def annotate(the_type: Any, the_value: T) -> T:
    """Returns `the_value`; the type is for TorchScript's compiler."""
    return the_value


def _unwrap_optional(x: T | None) -> T:
    """x, which is not None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x
