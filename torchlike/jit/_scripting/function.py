"""One function or method, compiled: its parameters, what it returns, its text."""
from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any

from .signature import Parameter, default_text
from .source import Source, broadcasts
from .statements import RETURNED, SHADOWS, Statements
from .types import ANY, NONE, TENSOR, Type
from .values import Held, Value

if TYPE_CHECKING:
    from .modules import Program


class Function(Statements):
    """Reads one function; `own`: of torchlike's source; `declared`: one of its signatures, where it has several."""

    def __init__(self, f: Any, program: Program, owner: Held | None, own: bool, declared: Function | None = None) -> None:
        self.source, self.program, self.owner, self.own = Source(f), program, owner, own
        self.f = self.source.f
        node = self.source.node
        a = node.args
        if a.vararg or a.kwarg or any(d is not None for d in a.kw_defaults):
            raise self.source.not_supported(a.vararg or a.kwarg or node, "Compiled functions can't take variable number of arguments or use keyword-only "
                                                                         "arguments with defaults")
        self.parameters: set[str] = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
        shadows = self.parameters & SHADOWS
        if shadows:
            raise self.source.not_supported(node, f"an argument called {shadows.pop()} is not supported: TorchScript's text needs the name")
        self.arguments = self._parameters([*a.posonlyargs, *a.args], a.kwonlyargs)
        self.found: Type | None = None
        self.returns = self._declared
        if declared is not None:
            kinds = {p.name: p for p in declared.arguments}
            self.arguments = [p._replace(type=kinds[p.name].type, default=kinds[p.name].default) if p.name in kinds else p for p in self.arguments]
            self.returns = declared.returns
        self.prepare(node.body)
        self.scope = [{p.name: Value(p.name, p.type) for p in self.arguments}]
        if owner is not None:
            first = (*a.posonlyargs, *a.args)
            if not first:
                raise self.source.error(node, "methods must have a self argument")
            self.scope[0][first[0].arg] = Held("self", owner.module)
            self.assigned.discard(first[0].arg)

    def _parameters(self, args: list[ast.arg], only_named: list[ast.arg]) -> list[Parameter]:
        skip = 1 if self.owner is not None else 0
        comment = self.source.comment(bool(skip))
        kinds = dict(zip([x.arg for x in args[skip:]], comment[0])) if comment else {}
        defaults = _defaults(self.f)
        made = []
        for x in [*args[skip:], *only_named]:
            t = kinds.get(x.arg) or (self.source.kind(x.annotation, x) if x.annotation is not None else TENSOR)
            default = None
            t = TENSOR if self.own and t == ANY else t
            if x.arg in defaults:
                default = default_text(defaults[x.arg], t, broadcasts(x.annotation))
                if default is None:
                    raise self.source.error(x, f"the default of '{x.arg}', {defaults[x.arg]!r}, is no {t}")
            made.append(Parameter(x.arg, t, default, x in only_named, broadcasts(x.annotation) or int(self.own)))
        returns = self.source.node.returns
        self._declared = comment[1] if comment else None if returns is None else self.source.kind(returns)
        if self.own and self._declared == ANY:
            self._declared = None
        return made

    def compiled(self, name: str, raises: str = "") -> tuple[str, Type]:
        """The definition's lines, and what it returns; with `raises` no more than an error."""
        body = self.source.node.body
        if raises:
            self._raises(RuntimeError, '"' + raises + '"')
            self.returns = self.returns or TENSOR
        elif not self.statements(body):
            if self.returns not in (None, NONE):
                raise self.source.error(self.source.node, "Function was not annotated as having type None, but does not return along all paths")
            self.lines.append("return None")
            self.gives(NONE, self.source.node)
        returns = self.returns or self.found or NONE
        end = "return None" if returns == NONE else f"return uninitialized({returns})"
        lines = [line.replace(f"return {RETURNED}", end) for line in self.lines]
        words = ["self: " + self.program.names[id(self.owner.module)]] if self.owner is not None else []
        for i, p in enumerate(self.arguments):
            if p.only_named and (i == 0 or not self.arguments[i - 1].only_named):
                words.append("*")
            words.append(f"{p.name}: {p.type}" + ("" if p.default is None else f"={p.default}"))
        return "\n".join([f"def {name}({', '.join(words)}) -> {returns}:", *("  " + line for line in lines)]) + "\n", returns


def _defaults(f: Any) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(f).parameters.values() if p.default is not p.empty}
