"""torch.ops.profiler: ranges of torch.autograd.profiler begun and ended by operators, as graphs have them."""
from __future__ import annotations

from types import SimpleNamespace

from ._ops import OpOverloadPacket
from .autograd.profiler import record_function


def _enter(name: str, args: str | None = None) -> record_function:
    """A range that is open; `_record_function_exit` takes it."""
    return record_function(name, args).__enter__()


def _exit(handle: record_function) -> None:
    handle.__exit__(None, None, None)


_FUNCTIONS = {"_record_function_enter": _enter, "_record_function_enter_new": _enter, "_record_function_exit": _exit}
profiler = SimpleNamespace(**{name: OpOverloadPacket(name, f, ["default"], "profiler") for name, f in _FUNCTIONS.items()})
