"""From a Graph to Python code."""
from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.device import device
from .._ops import OpOverload
from .._symbolic import SymBool, SymFloat, SymInt
from .._tensor import Tensor
from ..utils import _pytree as pytree
from . import _pytree
from ._namespace import _custom_builtins, _Namespace, _register_custom_builtin
from .node import Node, _get_qualified_name, _type_repr, map_arg

if TYPE_CHECKING:
    from .graph import _node_list

magic_methods = {"eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}", "neg": "-{}",
                 "invert": "~{}"}
reflectable_magic_methods = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}",
                             "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
                             "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}"}
magic_methods.update(reflectable_magic_methods)
inplace_methods = {"iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}", "imul": "{} *= {}",
                   "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
                   "ixor": "{} ^= {}", "setitem": "{}[{}] = {}"}
_register_custom_builtin("fx_pytree", "import torchlike.fx._pytree as fx_pytree", _pytree)
_register_custom_builtin("pytree", "import torchlike.utils._pytree as pytree", pytree)
_COLORS = {"red": "\033[31m", "green": "\033[32m", "blue": "\033[34m", "yellow": "\033[33m", "dim": "\033[2m"}
_FRAME = re.compile(r'^File "(.+)", line (\d+), in (.+)$')


@dataclass
class PythonCode:
    """Source, the globals it needs, and the number of the node behind each of its lines."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """How the arguments of a traced function were flattened."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _Globals:
    """The globals of one piece of code, and the names it has for them."""

    def __init__(self, namespace: _Namespace) -> None:
        self.namespace = namespace
        self.values: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        for name, (_, obj) in _custom_builtins.items():
            self.add(name, obj)

    def add(self, hint: str, obj: Any) -> str:
        """The name of obj in the code, made a global if need be."""
        if _of_torch(obj) and obj is not device:
            return _get_qualified_name(obj)
        name = self.namespace.create_name(hint, obj)
        self.values.setdefault(name, obj)
        return name

    def type_name(self, kind: Any) -> str:
        """The code of an annotation."""
        if kind == ():
            return "()"
        shown = _type_repr(kind)
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.type_name, kind.__args__))
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.add(shown, kind)
        if isinstance(kind, types.GenericAlias) or origin is typing.Union:
            head = self.add("typing.Union" if origin is typing.Union else _type_repr(origin), origin)
        else:
            head = self.add(f"typing.{kind._name}" if origin.__module__ == "builtins" else _type_repr(origin),
                            getattr(typing, kind._name) if origin.__module__ == "builtins" else origin)
        args = getattr(kind, "__args__", ())
        if not args or any(isinstance(a, typing.TypeVar) for a in args):
            return head
        return f"{head}[{','.join(map(self.type_name, args))}]"


def _of_torch(obj: Any) -> bool:
    module = getattr(obj, "__module__", None)
    if isinstance(module, str):
        return module.partition(".")[0] in ("torch", "torchlike")
    return False


class CodeGen:
    """Writes a graph as a function. Subclasses change how arguments come in and results go out."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    # -- what subclasses change -----------------------------------------------------------------------------------------

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The `def` line, without its end of line."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if expanded_def:
            lines = "".join(f"    {x},\n" for x in free_vars)
            return f"def {self._func_name}(\n{lines}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[object], str] | None = None) -> str:
        """The `return` line."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the graph's inputs, from the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of a call, from what the graph returns."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Further globals that the code needs: names and values."""
        return []

    # -- the text -------------------------------------------------------------------------------------------------------

    def _gen_python_code(self, nodes: _node_list, root_module: str, namespace: _Namespace, *, verbose: bool = False, include_stride: bool = False,
                         include_device: bool = False, colored: bool = False, expanded_def: bool = False) -> PythonCode:
        out = _Globals(namespace)
        for name, value in self.additional_globals():
            out.add(name, value)
        lines = _Lines(self, out, root_module, verbose, include_stride, include_device, colored)
        dying = _last_uses(nodes)
        numbers: list[int | None] = []
        written = 0
        for i, node in enumerate(nodes):
            if verbose:
                lines.comment(node)
            lines.emit(node, dying.get(node, []))
            numbers.extend([i] * "".join(lines.body[written:]).count("\n"))
            written = len(lines.body)
        body = lines.body or ["pass\n"]
        if self._body_transformer:
            body = self._body_transformer(body)
        head = "".join(f'torch.fx._symbolic_trace.wrap("{name}")\n' for name in out.wrapped)
        how = {"expanded_def": True} if expanded_def else {}  # methods of older classes do not know it
        definition = self.gen_fn_def(lines.inputs, lines.returns, **how)
        code = "\n".join("    " + line for line in "".join(body).split("\n"))
        source = f"\n{head or chr(10)}\n{definition}\n{code}"
        start = source.count("\n", 0, len(source) - len(code)) + 1
        return PythonCode(source, out.values, {start + i: n for i, n in enumerate(numbers)}, start)


def _last_uses(nodes: Any) -> dict[Node, list[Node]]:
    """For every node, those that nobody needs after it."""
    seen: set[Node] = set()
    dying: dict[Node, list[Node]] = {}
    for user in reversed(nodes):
        def last(x: Node, user: Node = user) -> Node:
            if x not in seen:
                seen.add(x)
                dying.setdefault(user, []).append(x)
            return x
        map_arg(user.args, last)
        map_arg(user.kwargs, last)
    return dying


def _format_target(base: str, target: str) -> str:
    """`self.seq`'s element "0" can only be reached by getattr."""
    for name in target.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


