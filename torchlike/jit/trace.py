"""torch.jit.trace and what is done to its results: every program is traced as it runs here, so the function itself comes back."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..futures import Future
from ..nn.modules.module import Module
from .save import remember
from .script import refuse_uninitialized

T = TypeVar("T")


class TracerWarning(Warning):
    """What a trace may miss. Nothing here warns so: values that depend on data are asked for anew in each call."""


def trace(func: T, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None, check_tolerance: float = 1e-5,
          strict: bool = True, *, example_kwarg_inputs: dict | None = None, **internal: Any) -> T:
    """Calls func with the example inputs, as PyTorch does, and returns it: here what depends on the inputs stays so.

    A module can then be saved (`save`, torch.jit.save): the file has what it does for the example inputs, as PyTorch's has.
    """
    from ..autograd.grad_mode import no_grad
    given = example_inputs if isinstance(example_inputs, (tuple, list)) else () if example_inputs is None else (example_inputs,)
    if isinstance(func, Module):
        refuse_uninitialized(func)
        hooked = next((m for m in func.modules() if m._backward_hooks), None)
        if hooked is not None:
            raise ValueError(f"Modules that have backward hooks assigned can't be compiled: {hooked}")
    with no_grad():
        func(*given, **(example_kwarg_inputs or {}))
    if isinstance(func, Module):
        remember(func, tuple(given), dict(example_kwarg_inputs or {}))
    return func


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **options: Any) -> Module:
    """`trace` of the named methods of a module."""
    for name, example in inputs.items():
        trace(getattr(mod, name) if name != "forward" else mod, example)
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
