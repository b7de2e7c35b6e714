"""torch._dynamo.explain: whether torch.compile takes a call whole, and why it would not."""
from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable
from typing import Any

from .._compile import Compiled
from .._replay import Replay
from ..nn import Module


@dataclasses.dataclass
class GraphCompileReason:
    """Why a call stays recorded eager."""

    reason: str
    user_stack: list = dataclasses.field(default_factory=list)
    graph_break: bool = True


@dataclasses.dataclass
class ExplainOutput:
    """What became of one call: a replay (one graph), or the reason why there is none."""

    graphs: list[Replay]
    graph_count: int
    graph_break_count: int
    break_reasons: list[GraphCompileReason]
    op_count: int
    ops_per_graph: list[list[str]] | None = None
    out_guards: list | None = None
    compile_times: str | None = None

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}", f"Op Count: {self.op_count}", "Break Reasons:"]
        for n, r in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {n}:", f"    Reason: {r.reason}"]
        if self.ops_per_graph is not None:
            lines.append("Ops per Graph:")
            for n, names in enumerate(self.ops_per_graph, 1):
                lines += [f"  Ops {n}:", *(f"    {name}" for name in names)]
        if self.compile_times is not None:
            lines.append(f"Compile Times: {self.compile_times}")
        return "\n".join(lines)


def explain(f: Callable, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """`explain(f)(*args)` calls f once and says what torch.compile would make of that call.

    A call is taken whole or not at all, so there is one graph and no break, or no graph and one reason.
    """
    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        start = time.perf_counter()
        module = isinstance(f, Module)
        compiled = Compiled(f.__call__ if module else f, type(f).__name__ if module else getattr(f, "__name__", "function"), f if module else None, False)
        made = compiled.trace(args, kwargs)
        seconds = f"{time.perf_counter() - start:.4f} s"
        if isinstance(made, str):
            return ExplainOutput([], 0, 1, [GraphCompileReason(made)], 0, [], [], seconds)
        names = [step.plan.op.name for step in made.forward.steps]
        return ExplainOutput([made], 1, 0, [], len(names), [names], [], seconds)

    if extra_args or extra_kwargs:
        warnings.warn("explain(f, *args, **kwargs) is deprecated, use explain(f)(*args, **kwargs) instead.  If you don't migrate, we may break your explain call "
                      "in the future if your user defined kwargs conflict with future kwargs added to explain(f).", FutureWarning, stacklevel=2)
        return inner(*extra_args, **extra_kwargs)
    return inner
