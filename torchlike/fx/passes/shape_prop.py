"""ShapeProp: run a graph once and keep the shape and dtype of every tensor."""
from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ..._core.dtype import dtype
from ..._size import Size
from ..._tensor import Tensor
from ...ops.memory_formats import channels_last, channels_last_3d, contiguous_format, memory_format
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["TensorMetadata", "ShapeProp"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    order = None
    if include_contiguity:
        formats = [contiguous_format, *[f for f, n in ((channels_last, 4), (channels_last_3d, 5)) if result.dim() == n]]
        order = next((f for f in formats if result.is_contiguous(memory_format=f)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), order, False, {})


class ShapeProp(Interpreter):
    """Runs the graph; `node.meta["tensor_meta"]` and `node.meta["type"]` tell what each node gave."""

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_module, self.fake_mode, self.real_module = None, fake_mode, self.module

    def run_node(self, n: Node) -> Any:
        """The node's value, as seen."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def look(x: Any) -> Any:
            nonlocal found
            if not isinstance(x, Tensor):
                return x
            found = True
            return _extract_tensor_metadata(x)
        meta = map_aggregate(result, look)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run with these arguments."""
        return super().run(*args)
