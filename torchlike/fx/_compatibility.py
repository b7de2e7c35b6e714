"""The mark of functions that PyTorch promises to keep, which libraries put on their own versions of them."""
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Decorator: whether an object is meant to stay as it is. It says so to readers and changes nothing."""
    return lambda fn: fn
