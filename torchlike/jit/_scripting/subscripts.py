"""Brackets and dots: parts of tensors, lists, tuples and module lists; attributes of values, modules and what lies outside."""
from __future__ import annotations

import ast
from typing import Any

from ...nn.modules.container import ModuleDict, ParameterDict
from . import schemas
from .expressions import CASTS, Expressions, member
from .types import BOOL, DEVICE, INT, NONE, STR, TENSOR, Type, is_optional, listed
from .values import Held, Operator, Outside, Several, Value, tuple_of

PROPERTIES = {  # of a tensor: its operator and type
    "shape": ("torch.size", listed(INT)), "ndim": ("torch.dim", INT), "T": ("torch.numpy_T", TENSOR), "mT": ("torch.mT", TENSOR), "H": ("torch.matrix_H", TENSOR),
    "is_leaf": ("torch.is_leaf", BOOL), "real": ("torch.real", TENSOR), "imag": ("torch.imag", TENSOR), "grad": ("ops.prim.grad", Type("Optional", (TENSOR,))),
    **{name: (f"ops.prim.{name}", t) for name, t in (("dtype", INT), ("device", DEVICE), ("layout", INT), ("requires_grad", BOOL), ("is_cuda", BOOL), ("is_cpu", BOOL),
                                                    ("is_sparse", BOOL), ("is_quantized", BOOL), ("data", TENSOR), ("itemsize", INT))}}


