"""Expressions: their types, and their text for PyTorch's importer, which calls every operator by its name."""
from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...nn.modules.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from . import schemas
from .source import Source
from .types import BOOL, FLOAT, INT, NONE, NUMBER, STR, TENSOR, Type, fits, is_optional, listed, unified, union, without_none
from .values import Held, Loop, Outside, Several, Value, float_text, literal, quoted, tuple_of

if TYPE_CHECKING:
    from .modules import Program

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "remainder", ast.Pow: "pow", ast.MatMult: "matmul",
           ast.BitAnd: "__and__", ast.BitOr: "__or__", ast.BitXor: "__xor__", ast.LShift: "__lshift__", ast.RShift: "__rshift__"}
_COMPARED = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_SWAPPED = {"add": "add", "mul": "mul", "sub": "rsub", "eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le",
            "__and__": "__and__", "__or__": "__or__", "__xor__": "__xor__"}
_FOLDED = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
CASTS = {"float": 6, "double": 7, "half": 5, "bfloat16": 15, "long": 4, "int": 3, "short": 2, "char": 1, "byte": 0, "bool": 11}


@dataclass
class Condition:
    """A test: `static` where it is known now, and which variables have which types when it holds and when not."""

    text: str
    static: bool | None = None
    true: dict[str, Type] = field(default_factory=dict)
    false: dict[str, Type] = field(default_factory=dict)


