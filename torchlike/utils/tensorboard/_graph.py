"""A model as TensorFlow's GraphDef: the operators that it runs, in the scopes of its modules.

Message and field numbers are TensorFlow's graph.proto, attr_value.proto and step_stats.proto; names of nodes are as PyTorch's SummaryWriter
makes them (Net/Conv2d[conv1]/...), without a node for each constant: constants are the operator's attributes.
"""
from __future__ import annotations

import operator
from typing import Any

from ...export._export import Export
from ...fx import Graph, Node
from ...nn import Module
from ._wire import bytes_field, int_field

__all__ = ["graph"]

_PRODUCER = 22  # the version of GraphDef that TensorBoard is told
STEP_STATS = bytes_field(1, bytes_field(1, bytes_field(1, "/device:CPU:0")))  # a RunMetadata


def graph(model: Module, args: Any, verbose: bool = False) -> bytes:
    """The encoded GraphDef of what the model does for example inputs, in eval mode; printed if `verbose`."""
    if args is None:
        raise RuntimeError("add_graph() needs input_to_model, the model's example inputs")
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        program = Export(model, args, {}, traced=True).program()
    finally:
        for m, training in modes:
            m.training = training
    if verbose:
        print(program.graph)
    scopes = _Scopes(model, program.graph)
    names: dict[Node, str] = {}
    first, calls, last = [], [], b""
    targets = {s.arg.name: s.target for s in program.graph_signature.input_specs}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            target = targets[node.name]
            names[node] = f"input/{node.name}" if target is None else scopes.of_tensor(target)
            first.append(_node(names[node], "IO Node" if target is None else "prim::GetAttr", (), "" if target is None else f"{{ name :  {target.rpartition('.')[2]} }}", node))
        elif node.op == "call_function" and node.target is operator.getitem and node.args[0] in names:
            names[node] = names[node.args[0]]
        elif node.op == "call_function":
            names[node] = scopes.of_call(node)
            kind = str(node.target).split(".")
            calls.append(_node(names[node], "::".join(kind[:2]), [names[n] for n in node.all_input_nodes], _constants(node), node))
        elif node.op == "output":
            results = node.all_input_nodes
            last = _node("output/output.1", "IO Node", [names[x] for x in results], "", results[0] if len(results) == 1 else node)
    return b"".join([*first, last, *calls]) + bytes_field(4, int_field(1, _PRODUCER))


class _Scopes:
    """Where nodes are shown: by the classes and names of the modules around them."""

    def __init__(self, root: Module, calls: Graph) -> None:
        self.root = type(root).__name__
        self.of_module = {"": self.root}  # by path, of modules that were called
        for node in calls.nodes:
            self.of_call(node)

    def of_tensor(self, path: str) -> str:
        """Of a parameter or buffer."""
        owner, _, name = path.rpartition(".")
        return f"{self.of_module.get(owner, self.root)}/{name}/{path}"

    def of_call(self, node: Node) -> str:
        scope = self.root
        for path, kind in list(node.meta.get("nn_module_stack", {}).values())[1:]:
            scope += f"/{kind.rpartition('.')[2]}[{path.rpartition('.')[2]}]"
            self.of_module[path] = scope
        return f"{scope}/{node.name}"


def _constants(node: Node) -> str:
    """A call's arguments that are no tensors."""
    given = [f"{k} : {x}" for k, x in [*enumerate(node.args), *node.kwargs.items()] if not isinstance(x, Node) and not _holds_nodes(x)]
    return "{" + ", ".join(given) + "}"


def _holds_nodes(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(isinstance(y, Node) for y in x)


def _node(name: str, op: str, inputs: Any, text: str, node: Node) -> bytes:
    """A GraphDef's field with a NodeDef."""
    content = bytes_field(1, name) + bytes_field(2, op) + b"".join(bytes_field(3, i) for i in inputs)
    content += _attribute("attr", bytes_field(2, text))
    val = node.meta.get("val")
    if hasattr(val, "shape"):
        shape = b"".join(bytes_field(2, int_field(1, int(n))) for n in val.shape)
        content += _attribute("_output_shapes", bytes_field(1, bytes_field(7, shape)))
    return bytes_field(1, content)


def _attribute(key: str, value: bytes) -> bytes:
    return bytes_field(5, bytes_field(1, key) + bytes_field(2, value))
