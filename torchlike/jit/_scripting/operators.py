"""`aten.name` in the library's source: an operator of that name."""
from __future__ import annotations

from typing import Any


class _Named:
    def __init__(self, name: str) -> None:
        self._qualified_op_name = f"aten::{name}"


class _Operators:
    def __getattr__(self, name: str) -> Any:
        return _Named(name)


aten = _Operators()
