"""Names of nodes and of the globals of generated code: legal in Python, and each given once."""
from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections import defaultdict
from typing import Any, NamedTuple

from .._core.device import device

_ILLEGAL = re.compile("[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*?)_(\d+)$", re.DOTALL)
_HUMP = re.compile("(?<=[a-z])([A-Z])")


class _CustomBuiltin(NamedTuple):
    """A global of all generated code, and the statement that imports it."""

    import_str: str
    obj: Any


_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_register_custom_builtin("inf", "from math import inf", float("inf"))
_register_custom_builtin("nan", "from math import nan", float("nan"))
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torchlike as torch", sys.modules["torchlike"])
_register_custom_builtin("device", "from torchlike import device", device)


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


def _snake_case(s: str) -> str:
    """`FeatureExtractor` as `feature_extractor`."""
    return _HUMP.sub(r"_\1", s).lower()


class _Namespace:
    """Hands out names: the candidate if it is free, else it with the next number."""

    def __init__(self) -> None:
        self._obj_to_name: dict[int, str] = {}
        self._kept: list[Any] = []  # whose ids are keys
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = defaultdict(int)

    def create_name(self, candidate: str, obj: Any | None) -> str:
        """A name for obj: the one it has, or a new one like `candidate`."""
        if obj is not None and id(obj) in self._obj_to_name:
            return self._obj_to_name[id(obj)]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        numbered = _NUMBERED.match(candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered and numbered[1] else (candidate, None)
        if candidate in self._used_names or self._is_illegal_name(candidate, obj):
            number = max(self._base_count[base], number or 0) + 1
            while f"{base}_{number}" in self._used_names or self._is_illegal_name(f"{base}_{number}", obj):
                number += 1
            candidate = f"{base}_{number}"
        self._base_count[base] = max(self._base_count[base], number or 0)
        self._used_names.add(candidate)
        if obj is not None:
            self._rename_object(obj, candidate)
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give obj the name, unless it has one."""
        if id(obj) not in self._obj_to_name:
            self._rename_object(obj, name)

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[id(obj)] = name
        self._used_names.add(name)
        self._kept.append(obj)

    def _is_illegal_name(self, name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if hasattr(builtins, name):
            return obj is not getattr(builtins, name)
        return name in _custom_builtins and obj is not _custom_builtins[name].obj
