"""`rref.rpc_sync().method(...)`: methods of a value that lives elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...futures import Future
from .api import rpc_async
from .constants import UNSET_RPC_TIMEOUT
from .functions import async_execution


def _local_invoke(rref: Any, func_name: str, args: tuple, kwargs: dict) -> Any:
    return getattr(rref.local_value(), func_name)(*args, **kwargs)


_local_invoke_async_execution = async_execution(_local_invoke)
_local_invoke_async_execution.__name__ = _local_invoke_async_execution.__qualname__ = "_local_invoke_async_execution"


def _invoke_rpc(rref: Any, rpc_api: Callable, func_name: str, timeout: float, *args: Any, **kwargs: Any) -> Any:
    """The value's class says whether there is such a method, and whether it returns a future; then it is called."""
    def call(kind: type) -> Any:
        method = getattr(kind, func_name)
        function = _local_invoke_async_execution if hasattr(method, "_wrapped_async_rpc_function") else _local_invoke
        return rpc_api(rref.owner(), function, args=(rref, func_name, args, kwargs), timeout=timeout)
    kind = rref._get_type(timeout=timeout, blocking=False)
    if rpc_api is not rpc_async:
        return call(kind.wait())
    out = Future()

    def finish(done: Future) -> None:
        out._complete(done._value, done._error)

    def start(done: Future) -> None:
        try:
            call(done.wait()).add_done_callback(finish)
        except Exception as error:
            out._complete(None, error.with_traceback(None))  # whose frames hold the reference
    kind.add_done_callback(start)
    return out


class RRefProxy:
    """Has the methods of a reference's value; each call goes to the owner by `rpc_api`."""

    def __init__(self, rref: Any, rpc_api: Callable, timeout: float = UNSET_RPC_TIMEOUT) -> None:
        self.rref, self.rpc_api, self.rpc_timeout = rref, rpc_api, timeout

    def __getattr__(self, func_name: str) -> Callable:
        return partial(_invoke_rpc, self.rref, self.rpc_api, func_name, self.rpc_timeout)
