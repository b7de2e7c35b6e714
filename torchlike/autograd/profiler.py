"""torch.autograd.profiler: operations, compiled programs and `record_function` ranges, and how long they took.

An operation that runs by itself, in NumPy, is an event of PyTorch's name for it; in a backward, of its node's. A compiled program is one event, named by the
user line that ended it: XLA fuses its operations, so single ones have no time of their own (`jax.profiler` shows its kernels). While a profile is on, a
range ends its program, so that its time is that of its work, and whoever starts a compiled program waits for it.
"""
from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from .._core import history, observers, program
from .._core.registry import BackwardOp, Plan
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg, nested

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "profile", "record_function"]

# Operators by names of ours that are not theirs; these also have forms of their own for one dimension, for several, for all parts of a tensor
_OPERATORS = {"constant": "full", "cross_entropy": "cross_entropy_loss", "max_pool": "max_pool2d", "lstm_sequence": "lstm", "gru_sequence": "gru", "to_copy": "_to_copy",
              "optim_sgd": "_fused_sgd_", "optim_adam": "_fused_adam_", "optim_adagrad": "_fused_adagrad_"}
_FORMS = "_dim", "_dims", "_all", "_at"
_active: list[profile] = []


def is_running() -> bool:
    """Whether a profiler collects what happens."""
    return bool(_active)


@functools.cache
def _operator(name: str) -> str:
    from .._ops import aten

    form = next((form for form in _FORMS if name.endswith(form)), "")
    names = _OPERATORS.get(name, name), name.removesuffix(form)
    return next((f"aten::{x}" for x in names if hasattr(aten, x)), name)


def _name(plan: Plan) -> str:
    """PyTorch's: of an operator, or of the node whose derivative it is."""
    op = plan.op
    if not isinstance(op, BackwardOp):
        return _operator(op.name)
    name, forward = op.forward.torch_name, plan.statics[0]
    return name(forward) if callable(name) else name


def _shapes(plan: Plan) -> list[list[int]]:
    return [[] if a is None or a.number else list(a.shape) for a in plan.avals]


def _own_memory(plan: Plan) -> int:
    return 0 if plan.op.free else sum(a.numel * a.dtype.itemsize for a in plan.outs)


def _flops(plan: Plan) -> int:
    """Of those operations for which PyTorch's profiler counts them: products, convolutions, mul and add."""
    name, out = plan.op.name, plan.outs[0]
    if name in ("mul", "add"):
        return out.numel
    if name in ("mm", "bmm", "matmul", "linear") and plan.avals[0].ndim:
        return 2 * out.numel * plan.avals[0].shape[-1]
    if name == "addmm":
        return 2 * out.numel * plan.avals[1].shape[-1]
    if name == "convolution":
        return 2 * out.numel * math.prod(plan.avals[1].shape[1:])
    return 0


class profile:
    """Context manager that collects events. `record_shapes`: with the shapes of their inputs; `profile_memory`: with the bytes of their results;
    `with_flops`: with their floating point operations."""

    def __init__(self, enabled: bool = True, *, record_shapes: bool = False, profile_memory: bool = False, with_flops: bool = False, **options: Any) -> None:
        self.enabled, self.record_shapes, self.profile_memory, self.with_flops = enabled, record_shapes, profile_memory, with_flops
        self.function_events: EventList | None = None

    def __enter__(self) -> profile:
        if self.enabled:
            program.flush("profile begins")
            self.events_: list[FunctionEvent] = []
            self.began = time.perf_counter()
            _active.append(self)
            observers.watching.append(self)
        return self

    def __exit__(self, *exc) -> None:
        if self.enabled and self in _active:
            try:
                program.flush("profile ends")
            finally:
                _active.remove(self)
                observers.watching.remove(self)
                self.function_events = nested(self.events_, profile_memory=self.profile_memory, with_flops=self.with_flops)

    def operation(self, plan: Plan, start: float, end: float) -> None:
        """An operation that ran by itself."""
        self.note(_name(plan), start, end, input_shapes=_shapes(plan) if self.record_shapes else (), own_memory=_own_memory(plan) if self.profile_memory else 0,
                  flops=_flops(plan) if self.with_flops else 0)

    def program(self, entry: history.Entry, start: float, end: float) -> None:
        """A compiled program that ran, with its compilation where it was compiled now."""
        self.note(f"program at {history.shown(entry.place)} ({entry.how})", start - entry.seconds, end)

    def note(self, name: str, start: float, end: float, **more: Any) -> None:
        """An event of this thread; times are of time.perf_counter."""
        self.events_.append(FunctionEvent(name, (start - self.began) * 1e6, (end - self.began) * 1e6, thread=threading.get_ident(), **more))

    def events(self) -> EventList:
        """All events of a finished profile."""
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> EventList:
        """Events averaged by name, or by name and shapes of inputs."""
        return self.events().key_averages(group_by_input_shape)

    def table(self, *args, **kwargs) -> str:
        """`events().table(...)`."""
        return self.events().table(*args, **kwargs)

    def export_chrome_trace(self, path: str, **metadata: Any) -> None:
        """The events as a JSON file for chrome://tracing."""
        self.events().export_chrome_trace(path, **metadata)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return self.events().self_cpu_time_total

    def total_average(self) -> FunctionEventAvg:
        """All events together."""
        return self.events().total_average()

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)


class record_function:
    """A named range, as a context manager or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        if _active:
            program.flush("record_function")
        self.noting, self.start = list(_active), time.perf_counter()
        return self

    def __exit__(self, *exc) -> None:
        if self.noting:
            if exc[0] is None:
                program.flush("record_function")
            end = time.perf_counter()
            for p in self.noting:
                p.note(self.name, self.start, end, is_user_annotation=True)

    def __call__(self, func: Callable) -> Callable:
        @functools.wraps(func)
        def run(*args, **kwargs):
            with record_function(self.name, self.args):
                return func(*args, **kwargs)
        return run


class _NoOutside:
    """emit_nvtx and emit_itt: annotations for tools that see no XLA program; accepted, without effect."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> _NoOutside:
        return self

    def __exit__(self, *exc) -> None:
        return None


class emit_nvtx(_NoOutside):
    """Accepted, without effect."""


class emit_itt(_NoOutside):
    """Accepted, without effect."""