class _Lines:
    """The body of one function, as it is being written."""

    def __init__(self, codegen: CodeGen, out: _Globals, root: str, verbose: bool, stride: bool, on_device: bool, colored: bool) -> None:
        self.codegen, self.out, self.root = codegen, out, root
        self.verbose, self.stride, self.on_device, self.colored = verbose, stride, on_device, colored
        self.body: list[str] = []
        self.inputs: list[str] = []
        self.returns = ""
        self.trace: str | None = ""

    def paint(self, color: str, text: str) -> str:
        return f"{_COLORS[color]}{text}\033[0m" if self.colored else text

    def comment(self, node: Node) -> None:
        """Which line of the user's a node comes from, where that is another than for the node before."""
        if node.op in ("placeholder", "output") or node.stack_trace == self.trace:
            return
        self.trace = node.stack_trace
        summary = _summary(self.trace) if self.trace else "No stacktrace found for following nodes"
        if summary:
            self.body.append(("\n" if self.body else "") + self.paint("dim", f"# {summary}") + "\n")

    def value(self, arg: Any) -> str:
        """The code of an argument."""
        if isinstance(arg, tuple):
            if hasattr(arg, "_fields"):
                return f"{self.out.add(_type_repr(type(arg)), type(arg))}({', '.join(map(self.value, arg))})"
            return f"({', '.join(map(self.value, arg))}{',' * (len(arg) == 1)})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{self.value(k)}: {self.value(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, OpOverload) or (inspect.isroutine(arg) and _of_torch(arg)):
            return _get_qualified_name(arg)
        if isinstance(arg, enum.Enum):
            return f"{self.out.add(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, Tensor):
            return f'"Tensor(shape={list(arg.shape)}, dtype={arg.dtype})"'
        if isinstance(arg, (int, float)):
            return self.paint("blue", repr(arg))
        return repr(arg)

    def arguments(self, args: Sequence, kwargs: dict) -> str:
        return ", ".join([*map(self.value, args), *(f"{k} = {self.value(v)}" for k, v in kwargs.items())])

    def annotation(self, node: Node) -> str:
        """The node's type; in verbose code, the shape it is known to have."""
        kind = "" if node.type is None else f" : {self.out.type_name(node.type)}"
        if self.verbose:
            found = node.meta.get("val", node.meta.get("tensor_meta"))
            if isinstance(found, Tensor) or (hasattr(found, "shape") and hasattr(found, "dtype")):
                kind = f': "{self.shape(found)}"'
            elif isinstance(found, (SymInt, SymFloat, SymBool)):
                kind = f': "Sym({found})"'
        return kind

    def shape(self, x: Any) -> str:
        from .graph import dtype_abbrs

        text = f"{dtype_abbrs[x.dtype]}{self.paint('blue', str(list(x.shape)))}"
        if self.stride:
            text += self.paint("blue", str(list(x.stride() if callable(x.stride) else x.stride)))
        if self.on_device and hasattr(x, "device"):
            text += self.paint("green", str(x.device))
        return self.paint("red", text)

    def emit(self, node: Node, dying: list[Node]) -> None:
        """The line of a node, and the deletion of what nobody needs after it."""
        getattr(self, node.op)(node)
        if node.op == "placeholder":
            return
        if node.op == "output":
            self.body.append("\n")
            return
        gone = [x.name for x in dying] + ([] if node.users else [node.name])
        self.body.append(f";  {self.paint('dim', ' = '.join([*gone, 'None']))}\n" if gone else "\n")

    def placeholder(self, node: Node) -> None:
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.inputs.append(f"{node.target}{self.annotation(node)}{default}")
        raw = node.target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def call_method(self, node: Node) -> None:
        self.body.append(f"{node!r}{self.annotation(node)} = {_format_target(self.value(node.args[0]), node.target)}"
                         f"({self.arguments(node.args[1:], node.kwargs)})")

    def call_function(self, node: Node) -> None:
        target, name = node.target, getattr(node.target, "__name__", "")
        left = f"{node!r}{self.annotation(node)} = "
        if getattr(target, "__module__", None) == "_operator" and name in magic_methods and node.args:
            self.body.append(left + magic_methods[name].format(*map(self.value, node.args)))
        elif getattr(target, "__module__", None) == "_operator" and name in inplace_methods and node.args:
            values = [self.value(a) for a in node.args]
            self.body.append(f"{inplace_methods[name].format(*values)};  {left}{values[0]}")
        elif target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            self.body.append(f"{left}{_format_target(self.value(node.args[0]), node.args[1])}")
        else:
            qualified = _get_qualified_name(target)
            called = self.out.add(qualified, target)
            if node.meta.get("is_wrapped", False):
                self.out.wrapped.setdefault(called)
            self.body.append(f"{left}{called}({self.arguments(node.args, node.kwargs)})")

    def call_module(self, node: Node) -> None:
        self.body.append(f"{node!r}{self.annotation(node)} = {_format_target(self.root, node.target)}({self.arguments(node.args, node.kwargs)})")

    def get_attr(self, node: Node) -> None:
        self.body.append(f"{node!r}{self.annotation(node)} = {_format_target(self.root, node.target)}")

    def output(self, node: Node) -> None:
        if node.type is not None:
            self.returns = f" -> {self.out.type_name(node.type)}"
        write = self.codegen.generate_output
        shown = {"repr_fn": self.value} if "repr_fn" in inspect.signature(write).parameters else {}  # methods of older classes show nodes alone
        self.body.append(write(node.args[0], **shown))


