"""What NVIDIA's management library tells of a GPU, by the package nvidia-ml-py, as `nvidia-smi` shows it."""
from __future__ import annotations

import os
from typing import Any

from .._core.device import DeviceLike
from ._devices import index_of


def _library() -> Any:
    """The package; ModuleNotFoundError without it, RuntimeError without a driver."""
    try:
        import pynvml
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.") from e
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_DriverNotLoaded as e:
        raise RuntimeError("cuda driver can't be loaded, is cuda enabled?") from e
    return pynvml


def _handle(library: Any, device: DeviceLike | None) -> Any:
    """A GPU as that library knows it: CUDA_VISIBLE_DEVICES says which of the machine's GPUs is which of the process."""
    index, given = index_of(device), os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        if not 0 <= index < library.nvmlDeviceGetCount():
            raise RuntimeError(f"device {index} is not visible (CUDA_VISIBLE_DEVICES={list(range(library.nvmlDeviceGetCount()))})")
        return library.nvmlDeviceGetHandleByIndex(index)
    visible = [x.strip() for x in given.split(",") if x.strip()]
    if not 0 <= index < len(visible):
        raise RuntimeError(f"device {index} is not visible (CUDA_VISIBLE_DEVICES={visible})")
    one = visible[index]
    return library.nvmlDeviceGetHandleByIndex(int(one)) if one.isdigit() else library.nvmlDeviceGetHandleByUUID(one)


def utilization(device: DeviceLike | None = None) -> int:
    """Percent of the last sample period in which a kernel ran."""
    library = _library()
    return library.nvmlDeviceGetUtilizationRates(_handle(library, device)).gpu


def memory_usage(device: DeviceLike | None = None) -> int:
    """Percent of the last sample period in which memory was read or written."""
    library = _library()
    return library.nvmlDeviceGetUtilizationRates(_handle(library, device)).memory


def device_memory_used(device: DeviceLike | None = None) -> int:
    """Bytes of the GPU's memory that are in use, by all processes."""
    library = _library()
    return library.nvmlDeviceGetMemoryInfo(_handle(library, device)).used


def temperature(device: DeviceLike | None = None) -> int:
    """Of the chip, in degrees Celsius."""
    library = _library()
    return library.nvmlDeviceGetTemperature(_handle(library, device), 0)


def power_draw(device: DeviceLike | None = None) -> int:
    """In milliwatts."""
    library = _library()
    return library.nvmlDeviceGetPowerUsage(_handle(library, device))


def clock_rate(device: DeviceLike | None = None) -> int:
    """Of the multiprocessors, in MHz."""
    library = _library()
    return library.nvmlDeviceGetClockInfo(_handle(library, device), 1)
