"""inline_asm_elementwise: PTX for each element, on PyTorch's NVIDIA GPUs. XLA takes none, so it is refused on every device, on the CPU in PyTorch's words."""
from __future__ import annotations

from .._core.dtype import dtype as _dtype
from .._tensor import Tensor


def inline_asm_elementwise(*inputs: Tensor, asm_str: str, constraints: str, dtype: _dtype, is_pure: bool = True, pack: int = 1) -> Tensor:
    """RuntimeError for tensors on the CPU, as in PyTorch; NotImplementedError for others."""
    if not all(x.is_cuda for x in inputs):
        raise RuntimeError("inline_asm_elementwise only supports CUDA tensors")
    raise NotImplementedError("torchlike: inline_asm_elementwise. XLA compiles no PTX: write the function in operations, or as a kernel of jax.experimental.pallas.")


inline_asm_elementwise.__unsupported__ = True
