"""What the functions of this folder share: argument checks, in-place results, reductions of losses."""
from __future__ import annotations

import operator

import numpy as np

from ..._arguments import as_int, converts, number
from ..._core import dtype as dt
from ..._core import program
from ..._core.errors import class_name, not_implemented
from ..._core.halves import converted
from ..._core.history import warn
from ..._core.layout import Layout, channels_last_strides, is_channels_last, is_contiguous, suggests_channels_last
from ..._core.registry import Op
from ..._tensor import Tensor, apply
from ..._writing import write_into
from ...ops.pointwise import _plain_number

_FLOAT32 = np.dtype(np.float32)


def need(x, name: str, argument: str = "input", position: int = 1) -> Tensor:
    """x, or torch's TypeError for an argument that is no tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {class_name(x)}")
    return x


def keep_format(result: Tensor, *inputs: Tensor, ranks: tuple[int, ...] = (4, 5), by_elements: bool = False) -> Tensor:
    """`result`, with the strides of channels_last where an input with that many dimensions has them; `by_elements` also where only a dimension of size 1
    has another stride."""
    if any(_of_format(x, ranks) or by_elements and _lies_so(x, ranks) for x in inputs):
        shape = result._aval.shape
        if result._storage is not None:  # a view
            result = result.clone()
        result._layout = Layout(shape, channels_last_strides(shape), 0)
        node = result._edge
        if node is not None and node.plan is not None:
            node.layouts = [Layout(a.shape, channels_last_strides(a.shape), 0) if a is not None and a.ndim in ranks else None for a in node.plan.avals]
    return result


def _of_format(x: Tensor, ranks: tuple[int, ...]) -> bool:
    return x._layout is not None and len(x._layout.shape) in ranks and suggests_channels_last(x._layout)


def _lies_so(x: Tensor, ranks: tuple[int, ...]) -> bool:
    return x._layout is not None and len(x._layout.shape) in ranks and is_channels_last(x._layout) and not is_contiguous(x._layout)


def gradient_format(first: Tensor, input: Tensor, ranks: tuple[int, ...] = (4, 5)) -> Tensor:
    """`first`, the result of the first of a formula's operations: the gradient that this one makes of its own has the strides of channels_last where
    `input`, which it was made of, has them."""
    if first._edge is not None and first is not input and _of_format(input, ranks):
        first._edge.layouts = [Layout(input.shape, channels_last_strides(input.shape), 0)]
    return first


def scalar(x, name: str, argument: str, position: int):
    """x as a Python number, or torch's TypeError."""
    if x.__class__ is float or x.__class__ is int:
        return x
    if isinstance(x, Tensor) and not x.ndim and not x.requires_grad:  # a gradient would be lost
        x = x.item()
    x = number(x)
    if not isinstance(x, (int, float)):
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Number, not {class_name(x)}")
    return _plain_number(x)


def floating(x, kernel: str, name: str) -> Tensor:
    """x, a tensor of real floats; torch's TypeError or NotImplementedError otherwise."""
    if not isinstance(x, Tensor):
        need(x, name)
    d = x._value.aval.dtype
    if d.category != dt.FLOAT:
        raise not_implemented(kernel, d)
    return x


def finish(input: Tensor, result: Tensor, inplace: bool, repeats: bool = False) -> Tensor:
    """The result, or input holding it; `repeats` where elements of input may share their memory, which all get the same."""
    if not inplace:
        return result
    input._check_write(repeats)
    return write_into(input, result, repeats=repeats)


def wide(x):
    """16-bit floats as float32, in which they are accumulated."""
    if x.dtype.itemsize != 2:
        return x
    return converted(x, _FLOAT32) if x.__class__ is np.ndarray else x.astype(np.float32)


def const(x, value):
    """A number in x's dtype."""
    return np.asarray(value, x.dtype)


def reduction_of(size_average, reduce, reduction: str) -> str:
    """The reduction, from today's argument or the deprecated pair. ValueError for an unknown one."""
    if size_average is not None or reduce is not None:
        size_average = True if size_average is None else size_average
        reduce = True if reduce is None else reduce
        made = "mean" if size_average and reduce else "sum" if reduce else "none"
        warn(f"size_average and reduce args will be deprecated, please use reduction='{made}' instead.")
        return made
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The loss itself, its mean or its sum."""
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def ints(value, n: int, function: str, argument: str, position: int) -> tuple[int, ...]:
    """An int as n ints, a sequence of ints as it is; torch's TypeError for what is neither."""
    start = f"{function}(): argument '{argument}'"
    if not isinstance(value, (tuple, list)):
        if isinstance(value, Tensor) and value.numel() == 1 and value.dtype.category < dt.FLOAT:
            value = value.item()
        if isinstance(value, bool) or not converts(operator.index, value):
            raise TypeError(f"{start} (position {position}) must be tuple of ints, not {class_name(value)}")
        return (operator.index(value),) * n
    for i, x in enumerate(value):
        if x.__class__ is int or converts(operator.index, x) and (i or not isinstance(x, bool)):
            continue
        raise TypeError(f"{start} (position {position}) must be tuple of ints, but found element of type {class_name(x)} at pos 0" if not i else
                        f"{start} failed to unpack the object at pos {i + 1} with error \"type must be tuple of ints,but got {class_name(x)}\"")
    return tuple(map(operator.index, value))


def each(value, n: int, name: str) -> tuple[int, ...]:
    """An int or a sequence of n ints as n ints."""
    if not isinstance(value, (tuple, list)):
        return (as_int(value, name, symbolic=True),) * n
    value = tuple(int(v) for v in value)
    if len(value) == 1:
        return value * n
    if len(value) != n:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {n} values to match the convolution dimensions, but got "
                           f"{name}={list(value)}")
    return value


_ALL_WITHIN = Op("all_within", lambda xp, x, low, high, nan: xp.all(((x >= low) & (x <= high)) | ((x != x) if nan else False)), vjp=False,
                 shape=lambda x, low, high, nan: ((), dt.bool_))


def demand_within(t: Tensor, low: float, high: float, error: Exception, *, nan: bool = False) -> None:
    """Raise error unless low <= t <= high (NaN passes if `nan`): now if t is known, else at the next observation."""
    v = t._current()
    array = v.array
    if program.guarded(v, lambda v: demand_within(Tensor._of(v), low, high, error, nan=nan)):
        return
    if isinstance(array, np.ndarray):
        if not _ALL_WITHIN.kernel(np, array, low, high, nan):
            raise error
    elif array is None or not (array is program.META_ARRAY or program.is_tracer(array)):
        program.check(apply(_ALL_WITHIN, (t, float(low), float(high)), (nan,))._value, lambda: error)
