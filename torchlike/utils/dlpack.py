"""Exchange of tensors with other libraries through DLPack.

Memory on the CPU that may be written is shared; other memory is taken over as it is at that moment, because arrays of JAX never
change.
"""
from __future__ import annotations

from enum import IntEnum
from typing import Any

import jax
import numpy as np

from torchlike._core import dtype as dt
from torchlike._host import share
from torchlike._interop import from_jax, to_jax
from torchlike._public import public
from torchlike._tensor import Tensor, as_tensor_value

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]

_CONSUMED = ("from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, "
             "so you might have already constructed a tensor from it once.")


class DLDeviceType(IntEnum):
    """DLPack's numbers of devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10


class _CpuCapsule:
    """A bare capsule as an object of today's protocol, which wants to know the device first."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return DLDeviceType.kDLCPU, 0


class _Writable:
    """An array's memory, for an array that may be written."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}


def _export(self: Tensor, *, stream: Any = -1, max_version: tuple[int, int] | None = None,
            dl_device: tuple[IntEnum, int] | None = None, copy: bool | None = None) -> Any:
    """A DLPack capsule; BufferError when the tensor requires grad or is a lazy conjugate."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if self.device.type == "cpu" and stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if self.device.type == "cpu" and self.dtype is not dt.bfloat16 and self.dtype not in dt.FLOAT8:
        array = self.numpy()
        return (array.copy() if copy else array).__dlpack__(max_version=max_version)
    options = {} if stream in (-1, None) else {"stream": stream}
    return to_jax(self).__dlpack__(copy=copy, **options)


def _export_device(self: Tensor) -> tuple[IntEnum, int]:
    """DLPack's (kind, index) of the device."""
    if self.device.type == "cpu":
        return DLDeviceType.kDLCPU, 0
    kind, index = to_jax(self).__dlpack_device__()
    return DLDeviceType(kind), index


Tensor.__dlpack__ = _export
Tensor.__dlpack_device__ = _export_device


@public(method=False)
def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of `tensor`, which may require gradients; it can be consumed once."""
    return tensor.detach().__dlpack__()


@public(method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of any object with `__dlpack__`, or of a capsule; RuntimeError when the capsule was consumed before."""
    made = _taken(ext_tensor)
    if device is not None:
        made = made.to(device)
    return made.clone() if copy else made


def _taken(source: Any) -> Tensor:
    if isinstance(source, Tensor):
        return source.detach()
    if type(source) is np.ndarray:
        return share(source)
    if isinstance(source, jax.Array):
        return from_jax(source)
    if not hasattr(source, "__dlpack__"):
        if type(source).__name__ != "PyCapsule" or '"dltensor"' not in repr(source):
            raise RuntimeError(_CONSUMED)
        source = _CpuCapsule(source)
    if source.__dlpack_device__()[0] == DLDeviceType.kDLCPU:
        try:
            array = np.from_dlpack(source)
            if isinstance(source, _CpuCapsule):  # of the older form, which does not say whether the memory may be written: it may
                array = np.asarray(_Writable(array))
            return share(array) if array.flags.writeable else as_tensor_value(np.array(array))
        except (BufferError, RuntimeError):
            pass  # a dtype that NumPy lacks
    return from_jax(jax.dlpack.from_dlpack(source))
