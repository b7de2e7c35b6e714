"""What functions that build ONNX nodes are declared with."""
from __future__ import annotations

from collections.abc import Callable


def parse_args(*arg_descriptors: str) -> Callable[[Callable], Callable]:
    """Decorator of `f(g, *arguments)`: which arguments are values of the graph ("v") and which constants ("i", "f", "is", "s", "b", "t", "none")."""
    def declare(fn: Callable) -> Callable:
        fn._arg_descriptors = arg_descriptors
        return fn
    return declare
