"""Functions that stand for operators when a graph is made: `torch.fx.experimental.proxy_tensor.make_fx(f, decompositions)` traces them in the operators' place.

`torch.compile` needs none: XLA compiles what an operator's kernel does.
"""
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from .._ops import OpOverload, OpOverloadPacket
from ..utils._pytree import tree_leaves

log = logging.getLogger("torch._inductor.decomposition")
decompositions: dict[OpOverload, Callable] = {}  # what programs and libraries registered


def register_decomposition(ops: Any) -> Callable[[Callable], Callable]:
    """A decorator: the function stands for an operator, for each of several, or for all overloads of a name. It stays what it is."""
    def register(fn: Callable) -> Callable:
        for op in tree_leaves(ops):
            if not isinstance(op, (OpOverload, OpOverloadPacket)):
                raise ValueError(f"torchlike: an operator of torch.ops is decomposed, not {op!r}")
            for overload in [op] if isinstance(op, OpOverload) else [getattr(op, name) for name in op.overloads()]:
                if overload in decompositions:
                    log.warning("duplicate decomp: %s", overload)
                decompositions[overload] = fn
        return fn
    return register
