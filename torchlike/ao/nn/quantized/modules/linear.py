"""Linear with quantized inputs, weight and results; its weight and bias are a module of their own, saved and loaded as the two tensors."""
from __future__ import annotations

from typing import Any

from ....._core import dtype as dt
from ....._public import FUNCTIONS
from ....._tensor import Tensor
from .....nn.modules.container import Sequential
from .....nn.modules.linear import Linear as FloatLinear
from .....nn.modules.linear import NonDynamicallyQuantizableLinear
from .....nn.modules.module import Module
from .....nn.utils.fusion import fuse_linear_bn_weights
from .....ops.creation import zeros
from .utils import Weighted


class LinearPackedParams(Module):
    """`_packed_params` is ready for products."""

    _version = 3

    def __init__(self, dtype: Any = dt.qint8) -> None:
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(empty_weight(1, 1, dtype), None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Take a weight (out, in) of qint8, or of float32 to be rounded to float16, and a bias of float32."""
        from ....._quantized import linear
        self._packed_params = (linear.pack if self.dtype is dt.qint8 else linear.pack_half)(weight, bias)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params.weight, self._packed_params.bias

    def forward(self, x: Any) -> Any:
        """x."""
        return x

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *lists: Any) -> None:
        version = local_metadata.get("version") or 1
        self.dtype = state_dict.pop(prefix + "dtype") if version > 1 else dt.qint8
        if version < 3:
            self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        else:
            self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


def empty_weight(rows: int, columns: int, dtype: Any) -> Tensor:
    """A weight that another one is to replace."""
    if dtype is dt.qint8:
        return FUNCTIONS["_empty_affine_quantized"]([rows, columns], scale=1.0, zero_point=0, dtype=dt.qint8)
    if dtype is not dt.float16:
        raise RuntimeError("Unsupported dtype specified for quantized Linear!")
    return zeros(rows, columns, dtype=dt.float32)


class Linear(Weighted):
    """x @ weight.T + bias with quint8 x (..., in_features), a qint8 weight and results of `scale` and `zero_point`."""

    _version: int | None = 3
    _FLOAT_MODULE: tuple = (FloatLinear, NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = dt.qint8) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weight = empty_weight(out_features, in_features, dtype)
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, zeros(out_features, dtype=dt.float32) if bias_ else None)

    def forward(self, x: Tensor) -> Tensor:
        """The products."""
        return self._packed_params._packed_params.static(x, self.scale, self.zero_point)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params._weight_bias()

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Take another weight and bias."""
        self._packed_params.set_weight_bias(w, b)

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        """Sizes and scales."""
        return (f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, zero_point={self.zero_point}, "
                f"qscheme={self.weight().qscheme()}")

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *others: Any) -> None:
        if local_metadata.get("version") in (None, 1):  # the weight was the module's own
            self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The quantized form of an observed linear layer. AssertionError for another module."""
        trained = hasattr(mod, "weight_fake_quant")
        if not trained and type(mod) not in cls._FLOAT_MODULE:
            raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {', '.join(c.__name__ for c in cls._FLOAT_MODULE)}, but got: {type(mod)}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = mod.weight_fake_quant if trained else mod.qconfig.weight()
        layer = mod if trained or isinstance(mod, FloatLinear) else mod[0]
        if hasattr(layer, "bn"):
            bn = layer.bn
            layer.weight, layer.bias = fuse_linear_bn_weights(layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        observer(layer.weight)
        if observer.dtype is not dt.qint8:
            raise AssertionError(f"Weight observer must have dtype torch.qint8, got {observer.dtype}")
        return cls(layer.in_features, layer.out_features, dtype=dt.qint8)._take(layer, observer, mod)

    @classmethod
    def from_reference(cls, ref_qlinear: Module, output_scale: Any, output_zero_point: Any) -> Linear:
        """The quantized form of a reference layer (a fused one's first part), with results of this scale."""
        layer = ref_qlinear[0] if isinstance(ref_qlinear, Sequential) else ref_qlinear
        return cls._of_reference(cls(layer.in_features, layer.out_features), layer, output_scale, output_zero_point)
