"""profile: steps of a schedule, each recorded or not, and a handler for every finished record."""
from __future__ import annotations

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from ..autograd import profiler as base


class ProfilerActivity(enum.Enum):
    """What is looked at; the devices' kernels are seen by jax.profiler only."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a step does."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The activities that events come from."""
    return {ProfilerActivity.CPU}


def _default_schedule_fn(step: int) -> ProfilerAction:
    """Every step is recorded."""
    return ProfilerAction.RECORD


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:
    """step -> action: `wait` steps of none, `warmup`, `active` recorded ones, `repeat` times (0: for ever)."""
    if active <= 0 or min(wait, warmup, repeat, skip_first) < 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE
    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes each record into dir_name."""
    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip))
    return handler


class profile:
    """Records operations, programs and ranges in the steps that the schedule picks; without one, from start to stop."""

    def __init__(self, *, activities: Iterable[ProfilerActivity] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[[profile], Any] | None = None, record_shapes: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_flops: bool = False, with_modules: bool = False, **options: Any) -> None:
        self.schedule = schedule or _default_schedule_fn
        self.on_trace_ready = on_trace_ready
        self.activities = set(activities) if activities else supported_activities()
        self.step_num = 0
        self.profiler: base.profile | None = None
        self.step_range: base.record_function | None = None  # of the step that is recorded, where there are steps
        self.in_steps = schedule is not None
        self.metadata: dict[str, Any] = {}
        self.details = {"record_shapes": record_shapes, "profile_memory": profile_memory, "with_flops": with_flops}

    def start(self) -> None:
        """Begin at step 0."""
        self.current_action = self.schedule(self.step_num)
        self._begin()

    def _begin(self) -> None:
        if self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE) and not self._running():
            self.profiler = base.profile(**self.details).__enter__()
        if self.in_steps and self._running():
            self.step_range = base.record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end_range(self) -> None:
        if self.step_range is not None:
            self.step_range.__exit__(None, None, None)
            self.step_range = None

    def _running(self) -> bool:
        return self.profiler is not None and self.profiler.function_events is None

    def _end(self) -> None:
        if self._running():
            self.profiler.__exit__(None, None, None)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self) -> None:
        """The next step begins."""
        self._end_range()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._end()
        self._begin()

    def stop(self) -> None:
        """The end of the last step."""
        self._end_range()
        self._end()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc) -> None:
        self.stop()

    def _finished(self) -> base.profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting its events")
        return self.profiler

    def events(self) -> base.EventList:
        """The events of the last record."""
        return self._finished().events()

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False) -> base.EventList:
        """The last record's events, averaged by name, or by name and shapes of inputs."""
        return self.events().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str) -> None:
        """The last record as a JSON file for chrome://tracing."""
        self._finished().export_chrome_trace(path, **self.metadata)

    def add_metadata(self, key: str, value: str) -> None:
        """A text for the trace."""
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """What a JSON text says, for the trace."""
        self.metadata[key] = json.loads(value)
