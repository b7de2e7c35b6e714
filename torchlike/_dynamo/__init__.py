"""The names of torch._dynamo that programs use, for torch.compile as it is here."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._compile import OptimizedModule, compile  # noqa: F401
from ..compiler import (  # noqa: F401
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
)
from . import backends, config, eval_frame, utils  # noqa: F401
from .eval_frame import is_dynamo_supported, is_inductor_supported  # noqa: F401
from .explanation import explain  # noqa: F401


def optimize(backend: Any = "inductor", *, nopython: bool = False, dynamic: bool | None = None, **kwargs: Any) -> Callable:
    """A decorator: torch.compile."""
    return lambda fn: compile(fn, fullgraph=nopython, dynamic=dynamic, backend=backend)


def graph_break(msg: str = "") -> None:
    """The call that reaches this line stays recorded eager."""
    from .._core import program
    if program.state.capture is not None:
        program.state.capture.interrupted(f"torch._dynamo.graph_break {msg}".rstrip())


def mark_dynamic(t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None, max: int | None = None,
                 specialize_on: Any = None) -> None:
    """A hint that shapes will change; programs here are always made for the shapes at hand."""


def mark_static(t: Any, index: Any = None) -> None:
    """A hint that shapes will not change."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """A hint for CUDA graphs, of which there are none."""


maybe_mark_dynamic = mark_dynamic
