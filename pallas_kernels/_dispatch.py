"""Which implementation serves a call: predicates return the reason why one cannot, never a bare False."""

import contextlib
import contextvars
import functools
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax

MODES = ("auto", "kernel", "reference", "interpret")
_ENVIRONMENT = "PALLAS_KERNELS"

# Shared memory that a program may ask for, in bytes, by compute capability.
_SHARED_MEMORY = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}


@dataclass(frozen=True)
class Device:
    platform: str  # "cpu", "cuda", "rocm" or "tpu"
    kind: str
    capability: int = 0  # 90 for compute capability 9.0; 0 off CUDA
    processors: int = 1  # streaming multiprocessors; 1 off the GPU

    @property
    def shared_memory(self) -> int:
        """Bytes of it that one program may ask for; of an unknown capability, what every CUDA device has."""
        return _SHARED_MEMORY.get(self.capability, 49152)


H200 = Device("cuda", "NVIDIA H200", 90, 132)
TPU = Device("tpu", "TPU v5 lite")

_assumed: contextvars.ContextVar[Device | None] = contextvars.ContextVar("pallas_kernels_device", default=None)
_mode: contextvars.ContextVar[str | None] = contextvars.ContextVar("pallas_kernels_mode", default=None)


class KernelUnavailable(RuntimeError):
    """An implementation was asked for by name and cannot serve this call; the message says why."""


@dataclass(frozen=True)
class Impl:
    """One way to compute an operation.

    `supports(device, case)` returns why it cannot compute `case`; `pays(device, case)` why it can but should not be
    picked unasked. Both return None when there is no objection. `target` is "module:function", imported on first use.
    """

    name: str
    platforms: tuple[str, ...]
    target: str
    supports: Callable[[Device, Any], str | None]
    pays: Callable[[Device, Any], str | None] = lambda device, case: None
    interpretable: bool = False

    def function(self) -> Callable:
        module, _, name = self.target.partition(":")
        return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Choice:
    impl: Impl | None  # None: the reference
    interpret: bool
    reasons: tuple[str, ...]  # why each implementation before it was passed over
    forced: bool = False  # asked for, not picked


@functools.cache
def _default_device() -> Device:
    device = jax.devices()[0]
    if device.platform != "gpu":
        return Device(device.platform, device.device_kind)
    capability = str(getattr(device, "compute_capability", "0"))
    cuda = capability.replace(".", "").isdigit()
    return Device(
        "cuda" if cuda else "rocm",
        device.device_kind,
        int(capability.replace(".", "")) if cuda else 0,
        getattr(device, "core_count", 1) or 1,
    )


def device() -> Device:
    """The device programs are traced for: the default one, unless `assumed_device` or `platform` says otherwise."""
    return _assumed.get() or _default_device()


@contextlib.contextmanager
def assumed_device(target: Device) -> Iterator[None]:
    token = _assumed.set(target)
    try:
        yield
    finally:
        _assumed.reset(token)


@contextlib.contextmanager
def override(mode: str) -> Iterator[None]:
    """Force an implementation while tracing: "kernel", "reference", "interpret", "auto" or an implementation's name.

    A program that `jax.jit` has already traced keeps what was chosen then.
    """
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


def choose(op: str, impls: Sequence[Impl], case: Any, impl: str | None = None) -> Choice:
    """Pick by argument, then `override`, then the environment variable PALLAS_KERNELS, then preference order."""
    names = [i.name for i in impls]
    mode = impl or _mode.get() or os.environ.get(_ENVIRONMENT, "auto")
    if mode not in MODES and mode not in names:
        raise ValueError(f"{op}: impl must be one of {', '.join((*MODES, *names))}, got {mode!r}")
    if mode == "reference":
        return Choice(None, False, (), True)
    here = device()
    reasons = []
    for candidate in impls:
        if mode not in MODES and candidate.name != mode:
            continue
        if mode == "interpret":
            why = None if candidate.interpretable else "has no interpret mode"
        else:
            why = (
                None
                if here.platform in candidate.platforms
                else f"runs on {'/'.join(candidate.platforms)}, not on {here.platform}"
            )
        why = why or candidate.supports(here, case)
        if mode == "auto":
            why = why or candidate.pays(here, case)
        if why is None:
            return Choice(candidate, mode == "interpret", tuple(reasons), mode != "auto")
        reasons.append(f"{candidate.name}: {why}")
    if mode != "auto":
        raise KernelUnavailable(f"{op}: no implementation for {mode!r}: {'; '.join(reasons) or 'none is registered'}")
    return Choice(None, False, tuple(reasons))


def on_platforms(platforms: Sequence[str], kernel: Callable, reference: Callable, *args: Any) -> Any:
    """`kernel` where the program runs on one of `platforms`, else `reference` (a computation placed on the CPU of a
    machine whose default device is a GPU). Both must return the same structure."""
    return jax.lax.platform_dependent(*args, **dict.fromkeys(platforms, kernel), default=reference)
