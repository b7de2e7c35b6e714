"""torch.distributed.rpc.functions: marks of functions that others call."""

from __future__ import annotations

import functools
from collections.abc import Callable


def async_execution(fn: Callable) -> Callable:
    """`fn` returns a Future: the caller gets what that will hold, and no thread waits for it here.

    Under a static or class method's decorator it stands below.
    """
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)
    wrapper._wrapped_async_rpc_function = fn
    return wrapper
