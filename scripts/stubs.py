"""Write the type stubs of the namespaces that `import torchlike` fills as it runs, for editors and type checkers.

    python scripts/stubs.py [--check]

Each function or method is in its stub by the signature, the overloads (`typing.overload` beside its definition) and the first lines of the documentation that
it has at run time. Everything else of torchlike is read from its source. `--check` writes nothing, and fails where a stub is out of date.
"""
from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import inspect
import pathlib
import re
import sys
import types
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import torchlike  # noqa: E402
from scripts.parameter_types import BY_NAME, SCOPE  # noqa: E402
from torchlike.ops.named_results import RETURN_TYPES  # noqa: E402

# modules whose functions are made of what their source defines, and those that only bring together what others define
MADE = ("torchlike", "torchlike.nn.functional", "torchlike.linalg", "torchlike.fft", "torchlike.special")
BROUGHT = ("torchlike.cuda",)
# which functions take `out=`, and others do not show: found before a module is loaded that makes them look at their arguments first
TAKE_OUT = {x for m in MADE for x in vars(importlib.import_module(m)).values() if isinstance(x, types.FunctionType) and "out" in (x.__kwdefaults__ or ())}
# what operators are of, whose methods do not say so
OPERATORS = {"__float__": "builtins.float", "__int__": "builtins.int", "__complex__": "builtins.complex", "__hash__": "builtins.int",
             **{f"__{prefix}{name}__": "Tensor" for prefix in ("", "r", "i") for name in (
                 "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")},
             **{f"__{name}__": "Tensor" for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "pos", "invert", "reversed")}}
NAMED_RESULTS = frozenset(RETURN_TYPES.values())
HEADER = '"""Written by `python scripts/stubs.py`."""\n'


@functools.cache
def tree(module: str) -> ast.Module | None:
    file = getattr(importlib.import_module(module), "__file__", None)
    return ast.parse(pathlib.Path(file).read_text()) if str(file).endswith(".py") else None


@functools.cache
def top_level(module: str) -> dict[str, ast.stmt]:
    """By name, the statements at a module's top that give it one, those for type checkers among them."""
    named = {}

    def look(body):
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    named[alias.asname or alias.name.split(".")[0]] = node
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                named[node.name] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                named[node.target.id] = node
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    for name in target.elts if isinstance(target, ast.Tuple) else (target,):
                        if isinstance(name, ast.Name):
                            named[name.id] = node
            elif isinstance(node, (ast.If, ast.Try)):
                look(node.body)
    found = tree(module)
    look(found.body if found else ())
    return named


def absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module
    package = module if hasattr(sys.modules[module], "__path__") else module.rpartition(".")[0]
    return importlib.util.resolve_name("." * node.level + (node.module or ""), package)


def origin(module: str, name: str) -> tuple[str, str | None] | None:
    """Where `name`, as `module` uses it, is defined: (module, name), or (module, None) for a module itself."""
    node = top_level(module).get(name)
    if isinstance(node, ast.Import):
        alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
        return (alias.name if alias.asname else name), None
    if isinstance(node, ast.ImportFrom):
        source = absolute(module, node)
        real = next(a.name for a in node.names if (a.asname or a.name) == name)
        if source == module or f"{source}.{real}" in sys.modules and real not in top_level(source):  # a module
            return f"{source}.{real}", None
        return origin(source, real) if source.startswith(("torchlike", "pallas_kernels")) and real in top_level(source) else (source, real)
    return None if node is None else (module, name)


