"""torch.jit.trace and what is done to its results: every program is traced as it runs here, so the function itself comes back."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from .._exporting import state as exporting
from ..futures import Future
from ..nn.modules.module import Module
from ._deprecated import deprecated
from .save import Examples, remember
from .script import refuse_uninitialized

T = TypeVar("T")


class TracerWarning(Warning):
    """What a trace that is written down may miss: a branch that depended on data."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Filter such warnings of the library's own lines, other than torch.jit's."""
        warnings.filterwarnings("ignore", category=TracerWarning, module=r"torch(like)?\.(?!jit)")


class TracingCheckError(Exception):
    """PyTorch's error where a second trace is not the first one again. What is traced here runs anew at each call, so nothing raises it."""

    __module__ = "torch.jit._trace"

    def __init__(self, graph_diff_error: str | None, tensor_compare_error: str | None, extra_msg: str | None = None) -> None:
        lines = ["Tracing failed sanity checks!"]
        if extra_msg is not None:
            lines.append(extra_msg)
        if graph_diff_error is not None:
            lines += ["ERROR: Graphs differed across invocations!", _indented(graph_diff_error)]
        if tensor_compare_error is not None:
            lines += ["ERROR: Tensor-valued Constant nodes differed in value across invocations. This often indicates that the tracer has "
                      "encountered untraceable code.", _indented(tensor_compare_error)]
        self.message = "\n".join(lines) + "\n"
        super().__init__(self.message)


def _indented(text: str) -> str:
    return "\n".join("\t" * bool(line) + line for line in text.split("\n"))


def trace(func: T, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None, check_tolerance: float = 1e-5,
          strict: bool = True, *, example_kwarg_inputs: dict | None = None, **internal: Any) -> T:
    """Calls func with the example inputs, as PyTorch does, and returns it: here what depends on the inputs stays so.

    A module can then be saved (`save`, torch.jit.save): the file has what it does for the example inputs, as PyTorch's has.
    """
    deprecated("trace")
    given, named = _given(example_inputs), dict(example_kwarg_inputs or {})
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module):
        if func.__name__ != "forward":
            raise AttributeError("trace doesn't support compiling individual module's functions.\nPlease use trace_module")
        func = owner
    if isinstance(func, Module):
        return _traced(func, {"forward": (given, named)})
    with _tracing():
        func(*given, **named)
    return func


def trace_module(mod: Module, inputs: dict[str, Any], optimize: Any = None, check_trace: bool = True, check_inputs: Any = None, check_tolerance: float = 1e-5,
                 strict: bool = True, *, example_inputs_is_kwarg: bool = False, **internal: Any) -> Module:
    """`trace` of several methods of a module, by their names: calls each with its example inputs, and returns the module.

    Its file (`save`, torch.jit.save) has these methods. With `example_inputs_is_kwarg` a dictionary of inputs is keyword arguments.
    AttributeError where the module has no such method.
    """
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    return _traced(mod, {name: ((), dict(x)) if example_inputs_is_kwarg and isinstance(x, dict) else (_given(x), {}) for name, x in inputs.items()})


@contextmanager
def _tracing() -> Iterator[None]:
    """Within the block torch.jit.is_tracing() is true."""
    before, exporting.example = exporting.example, True
    try:
        yield
    finally:
        exporting.example = before


def _given(example: Any) -> tuple:
    return tuple(example) if isinstance(example, (tuple, list)) else () if example is None else (example,)


def _traced(mod: Module, examples: Examples) -> Module:
    deprecated("trace_method")  # PyTorch's trace of a module is that of its forward
    refuse_uninitialized(mod)
    hooked = next((m for m in mod.modules() if m._backward_hooks), None)
    if hooked is not None:
        raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {hooked}")
    with _tracing():
        for name, (args, kwargs) in examples.items():
            (mod if name == "forward" else getattr(mod, name))(*args, **kwargs)
    remember(mod, examples)
    return mod


def freeze(mod: Module, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Module:
    """Returns mod, which must be in eval mode."""
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.")
    return mod


def optimize_for_inference(mod: Module, other_methods: list[str] | None = None) -> Module:
    """Returns mod, in eval mode."""
    return freeze(mod.eval())


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """A future of func(*args, **kwargs), which has run: recorded work waits for its observer anyway."""
    out = Future()
    try:
        out.set_result(func(*args, **kwargs))
    except Exception as error:
        out.set_exception(error)
    return out


def wait(future: Future) -> Any:
    """What a forked function gave."""
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()
