"""torch.fx: trace a module or function into a graph of Python operations, change the graph, run it or write it as code.

Its names are loaded as they are asked for. With the first of them but `wrap`, torch's functions begin to look at their
arguments (`torchlike.overrides`): not before, since many libraries import torch.fx and trace nothing.
"""
import importlib as _importlib
from typing import Any as _Any

from .._alias import missing as _missing
from ._wrap import wrap

_PLACES = {"CodeGen": "graph", "Graph": "graph", "GraphModule": "graph_module", "Interpreter": "interpreter", "Node": "node", "PH": "_symbolic_trace",
           "Proxy": "proxy", "ProxyableClassMeta": "_symbolic_trace", "Tracer": "_symbolic_trace", "Transformer": "interpreter",
           "has_side_effect": "node", "map_arg": "node", "replace_pattern": "subgraph_rewriter", "symbolic_trace": "_symbolic_trace"}
_MODULES = frozenset({"_compatibility", "_pytree", "_symbolic_trace", "experimental", "graph", "graph_module", "immutable_collections", "interpreter", "node", "passes",
                      "proxy", "subgraph_rewriter", "traceback"})

__all__ = ["CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "PH", "Proxy", "ProxyableClassMeta", "Tracer", "Transformer", "has_side_effect",
           "map_arg", "replace_pattern", "symbolic_trace", "wrap"]


def __getattr__(name: str) -> _Any:
    if name not in _PLACES and name not in _MODULES:
        raise _missing(name, __name__)
    _importlib.import_module("torchlike.overrides")
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_MODULES})