class Stub:
    """The text of one stub: what it imports, and its definitions."""

    def __init__(self, module: str):
        self.module, self.imports, self.lines = module, set(), []

    def text(self) -> str:
        return HEADER + "import builtins\n" + "".join(f"{line}\n" for line in sorted(self.imports)) + "\n" + "\n".join(self.lines) + "\n"

    # -- types ------------------------------------------------------------------------------------------------------

    def reference(self, place: tuple[str, str | None]) -> str:
        """The name by which the stub knows what is defined there, which is imported for it under a name of its own."""
        module, name = place
        if place == (self.module, name):
            return name
        if name is None:
            alias = "_" + module.replace(".", "_").replace("__", "_")
            self.imports.add(f"import {module} as {alias}")
        else:
            alias = name if name == "Tensor" else "_" + name.lstrip("_")
            self.imports.add(f"from {module} import {name} as {alias}")
        return alias

    def annotation(self, written: typing.Any, f: types.FunctionType) -> str:
        """An annotation of f in the stub's names. A type of named results that f knows is that of `return_types`."""
        scope = f.__globals__["__name__"]
        known = f.__globals__ | {name: cell.cell_contents for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ())}
        if not isinstance(written, str):
            written = "None" if written is None or written is type(None) else getattr(written, "__name__", None) or str(written)
        stub = self

        class Named(ast.NodeTransformer):
            def visit_Constant(self, node):
                return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

            def visit_Subscript(self, node):
                if isinstance(node.value, ast.Name) and node.value.id == "Literal":
                    node.value = self.visit(node.value)
                    return node
                return self.generic_visit(node)

            def visit_Name(self, node):
                if isinstance(known.get(node.id), type) and known[node.id] in NAMED_RESULTS:
                    return ast.Name(stub.reference(("torchlike.return_types", known[node.id].__name__)))
                place = origin(scope, node.id)
                if place == ("numbers", "Number"):  # which says to `_kinds` what torch calls it, and to checkers nothing
                    return ast.Attribute(ast.Name("builtins"), "complex")
                if place is not None and place[0] == stub.module and not is_public(place[1] or ""):
                    place = ("typing", "Any")
                if place is not None:
                    made = isinstance(node := top_level(place[0]).get(place[1]), ast.Assign) and isinstance(node.value, ast.Call)  # `NewType`, enumerations
                    return ast.Name(stub.reference(("typing", "Any") if made else place))
                if hasattr(builtins, node.id):
                    return ast.Attribute(ast.Name("builtins"), node.id)
                raise LookupError(f"{scope}: no {node.id}, in the annotation {written!r}")
        return ast.unparse(Named().visit(ast.parse(written, mode="eval").body))

    def of_parameters(self, kind: str) -> str:
        """A type of `parameter_types` in the stub's names."""
        return re.sub(r"\w+", lambda m: m[0] if m[0] == "None" else self.reference(tuple(SCOPE[m[0]].split(":"))) if m[0] in SCOPE else f"builtins.{m[0]}", kind)

    def reexport(self, name: str, x: typing.Any, place: tuple[str, str]) -> None:
        """`name` is what `place` defines: an import that gives it another name would be the stub's own to checkers."""
        if place[1] == name:
            self.lines.append(f"from {place[0]} import {name} as {name}")
        elif isinstance(x, (type, types.FunctionType)):
            self.lines.append(f"{name} = {self.reference(place)}")
        else:
            self.lines.append(f"{name}: {self.reference(defined(type(x)))}")

    # -- definitions --------------------------------------------------------------------------------------------------

    def function(self, name: str, f: types.FunctionType, indent: str = "", method: bool = False, kind: str = "") -> None:
        """`def name`, once per overload where f has some. `kind`: of a method, `classmethod`, `staticmethod` or `property`."""
        plain = inspect.unwrap(f)
        scope = plain.__globals__["__name__"]
        where = types.SimpleNamespace(__module__=scope, __qualname__=plain.__code__.co_qualname)
        overloads = typing.get_overloads(where)
        forms = [(inspect.signature(g), True) for g in overloads] or [(inspect.signature(f), False)]
        if method and name.endswith("_") and not name.startswith("_") and overloads:
            forms = [(inspect.signature(f), False)]
        for signature, several in forms:
            parameters = list(signature.parameters.values())
            if f in TAKE_OUT and "out" not in signature.parameters:
                kind_of = "Tensor | None" if signature.return_annotation == "Tensor" else inspect.Parameter.empty
                at = len(parameters) - any(p.kind is p.VAR_KEYWORD for p in parameters)
                parameters.insert(at, inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind_of))
            if method and kind != "staticmethod":
                parameters[0] = parameters[0].replace(name="cls" if kind == "classmethod" else "self", annotation=inspect.Parameter.empty, default=inspect.Parameter.empty)
            if several:
                self.lines.append(f"{indent}@{self.reference(('typing', 'overload'))}")
            if kind and name != "__new__":
                self.lines.append(f"{indent}@{kind}")
            returns = signature.return_annotation
            returned = "" if returns is inspect.Signature.empty else f" -> {self.annotation(returns, plain)}"
            if not returned and method and name in OPERATORS:
                returned = f" -> {OPERATORS[name]}"
            ignored = "  # type: ignore[override]" if method and name in ("__eq__", "__ne__") else ""  # which are bools to `object`
            self.lines.append(f"{indent}def {name}({self.parameters(name, parameters, plain)}){returned}:{ignored}")
            self.lines.append(f"{indent}    {documentation(f)}..." if (signature, several) == forms[0] else f"{indent}    ...")

    def parameters(self, function: str, parameters: list[inspect.Parameter], f: types.FunctionType) -> str:
        out, starred = [], False
        for p in parameters:
            if p.kind is p.KEYWORD_ONLY and not starred:
                out.append("*")
                starred = True
            text = p.name
            if p.kind is p.VAR_POSITIONAL:
                text, starred = f"*{p.name}", True
            elif p.kind is p.VAR_KEYWORD:
                text = f"**{p.name}"
            annotation = None
            if p.annotation is not p.empty:
                annotation = self.annotation(p.annotation, f)
            elif p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and (known := BY_NAME.get(f"{function}.{p.name}") or BY_NAME.get(p.name)):
                annotation = self.of_parameters(known) + " | None" * (p.default is None and not known.endswith("None"))
            if annotation is not None:
                text += f": {annotation}"
            if p.default is not p.empty:
                text += f" = {default(p.default)}" if annotation is not None else "=..."  # checkers take a default's type for the parameter's
            out.append(text)
            if p.kind is p.POSITIONAL_ONLY and not any(q.kind is p.POSITIONAL_ONLY for q in parameters[parameters.index(p) + 1:]):
                out.append("/")
        return ", ".join(out)


