"""Of quantization only what plain tensors take part in."""
from __future__ import annotations

from .._core import dtype as dt
from .._public import public
from .._tensor import Tensor


@public()
def dequantize(input) -> Tensor:
    """float32: what a quantized tensor would stand for."""
    return input.to(dt.float32)
