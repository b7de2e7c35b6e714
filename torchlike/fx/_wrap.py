"""`torch.fx.wrap`. Libraries import it for functions that may be traced some day, so nothing else is loaded for it."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """Marks a function as one step of a symbolic trace: it is called with proxies nowhere, its call becomes a node.

    Takes the function, or its name as the calling module knows it. To be called at the top level of that module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    caller = inspect.currentframe().f_back
    if caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name
