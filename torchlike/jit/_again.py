"""A module that torch.jit.load read, written again: its text as it was, with what it holds now."""
from __future__ import annotations

import ast
import enum
from collections.abc import Mapping
from types import SimpleNamespace
from typing import IO, Any

from .._serialization.archive import ArchiveWriter
from .._tensor import Tensor
from ..nn.modules.module import Module
from ._code import Code, RecursiveScriptModule
from ._scripting.archive import ModulePickler
from ._scripting.types import Type, of_value
from ._write import _text, finish


def write(m: RecursiveScriptModule, stream: IO[bytes], name: str, extra: Mapping[str, Any]) -> None:
    """The archive. RuntimeError where it holds what is not written."""
    code = m._code
    held = SimpleNamespace(names={}, attributes={})
    for part in m.modules():
        if not isinstance(part, RecursiveScriptModule) or part._code is not code:
            raise RuntimeError(f"torch.jit.save: {type(part).__name__} was not loaded with the module that holds it")
        held.names[id(part)] = f"{type(part).__module__}.{part.original_name}"
        held.attributes[id(part)] = SimpleNamespace(kept=_fields(part, code))
    writer = ArchiveWriter(stream, name)
    writer.write("data.pkl", ModulePickler(writer, "data", held).pickled(m))
    for path, text in code.texts.items():
        writer.write(path, text.encode())
    constants = ModulePickler(writer, "constants", held)
    finish(writer, b"\x80\x02(" + b"".join(_constant(constants, x) for x in code.constants) + b"t.", extra, code.version)


def _constant(pickler: ModulePickler, x: Any) -> bytes:
    if isinstance(x, Tensor):
        return pickler._tensor(x)
    if isinstance(x, str):
        return _text(x)
    raise RuntimeError(f"torch.jit.save: a constant of type {type(x).__name__} is not written")


def _fields(m: RecursiveScriptModule, code: Code) -> dict[str, tuple[Type, Any]]:
    """What a module holds besides modules, with the types that its class says."""
    found = {}
    for x in code.definition(f"{type(m).__module__}.{m.original_name}").body:
        if isinstance(x, ast.AnnAssign) and x.value is None and isinstance(x.target, ast.Name):
            name, kind = x.target.id, x.annotation
        elif isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Subscript) and isinstance(x.targets[0].slice, ast.Constant):
            name, kind = x.targets[0].slice.value, x.value
        else:
            continue
        if name not in ("training", "_is_full_backward_hook") and not isinstance(getattr(m, name), Module):
            value = getattr(m, name)
            found[name] = Type("Enum", (of_value(value.value),), named=ast.unparse(kind)) if isinstance(value, enum.Enum) else _type(kind), value
    return found


def _type(node: ast.expr) -> Type:
    """A type of an archive's text."""
    if isinstance(node, ast.Name):
        return Type(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return Type(node.value.id, tuple(map(_type, inner)))
    raise RuntimeError(f"torch.jit.save: an attribute of type {ast.unparse(node)} is not written")
