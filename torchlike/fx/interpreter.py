"""Interpreter runs a graph node by node; Transformer makes another graph of it."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..nn import Module
from . import traceback as fx_traceback
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule; each kind of node has a method, which subclasses may replace."""

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(self.module.named_modules())
        self.graph = graph if graph is not None else self.module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            seen: set[Node] = set()
            self.user_to_last_uses: dict[Node, list[Node]] = {}
            for node in reversed(self.graph.nodes):
                for x in node.all_input_nodes:
                    if x not in seen:
                        seen.add(x)
                        self.user_to_last_uses.setdefault(node, []).append(x)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The module's result for these arguments. Nodes in initial_env have their values already."""
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                self._explain(node, error)
                if isinstance(error, KeyError):
                    raise RuntimeError(*error.args) from error
                raise
            if self.garbage_collect_values:
                for x in self.user_to_last_uses.get(node, []):
                    del self.env[x]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As `run`, from a list that is emptied, so that its values may go as soon as they are not needed."""
        values = iter(list(args_list))
        args_list.clear()
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        return self.run(initial_env=dict(zip(inputs, values)))

    def _explain(self, node: Node, error: Exception) -> None:
        if not self.extra_traceback:
            return
        message = f"While executing {node.format_node()}"
        message = f"{error.args[0]}\n\n{message}" if error.args else str(message)
        message += (f"\nOriginal traceback:\n{node.stack_trace}\nUse tlparse to see full graph. "
                    "(https://github.com/pytorch/tlparse?tab=readme-ov-file#tlparse-parse-structured-pt2-logs)")
        error.args = (message, *error.args[1:])

    def run_node(self, n: Node) -> Any:
        """The value of one node, from those in `env`."""
        with fx_traceback.set_current_meta(n, f"Interpreter_{type(self).__name__}"):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # -- one method for each kind of node -------------------------------------------------------------------------------

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument; `*args` takes the rest, and a missing one its default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A function's result."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        self_obj, *rest = args
        return getattr(self_obj, target)(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A submodule's result."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    # -- values ---------------------------------------------------------------------------------------------------------

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute of a qualified name."""
        found: Any = self.module
        names = target.split(".")
        for i, name in enumerate(names):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(names[:i + 1])}")
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """The values of a node's arguments."""
        args, kwargs = self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)
        return args, dict(kwargs)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Arguments with the values of their nodes."""
        def value(x: Node) -> Any:
            if x not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {x}! Run Graph.lint() to diagnose such issues")
            return self.env[x]
        return map_arg(args, value)


class _TransformerTracer(Tracer):
    """Adds to a new graph; modules are never entered."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensor_attrs: dict[Any, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs a GraphModule on proxies: what its methods do becomes the new graph."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        return Proxy(self.new_graph.placeholder(target, default_value=args[0]) if args else self.new_graph.placeholder(target), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        submodule = self.fetch_attr(target)
        self.tracer.submodule_paths = {submodule: target}
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The GraphModule of the new graph."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()
            node = self.new_graph.output(_nodes_of(result), type_expr=old.type)
            node.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)


def _nodes_of(a: Any) -> Argument:
    """A result that holds proxies, with their nodes."""
    return map_aggregate(a, lambda x: x.node if isinstance(x, Proxy) else x)
