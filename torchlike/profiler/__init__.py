"""torch.profiler: profiles in steps, with schedules and trace handlers."""

from ..autograd.profiler import record_function  # noqa: F401
from .profiler import (  # noqa: F401
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = ["ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]


def kineto_available() -> bool:
    """Whether `torch.profiler.profile` is there; it always is."""
    return True
