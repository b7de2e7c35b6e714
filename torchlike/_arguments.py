"""Arguments of torch's functions as this library computes with them: dimensions, sizes, numbers; torch's errors for those that are none."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from ._core import dtype as dt
from ._core.errors import class_name
from ._size import Size
from ._tensor import Tensor


def converts(to: Callable, x) -> bool:
    try:
        to(x)
    except OverflowError:
        return True
    except Exception:  # whatever it is, x is no number
        return False
    return True


def as_dim(dim, ndim: int) -> int:
    """A dimension as 0 <= dim < ndim; IndexError as torch raises it (0-dim tensors count as one dimension)."""
    if dim.__class__ is not int:
        if not _is_integer(dim):
            raise TypeError(f"argument 'dim' must be int, not {class_name(dim)}")
        dim = dim.__index__()
    n = ndim or 1
    if not -0x8000000000000000 <= dim <= 0x7FFFFFFFFFFFFFFF:
        raise ValueError("Overflow when unpacking long long")
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim + n if dim < 0 else dim


def as_own_dim(dim, ndim: int) -> int:
    """A dimension as 0 <= dim < ndim, of what has dimensions: functions that read a size there take no 0-dim tensors."""
    if not ndim:
        raise IndexError(f"Dimension specified as {as_int(dim, 'dim')} but tensor has no dimensions")
    return as_dim(dim, ndim)


def flag(x) -> bool:
    """x, where it is True or False: the wrapper says which argument is not."""
    if x.__class__ is not bool:
        if x.__class__ is np.bool_:
            return bool(x)
        raise TypeError(f"expected a bool, not {type(x).__name__}")
    return x


def as_dims(dim, ndim: int) -> tuple[int, ...]:
    """`dim` of a reduction (None, an int, a sequence) as a tuple of distinct dimensions; None and () mean all."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (tuple, list)):
        dims = distinct(listed_dims(dim, ndim)) or tuple(range(ndim))
        return dims if ndim else ()
    if dim.__class__ is not int and isinstance(dim, Tensor):
        dim = as_int(dim, "dim", symbolic=True)
    d = as_dim(dim, ndim)
    return (d,) if ndim else ()


def listed_dims(dims: Iterable, ndim: int) -> tuple[int, ...]:
    """The dimensions of a list; a number that no int64 holds is then an argument of the wrong type, as in torch."""
    try:
        return tuple([as_dim(d, ndim) for d in dims])
    except ValueError as error:
        raise TypeError(f"argument 'dim' failed to unpack: {error}") from None


def distinct(dims: tuple[int, ...]) -> tuple[int, ...]:
    """dims, none of them twice."""
    if len(set(dims)) != len(dims):
        twice = next(d for i, d in enumerate(dims) if d in dims[:i])
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return dims


def as_size(*size) -> tuple[int, ...]:
    """`f(2, 3)`, `f((2, 3))`, `f(torch.Size)` as a tuple of ints."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    elif not size:
        raise TypeError("missing 1 required positional arguments: \"size\"")
    try:
        if size and size[0].__class__ is bool:
            raise TypeError
        return tuple([s if s.__class__ is int else _index(s) for s in size])
    except TypeError:
        _, bad = _no_size(size)
        raise TypeError(f"argument 'size' must be tuple of ints, but found element of type {class_name(bad)}") from None


def _no_size(size: Sequence) -> tuple[int, Any]:
    """The first item that is no size, and where it is: of bools, torch refuses one that comes first."""
    return next(((i, s) for i, s in enumerate(size) if not i and s.__class__ is bool or not converts(operator.index, s)), (0, None))


def constructor_arguments(args: tuple, kwargs: dict) -> tuple:
    """What a legacy constructor was called with, by position: its sizes or its data may come by name."""
    if not kwargs:
        return args
    from ._kinds import combination
    name, value = next(iter(kwargs.items()))
    if args or len(kwargs) > 1 or name not in ("size", "data"):
        raise combination("new", args, kwargs)
    return (Size(factory_size("new", (value,))),) if name == "size" else (value,)


def are_sizes(args: tuple) -> bool:
    """Whether a legacy constructor takes its arguments for sizes: the first is an integer; a tensor of one only where others follow."""
    if not args or args[0].__class__ is int:
        return True
    first = args[0]
    if not (isinstance(first, bool) or (len(args) == 1 and isinstance(first, Tensor))) and converts(operator.index, first):
        return True
    if len(args) > 1:
        from ._kinds import combination
        raise combination("new", args, {})
    return False


def need_sequence(data) -> None:
    """torch's error for what is no data of a legacy constructor: one of Python's sequences, or what has items by number as they do."""
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not hasattr(type(data), "__getitem__") or isinstance(data, (dict, np.generic)):
        raise TypeError(f"new(): data must be a sequence (got {class_name(data)})")


def factory_size(function: str, size: tuple, position: int = 1) -> tuple[int, ...]:
    """as_size(*size) with the errors of a factory, whose argument at `position` it is."""
    try:
        return as_size(*size)
    except TypeError:
        if not size:
            raise
        packed = isinstance(size[0], (tuple, list))
        given = size[0] if packed and len(size) == 1 else size
        at, bad = _no_size(given)
        kind = type(bad).__name__
        if at:
            said = f"(): argument 'size' failed to unpack the object at pos {at + 1} with error \"type must be tuple of ints,but got {kind}\""
        elif len(size) > 1:
            said = f"() takes {position} positional argument but {len(size)} were given"
        else:
            said = f"(): argument 'size' (position {position}) must be tuple of ints, " + (f"but found element of type {kind} at pos 0" if packed else f"not {kind}")
        raise TypeError(function + said) from None


def named_size(function: str, size) -> tuple | list:
    """`size=` of a factory: a list, for which no single number stands."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"{function}(): argument 'size' must be tuple of ints, not {class_name(size)}")
    return size


