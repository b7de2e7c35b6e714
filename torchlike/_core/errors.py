"""Errors that torch has classes of its own for."""
from __future__ import annotations

from .shown import Shown


class OutOfMemoryError(RuntimeError, metaclass=Shown):
    """A device has no room for a result."""

    __module__ = "torch"


class AcceleratorError(RuntimeError, metaclass=Shown):
    """A device reported a failure."""

    __module__ = "torch"


def of_device(error: Exception) -> Exception:
    """torch's error for one of XLA's runtime errors."""
    text = str(error)
    return OutOfMemoryError(text) if text.startswith("RESOURCE_EXHAUSTED") else error


def not_implemented(kernel: str, dtype) -> NotImplementedError:
    """torch's answer to a dtype that a kernel does not take."""
    return NotImplementedError(f'"{kernel}" not implemented for \'{dtype.short}\'')


_OF_C = {"dtype": "torch.dtype", "device": "torch.device", "Size": "torch.Size", "layout": "torch.layout", "memory_format": "torch.memory_format",
         "finfo": "torch.finfo", "iinfo": "torch.iinfo", "Generator": "torch._C.Generator"}  # classes that PyTorch has written in C++
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8  # Py_TPFLAGS_HEAPTYPE, which classes written in Python are, and in C some, ..._IMMUTABLETYPE, which only those in C are


def class_name(x: object) -> str:
    """The name of x's class as torch's argument errors give it: with its module where the class is none of Python's (`numpy.ndarray`)."""
    cls = type(x)
    module = getattr(cls, "__module__", "builtins")
    if module in ("torch", "torch._C"):
        return _OF_C.get(cls.__name__, cls.__name__)
    return cls.__name__ if cls.__flags__ & (_HEAP | _IMMUTABLE) == _HEAP or module == "builtins" else f"{module}.{cls.__name__}"
