"""Runs TorchScript's text without running it as Python: a walk over its syntax tree that knows the few forms TorchScript writes.

Names are local variables, operators (`torch.add`, `ops.prim.dtype`), constants of the archive, or the archive's own functions and
classes (`__torch__...`). An attribute is looked up only in the archive's own objects, so that no text reaches further into Python.
"""
from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .._core.device import device
from .._tensor import Tensor
from . import _operators

if TYPE_CHECKING:
    from ._code import Code

_WORDS: dict[str, Any] = {"inf": float("inf"), "nan": float("nan"), "int": int, "float": float, "bool": bool, "str": str, "range": range, "print": print,
                          "zip": zip, "enumerate": enumerate}
_TYPES = {"int": int, "float": float, "bool": bool, "str": str, "NoneType": type(None), "Device": device, "Tensor": Tensor}


class Function:
    """One function or method of an archive."""

    def __init__(self, node: ast.FunctionDef, code: Code) -> None:
        self.node, self.code, self.__name__ = node, code, node.name
        self.names = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
        self.required = len(node.args.args) - len(node.args.defaults)
        self.positional = len(node.args.args)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _Run(self.code, self.bound(args, kwargs)).result(self.node.body)

    def bound(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        """The variables that a call begins with."""
        if len(args) > self.positional:
            raise RuntimeError(f"{self.__name__}() expected at most {self.positional} argument(s) but received {len(args)} argument(s).")
        given = dict(zip(self.names, args))
        for name, value in kwargs.items():
            if name not in self.names or name in given:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.__name__}'.")
            given[name] = value
        a = self.node.args
        defaults = [*zip(self.names[self.required:self.positional], a.defaults), *zip(self.names[self.positional:], a.kw_defaults)]
        for name, node in defaults:
            if name not in given and node is not None:
                given[name] = _Run(self.code, {}).value(node)
        missing = [name for name in self.names if name not in given]
        if missing:
            raise RuntimeError(f"{self.__name__}() is missing value for argument '{missing[0]}'.")
        return given

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else functools.partial(self, instance)


class _Returned(Exception):
    """The end of a function's call."""


class _Left(Exception):
    """`break` (True) or `continue` (False)."""