def as_list(x, function: str, name: str) -> tuple | list:
    """A second argument that torch declares as a list of ints and never as numbers one by one."""
    if not isinstance(x, (tuple, list)):
        raise TypeError(f"{function}(): argument '{name}' (position 2) must be tuple of ints, not {class_name(x)}")
    return x


def refuse_huge(sizes: Iterable[int]) -> None:
    """torch's error for sizes that no int64 holds; asked once they turned out to be wrong."""
    if any(not -0x8000000000000000 <= n <= 0x7FFFFFFFFFFFFFFF for n in sizes):
        raise TypeError("argument 'size' failed to unpack: Overflow when unpacking long long")


def refuse_long(x: int) -> None:
    """torch's error for one number that no int64 holds; asked once it turned out to be wrong."""
    if not -0x8000000000000000 <= x <= 0x7FFFFFFFFFFFFFFF:
        raise ValueError("Overflow when unpacking long long")


def as_int(x, name: str, function: str = "", position: str = "", symbolic: bool = False) -> int:
    """An argument that torch declares as int: a 0-dim tensor of integers too. `symbolic`: as SymInt, which takes any tensor of one integer."""
    if x.__class__ is not int:
        if not (_is_integer(x) or symbolic and isinstance(x, Tensor) and x.dtype.category < dt.FLOAT):
            raise TypeError(f"{function}argument '{name}'{position} must be int, not {class_name(x)}")
        x = x.__index__()
    refuse_long(x)
    return x


def _is_integer(x) -> bool:
    """Whether torch takes x for an int: no truth value of Python's, and of tensors none of floats."""
    if isinstance(x, Tensor):
        return x.dtype.category < dt.FLOAT and not x.ndim
    return not isinstance(x, bool) and hasattr(x, "__index__")


def _index(s) -> int:
    return int(s) if isinstance(s, bool) else operator.index(s)


def need_tensor(x, name: str, position: str) -> Tensor:
    """x, or torch's TypeError naming the argument."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument {position} must be Tensor, not {class_name(x)}")
    return x


def need_tensors(tensors) -> None:
    """torch's TypeError for an element of a function's first argument that is none."""
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {class_name(x)}")


def number(x):
    """A Python number from NumPy's scalars and JAX's; others pass. Fractions and SymPy's numbers do: their own operators take a Tensor. NumPy's
    truth values are floats to torch."""
    if isinstance(x, np.generic):
        return float(x) if x.__class__ is np.bool_ else x.item()
    cls = type(x)  # an object that hands its attributes on to a tensor has them by another's name
    if hasattr(cls, "__float__") and hasattr(cls, "__array__") and not hasattr(cls, "__torch_function__") and not isinstance(x, np.ndarray):
        if isinstance(x, jax.Array) and (x.ndim or isinstance(x, jax.core.Tracer)):  # its own operators take a Tensor
            return x
        return float(x)
    return x


def real(x, name: str, argument: str, position: int | None = None, kind: str = "float") -> float:
    """x as a float. torch's TypeError for what is none, and for a tensor that requires a gradient, which would be lost."""
    if x.__class__ is float:
        return x
    if (x.ndim or x.requires_grad) if isinstance(x, Tensor) else isinstance(x, str) or not converts(float, x):
        raise TypeError(f"{name}(): argument '{argument}'{'' if position is None else f' (position {position})'} must be {kind}, not {class_name(x)}")
    return float(x)


def refuse_learnable(x, name: str, argument: str, position: int | None = None, kind: str = "Number") -> None:
    """torch's TypeError for a number that is a tensor which requires a gradient: it would be lost."""
    if isinstance(x, Tensor) and x.requires_grad:
        real(x, name, argument, position, kind)