def default(x: typing.Any) -> str:
    if x is None or x.__class__ in (bool, int, str) or x.__class__ is float and x - x == 0:
        return repr(x)
    if x.__class__ is tuple and all(default(y) != "..." for y in x):
        return repr(x)
    return "..."


def documentation(f) -> str:
    """The first paragraph of f's documentation, as a statement."""
    doc = inspect.getdoc(f)
    if not doc:
        return ""
    first = " ".join(doc.split("\n\n")[0].split())
    return repr(first) + "; "


def is_public(name: str) -> bool:
    return not name.startswith("_") or name == "__version__"


def of_module(module: str) -> str:
    """A module's stub: what its source imports, which keeps its definition; functions that are made of it; what it finds when asked (`__getattr__`)."""
    stub, live = Stub(module), sys.modules[module]
    imported = {name: place for name in top_level(module) if is_public(name) and (place := origin(module, name)) is not None and place[0] != module}
    lazy = [*torchlike._LAZY, "vmap", "cond", "while_loop"] if module == "torchlike" else []
    for name in sorted({*vars(live), *lazy}):
        if not is_public(name) and name not in lazy or name == "annotations":
            continue
        x = getattr(live, name)
        if isinstance(x, types.FunctionType) and module in MADE and (name in torchlike._functions or module != "torchlike"):
            stub.function(name, x)
        elif isinstance(x, types.ModuleType):
            if x.__name__ == f"{module}.{name}":
                stub.lines.append(f"from {module} import {name} as {name}")
        elif (place := imported.get(name) or defined(x)) is not None and place[0] != module:
            stub.reexport(name, x, place)
        elif isinstance(x, types.FunctionType):
            stub.function(name, x)
        elif isinstance(x, (bool, int, float, str)):
            stub.lines.append(f"{name}: builtins.{x.__class__.__name__}")
        elif x is None:
            stub.lines.append(f"{name}: None")
        elif isinstance(x, type):  # made as the import runs: storages, and types of tensors (`FloatTensor`), which have no base
            base = next((place for b in x.__mro__[1:] if (place := defined(b)) is not None), ("torchlike._tensor", "Tensor"))
            stub.lines.append(f"class {name}({stub.reference(base)}): ...")
        else:
            place = defined(type(x))
            stub.lines.append(f"{name}: {stub.reference(('typing', 'Any') if place[0] == module else place)}")
    return stub.text()


