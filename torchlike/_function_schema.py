"""`OpOverload._schema`: what an operator takes and returns, and what of it is one memory with an argument."""
from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from ._aten_schemas import schema_of
from ._schemas import _REQUIRED, _arguments, halves, type_name

_MARK = re.compile(r"\(([$\w]+(?:\|\w+)*)(!?)(?: ?(->) ?([\w*|]*))?\)")
_KINDS = {"SymInt": "int", "Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}


class AliasInfo(NamedTuple):
    """Which memory something is, by a letter, and whether it is written."""

    is_write: bool
    before_set: frozenset
    after_set: frozenset


def _alias(text: str) -> AliasInfo | None:
    found = _MARK.search(text)
    if found is None:
        return None
    before = found[1].split("|")
    after = found[4].split("|") if found[4] else [] if found[3] else before
    return AliasInfo(found[2] == "!", frozenset(before), frozenset(after))


class Argument:
    """One parameter or result."""

    def __init__(self, name: str, kind: str, alias_info: AliasInfo | None, default: Any = _REQUIRED, kwarg_only: bool = False) -> None:
        self.name, self.type, self.alias_info, self.kwarg_only = name, type_name(kind, _KINDS), alias_info, kwarg_only
        self.real_type, self._default = self.type, default

    @property
    def default_value(self) -> Any:
        return None if self._default is _REQUIRED else self._default

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        return self.is_write and self.kwarg_only

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self._default is not _REQUIRED


class FunctionSchema:
    """The schema of one overload."""

    def __init__(self, text: str, namespace: str = "aten") -> None:
        self._text = f"{namespace}::{text}"
        head, returned = halves(text)
        name, _, overload = head[:head.index("(")].partition(".")
        self.name, self.overload_name = f"{namespace}::{name}", overload
        marks = {m[2]: _alias(m[1]) for m in re.finditer(r"(\w+(?:\([^()]*\))(?:\[\d*\])?\??) (\w+)", head)}
        self.arguments = [Argument(a.name, a.kind, marks.get(a.name), a.default, a.only_named) for a in _arguments(text)]
        parts = re.split(r",\s*", returned[1:-1]) if returned.startswith("(") else [returned]
        self.returns = [self._returned(p) for p in parts if p]

    @staticmethod
    def _returned(text: str) -> Argument:
        plain = re.sub(r"\([^()]*\)", "", text)
        kind, _, name = plain.partition(" ")
        return Argument(name, kind, _alias(text))

    @property
    def is_mutable(self) -> bool:
        return any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


@functools.cache
def function_schema(func: Any) -> FunctionSchema | None:
    """An operator's, where it is one of PyTorch's that is known."""
    known = schema_of(func)
    return None if known is None else FunctionSchema(known.name.removeprefix("aten::") + ("" if known.overload == "default" else f".{known.overload}")
                                                     + known.text.removeprefix(known.name))
