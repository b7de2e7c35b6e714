"""torch.cuda.cudart(): functions of the CUDA runtime that JAX's GPU plugin has loaded."""
from __future__ import annotations

import ctypes
import enum
import functools
import types

from ._devices import need
from .memory import mem_get_info

NAMES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so")


class cudaStatus:
    """Two of the runtime's answers."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


class cudaError(enum.IntEnum):
    """What functions of the runtime return."""

    success = 0


class CudaError(RuntimeError):
    """A function of the runtime returned another number than success."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{_runtime.cudaGetErrorString(code)} ({code})")


def check_error(res: int) -> None:
    """CudaError where `res` is not success."""
    if res != cudaError.success:
        raise CudaError(res)


def cudart() -> types.ModuleType:
    """The runtime's functions. AssertionError without a GPU, OSError where no library of the runtime is found."""
    need()
    return _runtime


@functools.cache
def _library() -> ctypes.CDLL:
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            missing = error
    raise missing


def _asked(name: str, *kinds: type) -> types.FunctionType:
    def call(*args: int) -> int:
        function = getattr(_library(), name)
        function.argtypes = kinds
        code = function(*args)
        return cudaError.success if code == cudaError.success else code
    call.__name__ = call.__qualname__ = name
    return call


def _error_string(error: int) -> str:
    function = _library().cudaGetErrorString
    function.restype = ctypes.c_char_p
    return function(int(error)).decode()


_runtime = types.ModuleType("torch._C._cudart")
vars(_runtime).update(
    cudaError=cudaError, cudaGetErrorString=_error_string, cudaMemGetInfo=mem_get_info, cudaProfilerStart=_asked("cudaProfilerStart"),
    cudaProfilerStop=_asked("cudaProfilerStop"), cudaHostRegister=_asked("cudaHostRegister", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint),
    cudaHostUnregister=_asked("cudaHostUnregister", ctypes.c_void_p))
