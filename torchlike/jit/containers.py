"""torch.jit.isinstance: `isinstance` for containers with the types of what they hold."""
from __future__ import annotations

import builtins
import typing
import warnings
from types import NoneType, UnionType
from typing import Any

_ONE, _TWO = "without a contained type. Please add a contained type, e.g. {0}[int]", "without contained types. Please add contained type, e.g. {0}[int, int]"
_BARE = {list: _ONE, typing.List: _ONE, tuple: _ONE, typing.Tuple: _ONE, typing.Optional: _ONE, dict: _TWO, typing.Dict: _TWO}  # noqa: UP006


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001  (torch's name)
    """Whether obj is of target_type, or of one of a tuple of them, down to the contents of lists, dicts, tuples and unions."""
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    origin, held = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None or not held:
        if target_type in _BARE:
            name = getattr(target_type, "_name", None) or target_type.__name__
            raise RuntimeError(f"Attempted to use {name} {_BARE[target_type].format(name)}")
        return builtins.isinstance(obj, target_type)
    if origin in (typing.Union, UnionType):
        return obj is None or any(isinstance(obj, t) for t in held if t is not NoneType)
    if origin not in (list, dict, tuple):
        return False
    if builtins.isinstance(obj, (list, dict, tuple)) and not obj:
        warnings.warn("The inner type of a container is lost when calling torch.jit.isinstance in eager mode. For example, List[int] would become "
                      "list and therefore falsely return True for List[float] or List[str].", stacklevel=2)
    if not builtins.isinstance(obj, origin):
        return False
    if origin is list:
        return all(isinstance(x, held[0]) for x in obj)
    if origin is dict:
        return all(isinstance(k, held[0]) and isinstance(v, held[1]) for k, v in obj.items())
    return len(obj) == len(held) and all(map(isinstance, obj, held))
