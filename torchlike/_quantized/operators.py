"""torch.ops.quantized: those of PyTorch's operators of quantized arithmetic that there are."""
from __future__ import annotations

from typing import Any

from .. import _quantized  # noqa: F401  (functions' forms)
from .._ops import OpOverloadPacket
from .._tensor import Tensor
from .linear import PackedLinear, pack, pack_half


def linear_prepack(W: Tensor, B: Tensor | None = None) -> PackedLinear:  # noqa: N803  (torch's names)
    """A weight (out, in) of qint8 and a bias of float32, ready for products."""
    return pack(W, B)


def linear_prepack_fp16(W: Tensor, B: Tensor | None = None) -> PackedLinear:  # noqa: N803
    """A weight (out, in) of float32 that is rounded to float16, and a bias."""
    return pack_half(W, B)


def linear_unpack(W_prepack: PackedLinear) -> tuple[Tensor, Tensor | None]:  # noqa: N803
    """The weight and the bias."""
    return W_prepack.weight, W_prepack.bias


def linear_dynamic(X: Tensor, W_prepack: PackedLinear, reduce_range: bool = False) -> Tensor:  # noqa: N803
    """The product with float32 inputs (..., in), which are quantized by a scale that fits them."""
    return W_prepack.dynamic(X, reduce_range)


def linear_relu_dynamic(X: Tensor, W_prepack: PackedLinear, reduce_range: bool = False) -> Tensor:  # noqa: N803
    """relu of that."""
    return W_prepack.dynamic(X, reduce_range).relu()


def linear_dynamic_fp16(X: Tensor, W_prepack: PackedLinear) -> Tensor:  # noqa: N803
    """The product with a weight of float16."""
    return W_prepack.dynamic(X)


def linear_relu_dynamic_fp16(X: Tensor, W_prepack: PackedLinear) -> Tensor:  # noqa: N803
    """relu of that."""
    return W_prepack.dynamic(X).relu()


_FUNCTIONS = {f.__name__: f for f in (linear_prepack, linear_prepack_fp16, linear_unpack, linear_dynamic, linear_relu_dynamic, linear_dynamic_fp16,
                                      linear_relu_dynamic_fp16)} | {"linear_unpack_fp16": linear_unpack}


class _Namespace:
    def __getattr__(self, name: str) -> Any:
        if name not in _FUNCTIONS:
            raise AttributeError(f"'_OpNamespace' 'quantized' object has no attribute '{name}'")
        made = self.__dict__[name] = OpOverloadPacket(name, _FUNCTIONS[name], ["default"], "quantized")
        return made


quantized = _Namespace()
