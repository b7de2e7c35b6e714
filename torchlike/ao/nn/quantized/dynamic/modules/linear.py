"""Linear with a quantized weight."""
from __future__ import annotations

from typing import Any

from ......_core import dtype as dt
from ......_tensor import Tensor
from ......nn.modules.linear import Linear as FloatLinear
from ......nn.modules.linear import NonDynamicallyQuantizableLinear
from ......nn.modules.module import Module
from ......ops.creation import zeros
from ......ops.from_data import tensor
from ...modules.linear import LinearPackedParams, empty_weight
from ...modules.utils import _quantize_weight


class Linear(Module):
    """x @ weight.T + bias with float32 x (..., in_features), which is quantized as it comes, and float32 results. The weight is qint8, or has float16's precision."""

    _version = 4

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = dt.qint8) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weight = empty_weight(out_features, in_features, dtype)
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, zeros(out_features, dtype=dt.float32) if bias_ else None)
        self.scale, self.zero_point = 1.0, 0
        self.version: int | None = 4

    def forward(self, x: Tensor) -> Tensor:
        """The products."""
        return self._packed_params._packed_params.dynamic(x, self.version is not None and self.version >= 4).to(x.dtype)

    def weight(self) -> Tensor:
        """The weight."""
        return self._packed_params._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias."""
        return self._packed_params._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Take another weight and bias."""
        self._packed_params.set_weight_bias(w, b)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        """Sizes and types."""
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text + (f", qscheme={self.weight().qscheme()}" if self._packed_params.dtype is dt.qint8 else "")

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"], destination[prefix + "zero_point"] = tensor(self.scale), tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *lists: Any) -> None:
        self.version = version = local_metadata.get("version")
        self.scale, self.zero_point = float(state_dict.pop(prefix + "scale")), int(state_dict.pop(prefix + "zero_point"))
        if version is None or version == 1:  # the weight was the module's own
            self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The quantized form of a linear layer that has a `qconfig`. AssertionError for another module."""
        if type(mod) not in (FloatLinear, NonDynamicallyQuantizableLinear):
            raise AssertionError(f"nn.quantized.dynamic.Linear.from_float only works for one of['Linear', 'NonDynamicallyQuantizableLinear'], got {type(mod)}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = weight_observer(mod)()
        if observer.dtype not in (dt.qint8, dt.float16):
            raise AssertionError(f"The only supported dtypes for dynamic quantized linear are qint8 and float16, got: {observer.dtype}")
        observer(mod.weight)
        weight = mod.weight.detach().float()
        made = cls(mod.in_features, mod.out_features, dtype=observer.dtype)
        made.set_weight_bias(_quantize_weight(weight, observer) if observer.dtype is dt.qint8 else weight, mod.bias)
        return made


def weight_observer(mod: Module) -> Any:
    """What makes the observer of the module's weights."""
    from .....quantization.qconfig import default_dynamic_qconfig
    qconfig = mod.qconfig
    return default_dynamic_qconfig.weight if qconfig is None or qconfig.weight is None else qconfig.weight
