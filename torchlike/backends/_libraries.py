"""Which of CUDA's libraries factor and multiply matrices, as programs ask for them. XLA chooses by itself; the choice is checked, kept and read back."""
import enum
from typing import Any

from ..cuda import is_available as _cuda_available


class _Library(enum.IntEnum):
    __str__ = enum.Enum.__str__


class _LinalgBackend(_Library):
    Default, Cusolver, Magma = range(3)


class _BlasBackend(_Library):
    Default, Cublas, Cublaslt, Ck = range(4)


LINALG = {"default": _LinalgBackend.Default, "cusolver": _LinalgBackend.Cusolver, "magma": _LinalgBackend.Magma}
BLAS = {"default": _BlasBackend.Default, "cublas": _BlasBackend.Cublas, "hipblas": _BlasBackend.Cublas, "cublaslt": _BlasBackend.Cublaslt,
        "hipblaslt": _BlasBackend.Cublaslt, "ck": _BlasBackend.Ck}
_chosen: dict[type, _Library] = {_LinalgBackend: _LinalgBackend.Default, _BlasBackend: _BlasBackend.Cublas}


def _prefer(names: dict[str, Any], kind: type[_Library], backend: Any) -> Any:
    if isinstance(backend, str):
        if backend not in names:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(names)}.")
        backend = names[backend]
    elif backend is not None and not isinstance(backend, kind):
        raise RuntimeError("Unknown input value type.")
    lacking = [(_LinalgBackend.Magma, "MAGMA")]
    if not _cuda_available():
        lacking += [(_LinalgBackend.Cusolver, "cuSOLVER"), (_BlasBackend.Cublaslt, "cuBLASLt")]
    for library, name in lacking:
        if backend is library:
            raise RuntimeError(f"Cannot set preferred backend to {name} if PyTorch has not been compiled with {name}.")
    if backend is not None:
        _chosen[kind] = _BlasBackend.Cublas if backend is _BlasBackend.Default else backend
    return _chosen[kind]


def preferred_linalg_library(backend: None | str | _LinalgBackend = None) -> _LinalgBackend:
    """The library of decompositions on GPUs, after setting it."""
    return _prefer(LINALG, _LinalgBackend, backend)


def preferred_blas_library(backend: None | str | _BlasBackend = None) -> _BlasBackend:
    """The library of matrix products on GPUs, after setting it."""
    return _prefer(BLAS, _BlasBackend, backend)
