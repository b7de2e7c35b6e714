"""Graph: a list of nodes that is one function."""
from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from .._core import dtype as dt
from .._torch_names import torch_name
from ._codegen import (  # noqa: F401  (names of this module, too)
    CodeGen,
    PythonCode,
    _BoxedCodeGen,
    _format_target,
    _Globals,
    _PyTreeCodeGen,
    _PyTreeInfo,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from ._namespace import _custom_builtins, _CustomBuiltin, _is_magic, _Namespace, _register_custom_builtin, _snake_case  # noqa: F401
from .node import Argument, Node, Target, _legal_ops, map_arg

if TYPE_CHECKING:
    from .graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

dtype_abbrs = {dt.uint8: "u8", dt.int8: "i8", dt.int16: "i16", dt.int32: "i32", dt.int64: "i64", dt.uint16: "u16", dt.uint32: "u32", dt.uint64: "u64",
               dt.float16: "f16", dt.float32: "f32", dt.float64: "f64", dt.bfloat16: "bf16", dt.complex32: "c32", dt.complex64: "c64",
               dt.complex128: "c128", dt.bool_: "b8", dt.float8_e4m3fn: "f8e4m3fn", dt.float8_e5m2: "f8e5m2", dt.float8_e4m3fnuz: "f8e4m3fnuz",
               dt.float8_e5m2fnuz: "f8e5m2fnuz", dt.float8_e8m0fnu: "f8e8m0fnu"}


class _node_list:
    """The nodes of a graph in order; nodes may be added and erased while it is walked."""

    def __init__(self, graph: Graph, direction: Literal["_prev", "_next"] = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _InsertPoint:
    """Where a graph puts new nodes; as a context manager, until the block ends."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        self.graph._insert = self.orig_insert


class Graph:
    """A function as a list of nodes, which can be read, changed, and written as Python code."""

    def __init__(self, owning_module: GraphModule | None = None, tracer_cls: type | None = None, tracer_extras: dict[str, Any] | None = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._len = 0
        self._order: dict[Node, int] | None = None
        self._graph_namespace = _Namespace()
        self._owning_module, self._owners = owning_module, 0
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}  # of the function that was traced

    @property
    def owning_module(self) -> GraphModule | None:
        """The GraphModule that runs this graph."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in the order they run; `reversed` works."""
        return _node_list(self)

    def _moved(self) -> None:
        self._order = None

    def _places(self) -> dict[Node, int]:
        if self._order is None:
            self._order = {node: i for i, node in enumerate(self.nodes)}
        return self._order

    def output_node(self) -> Node:
        """The node that returns."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"Expected output node, got {node.op}")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, and of a target, in order; for functions the target must be given."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # -- making nodes ---------------------------------------------------------------------------------------------------

    def create_node(self, op: str, target: Target, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
                    name: str | None = None, type_expr: Any | None = None) -> Node:
        """A new node at the insert point."""
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        node = Node(self, self._graph_namespace.create_name(name if name is not None else self._target_to_str(target), None), op, target, args, kwargs,
                    type_expr)
        self._graph_namespace.associate_name_with_obj(node.name, node)
        self._insert(node)
        self._len += 1
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        return node

    def placeholder(self, name: str, type_expr: Any | None = None, default_value: Any = inspect.Signature.empty) -> Node:
        """An input."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """The value of a parameter, buffer or other attribute of the module."""
        if self.owning_module is not None and not _refers(self.owning_module, qualified_name):
            warnings.warn("Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                          "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary Parameter, or "
                          "nn.Module.register_buffer to add the necessary buffer", stacklevel=2)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
                    type_expr: Any | None = None) -> Node:
        """A call of a submodule."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
                    type_expr: Any | None = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
                      type_expr: Any | None = None, name: str | None = None) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any | None = None) -> Node:
        """The return."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def _target_to_str(self, target: Target) -> str:
        if callable(target):
            name = (torch_name(target) or "").rpartition(".")[2] or target.__name__
        else:
            name = target
            if _is_magic(name):
                name = name[2:-2]
        return _snake_case(name)

    # -- copying --------------------------------------------------------------------------------------------------------

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """A copy of another graph's node, with its arguments as arg_transform gives them."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Argument | None:
        """Copy g's nodes here; val_map gets, and may already have, what stands for them. Returns what g returns."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = type(self)(tracer_cls=self._tracer_cls)
        values: dict[Node, Node] = {}
        made._graph_namespace._used_names.clear()
        found = made.graph_copy(self, values, return_output_node=True)
        made._codegen, made._co_fields = copy.deepcopy(self._codegen, memo), self._co_fields
        for old, new in values.items():
            new.meta = copy.copy(old.meta)
        if isinstance(found, tuple):
            result, old = found
            node = made.output(result, type_expr=getattr(old, "type", None))
            node.meta = copy.copy(old.meta)
        memo[id(self)] = made
        return made

    # -- changing -------------------------------------------------------------------------------------------------------

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._take((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes before n; without n, before the first."""
        if n is None:
            return self.inserting_after(self._root)
        self._check_place(n, "before")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Put new nodes right after n, so that the last one made stands first; without n, after the last."""
        if n is None:
            return self.inserting_before(self._root)
        self._check_place(n, "after")
        return _InsertPoint(self, n.append)

    def _check_place(self, n: Node, where: str) -> None:
        if n.graph is not self:
            raise AssertionError(f"Node to insert {where} is not in graph.")

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase the nodes that nobody uses and that do nothing besides; returns whether there were any."""
        self.lint()
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not (node.is_impure() if is_impure_node is None else node.op in ("placeholder", "output") or is_impure_node(node)):
                self.erase_node(node)
        return self._len < before

    # -- code and text --------------------------------------------------------------------------------------------------

    def process_inputs(self, *args: Any) -> Any:
        """What the inputs get when the graph is called with these arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What a call gives back."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Have another CodeGen write the code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable) -> contextlib.AbstractContextManager[None]:
        """Let a function change the code's lines; make_transformer gets the one there is."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before
        return until()

    def python_code(self, root_module: str, *, verbose: bool = False, include_stride: bool = False, include_device: bool = False,
                    colored: bool = False, expanded_def: bool = False) -> PythonCode:
        """The graph as a function; `root_module` is its word for the module."""
        namespace = _Namespace()
        shown = {node: node._repr_fn for node in self.nodes}
        for node in self.nodes:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose=verbose, include_stride=include_stride,
                                                  include_device=include_device, colored=colored, expanded_def=expanded_def)
        finally:
            for node, show in shown.items():
                node._repr_fn = show

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])

    def print_tabular(self) -> None:
        """Print the nodes as a table, with the package `tabulate`."""
        try:
            tabulate = importlib.import_module("tabulate").tabulate
        except ImportError:
            print("`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip install tabulate` to "
                  "install the library.")
            raise
        print(tabulate([[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes], headers=["opcode", "name", "target", "args", "kwargs"]))

    # -- checks ---------------------------------------------------------------------------------------------------------

    def lint(self) -> None:
        """Raise RuntimeError where the graph is not in order: names given twice, uses before definitions, attributes that are not there."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for x in node.all_input_nodes:
                if x.graph is not self:
                    raise RuntimeError(f"Argument '{x}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are "
                                       "copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n"
                                       f"{self}")
                if x not in seen:
                    raise RuntimeError(f"Argument '{x}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph "
                                       f"are topologically ordered\n{self}")
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                _check_target(node, self.owning_module)

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node._take((), {})
            self.erase_node(node)


def _refers(module: Any, name: str) -> bool:
    """Whether a qualified name leads to a module, parameter or buffer."""
    path, _, last = name.rpartition(".")
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    return hasattr(owner, last) and getattr(owner, last) is not None


def _check_target(node: Node, module: Any) -> None:
    """RuntimeError where the target of a get_attr or call_module does not exist, or is no module to call."""
    from ..nn import Module

    seen = ""
    parts = node.target.split(".")
    for i, name in enumerate(parts):
        if not hasattr(module, name):
            raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {name} of {seen}")
        module = getattr(module, name)
        if node.op == "call_module" and i == len(parts) - 1 and not isinstance(module, Module):
            raise RuntimeError(f"Node {node} target {node.target} {seen}.{name} does not reference an nn.Module")
        seen = f"{seen}.{name}" if seen else name


