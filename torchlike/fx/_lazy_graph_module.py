"""Where libraries make GraphModules without saying of which class."""
from __future__ import annotations

from typing import Any

from .graph_module import GraphModule


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> GraphModule:
    return (graph_module_cls or GraphModule)(*args, **kwargs)
