"""Nested states as flat ones with dotted names, and back."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..._tensor import Tensor

Path = tuple[str | int, ...]


def _whole(value: Any, dicts_open: bool = True) -> bool:
    """Whether a value is one entry. Lists are, unless tensors or something with entries of its own are in them."""
    if isinstance(value, Mapping) and dicts_open:
        return False
    values = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return not any(isinstance(x, Tensor) or (isinstance(x, (Mapping, list)) and not _whole(x, dicts_open)) for x in values)


def flatten(state: Mapping, dicts_open: bool = True) -> tuple[dict[str, Any], dict[str, Path]]:
    """Entries by dotted name, and the path of each. Before PyTorch 2.4 dicts without tensors were one entry: `dicts_open=False`."""
    flat, paths = {}, {}

    def visit(path: Path, value: Any) -> None:
        if _whole(value, dicts_open):
            name = ".".join(map(str, path))
            if name in flat:
                raise ValueError(f"duplicated flatten key {name}")
            flat[name], paths[name] = value, path
        else:
            for key, x in value.items() if isinstance(value, Mapping) else enumerate(value):
                visit((*path, str(key) if isinstance(value, Mapping) else key), x)
    for key, value in state.items():
        visit((str(key),), value)
    return flat, paths


def put(state: dict, path: Path, value: Any) -> None:
    """Set what is at a path; dicts and lists on the way are made."""
    here: Any = state
    for key, following in zip(path, [*path[1:], None]):
        if isinstance(here, list):
            here.extend([None] * (key + 1 - len(here)))
        elif key not in here and not isinstance(key, int) and any(str(k) == key for k in here):
            key = next(k for k in here if str(k) == key)  # names are texts, where the state may have numbers
        if following is None:
            here[key] = value
            return
        inner = here[key] if isinstance(here, list) else here.get(key)
        if inner is None:
            inner = here[key] = {} if isinstance(following, str) else []
        here = inner


def mapped(function: Callable[[Tensor], Any], value: Any) -> Any:
    """A copy of a nested state with a function of each tensor."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {key: mapped(function, x) for key, x in value.items()}
    if isinstance(value, list):
        return [mapped(function, x) for x in value]
    return value