class _Run:
    """One call: its variables, and what each form of the text does to them."""

    def __init__(self, code: Code, variables: dict[str, Any]) -> None:
        self.code, self.variables = code, variables

    def result(self, body: list[ast.stmt]) -> Any:
        try:
            self.block(body)
        except _Returned as end:
            return end.args[0]
        return None

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._form(statement)(statement)

    def value(self, node: ast.expr) -> Any:
        return self._form(node)(node)

    def _form(self, node: ast.AST) -> Callable:
        form = getattr(self, "on_" + type(node).__name__, None)
        if form is None:
            raise RuntimeError(f"TorchScript's text has no {type(node).__name__}: {ast.unparse(node)}")
        return form

    # -- statements ------------------------------------------------------------------------------------------------------

    def on_Return(self, node: ast.Return) -> None:
        raise _Returned(None if node.value is None else self.value(node.value))

    def on_Expr(self, node: ast.Expr) -> None:
        self.value(node.value)

    def on_Pass(self, node: ast.Pass) -> None:
        pass

    def on_If(self, node: ast.If) -> None:
        self.block(node.body if self.value(node.test) else node.orelse)

    def on_While(self, node: ast.While) -> None:
        while self.value(node.test):
            if self._turn(node.body):
                break

    def on_For(self, node: ast.For) -> None:
        for x in self.value(node.iter):
            self._assign(node.target, x)
            if self._turn(node.body):
                break

    def _turn(self, body: list[ast.stmt]) -> bool:
        """One turn of a loop, and whether it was the last."""
        try:
            self.block(body)
        except _Left as left:
            return left.args[0]
        return False

    def on_With(self, node: ast.With) -> None:
        held = [self.value(item.context_expr) for item in node.items]
        for x in held:
            self.code.member(x, "__enter__")()
        try:
            self.block(node.body)
        finally:
            for x in reversed(held):
                self.code.member(x, "__exit__")(None, None, None)

    def on_Break(self, node: ast.Break) -> None:
        raise _Left(True)

    def on_Continue(self, node: ast.Continue) -> None:
        raise _Left(False)

    def on_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self._assign(target, value)

    def on_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, self.value(node.value))

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.variables[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part, x in zip(target.elts, value, strict=True):
                self._assign(part, x)
        elif isinstance(target, ast.Attribute):
            self.code.set_member(self.value(target.value), target.attr, value)
        elif isinstance(target, ast.Subscript):
            held = self.value(target.value)
            if not isinstance(held, (list, dict, Tensor)):
                raise RuntimeError(f"TorchScript's text does not assign to {ast.unparse(target)}")
            held[self.value(target.slice)] = value
        else:
            raise RuntimeError(f"TorchScript's text does not assign to {ast.unparse(target)}")

    # -- expressions -----------------------------------------------------------------------------------------------------

    def on_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, str) and not node.value.isascii():  # what is not ASCII stands as the bytes of UTF-8, or as itself
            try:
                return node.value.encode("latin-1").decode()
            except UnicodeError:
                return node.value
        return node.value

    def on_Name(self, node: ast.Name) -> Any:
        if node.id in self.variables:
            return self.variables[node.id]
        if node.id in _WORDS:
            return _WORDS[node.id]
        raise RuntimeError(f"undefined value {node.id}")

    def on_Tuple(self, node: ast.Tuple) -> tuple:
        return tuple([self.value(x) for x in node.elts])

    def on_List(self, node: ast.List) -> list:
        return [self.value(x) for x in node.elts]

    def on_Dict(self, node: ast.Dict) -> dict:
        return {self.value(k): self.value(v) for k, v in zip(node.keys, node.values)}

    def on_ListComp(self, node: ast.ListComp) -> list:
        return [self.value(node.elt) for _ in self._turns(node)]

    def on_DictComp(self, node: ast.DictComp) -> dict:
        return {self.value(node.key): self.value(node.value) for _ in self._turns(node)}

    def _turns(self, node: Any) -> Iterator[None]:
        """A comprehension's turns, each with its variables."""
        if len(node.generators) != 1 or node.generators[0].ifs:
            raise RuntimeError(f"TorchScript's text has no {ast.unparse(node)}")
        before = dict(self.variables)
        for x in self.value(node.generators[0].iter):
            self._assign(node.generators[0].target, x)
            yield
        self.variables = before

    def on_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return not self.value(node.operand)
        if not isinstance(node.op, ast.USub):
            raise RuntimeError(f"TorchScript's text has no {ast.unparse(node)}")
        return -self.value(node.operand)

    def on_BoolOp(self, node: ast.BoolOp) -> bool:
        every = isinstance(node.op, ast.And)
        return (all if every else any)(bool(self.value(x)) for x in node.values)

    def on_Compare(self, node: ast.Compare) -> bool:
        if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            raise RuntimeError(f"TorchScript's text has no {ast.unparse(node)}")
        same = self.value(node.left) is self.value(node.comparators[0])
        return same if isinstance(node.ops[0], ast.Is) else not same

    def on_IfExp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def on_Subscript(self, node: ast.Subscript) -> Any:
        held = self.value(node.value)
        if not isinstance(held, (list, tuple, dict, str, Tensor)):
            raise RuntimeError(f"TorchScript's text has no {ast.unparse(node)}")
        return held[self.value(node.slice)]

    def on_Slice(self, node: ast.Slice) -> slice:
        return slice(*(None if x is None else self.value(x) for x in (node.lower, node.upper, node.step)))

    def on_Attribute(self, node: ast.Attribute) -> Any:
        path = self._path(node)
        if path is None:
            return self.code.member(self.value(node.value), node.attr)
        root, *names = path
        if root == "CONSTANTS":
            return self.code.constants[int(names[0][1:])]
        if root == "torch" and len(names) == 1:
            return _operators.aten(names[0])
        if root == "ops" and len(names) == 2:
            return _operators.prim(names[1]) if names[0] == "prim" else _operators.aten(names[1]) if names[0] == "aten" else self.code.library(*names)
        if root == "__torch__":
            return self.code.find(".".join(path))
        raise RuntimeError(f"undefined value {'.'.join(path)}")

    def _path(self, node: ast.expr) -> list[str] | None:
        """The names of a chain that begins with none of the variables."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        return [node.id, *names] if isinstance(node, ast.Name) and node.id not in self.variables else None

    def on_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id not in self.variables:
            name = node.func.id
            if name in ("annotate", "unchecked_cast"):  # the type is the compiler's
                return self.value(node.args[1])
            if name == "uninitialized":
                return None
            if name == "isinstance":
                kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
                value = self.value(node.args[0])
                return any(_is(value, kind) for kind in kinds)
            if name == "getattr":
                return self.code.member(self.value(node.args[0]), self.value(node.args[1]))
        function = self.value(node.func)
        return function(*[self.value(x) for x in node.args], **{k.arg: self.value(k.value) for k in node.keywords})


def _is(x: Any, kind: ast.expr) -> bool:
    """Whether a value is of the type that the text names."""
    if isinstance(kind, ast.Subscript) and isinstance(kind.value, ast.Name):
        held = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
        match kind.value.id:
            case "Optional":
                return x is None or _is(x, held[0])
            case "Union":
                return any(_is(x, k) for k in held)
            case "List":
                return isinstance(x, list) and all(_is(y, held[0]) for y in x)
            case "Tuple":
                return isinstance(x, tuple) and len(x) == len(held) and all(map(_is, x, held))
            case "Dict":
                return isinstance(x, dict) and all(_is(k, held[0]) and _is(v, held[1]) for k, v in x.items())
    if isinstance(kind, ast.Constant) and kind.value is None:
        return x is None
    if isinstance(kind, ast.Name) and kind.id in _TYPES:
        return type(x) is _TYPES[kind.id] or kind.id == "Tensor" and isinstance(x, Tensor)
    raise RuntimeError(f"TorchScript's text asks for the type {ast.unparse(kind)}, which torchlike does not read")
