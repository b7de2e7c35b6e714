"""The mark of functions that PyTorch promises to keep, which libraries put on their own versions of them."""
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_BACK_COMPAT_OBJECTS: dict[object, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[object, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Decorator: note that an object is meant to stay as it is, or that it may change."""
    def mark(fn: _T) -> _T:
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        return fn
    return mark