class Subscripts(Expressions):
    """The part of a function's compiler that reads subscripts and attributes."""

    # -- subscripts -----------------------------------------------------------------------------------------------------------

    def on_Subscript(self, node: ast.Subscript) -> Any:
        base = self.sugar(node.value)
        if isinstance(base, Outside) and isinstance(base.value, (list, dict)):
            raise self.source.error(node, f"python value of type '{type(base.value).__name__}' cannot be used as a value")
        if isinstance(base, Held) and isinstance(base.module, (ModuleDict, ParameterDict)):
            key = self.value(node.slice)
            if not key.known:
                raise self.source.error(node, "Unable to extract string literal index. ModuleDict indexing is only supported with string literals. "
                                              "For example, 'i = \"a\"; self.layers[i](x)' will fail because i is not a literal.")
            held = base.module._modules if isinstance(base.module, ModuleDict) else base.module._parameters
            if key.constant not in held:
                raise self.source.error(node, f"Key Error, {key.constant}")
            text = member(base.text, key.constant)
            return Held(text, held[key.constant]) if isinstance(base.module, ModuleDict) else Value(text, TENSOR)
        if isinstance(base, Value) and base.type.name == "Tuple" and base.items is None and not base.known and not isinstance(node.slice, ast.Slice):
            return self._part(node, [Value(f"{base.text}[{i}]", t) for i, t in enumerate(base.type.args)], True)
        parts = self.parts(base, node)
        if parts is not None:
            return self._part(node, parts, isinstance(base, Value))
        v = self.first_class(base, node)
        return self.item(node, v)

    def _part(self, node: ast.Subscript, parts: list[Any], is_tuple: bool) -> Any:
        """One of a fixed number of things."""
        if isinstance(node.slice, ast.Slice):
            ends = [None if x is None else self.value(x).constant for x in (node.slice.lower, node.slice.upper, node.slice.step)]
            if any(x is not None and not isinstance(x, int) for x in ends):
                raise self.source.error(node, "slices of tuples and of module lists need literal numbers")
            some = parts[slice(*ends)]
            return tuple_of(some) if is_tuple else Several(some)
        index = self.value(node.slice)
        if not index.known or not isinstance(index.constant, int):
            kinds = {p.type for p in parts if isinstance(p, Value)}
            if is_tuple and index.type == INT and len(kinds) == 1 and len(parts) > 1:
                return Value(f"[{', '.join(p.text for p in parts)}][{index.text}]", kinds.pop())
            raise self.source.error(node, "tuple index must be a compile time integer constant" if is_tuple else
                                    "Expected integer literal for index. ModuleList/Sequential indexing is only supported with integer literals. "
                                    "For example, 'i = 4; self.layers[i](x)' will fail because i is not a literal. Enumeration is supported, "
                                    "e.g. 'for index, v in enumerate(self): out = v(inp)'")
        if not -len(parts) <= index.constant < len(parts):
            raise self.source.error(node, f"{'Tuple' if is_tuple else ''} index out of range")
        return parts[index.constant]

    def item(self, node: ast.Subscript, v: Value) -> Value:
        """`v[...]` of a tensor, a list, a dict or a string."""
        if v.type == TENSOR:
            return Value(f"{v.text}[{self.tensor_index(node.slice)}]", TENSOR)
        if v.type.name == "Dict":
            key = self.typed(node.slice, v.type.args[0])
            return Value(f"{v.text}[{key.text}]", v.type.args[1])
        if v.type.name == "List" or v.type == STR:
            if isinstance(node.slice, ast.Slice):
                return Value(f"{v.text}[{self._slice(node.slice)}]", v.type)
            return Value(f"{v.text}[{self.typed(node.slice, INT).text}]", STR if v.type == STR else v.type.args[0])
        hint = f"'{v.type}' object is not subscriptable"
        raise self.source.error(node, hint)

    def _slice(self, s: ast.Slice) -> str:
        low, high, step = ("" if x is None else self._bound(x) for x in (s.lower, s.upper, s.step))
        return f"{low}:{high}" + (f":{step}" if step else "")

    def _bound(self, x: ast.expr) -> str:
        v = self.value(x)
        return "" if v.type == NONE else self.typed(x, INT).text

    def tensor_index(self, index: ast.expr) -> str:
        """What stands in a tensor's brackets."""
        parts = []
        for x in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(x, ast.Slice):
                parts.append(self._slice(x))
            elif isinstance(x, ast.Constant) and x.value is Ellipsis:
                parts.append("...")
            elif isinstance(x, ast.Constant) and x.value is None:
                parts.append("None")
            else:
                v = self.value(x)
                if v.type.name == "List" and v.type.args[0] in (INT, BOOL):
                    v = self.operator(x, "tensor", v)
                if v.type not in (INT, TENSOR) and v.type != Type("Optional", (TENSOR,)) and v.type != NONE:
                    raise self.source.error(x, f"Unsupported operation: attempted to use an index of type {v.type} on a tensor; only ints, slices, lists and tensors are supported")
                parts.append(v.text)
        return ", ".join(parts)

    # -- attributes -----------------------------------------------------------------------------------------------------------

    def on_Attribute(self, node: ast.Attribute) -> Any:
        return self.attribute(node, self.sugar(node.value), node.attr)

    def attribute(self, node: Any, base: Any, name: str) -> Any:
        if isinstance(base, Outside):
            if not hasattr(base.value, name):
                raise self.source.error(node, f"module '{getattr(base.value, '__name__', type(base.value).__name__)}' has no attribute '{name}'")
            return Outside(getattr(base.value, name))
        if isinstance(base, Held):
            return self.program.attribute(self, node, base, name)
        if isinstance(base, Several):
            raise self.source.error(node, f"'tuple' object has no attribute '{name}'")
        if not isinstance(base, Value):
            raise self.source.error(node, f"{type(base).__name__.lower()} has no attribute '{name}'")
        t = base.type
        if t == TENSOR and name in PROPERTIES:
            return Value(f"{PROPERTIES[name][0]}({base.text})", PROPERTIES[name][1])
        if t.name == "Tuple" and name in t.fields:
            return Value(f"{base.text}[{t.fields.index(name)}]", t.args[t.fields.index(name)])
        if t.name == "Enum" and name in ("name", "value"):
            return Value(f"{base.text}.{name}", STR if name == "name" else t.args[0])
        if t == DEVICE and name in ("type", "index"):
            return Value(f"ops.prim.{name}({base.text})", STR if name == "type" else Type("Optional", (INT,)))
        if t == TENSOR and name in ("tolist", "new_tensor", "type_as", "type", *CASTS) or schemas.schemas(name) and (t in (TENSOR, STR) or t.name in ("List", "Dict")):
            return Operator(name, base)
        hint = " (it may be None: check that with `is not None`, `assert` or torch.jit._unwrap_optional first)" if is_optional(t) else ""
        raise self.source.error(node, f"'{t}' object has no attribute or method '{name}'.{hint}")
