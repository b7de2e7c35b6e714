"""What functions that build ONNX nodes are declared with."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._symbolic import parsed


def parse_args(*arg_descriptors: str) -> Callable[[Callable], Callable]:
    """Decorator of `f(g, *arguments)`: which arguments are values of the graph ("v") and which constants ("i", "f", "is", "s", "b", "t", "none")."""
    def declare(fn: Callable) -> Callable:
        @functools.wraps(fn)
        def run(g: Any, *args: Any, **kwargs: Any) -> Any:
            return fn(g, *parsed(arg_descriptors, args), **kwargs)
        run._arg_descriptors = arg_descriptors
        return run
    return declare
