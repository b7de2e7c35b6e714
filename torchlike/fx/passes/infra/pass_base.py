"""PassBase: one change of a GraphModule, and what it reports."""
from __future__ import annotations

from typing import Any, NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassResult", "PassBase"]


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase:
    """Subclasses say in `call` what they do, in `requires` and `ensures` what they check before and after."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass itself."""
        raise NotImplementedError("a pass defines call()")

    def requires(self, graph_module: GraphModule) -> Any:
        """Raise if the module is not fit for this pass."""

    def ensures(self, graph_module: GraphModule) -> Any:
        """Raise if the pass went wrong."""
