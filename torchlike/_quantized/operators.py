"""torch.ops.quantized: those of PyTorch's operators of quantized arithmetic that there are."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _quantized  # noqa: F401  (functions' forms)
from .._ops import OpOverloadPacket
from .._tensor import Tensor
from ..nn import functional
from ..ops.joining import cat as joined
from .convolution import PackedConv
from .linear import PackedLinear, pack, pack_half
from .quantizers import PerTensor
from .requantizing import plus_number, product_of, sum_of, times_number
from .tensor import quantized as quantized_tensor


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


def linear(X: Tensor, W_prepack: PackedLinear, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:  # noqa: N803
    """The product with quint8 inputs (..., in), of another scale."""
    return W_prepack.static(X, Y_scale_i, Y_zero_point_i)


def linear_relu(X: Tensor, W_prepack: PackedLinear, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:  # noqa: N803
    """relu of that."""
    return W_prepack.static(X, Y_scale_i, Y_zero_point_i, True)


def _packing(n: int) -> Callable:
    def prepack(weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int) -> PackedConv:
        """A weight of qint8 and a bias of float32, ready for convolutions."""
        return PackedConv(weight, bias, stride, padding, dilation, groups)
    prepack.__name__ = f"conv{n}d_prepack"
    return prepack


def _convolution(n: int, relu: bool) -> Callable:
    def conv(qx: Tensor, packed_weight: PackedConv, output_scale: float, output_zero_point: int) -> Tensor:
        """The convolution of a quint8 input, of another scale."""
        return packed_weight.run(qx, output_scale, output_zero_point, relu)
    conv.__name__ = f"conv{n}d_relu" if relu else f"conv{n}d"
    return conv


def _with_number(name: str, relu: bool) -> Callable:
    tensors, number = (sum_of, plus_number) if name == "add" else (product_of, times_number)

    def run(qa: Any, qb: Any, scale: float | None = None, zero_point: int | None = None) -> Tensor:
        """Of two quantized tensors, with the scale of the result; or of one and a number, whose result has a scale that follows."""
        if scale is not None and zero_point is not None:
            return tensors(qa, qb, scale, zero_point, relu)
        return number(qa, qb, relu) if isinstance(qa, Tensor) else number(qb, qa, relu)
    run.__name__ = f"{name}_relu" if relu else name
    return run


def matmul(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    """qa @ qb of another scale."""
    return _rounded(qa.dequantize() @ qb.dequantize(), qa, scale, zero_point)


def _rounded(x: Tensor, like: Tensor, scale: float, zero_point: int) -> Tensor:
    out = PerTensor(float(scale), int(zero_point), like.dtype)
    return quantized_tensor(out.quantize(x.detach()), out)


def hardswish(input: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    """The function's values, of another scale."""
    return _rounded(functional.hardswish(input.dequantize()), input, output_scale, output_zero_point)


def elu(self: Tensor, output_scale: float, output_zero_point: int, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """The function's values, of another scale."""
    x = self.dequantize()
    return _rounded(x.where(x > 0, alpha * (x * input_scale).expm1()) * scale, self, output_scale, output_zero_point)


def celu(self: Tensor, output_scale: float, output_zero_point: int, alpha: float = 1) -> Tensor:
    """The function's values, of another scale."""
    return _rounded(functional.celu(self.dequantize(), alpha), self, output_scale, output_zero_point)


def leaky_relu(qx: Tensor, negative_slope: float, inplace: bool, output_scale: float, output_zero_point: int) -> Tensor:
    """The function's values, of another scale."""
    return _rounded(functional.leaky_relu(qx.dequantize(), negative_slope), qx, output_scale, output_zero_point)


def dropout(self: Tensor, output_scale: float, output_zero_point: int, p: float = 0.5, training: bool = False) -> Tensor:
    """The tensor: quantized models are for inference."""
    return self


def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float, output_scale: float,
               output_zero_point: int) -> Tensor:
    """Normalized, of another scale."""
    return _rounded(functional.layer_norm(input.dequantize(), normalized_shape, weight, bias, eps), input, output_scale, output_zero_point)


def cat(qx: Any, dim: int, scale: float | None, zero_point: int | None) -> Tensor:
    """Joined, of another scale, or of the first one's where there is none."""
    first = qx[0]._uniform()
    out = PerTensor(first.scale if scale is None else float(scale), first.zero_point if zero_point is None else int(zero_point), first.dtype)
    return quantized_tensor(joined([out.quantize(x.dequantize()) for x in qx], dim), out)


_CONVOLUTIONS = [f for n in (1, 2, 3) for f in (_packing(n), _convolution(n, False), _convolution(n, True))]
_ARITHMETIC = [_with_number(name, relu) for name in ("add", "mul") for relu in (False, True)]
_FUNCTIONS = {f.__name__: f for f in (linear_prepack, linear_prepack_fp16, linear_unpack, linear_dynamic, linear_relu_dynamic, linear_dynamic_fp16,
                                      linear_relu_dynamic_fp16, linear, linear_relu, *_ARITHMETIC, cat, matmul, hardswish, elu, celu, leaky_relu, dropout, layer_norm,
                                      *_CONVOLUTIONS)} | {"linear_unpack_fp16": linear_unpack}


class _Namespace:
    def __getattr__(self, name: str) -> Any:
        if name not in _FUNCTIONS:
            raise AttributeError(f"'_OpNamespace' 'quantized' object has no attribute '{name}'")
        made = self.__dict__[name] = OpOverloadPacket(name, _FUNCTIONS[name], ["default"], "quantized")
        return made


quantized = _Namespace()
