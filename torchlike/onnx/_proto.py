"""The graph as an `onnx.ModelProto`."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._examples.sizes import Dyn, expression
from ..version import __version__
from ._graph import Graph, Var, element_type

PRODUCER = "pytorch"


def model_proto(g: Graph, least_ir: int) -> Any:
    """The model with all its initializers."""
    import onnx
    from onnx import helper
    dims = _Dims(g)
    used = [v for node in g.nodes for v in node.inputs if v is not None and v.constant]
    constants = list({id(v): v for v in [*used, *g.outputs] if v.constant}.values())
    ordered = sorted(constants, key=lambda v: v.name.startswith("val_"))
    nodes = []
    numbers: dict[str, int] = {}
    for node in g.nodes:
        n = numbers[node.kind] = numbers.get(node.kind, -1) + 1
        nodes.append(helper.make_node(node.kind, ["" if v is None else v.name for v in node.inputs], ["" if v is None else v.name for v in node.outputs],
                                      name=node.name or f"node_{node.kind}_{n}", domain=node.domain or None, **node.attributes))
    own = {id(v) for v in [*g.inputs, *g.outputs]}
    inner = [v for node in g.nodes for v in node.outputs if v is not None and v.shape is not None and v.dtype is not None and id(v) not in own]
    graph = helper.make_graph(nodes, "main_graph", [dims.info(v) for v in g.inputs], [dims.info(v) for v in g.outputs],
                              [tensor(v) for v in ordered], value_info=[dims.info(v) for v in inner])
    opsets = [helper.make_opsetid("", g.opset), *[helper.make_opsetid(domain, version) for domain, version in g.domains.items()]]
    ir = max(least_ir, helper.find_min_ir_version_for(opsets[:1]))
    made = helper.make_model(graph, opset_imports=opsets, ir_version=ir, producer_name=PRODUCER, producer_version=str(__version__))
    assert isinstance(made, onnx.ModelProto)
    return made


def tensor(v: Var) -> Any:
    """A constant as an initializer."""
    from onnx import numpy_helper
    return numpy_helper.from_array(np.ascontiguousarray(v.value).reshape(v.value.shape), v.name)


class _Dims:
    """Names of sizes: a dynamic dimension's own, an expression of them, or one of its own."""

    def __init__(self, g: Graph) -> None:
        self.symbols, self.names = g.symbols, dict[Dyn, str]()
        self.given = g.dim_names

    def name(self, n: Any) -> Any:
        if not isinstance(n, Dyn):
            return n
        found = self.names.get(n)
        if found is None:
            found = self.names[n] = expression(n, self.symbols) or f"u{sum(x.startswith('u') for x in self.names.values())}"
        return found

    def info(self, v: Var) -> Any:
        from onnx import helper
        own = self.given.get(v.name, {})
        return helper.make_tensor_value_info(v.name, element_type(v.dtype), [own.get(i, self.name(n)) for i, n in enumerate(v.shape)])
