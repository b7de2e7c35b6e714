"""`torch.fx.wrap`, the mark that modules put on functions as they are imported."""

import inspect
from collections.abc import Callable


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """Marks a function as one step of a symbolic trace. Nothing is traced symbolically here; returns its argument.

    RuntimeError for another type of argument, NotImplementedError when not called at the top level of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    caller = inspect.currentframe().f_back
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    return fn_or_name
