"""Calls: of operators, of Python's functions that the language knows, of modules, methods and functions that are compiled too."""
from __future__ import annotations

import ast
import builtins
import collections
import enum
import functools
import inspect
import math
import types
import warnings
from collections.abc import Callable
from typing import Any

from ..._size import Size
from ..._tensor import Tensor
from ..._torch_names import torch_name
from ...nn.modules.container import ParameterDict, ParameterList
from ...nn.modules.utils import _pair, _quadruple, _single, _triple
from .. import containers
from ..script import _unwrap_optional, annotate, is_scripting, is_tracing
from ..script_function import ScriptFunction
from . import library, schemas
from .expressions import CASTS, Condition, member
from .origin import is_library, is_own, is_public
from .signature import Parameter, Signature, bound, default_text
from .subscripts import Subscripts
from .types import BOOL, FLOAT, INT, NONE, NUMBER, STR, TENSOR, Type, Unknown, fits, is_optional, listed, named_tuple, paired, without_none
from .values import VARIES, Held, Loop, Method, Operator, Outside, Several, Special, Value, literal, tuple_of

_CONTAINERS = {list: "List", tuple: "Tuple", dict: "Dict"}
_AS_OPERATORS = {sum: "sum", any: "any", all: "all", sorted: "sorted", ord: "ord", chr: "chr", round: "round", hex: "hex", bin: "bin", oct: "oct",
                 divmod: "divmod", pow: "pow", warnings.warn: "warn"}
_CASTED = {int: INT, float: FLOAT, bool: BOOL, str: STR}