@functools.cache
def _places() -> dict[int, tuple[str, str]]:
    found = {}
    for module_name, module in sorted(sys.modules.items()):
        if module_name.startswith("torchlike.") and getattr(module, "__file__", None):
            for name, node in top_level(module_name).items():
                if not isinstance(node, (ast.Import, ast.ImportFrom)) and name in vars(module):
                    x = vars(module)[name]
                    if not isinstance(x, (bool, int, float, str, type(None), tuple)):
                        found.setdefault(id(x), (module_name, name))
    return found


def defined(x) -> tuple[str, str] | None:
    return _places().get(id(x))


def of_tensor() -> str:
    stub = Stub("torchlike._tensor")
    cls = torchlike.Tensor
    stub.imports.add("from torchlike._size import Size as Size")
    stub.lines.append("class Tensor:")
    stub.lines.append(f"    {documentation(cls)}")
    stub.function("__new__", _constructor, "    ", True, "classmethod")
    for name in sorted(dir(cls)):
        if name.startswith("_") and not name.startswith("__") and name not in ("_version", "_base", "_make_subclass"):
            continue
        raw = inspect.getattr_static(cls, name)
        kind = ""
        if isinstance(raw, (staticmethod, classmethod)):
            kind, raw = type(raw).__name__, raw.__func__
        if isinstance(raw, property):
            stub.function(name, raw.fget, "    ", True, "property")
            if raw.fset is not None:
                returns = stub.lines[-2].rpartition(" -> ")[2].rstrip(":")
                stub.lines.append(f"    @{name}.setter")
                stub.lines.append(f"    def {name}(self, value: {returns}) -> None: ...")
        elif isinstance(raw := getattr(raw, "__wrapped__", raw), types.FunctionType) and name not in _LEFT:
            stub.function(name, raw, "    ", True, kind)
    return stub.text()


_LEFT = {"__init_subclass__", "__new__", "__init__", "__torch_dispatch__", "__setattr__", "__getattr__", "__delattr__", "__getattribute__", "__dir__"}


def _constructor(cls, *data: typing.Any, size: typing.Any = None, device: typing.Any = None) -> typing.Self:
    """A tensor of torch's default type of these data, or of these sizes with nothing written to it. `torch.tensor` is for data."""


def of_return_types() -> str:
    lines = ["from typing import NamedTuple", "from torchlike._tensor import Tensor", ""]
    for name, made in sorted(RETURN_TYPES.items()):
        base = next((b for b in made.__mro__[1:] if b in RETURN_TYPES.values()), None)
        if base is not None:
            lines.append(f"class {name}({base.__name__}): ...")
        else:
            lines += [f"class {name}(NamedTuple):", *(f"    {field}: Tensor" for field in made._fields)]
    return HEADER + "\n".join(lines) + "\n"


def stubs() -> dict[pathlib.Path, str]:
    """The stubs, by the files that have them."""
    for name in torchlike._LAZY:
        importlib.import_module(f"torchlike.{name}")
    made = {"torchlike._tensor": of_tensor, "torchlike.return_types": of_return_types, **{m: functools.partial(of_module, m) for m in MADE + BROUGHT}}
    return {pathlib.Path(sys.modules[m].__file__).with_suffix(".pyi"): make() for m, make in made.items()}


def main() -> int:
    stale = 0
    for path, text in stubs().items():
        if not path.exists() or path.read_text() != text:
            stale += 1
            print(("out of date: " if "--check" in sys.argv else "written: ") + str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(text)
    return int(stale > 0 and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
