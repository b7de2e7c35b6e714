"""TorchScript's marks. Programs are compiled by recording them, so a marked function simply runs as it is written."""

from typing import Any as _Any

from .._alias import missing as _missing
from ..futures import Future  # noqa: F401
from .annotations import Attribute, Final  # noqa: F401
from .containers import isinstance  # noqa: A004, F401
from .load import load  # noqa: F401
from .save import save  # noqa: F401
from .script import (  # noqa: F401
    Error,
    ScriptModule,
    _overload,
    _overload_method,
    _unwrap_optional,
    annotate,
    export,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    script,
    script_if_tracing,
    script_method,
    unused,
)
from .script_function import ScriptFunction  # noqa: F401
from .strategies import fuser, optimized_execution, set_fusion_strategy  # noqa: F401
from .trace import TracerWarning, TracingCheckError, fork, freeze, optimize_for_inference, trace, trace_module, wait  # noqa: F401

_fork, _wait = fork, wait  # what they were called once
__all__ = ["Attribute", "Error", "Future", "ScriptFunction", "ScriptModule", "annotate", "export", "fork", "freeze", "ignore", "interface", "isinstance", "load",
           "optimize_for_inference", "save", "script", "script_if_tracing", "set_fusion_strategy", "trace", "trace_module", "unused", "wait"]

_script_if_tracing = script_if_tracing  # the name torchvision uses


def __getattr__(name: str) -> _Any:
    if name == "RecursiveScriptModule":  # what it needs is a layer above
        from ._code import RecursiveScriptModule
        return RecursiveScriptModule
    if name == "_get_trace_graph":
        from ._trace_graph import get_trace_graph
        return get_trace_graph
    raise _missing(name, __name__)