class Expressions:
    """The part of a function's compiler that reads expressions."""

    source: Source
    program: Program
    owner: Held | None
    own: bool  # torchlike's own source, whose numbers and names are constants
    scope: list[dict[str, Any]]

    # -- values ---------------------------------------------------------------------------------------------------------------

    def find(self, name: str) -> Any:
        """What a local name stands for, or None."""
        return next((frame[name] for frame in reversed(self.scope) if name in frame), None)

    @contextmanager
    def frame(self, names: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """A block with names of its own."""
        self.scope.append(dict(names or {}))
        try:
            yield self.scope[-1]
        finally:
            self.scope.pop()

    def refined(self, types: dict[str, Type]) -> dict[str, Value]:
        """The variables of a condition that holds."""
        return {name: Value("None", NONE, None) if t == NONE else Value(self.find(name).text, t) for name, t in types.items()}

    def first_class(self, x: Any, node: Any) -> Value:
        """What can be held in variables."""
        if isinstance(x, Value):
            return x
        if isinstance(x, Several):
            return tuple_of([self.first_class(y, node) for y in x.items])
        if isinstance(x, Outside):
            made = literal(x.value, self.own)
            if made is not None:
                return made
            raise self.source.error(node, f"python value of type '{type(x.value).__name__}' cannot be used as a value. Perhaps it is a closed over global variable? "
                                          "If so, please consider passing it in as an argument or use a local varible instead.")
        if isinstance(x, Held):
            raise self.source.error(node, f"module '{type(x.module).__name__}' cannot be used as a value")
        raise self.source.error(node, f"{type(x).__name__.lower()} cannot be used as a value")

    def value(self, node: ast.expr, hint: Type | None = None) -> Value:
        """A first-class expression."""
        return self.first_class(self.sugar(node, hint), node)

    def sugar(self, node: ast.expr, hint: Type | None = None) -> Any:
        """Any expression; `hint`: the type that is wanted, for empty lists and the like."""
        form = getattr(self, "on_" + type(node).__name__, None)
        if form is None:
            raise self.source.unsupported(node)
        return form(node, hint) if hint is not None and isinstance(node, (ast.List, ast.Dict, ast.Tuple, ast.Constant, ast.IfExp, ast.ListComp, ast.DictComp)) \
            else form(node)

    def typed(self, node: ast.expr, t: Type, what: str = "") -> Value:
        """An expression as a value of this type."""
        made = self.value(node, t)
        try:
            text = schemas.converted(made, t)
        except schemas.Mismatch as reason:
            raise self.source.error(node, what or str(reason)) from None
        return Value(text, t, made.constant) if made.type == t else Value(text, t)

    def operator(self, node: Any, name: str, *args: Value, named: dict[str, Value] | None = None) -> Value:
        """The call of an operator of aten."""
        try:
            return schemas.called(name, list(args), named or {})
        except schemas.Mismatch as reason:
            raise self.source.error(node, str(reason)) from None

    # -- atoms ----------------------------------------------------------------------------------------------------------------

    def on_Constant(self, node: ast.Constant, hint: Type | None = None) -> Value:
        if node.value is Ellipsis:
            raise self.source.error(node, "Ellipses can only be used in subscripts")
        made = literal(node.value, self.own)
        if made is None:
            raise self.source.error(node, f"a constant of type {type(node.value).__name__} is not supported")
        if hint is not None and made.type == NONE and is_optional(hint):
            return Value(f"annotate({hint}, None)", hint)
        return made

    def on_JoinedStr(self, node: ast.JoinedStr) -> Value:
        text, args = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                if "{" in part.value or "}" in part.value:
                    raise self.source.not_supported(node, "braces in an f-string are not supported")
                text += part.value
            elif part.conversion != -1:
                raise self.source.not_supported(node, "Don't support conversion in JoinedStr")
            elif part.format_spec is not None:
                raise self.source.not_supported(node, "Don't support formatting in JoinedStr")
            else:
                text += "{}"
                args.append(self.value(part.value))
        return self.operator(node, "format", Value(quoted(text), STR), *args) if args else Value(quoted(text), STR, text)

    def on_Name(self, node: ast.Name) -> Any:
        found = self.find(node.id)
        if found is not None:
            if isinstance(found, str):  # why it has no value here
                raise self.source.error(node, found)
            return found
        if node.id in self.assigned:
            raise self.source.error(node, f"{node.id} is not defined here; a variable of a branch or a loop is not known after it")
        made = Outside(self.source.outside(node.id, node))
        if not self.own and isinstance(made.value, (int, float, str, tuple)) and not isinstance(made.value, type):
            return self.global_value(made, node)
        return made

    def global_value(self, made: Outside, node: ast.Name) -> Any:
        raise self.source.error(node, f"python value of type '{type(made.value).__name__}' cannot be used as a value. Perhaps it is a closed over global variable? "
                                      "If so, please consider passing it in as an argument or use a local varible instead.")

    # -- collections ----------------------------------------------------------------------------------------------------------

    def on_Tuple(self, node: ast.Tuple, hint: Type | None = None) -> Any:
        kinds = hint.args if hint is not None and hint.name == "Tuple" and len(hint.args) == len(node.elts) else [None] * len(node.elts)
        items: list[Any] = []
        for x, t in zip(node.elts, kinds):
            items += self.spread(x.value) if isinstance(x, ast.Starred) else [self.sugar(x, t)]
        if all(isinstance(x, Value) or isinstance(x, Outside) and literal(x.value) is not None for x in items):
            return tuple_of([self.first_class(x, node) for x in items])
        return Several(items)

    def spread(self, node: ast.expr) -> list[Any]:
        """The parts of `*node`."""
        made = self.sugar(node)
        parts = self.parts(made, node)
        if parts is None:
            raise self.source.error(node, "a starred value must be a tuple, whose size is known")
        return parts

    def parts(self, x: Any, node: Any) -> list[Any] | None:
        """What a fixed number of things holds: of a tuple, a ModuleList, a Sequential."""
        if isinstance(x, Outside) and isinstance(x.value, tuple):
            return [Outside(y) for y in x.value]
        if isinstance(x, Several):
            return x.items
        if isinstance(x, Held) and isinstance(x.module, (ModuleList, Sequential)):
            return [child for _, child in self.children(x)]
        if isinstance(x, Held) and isinstance(x.module, ModuleDict):
            return [literal(k) for k, _ in self.children(x)]
        if isinstance(x, Held) and isinstance(x.module, ParameterList):
            return [Value(member(x.text, k), TENSOR) for k in x.module._parameters]
        if isinstance(x, Held) and isinstance(x.module, ParameterDict):
            return [literal(k) for k in x.module._parameters]
        if isinstance(x, Value) and x.type.name == "Tuple":
            if x.known:
                return [literal(y, x.loose) for y in x.constant]
            if x.items is not None:
                return [Value(word, t) for word, t in zip(x.items, x.type.args)]
            name = self.kept(x, node)
            return [Value(f"{name}[{i}]", t) for i, t in enumerate(x.type.args)]
        return None

    def children(self, owner: Held) -> list[tuple[str, Held]]:
        return [(k, Held(member(owner.text, k), m)) for k, m in owner.module._modules.items() if m is not None]

    def modules(self, owner: Held, name: str = "") -> list[tuple[str, Held]]:
        """A module and all below it, one that has two names twice."""
        below = [self.modules(child, f"{name}.{k}" if name else k) for k, child in self.children(owner)]
        return [(name, owner), *itertools.chain.from_iterable(below)]

    def on_List(self, node: ast.List, hint: Type | None = None) -> Value:
        inner = without_none(hint) if hint is not None else None
        inner = inner.args[0] if inner is not None and inner.name == "List" else None
        items: list[Value] = []
        for x in node.elts:
            items += [self.first_class(y, x) for y in self.spread(x.value)] if isinstance(x, ast.Starred) else [self.value(x, inner)]
        return self.list_of(items, node, inner)

    def list_of(self, items: list[Value], node: Any, inner: Type | None = None) -> Value:
        """A list's literal."""
        if not items:
            t = listed(inner or TENSOR)
            return Value(f"annotate({t}, [])", t, empty=True)
        common: Type | None = items[0].type
        for v in items:
            common = None if common is None else unified(common, v.type)
        text = f"[{', '.join(v.text for v in items)}]"
        if inner is not None and all(fits(v.type, inner) for v in items):
            return Value(text if common == inner else f"annotate({listed(inner)}, {text})", listed(inner))
        if common is None:
            return Value(text, listed(union(v.type for v in items)))
        return Value(text if all(v.type == common for v in items) else f"annotate({listed(common)}, {text})", listed(common))

    def on_Dict(self, node: ast.Dict, hint: Type | None = None) -> Value:
        wanted = without_none(hint) if hint is not None else None
        wanted = wanted if wanted is not None and wanted.name == "Dict" else None
        if not node.keys:
            t = wanted or Type("Dict", (STR, TENSOR))
            return Value(f"annotate({t}, {{}})", t, empty=True)
        if None in node.keys:
            raise self.source.not_supported(node, "Dict expansion (e.g. `{**dict}`) is not supported")
        keys = [self.value(k) for k in node.keys]
        values = [self.value(v, wanted.args[1] if wanted else None) for v in node.values]
        text = "{" + ", ".join(f"{k.text}: {v.text}" for k, v in zip(keys, values)) + "}"
        if wanted and all(fits(k.type, wanted.args[0]) for k in keys) and all(fits(v.type, wanted.args[1]) for v in values):
            return Value(f"annotate({wanted}, {text})", wanted)
        key = keys[0].type
        common: Type | None = values[0].type
        for k, v in zip(keys, values):
            common = None if common is None or k.type != key else unified(common, v.type)
        if common is None:
            raise self.source.error(node, "all keys of a dict must have one type, and all values")
        t = Type("Dict", (key, common))
        return Value(text if all(v.type == common for v in values) else f"annotate({t}, {text})", t)

    def on_ListComp(self, node: ast.ListComp, hint: Type | None = None) -> Value:
        inner = hint.args[0] if hint is not None and hint.name == "List" else None
        source = self._generator(node)
        parts = self.parts(source, node)
        if parts is not None:
            made = []
            for part in parts:
                with self.frame():
                    self.bind(node.generators[0].target, part)
                    made.append(self.value(node.elt, inner))
            return self.list_of(made, node, inner)
        text, item = self.iterated(source, node.generators[0].iter)
        with self.frame():
            target = self.bind(node.generators[0].target, Value("", item))
            elt = self.value(node.elt, inner)
        return Value(f"[{elt.text} for {target} in {text}]", listed(elt.type))

    on_GeneratorExp = on_ListComp  # what it is given to takes a list

    def on_DictComp(self, node: ast.DictComp, hint: Type | None = None) -> Value:
        source = self._generator(node)
        if self.parts(source, node) is not None:
            raise self.source.error(node, "a dict comprehension runs over a list, a dict or a range")
        text, item = self.iterated(source, node.generators[0].iter)
        with self.frame():
            target = self.bind(node.generators[0].target, Value("", item))
            key, value = self.value(node.key), self.value(node.value)
        return Value(f"{{{key.text}: {value.text} for {target} in {text}}}", Type("Dict", (key.type, value.type)))

    def _generator(self, node: Any) -> Any:
        if len(node.generators) != 1:
            raise self.source.not_supported(node, "Only a single generator is currently supported")
        if node.generators[0].ifs:
            raise self.source.not_supported(node, "Comprehension ifs are not supported yet")
        return self.sugar(node.generators[0].iter)

    def bind(self, target: ast.expr, x: Any) -> str:
        """Variables of a loop or of a comprehension in the innermost frame, and their text."""
        if isinstance(target, ast.Name):
            self.scope[-1][target.id] = Value(self.word(target.id), x.type) if isinstance(x, Value) and not x.text else x
            return self.word(target.id)
        if not isinstance(target, (ast.Tuple, ast.List)):
            raise self.source.error(target, "a loop's variable is a name or a tuple of names")
        parts = [Value("", t) for t in x.type.args] if isinstance(x, Value) and not x.text and x.type.name == "Tuple" else self.parts(x, target)
        if parts is None or len(parts) != len(target.elts):
            raise self.source.error(target, "Provided a tuple of another size, or no tuple, to unpack")
        return "(" + ", ".join(self.bind(t, p) for t, p in zip(target.elts, parts)) + ")" if len(parts) > 1 else self.bind(target.elts[0], parts[0]) + ","

    def iterated(self, x: Any, node: Any) -> tuple[str, Type]:
        """What a for statement runs over: its text, and the type of an item."""
        if isinstance(x, Loop):
            return x.text, x.item
        v = self.first_class(x, node)
        if v.type.name == "List":
            return v.text, v.type.args[0]
        if v.type.name == "Dict":
            return v.text, v.type.args[0]
        if v.type in (TENSOR, STR):
            return v.text, v.type
        raise self.source.error(node, f"'{v.type}' object is not iterable")

    # -- operators ------------------------------------------------------------------------------------------------------------

    def on_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self.boolean(node)
        v = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            if v.known and v.type in (INT, FLOAT):
                return Value(str(-v.constant) if v.type == INT else float_text(-v.constant), v.type, -v.constant, v.loose)
            return self.operator(node, "neg", v)
        if isinstance(node.op, ast.Invert):
            return self.operator(node, "bitwise_not", v)
        raise self.source.not_supported(node, f"unsupported unary operator: {type(node.op).__name__}")

    def on_BinOp(self, node: ast.BinOp) -> Value:
        return self.binary(node, _BINARY[type(node.op)], self.value(node.left), self.value(node.right))

    def binary(self, node: Any, name: str, a: Value, b: Value) -> Value:
        """One of Python's operators on two values."""
        if name == "remainder" and a.type == STR:
            return self.operator(node, "percentFormat", a, b)
        if name == "floordiv" and a.type == TENSOR:
            return self.operator(node, "floor_divide", a, b)
        if a.type in (INT, FLOAT, NUMBER, BOOL) and b.type == TENSOR:
            if name == "div":
                return self.operator(node, "mul", self.operator(node, "reciprocal", b), a)
            if name in _SWAPPED:
                return self.operator(node, _SWAPPED[name], b, a)
        return self.operator(node, name, a, b)

    def on_Compare(self, node: ast.Compare) -> Value:
        if len(node.ops) == 1 and not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self.compared(node, node.ops[0], self.value(node.left), self.value(node.comparators[0]))
        return self.boolean(node)

    def compared(self, node: Any, op: ast.cmpop, a: Value, b: Value) -> Value:
        if isinstance(op, (ast.In, ast.NotIn)):
            found = self._contained(node, a, b)
            return found if isinstance(op, ast.In) else Value(f"(not ({found.text}))", BOOL, *([not found.constant] if found.known else []))
        name = _COMPARED[type(op)]
        if a.type.name == b.type.name == "Enum" and name in ("eq", "ne"):
            return Value(f"torch.{name}({a.text}, {b.text})", BOOL)
        if a.known and b.known and (a.type == b.type or self.own) and a.type.name != "Tuple":
            return literal(_FOLDED[name](a.constant, b.constant))
        if a.type.name == b.type.name == "Tuple" and name in ("eq", "ne") and len(a.type.args) == len(b.type.args):
            tests = [self.compared(node, ast.Eq(), x, y).text for x, y in zip(self.parts(a, node), self.parts(b, node))]
            return Value(f"({' and '.join(tests)})" if name == "eq" else f"(not ({' and '.join(tests)}))", BOOL)
        return self.binary(node, name, a, b)

    def _contained(self, node: Any, a: Value, b: Value) -> Value:
        if a.known and b.known:
            return literal(a.constant in b.constant)
        if b.type.name == "Tuple":
            tests = [self.compared(node, ast.Eq(), a, x).text for x in self.parts(b, node)]
            return Value(f"({' or '.join(tests)})", BOOL)
        if b.type == STR and a.type == STR:
            return Value(f"torch.ne({self.operator(node, 'find', b, a).text}, -1)", BOOL)
        return self.operator(node, "__contains__", b, a)

    def on_BoolOp(self, node: ast.BoolOp) -> Value:
        return self.boolean(node)

    def boolean(self, node: ast.expr) -> Value:
        made = self.condition(node)
        return Value(made.text, BOOL) if made.static is None else literal(made.static)

    def on_IfExp(self, node: ast.IfExp, hint: Type | None = None) -> Any:
        test = self.condition(node.test)
        if test.static is not None:
            with self.frame(self.refined(test.true if test.static else test.false)):
                return self.sugar(node.body if test.static else node.orelse, hint)
        with self.frame(self.refined(test.true)):
            a = self.value(node.body, hint)
        with self.frame(self.refined(test.false)):
            b = self.value(node.orelse, hint)
        common = unified(a.type, b.type)
        if common is None:
            raise self.source.error(node, f"if-expression's true branch has type {a.type} but false branch has type {b.type}")
        return Value(f"({a.text} if {test.text} else {b.text})", common)

    # -- conditions -----------------------------------------------------------------------------------------------------------

    def condition(self, node: ast.expr) -> Condition:
        """What an if, a while, an assert or an operator tests."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            return Condition(f"(not ({inner.text}))",  # the lexer takes `not in` of `not input` for an operator
                             None if inner.static is None else not inner.static, inner.false, inner.true)
        if isinstance(node, ast.BoolOp):
            return self._joined([*node.values], isinstance(node.op, ast.And))
        if isinstance(node, ast.Compare):
            if len(node.ops) > 1:
                lefts = [node.left, *node.comparators[:-1]]
                pairs = [ast.copy_location(ast.Compare(a, [op], [b]), node) for a, op, b in zip(lefts, node.ops, node.comparators)]
                return self._joined(pairs, True)
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                return self._identity(node)
        if isinstance(node, ast.Call):
            asked = self.asked(node)
            if asked is not None:
                return asked
        v = self.value(node)
        if v.known:
            return Condition(repr(bool(v.constant)), bool(v.constant))
        if v.type == BOOL:
            return Condition(v.text)
        if v.type in (TENSOR, INT, FLOAT, NUMBER):
            return Condition(f"bool({v.text})")
        if v.type == STR or v.type.name in ("List", "Dict"):
            return Condition(f"torch.gt(torch.len({v.text}), 0)")
        raise self.source.error(node, f"Could not cast value of type {v.type} to bool")

    def _joined(self, nodes: list[ast.expr], every: bool) -> Condition:
        """`a and b`, `a or b`: what follows is read where what was before holds, or does not."""
        first = self.condition(nodes[0])
        if len(nodes) == 1 or first.static is (not every):
            return first
        with self.frame(self.refined(first.true if every else first.false)):
            rest = self._joined(nodes[1:], every)
        if first.static is not None:
            return Condition(rest.text, rest.static, first.true | rest.true, first.false | rest.false)
        if rest.static is every:
            return Condition(first.text, None, first.true if not every else first.true | rest.true, first.false if every else first.false | rest.false)
        text = f"({first.text} {'and' if every else 'or'} {rest.text})"
        static = rest.static if rest.static is (not every) else None
        return Condition(text, static, first.true | rest.true if every else {}, {} if every else first.false | rest.false)

    def _identity(self, node: ast.Compare) -> Condition:
        positive = isinstance(node.ops[0], ast.Is)
        left, right = node.left, node.comparators[0]
        if isinstance(left, ast.Constant) and left.value is None:
            left, right = right, left
        if not (isinstance(right, ast.Constant) and right.value is None):
            a, b = self.value(left), self.value(right)
            if BOOL in (a.type, b.type) and a.type == b.type:
                return Condition(f"torch.{'eq' if positive else 'ne'}({a.text}, {b.text})")
            return Condition(f"torch.__{'is' if positive else 'isnot'}__({a.text}, {b.text})")
        made = self.sugar(left)
        if isinstance(made, Outside):
            return Condition("", (made.value is None) is positive)
        if not isinstance(made, Value):
            return Condition("", not positive)
        if made.type == NONE or not (is_optional(made.type) or made.type.name == "Any"):
            return Condition("", (made.type == NONE) is positive)
        none, some = {}, {}
        if isinstance(left, ast.Name) and made.type.name != "Any":
            none, some = {left.id: NONE}, {left.id: without_none(made.type)}
        return Condition(f"({made.text} {'is' if positive else 'is not'} None)", None, *((none, some) if positive else (some, none)))

    def narrowed(self, node: ast.expr, v: Value, wanted: list[Type | str]) -> Condition:
        """`isinstance(v, wanted)`: types, or the names of containers."""
        def of(t: Type) -> bool:
            return any(fits(t, w) if isinstance(w, Type) else t.name == w for w in wanted)
        possible = list(v.type.args) if v.type.name == "Union" else [v.type.args[0], NONE] if v.type.name == "Optional" else [v.type]
        yes, no = [t for t in possible if of(t)], [t for t in possible if not of(t)]
        if v.type.name != "Any" and (not yes or not no):
            return Condition("", bool(yes))
        if any(isinstance(w, str) for w in wanted) and v.type.name == "Any":
            raise self.source.error(node, "isinstance of a value of type Any needs a whole type")
        kinds = yes if v.type.name != "Any" else [w for w in wanted if isinstance(w, Type)]
        text = f"isinstance({v.text}, {kinds[0] if len(kinds) == 1 else '(' + ', '.join(map(str, kinds)) + ')'})"
        if not isinstance(node, ast.Name):
            return Condition(text)
        return Condition(text, None, {node.id: union(kinds)}, {node.id: union(no)} if no else {})


def member(text: str, name: str) -> str:
    """An attribute's text."""
    return f"{text}.{name}" if name.isidentifier() and name.isascii() else f'getattr({text}, "{name}")'

