"""torch._check and its kin: conditions that libraries (torchvision, custom operations) put before their functions."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ._core.dtype import bool_
from ._symbolic import SymBool
from ._tensor import Tensor

_UNSAID = "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)"


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], Any] | None) -> None:
    """Raises error_type with message() unless the condition holds."""
    if isinstance(cond, Tensor):
        raise TypeError("cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all elements are true.")
    if not isinstance(cond, (bool, SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if not issubclass(error_type, Exception) or issubclass(error_type, Warning):
        raise AssertionError(f"error_type must be a subclass of Exception but not Warning, got {error_type}")
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(_UNSAID if message is None else str(message()))


def _checker(name: str, error: type[Exception]) -> Callable:
    def check(cond: bool, message: Callable[[], Any] | None = None) -> None:
        _check_with(error, cond, message)
    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises {error.__name__} with message() unless the condition holds."
    return check


_check = _checker("_check", RuntimeError)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """Raises RuntimeError with message() unless i may be a size, and not above `max`. Deprecated, as in torch."""
    warnings.warn("_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     Use _check(i >= 0) instead.",
                  FutureWarning, stacklevel=2)
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


_check_index = _checker("_check_index", IndexError)
_check_value = _checker("_check_value", ValueError)
_check_type = _checker("_check_type", TypeError)
_check_not_implemented = _checker("_check_not_implemented", NotImplementedError)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raises error_type with message() unless all elements of a tensor of bools are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raises RuntimeError with message() unless all elements of a tensor of bools are true."""
    _check_tensor_all_with(RuntimeError, cond, message)
