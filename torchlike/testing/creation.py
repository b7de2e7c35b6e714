"""make_tensor: a tensor of random numbers, for tests."""
from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from .._core import dtype as dt
from .._public import FUNCTIONS as F
from .._tensor import Tensor
from ..ops.queries import finfo, iinfo

__all__ = ["make_tensor"]


def _limits(dtype: dt.dtype) -> tuple[float, float, float, float]:
    """What the type holds (below the second), and the default range."""
    if dtype is dt.bool_:
        return 0, 2, 0, 2
    if dtype.category < dt.FLOAT:
        info = iinfo(dtype)
        return info.min, info.max + (dtype is not dt.int64), -9 if info.min else 0, 10
    info = finfo(dtype)
    return info.min, info.max, -9, 9


def _range(low, high, dtype: dt.dtype) -> tuple[float, float]:
    least, most, usual_low, usual_high = _limits(dtype)
    low, high = usual_low if low is None else low, usual_high if high is None else high
    if any(isinstance(x, float) and math.isnan(x) for x in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype.category >= dt.FLOAT:
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will be removed "
                      "in 2.3. Use `torch.full(...)` instead.", FutureWarning, stacklevel=4)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, {most})")
    low, high = (min(max(x, least), most) for x in (low, high))
    return (low, high) if dtype.category >= dt.FLOAT else (math.ceil(low), math.ceil(high))


def _uniform(t: Tensor, low: float, high: float) -> Tensor:
    """t filled; a range that the type cannot hold is halved first."""
    return t.uniform_(low / 2, high / 2).mul_(2) if high - low >= finfo(t.dtype).max else t.uniform_(low, high)


def make_tensor(*shape: Any, dtype: dt.dtype, device: Any, low: float | None = None, high: float | None = None, requires_grad: bool = False,
                noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None) -> Tensor:
    """Uniform numbers in [low, high), by default [-9, 9) (integers [-9, 10), unsigned ones from 0)."""
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and {memory_format=}")
    exact = dtype.category < dt.FLOAT
    if requires_grad and exact:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    apart = noncontiguous and math.prod(shape) > 1
    if apart:
        shape = (*shape[:-1], 2 * shape[-1])
    low, high = _range(low, high, dtype)
    if exact:
        out = F["randint"](low, high, shape, device=device, dtype=dtype)
    elif dtype.itemsize == 1:
        out = _uniform(F["empty"](shape, device=device, dtype=dt.float32), low, high).to(dtype)
    else:
        out = F["empty"](shape, device=device, dtype=dtype)
        _uniform(F["view_as_real"](out) if dtype.category == dt.COMPLEX else out, low, high)
    if apart:
        out = out[..., 1::2]
    elif memory_format is not None:
        out = out.clone(memory_format=memory_format)
    if exclude_zero:
        out[out == 0] = 1 if exact else finfo(dtype).tiny
    return out.requires_grad_() if requires_grad else out
