"""Whether tensors go together."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._size import Size
from .._tensor import Tensor

_NUMBERS = (bool, int, float, complex)


def check(b: bool, s: Callable[[], str], exc_type: type[Exception] = RuntimeError) -> None:
    """The error of text s() where b is False."""
    if not b:
        raise exc_type(s())


def is_cpu_scalar_tensor(a: Any) -> bool:
    """Whether it is a tensor without dimensions on the CPU, which goes together with tensors of every device."""
    return isinstance(a, Tensor) and a.ndim == 0 and a.device.type == "cpu"


def _compared(args: tuple, name: str, allow_cpu_scalar_tensors: bool) -> list[Tensor]:
    for x in args:
        if not isinstance(x, (Tensor, *_NUMBERS)):
            raise RuntimeError(f"Unexpected type when checking for same {name}, {type(x)}!")
    return [x for x in args if isinstance(x, Tensor) and not (allow_cpu_scalar_tensors and is_cpu_scalar_tensor(x))]


def check_same_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """RuntimeError where tensors differ in shape; numbers have none."""
    first, *others = _compared(args, "shape", allow_cpu_scalar_tensors) or [None]
    for x in others:
        if x.shape != first.shape:
            raise RuntimeError(f"Shape {x.shape} is not the expected shape {first.shape}!")


def check_same_dtype(*args: Any) -> None:
    """RuntimeError where tensors differ in dtype."""
    first, *others = _compared(args, "dtype", False) or [None]
    for x in others:
        if x.dtype is not first.dtype:
            raise RuntimeError(f"Tensor with dtype {x.dtype} is not the expected dtype of {first.dtype}!")


def check_same_device(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """RuntimeError where tensors are on several devices."""
    first, *others = _compared(args, "device", allow_cpu_scalar_tensors) or [None]
    for x in others:
        if x.device != first.device:
            raise RuntimeError(f"Tensor on device {x.device} is not on the expected device {first.device}!")


def extract_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> Size | None:
    """The shape that all tensors have; None where there is none, or several."""
    shapes = [x.shape for x in _compared(args, "shape", allow_cpu_scalar_tensors)]
    if not shapes:
        scalars = [x for x in args if isinstance(x, Tensor)]
        return scalars[0].shape if scalars else None
    return shapes[0] if all(s == shapes[0] for s in shapes) else None
