"""torch.fx: trace a module or function into a graph of Python operations, change the graph, run it or write it as code."""
from .. import overrides as _overrides  # noqa: F401  (torch's functions begin to look at their arguments)
from ..utils import _pytree as _pytree_of_utils
from . import _pytree, graph_module, immutable_collections, interpreter, node, proxy, subgraph_rewriter, traceback  # noqa: F401
from ._namespace import _register_custom_builtin
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

_register_custom_builtin("fx_pytree", "import torchlike.fx._pytree as fx_pytree", _pytree)
_register_custom_builtin("pytree", "import torchlike.utils._pytree as pytree", _pytree_of_utils)

__all__ = ["CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "PH", "Proxy", "ProxyableClassMeta", "Tracer", "Transformer", "has_side_effect",
           "map_arg", "replace_pattern", "symbolic_trace", "wrap"]