class Calls(Subscripts):
    """The part of a function's compiler that reads calls."""

    def on_Call(self, node: ast.Call) -> Any:
        asked = self.asked(node)
        if asked is not None:
            return Value(asked.text, BOOL) if asked.static is None else literal(asked.static)
        f = self.sugar(node.func)
        if isinstance(f, Outside):
            form = self.form(f.value)
            if form is not None:
                return form(node)
        args: list[Any] = []
        for x in node.args:
            args += self.spread(x.value) if isinstance(x, ast.Starred) else [self.sugar(x)]
        if any(k.arg is None for k in node.keywords):
            raise self.source.not_supported(node, "keyword-arg expansion is not supported")
        named = {k.arg: self.sugar(k.value) for k in node.keywords}
        return self.called(node, f, args, named)

    def called(self, node: Any, f: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """The call of anything."""
        if isinstance(f, Held):
            return self.program.call_module(self, node, f, args, named)
        if isinstance(f, Method):
            return self.program.call_method(self, node, f, args, named)
        if isinstance(f, Special):
            if args or named:
                raise self.source.error(node, f"{f.name} method does not accept any arguments")
            return self._contents(f, node)
        if isinstance(f, Outside):
            return self.called_outside(node, f.value, args, named)
        values = [self.first_class(x, node) for x in args]
        words = {k: self.first_class(x, node) for k, x in named.items()}
        if isinstance(f, Operator):
            return self.called_operator(node, f, values, words)
        raise self.source.error(node, f"'{getattr(f, 'type', type(f).__name__)}' object is not callable")

    def _contents(self, f: Special, node: Any) -> Several:
        """What a module gives of its parts: `named_modules()`, a container's `items()` or `values()`, ..."""
        m, text = f.owner.module, f.owner.text
        if f.name in ("modules", "named_modules"):
            held = [(literal(k), x) for k, x in self.modules(f.owner)]
        elif f.name == "named_buffers":  # not those of its children
            held = [(literal(k), self.program.attribute(self, node, f.owner, k)) for k in m._buffers]
        elif isinstance(m, (ParameterDict, ParameterList)):
            held = [(literal(k), Value(member(text, k), TENSOR)) for k in m._parameters]
        else:
            held = [(literal(k), child) for k, child in self.children(f.owner)]
        if f.name == "items" or f.name.startswith("named_"):
            return Several([Several([k, x]) for k, x in held])
        return Several([k if f.name == "keys" else x for k, x in held])

    def called_operator(self, node: Any, f: Operator, args: list[Value], named: dict[str, Value]) -> Value:
        if f.bound is not None:
            if f.bound.type == TENSOR:
                if f.name in CASTS and not args:
                    return Value(f"torch.to({f.bound.text}, {CASTS[f.name]})", TENSOR)
                if f.name == "type_as" and len(args) == 1:
                    return Value(f"torch.type_as({f.bound.text}, {args[0].text})", TENSOR)
                if f.name in ("tolist", "type", "new_tensor"):
                    raise self.source.error(node, f"Tensor.{f.name} is not supported here" + (": give its result's type, by an annotation" if f.name == "tolist" else ""))
            args = [f.bound, *args]
        return self.operator(node, f.name, *args, named=named)

    def called_outside(self, node: Any, f: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """The call of a Python object."""
        f = f.__wrapped__ if isinstance(f, ScriptFunction) else f
        if inspect.isfunction(f) and self.program.replaced(f) is not f:
            return self.program.call_function(self, node, self.program.replaced(f), args, named)
        name = torch_name(f) if callable(f) else None
        place, _, own = (name or "").rpartition(".")
        if place == "torch.nn.functional" or place == "torch.functional" and library.knows(own) or name == "torch._assert":
            return self._functional(node, own, args, named)
        if place.startswith("torch") and place != "torch.Tensor" and schemas.schemas(own):
            values = [self.first_class(x, node) for x in args]
            return self.operator(node, own, *values, named={k: self.first_class(x, node) for k, x in named.items()})
        aten = getattr(f, "_qualified_op_name", "")
        if aten.startswith("aten::"):
            values = [self.first_class(x, node) for x in args]
            return self.operator(node, aten[6:], *values, named={k: self.first_class(x, node) for k, x in named.items()})
        if isinstance(f, types.BuiltinFunctionType) and getattr(math, f.__name__, None) is f and schemas.schemas(f.__name__):
            return self.operator(node, f.__name__, *[self.first_class(x, node) for x in args])
        own = getattr(f, "__name__", "")
        if is_public(f, own) and schemas.schemas(own):
            return self.operator(node, own, *[self.first_class(x, node) for x in args], named={k: self.first_class(x, node) for k, x in named.items()})
        if name is not None or (inspect.isfunction(f) and is_own(f) and not is_library(f)):
            raise self.source.error(node, f"{name or f.__qualname__} cannot be compiled: TorchScript has no such operator, or torchlike cannot write it")
        if inspect.isfunction(f):
            return self.program.call_function(self, node, f, args, named)
        if inspect.isclass(f) and issubclass(f, tuple) and hasattr(f, "_fields"):
            return self._named_tuple(node, f, args, named)
        if inspect.isclass(f):
            raise self.source.error(node, f"Python type cannot be used as a value: class '{f.__qualname__}'")
        raise self.source.error(node, f"Python builtin {f!r} is currently not supported in Torchscript")

    def _named_tuple(self, node: Any, cls: type, args: list[Any], named: dict[str, Any]) -> Value:
        """An instance of a NamedTuple's class."""
        try:
            t = named_tuple(cls)
        except Unknown as reason:
            raise self.source.error(node, str(reason)) from None
        defaults = {k: default_text(x, kind) for k, kind in zip(t.fields, t.args) for x in [cls._field_defaults.get(k, VARIES)] if x is not VARIES}
        fields = [Parameter(k, kind, defaults.get(k), False, 0) for k, kind in zip(t.fields, t.args)]
        made = bound(self, node, Signature(t.named, fields, t), [*args], named, whole=True)
        return Value(f"{t.named}({made})", t)

    def _functional(self, node: Any, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        """A function of torch.nn.functional."""
        direct = library.direct(name, args, named)
        if direct is not None:
            operator, given, first = direct
            made = self.operator(node, operator, named={k: self.first_class(x, node) if not isinstance(x, int) else literal(x) for k, x in given.items()})
            return Value(f"{made.text}[0]", TENSOR) if first else made
        written = library.written(name)
        if written is None:
            raise self.source.error(node, f"torch.nn.functional.{name} is not written in TorchScript by torchlike yet")
        return self.program.call_function(self, node, written, args, named)

    # -- questions that may be known ------------------------------------------------------------------------------------------

    def asked(self, node: ast.Call) -> Condition | None:
        """isinstance, hasattr and is_scripting as tests; None for other calls."""
        if not isinstance(node.func, (ast.Name, ast.Attribute)) or isinstance(node.func, ast.Name) and self.find(node.func.id) is not None:
            return None
        if isinstance(node.func, ast.Attribute) and not self._leads_outside(node.func):
            return None
        f = self.sugar(node.func)
        if not isinstance(f, Outside):
            return None
        if f.value is is_scripting:
            return Condition("True", True)
        if f.value is is_tracing or getattr(f.value, "__name__", "") == "is_in_onnx_export" and torch_name(f.value) is None:
            return Condition("False", False)
        if f.value is builtins.isinstance or f.value is containers.isinstance:
            return self._is_instance(node)
        if f.value is builtins.hasattr and len(node.args) == 2:
            owner, name = self.sugar(node.args[0]), self.value(node.args[1])
            if isinstance(owner, Held) and name.known:
                return Condition("", hasattr(owner.module, name.constant))
            raise self.source.error(node, "hasattr's first argument must be a module, its second a literal string")
        return None

    def _leads_outside(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and self.find(node.id) is None and node.id not in self.assigned

    def _is_instance(self, node: ast.Call) -> Condition:
        if len(node.args) != 2:
            raise self.source.error(node, "isinstance expected 2 arguments")
        made = self.sugar(node.args[0])
        asked = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        kinds = [self.source.evaluated(x) for x in asked]
        kinds = [y for x in kinds for y in (x if isinstance(x, tuple) else (x,))]
        if isinstance(made, Held):
            return Condition("", isinstance(made.module, tuple(k for k in kinds if inspect.isclass(k))))
        if isinstance(made, Outside) and literal(made.value) is None:
            return Condition("", isinstance(made.value, tuple(k for k in kinds if inspect.isclass(k))))
        wanted: list[Type | str] = []
        for k, x in zip(kinds, asked if len(kinds) == len(asked) else [node] * len(kinds)):
            if k in _CONTAINERS:
                wanted.append(_CONTAINERS[k])
            elif inspect.isclass(k) and not issubclass(k, (int, float, bool, str, Tensor, enum.Enum)) and not hasattr(k, "_fields"):
                continue  # no value of the language is one
            else:
                wanted.append(self.source.kind(x) if k is not type(None) else NONE)
        return self.narrowed(node.args[0], self.first_class(made, node), wanted)

    # -- Python's functions ---------------------------------------------------------------------------------------------------

    def form(self, f: Any) -> Callable[[ast.Call], Any] | None:
        """How the call of one of the functions that the language knows is read."""
        try:
            return {builtins.range: self._range, builtins.enumerate: self._enumerate, builtins.zip: self._zip, builtins.len: self._len, builtins.list: self._list,
                    builtins.tuple: self._tuple, builtins.dict: self._dict, collections.OrderedDict: self._dict,
                    builtins.print: self._print, builtins.min: self._least, builtins.max: self._least,
                    builtins.abs: self._abs, builtins.getattr: self._getattr, builtins.reversed: self._reversed, annotate: self._annotate,
                    builtins.int: self._cast, builtins.float: self._cast, builtins.bool: self._cast, builtins.str: self._cast,
                    **dict.fromkeys(_AS_OPERATORS, self._operator)}.get(f) or self._of_torch(f)
        except TypeError:  # not hashable
            return None

    def _of_torch(self, f: Any) -> Callable | None:
        from ..._core.device import device
        if f is device:
            return self._device
        if f in (_single, _pair, _triple, _quadruple):
            return functools.partial(self._repeated, (_single, _pair, _triple, _quadruple).index(f) + 1)
        if f is _unwrap_optional:
            return self._unwrap
        if f is Size:
            return lambda node: self.typed(node.args[0], listed(INT))
        return None

    def _only(self, node: ast.Call, most: int = 1, least: int = 1) -> list[ast.expr]:
        if node.keywords or not least <= len(node.args) <= most or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.source.error(node, f"{ast.unparse(node.func)} takes {least if least == most else f'{least} to {most}'} arguments here, without names")
        return node.args

    def _operator(self, node: ast.Call) -> Value:
        f = self.sugar(node.func).value
        args = [self.value(x) for x in node.args]
        named = {k.arg: self.value(k.value) for k in node.keywords if k.arg is not None}
        if f is warnings.warn:
            named.pop("category", None)
            args = args[:1]
        return self.operator(node, _AS_OPERATORS[f], *args, named=named)

    def _range(self, node: ast.Call) -> Loop:
        return Loop(f"range({', '.join(self.typed(x, INT).text for x in self._only(node, 3))})", INT)

    def _enumerate(self, node: ast.Call) -> Any:
        start = self.value(node.args[1]) if len(node.args) > 1 else next((self.value(k.value) for k in node.keywords if k.arg == "start"), literal(0))
        over = self.sugar(node.args[0])
        parts = self.parts(over, node)
        if parts is not None:
            if not start.known:
                raise self.source.error(node, "enumerate's start must be a literal where what it counts is unrolled")
            return Several([Several([literal(i), x]) for i, x in enumerate(parts, start.constant)])
        text, item = self.iterated(over, node)
        return Loop(f"enumerate({text}{'' if start.constant == 0 else ', ' + start.text})", paired([INT, item]))

    def _zip(self, node: ast.Call) -> Any:
        given = [self.sugar(x) for x in node.args]
        fixed = [self.parts(x, node) for x in given]
        if any(p is not None for p in fixed):
            n = min(len(p) for p in fixed if p is not None)
            rows = [p if p is not None else self._items(node, x, n) for p, x in zip(fixed, given)]
            return Several([Several(list(row)) for row in zip(*rows)])
        made = [self.iterated(x, node) for x in given]
        return Loop(f"zip({', '.join(text for text, _ in made)})", paired(t for _, t in made))

    def _items(self, node: Any, x: Any, n: int) -> list[Value]:
        """The first n of a list that runs beside modules."""
        v = self.first_class(x, node) if not isinstance(x, Loop) else None
        if v is None or v.type.name != "List" and v.type != TENSOR:
            raise self.source.error(node, "what runs beside modules in zip must be a list or a tensor")
        name = self.kept(v, node)
        return [Value(f"{name}[{i}]", TENSOR if v.type == TENSOR else v.type.args[0]) for i in range(n)]

    def _reversed(self, node: ast.Call) -> Any:
        parts = self.parts(self.sugar(self._only(node)[0]), node)
        if parts is None:
            raise self.source.error(node, "reversed is known of modules and tuples only")
        return Several(parts[::-1])

    def _len(self, node: ast.Call) -> Value:
        made = self.sugar(self._only(node)[0])
        parts = self.parts(made, node)
        if parts is not None:
            return literal(len(parts))
        if isinstance(made, Held):
            raise self.source.error(node, f"'{type(made.module).__name__}' has no len")
        return self.operator(node, "len", self.first_class(made, node))

    def _list(self, node: ast.Call) -> Value:
        if not self._only(node, 1, 0):
            return self.on_List(ast.List([], ast.Load()))
        made = self.sugar(node.args[0])
        parts = self.parts(made, node)
        if parts is not None:
            return self.list_of([self.first_class(x, node) for x in parts], node)
        if isinstance(made, Loop):
            return Value(f"[__i for __i in {made.text}]", listed(made.item))
        v = self.first_class(made, node)
        if v.type.name == "Dict":
            return self.operator(node, "keys", v)
        if v.type == TENSOR:
            return self.operator(node, "unbind", v)
        return self.operator(node, "list", v)

    def _tuple(self, node: ast.Call) -> Any:
        parts = self.parts(self.sugar(self._only(node)[0]), node)
        if parts is None:
            raise self.source.error(node, "tuple of a list is not supported: its size is not known")
        return tuple_of([self.first_class(x, node) for x in parts]) if all(isinstance(x, Value) for x in parts) else Several(parts)

    def _dict(self, node: ast.Call) -> Value:
        if node.args:
            return self.operator(node, "dict", *[self.value(x) for x in self._only(node)])
        if not node.keywords:
            return self.on_Dict(ast.Dict([], []))
        return self.on_Dict(ast.copy_location(ast.Dict([ast.Constant(k.arg) for k in node.keywords], [k.value for k in node.keywords]), node))

    def _print(self, node: ast.Call) -> Value:
        if node.keywords:
            raise self.source.error(node, "print takes values alone")
        return Value(f"print({', '.join(self.value(x).text for x in node.args)})", NONE)

    def _least(self, node: ast.Call) -> Value:
        """min, max: of two or more numbers, or of a list of them."""
        name = self.sugar(node.func).value.__name__
        given = [self.value(x) for x in node.args]
        if node.keywords or not given:
            raise self.source.error(node, f"{name} takes numbers or a list alone")
        if len(given) == 1:
            if given[0].type == TENSOR:
                return self.operator(node, name, given[0])
            if given[0].type.name != "List" or given[0].type.args[0] not in (INT, FLOAT, BOOL):
                raise self.source.error(node, f"{name} of a value of type {given[0].type} is not supported")
            return Value(f"ops.prim.{name}({given[0].text})", given[0].type.args[0])
        out = given[0]
        for v in given[1:]:
            if TENSOR in (out.type, v.type):
                out = self.operator(node, {"min": "minimum", "max": "maximum"}[name], out, v)
            elif {out.type, v.type} <= {INT, FLOAT, NUMBER}:
                kind = NUMBER if NUMBER in (out.type, v.type) else INT if out.type == v.type == INT else FLOAT
                out = Value(f"ops.prim.{name}({out.text}, {v.text})", kind)
            else:
                raise self.source.error(node, f"{name} of {out.type} and {v.type} is not supported")
        return out

    def _abs(self, node: ast.Call) -> Value:
        v = self.value(self._only(node)[0])
        if v.type in (INT, FLOAT):
            return Value(f"ops.prim.abs({v.text})", v.type)
        return self.operator(node, "abs", v)

    def _getattr(self, node: ast.Call) -> Any:
        args = self._only(node, 3, 2)
        name = self.value(args[1])
        if name.type != STR or not name.known:
            raise self.source.error(node, "getattr's second argument must be a string literal")
        owner = self.sugar(args[0])
        if len(args) == 3 and isinstance(owner, Held) and not hasattr(owner.module, name.constant):
            return self.sugar(args[2])
        return self.attribute(node, owner, name.constant)

    def _annotate(self, node: ast.Call) -> Value:
        args = self._only(node, 2, 2)
        return self.annotated(args[1], self.source.kind(args[0]))

    def annotated(self, node: ast.expr, t: Type) -> Value:
        """An expression whose type is said."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist":
            held = self.sugar(node.func)
            if isinstance(held, Operator) and held.bound is not None and held.bound.type == TENSOR:
                return self._to_list(node, held.bound, t)
        v = self.typed(node, t)
        return v if v.text.startswith("annotate(") or v.known and v.type == t and not is_optional(t) else Value(f"annotate({t}, {v.text})", t)

    def _to_list(self, node: Any, v: Value, t: Type) -> Value:
        """`tolist`, whose depth and numbers the annotation says."""
        depth, inner = 0, t
        while inner.name == "List":
            depth, inner = depth + 1, inner.args[0]
        if inner not in (INT, FLOAT, BOOL):
            raise self.source.error(node, f"{t} is not one of the supported element types for tolist: int, float, bool")
        return Value(f"annotate({t}, ops.prim.tolist({v.text}))", t) if depth else Value(f"{inner}({v.text})", inner)

    def _cast(self, node: ast.Call) -> Value:
        t = _CASTED[self.sugar(node.func).value]
        if not node.args:
            return literal({INT: 0, FLOAT: 0.0, BOOL: False, STR: ""}[t])
        v = self.value(self._only(node)[0])
        if t == STR:
            return v if v.type == STR else self.operator(node, "str", v)
        if t == FLOAT and v.type == STR and v.known:
            return literal(float(v.constant))
        if t == BOOL and (v.type == STR or v.type.name in ("List", "Dict")):
            return Value(self.condition(node.args[0]).text, BOOL)
        if v.type not in (TENSOR, BOOL) and not fits(v.type, NUMBER) and not (v.type == STR and t != BOOL):
            raise self.source.error(node, f"{t}({v.type}) is not supported")
        return v if v.type == t else literal({INT: int, FLOAT: float, BOOL: bool}[t](v.constant), v.loose) if v.known and v.type != STR else Value(f"{t}({v.text})", t)

    def _device(self, node: ast.Call) -> Value:
        args = [self.value(x) for x in node.args]
        if len(args) == 1 and args[0].type.name == "Device":
            return args[0]
        return self.operator(node, "device", *args)

    def _repeated(self, n: int, node: ast.Call) -> Value:
        """`_pair(x)`: a number n times, or n numbers as they are."""
        v = self.value(self._only(node)[0])
        if v.type in (INT, FLOAT, BOOL) and "(" not in v.text:
            return tuple_of([v] * n)
        if v.type.name == "List" and "(" not in v.text:
            return tuple_of([Value(f"{v.text}[{i}]", v.type.args[0]) for i in range(n)])
        if v.type.name == "Tuple" and len(v.type.args) == n:
            return v
        raise self.source.error(node, f"a value of type {v.type} does not make a tuple of {n}")

    def _unwrap(self, node: ast.Call) -> Value:
        v = self.value(self._only(node)[0])
        return v if not is_optional(v.type) else Value(f"torch._unwrap_optional({v.text})", without_none(v.type))
