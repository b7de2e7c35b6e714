"""inline_asm_elementwise: PTX assembly on elements, which XLA has no place for."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor


def inline_asm_elementwise(*inputs: Tensor, asm_str: str, constraints: str, dtype: Any, is_pure: bool = True, pack: int = 1) -> Tensor:
    """Refused: RuntimeError for tensors that do not lie on a GPU, as in torch, and NotImplementedError for those that do."""
    if not is_pure:
        raise ValueError("inline_asm_elementwise only supports is_pure=True")
    if not inputs:
        raise ValueError("inline_asm_elementwise requires at least one input tensor")
    if not all(isinstance(x, Tensor) and x.is_cuda for x in inputs):
        raise RuntimeError("inline_asm_elementwise only supports CUDA tensors")
    raise NotImplementedError("inline_asm_elementwise: torchlike's programs are compiled by XLA, which takes no PTX assembly")