def _summary(trace: str) -> str:
    """The user's frame that is nearest to an operation, in one line."""
    lines = [line.strip() for line in trace.strip().split("\n")]
    for i in range(len(lines) - 2, -1, -1):
        frame = _FRAME.match(lines[i])
        if frame:
            code = lines[i + 1]
            return f"File: {frame[1]}:{frame[2]} in {frame[3]}, code: {code}"
    return ""


class _PyTreeCodeGen(CodeGen):
    """For a function whose containers were opened up: flattens its arguments, puts its result together again."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.tree_flatten(inputs)[0]

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        names = list(self.pytree_info.orig_args)
        has_self = bool(names) and names[0] == "self"
        definition = super().gen_fn_def(names[:], maybe_return_annotation, expanded_def=expanded_def)
        if not free_vars:
            return definition
        bare = [x.partition(" ")[0].partition(":")[0] for x in free_vars]
        tree = f"[{', '.join(names[has_self:])}]"
        return f"{definition}\n    {', '.join(bare)}, = fx_pytree.tree_flatten_spec({tree}, self._in_spec)"

    def generate_output(self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[object], str] | None = None) -> str:
        shown = (repr_fn or repr)(output_args)
        return f"return pytree.tree_unflatten({shown}, self._out_spec)" if self.pytree_info.out_spec is not None else f"return {shown}"


class _BoxedCodeGen(CodeGen):
    """A function that takes one list of arguments and empties it."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        definition = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        if not free_vars:
            return definition
        bare = [x.partition(" ")[0].partition(":")[0] for x in free_vars]
        return f"{definition}\n    {', '.join(bare)}, = args_list\n    args_list.clear()"


