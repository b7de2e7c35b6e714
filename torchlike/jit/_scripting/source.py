"""A function's source: its syntax tree, its lines for errors, what its global names stand for, its annotations and its type comment."""
from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from types import FunctionType
from typing import Any

from ..frontend import FrontendError, NotSupportedError, UnsupportedNodeError
from .types import Type, Unknown, listed, of_annotation

_NODES = {"FunctionDef": "function definitions", "ClassDef": "class definitions", "With": "with statements", "Try": "try blocks", "Delete": "del statements",
          "Import": "import statements", "ImportFrom": "import statements", "Global": "global variables", "Nonlocal": "nonlocal variables",
          "Lambda": "lambda functions", "SetComp": "set comprehensions", "Yield": "yield statements",
          "Starred": "starred expressions", "NamedExpr": "assignment expressions", "Set": "set literals", "Await": "await expressions", "Match": "match statements"}


class Source:
    """One function."""

    def __init__(self, f: FunctionType) -> None:
        self.f = f
        try:
            lines, self.first = inspect.getsourcelines(f)
        except (OSError, TypeError) as error:
            raise OSError(f"Can't get source for {f}. TorchScript requires source access in order to carry out compilation, make sure original .py files are "
                          "available.") from error
        self.text = textwrap.dedent("".join(lines))
        self.lines = lines
        try:
            tree = ast.parse(self.text)
        except SyntaxError as error:
            raise RuntimeError(f"Expected a single top-level function: {f.__code__.co_filename}:{self.first}") from error
        if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
            raise RuntimeError(f"Expected a single top-level function: {f.__code__.co_filename}:{self.first}")
        self.node: ast.FunctionDef = tree.body[0]
        self.closure = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))

    # -- errors ---------------------------------------------------------------------------------------------------------------

    def place(self, node: Any) -> str:
        """Where a node stands, with its line."""
        number = getattr(node, "lineno", self.node.lineno)
        line = self.lines[number - 1].rstrip()
        indent = len(line) - len(self.text.splitlines()[number - 1].rstrip()) if number <= len(self.text.splitlines()) else 0
        start = getattr(node, "col_offset", 0)
        end = node.end_col_offset if getattr(node, "end_lineno", None) == number else len(line) - indent
        marker = " " * (indent + start) + "~" * max(end - start, 1) + " <--- HERE"
        return f'  File "{self.f.__code__.co_filename}", line {self.first + number - 1}\n{line}\n{marker}\n'

    def error(self, node: Any, what: str) -> RuntimeError:
        """The compiler's error: of types, names and arguments."""
        return RuntimeError(f"\n{what}:\n{self.place(node)}")

    def unsupported(self, node: Any, reason: str = "") -> FrontendError:
        """The frontend's error: of a kind of node."""
        name = _NODES.get(type(node).__name__, f"{type(node).__name__}s")
        return UnsupportedNodeError(self.place(node), f"{name} aren't supported" + (f" {reason}" if reason else ""))

    def not_supported(self, node: Any, what: str) -> FrontendError:
        return NotSupportedError(self.place(node), what)

    # -- names ----------------------------------------------------------------------------------------------------------------

    def outside(self, name: str, node: Any) -> Any:
        """The object of a global name."""
        if name in self.closure:
            try:
                return self.closure[name].cell_contents
            except ValueError:
                pass
        elif name in self.f.__globals__:
            return self.f.__globals__[name]
        elif hasattr(builtins, name):
            return getattr(builtins, name)
        raise self.error(node, f"undefined value {name}")

    def evaluated(self, node: ast.expr | str) -> Any:
        """An annotation's object."""
        names = {k: c.cell_contents for k, c in self.closure.items() if _filled(c)}
        text = node if isinstance(node, str) else ast.unparse(node)
        made = eval(text, self.f.__globals__, names)  # noqa: S307  (the program's own annotation)
        return eval(made, self.f.__globals__, names) if isinstance(made, str) else made  # noqa: S307

    def kind(self, node: ast.expr, at: Any = None) -> Type:
        """The type that an annotation in the source means."""
        if broadcasts(node):
            return listed(self.kind(node.slice, at))
        try:
            return of_annotation(self.evaluated(node))
        except Unknown as reason:
            raise self.error(at or node, str(reason)) from None
        except (NameError, AttributeError) as error:
            raise self.error(at or node, f"Unknown type name '{ast.unparse(node)}' ({error})") from None

    # -- type comments --------------------------------------------------------------------------------------------------------

    def comment(self, method: bool) -> tuple[list[Type], Type] | None:
        """The types of a comment `# type: (Tensor, int) -> Tensor`, and of one beside each argument."""
        head = self.text.splitlines()[self.node.lineno - 1:self.node.body[0].end_lineno]
        found, beside = None, {}
        for number, line in enumerate(head, self.node.lineno):
            match = re.search(r"#\s*type:\s*(?!ignore)(.*?)\s*(#.*)?$", line)
            if match is None:
                continue
            if "->" in match[1]:
                found = match[1]
                break
            beside[number] = match[1]
        if found is None:
            return None
        left, _, right = found.rpartition("->")
        parts = ast.parse(left.strip(), mode="eval").body
        listed = list(parts.elts) if isinstance(parts, ast.Tuple) else [] if isinstance(parts, ast.Constant) and parts.value is Ellipsis else [parts]
        arguments = self.node.args.args[1:] if method else self.node.args.args
        if left.strip() == "(...)":
            listed = [ast.parse(beside[a.lineno], mode="eval").body for a in arguments if a.lineno in beside]
        if len(listed) != len(arguments):
            raise self.error(self.node, f"Number of type annotations ({len(listed)}) did not match the number of function parameters ({len(arguments)})")
        return [self.kind(x, self.node) for x in listed], self.kind(ast.parse(right.strip(), mode="eval").body, self.node)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def broadcasts(node: Any) -> int:
    """n of an annotation `BroadcastingListn[...]`, a list that one number stands for as well; else 0."""
    name = ast.unparse(node.value).rpartition(".")[2] if isinstance(node, ast.Subscript) else ""
    return int(name[16:]) if name.startswith("BroadcastingList") and name[16:].isdigit() else 0
