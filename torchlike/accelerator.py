"""torch.accelerator: JAX's GPU or TPU, whichever this process has, under one name."""

from typing import Any

import jax

from ._core import program
from ._core.device import canonical, device
from ._core.device import device_count as _count

_chosen = [0]
_NONE = "Cannot access accelerator device when none is available."


def _kind() -> str | None:
    return next((kind for kind in ("cuda", "tpu") if _count(kind)), None)


def is_available() -> bool:
    """Whether JAX has a GPU or a TPU."""
    return _kind() is not None


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of accelerator as a device without index, None if there is none."""
    kind = _kind()
    return None if kind is None else device(kind)


def device_count() -> int:
    """How many devices the accelerator has; 0 without one."""
    kind = _kind()
    return 0 if kind is None else _count(kind)


def _need() -> str:
    kind = _kind()
    if kind is None:
        raise RuntimeError(_NONE)
    return kind


def current_device_index() -> int:
    """The index of the selected device."""
    _need()
    return _chosen[0]


def set_device_index(device: Any, /) -> None:
    """Selects a device by index or by name; a negative index changes nothing."""
    kind = _need()
    index = device if isinstance(device, int) else (canonical(device).index or 0)
    if index >= 0:
        canonical(f"{kind}:{index}")
        _chosen[0] = index


def synchronize(device: Any = None, /) -> None:
    """Waits until everything recorded so far has run."""
    kind = _need()
    program.flush("torch.accelerator.synchronize")
    for array in jax.live_arrays(kind):
        array.block_until_ready()


current_device_idx, set_device_idx = current_device_index, set_device_index
