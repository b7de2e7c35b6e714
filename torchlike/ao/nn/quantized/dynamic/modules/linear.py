"""Linear with a quantized weight."""
from __future__ import annotations

from typing import Any

from ......_core import dtype as dt
from ......_tensor import Tensor
from ......nn.modules.container import Sequential
from ......nn.modules.linear import Linear as FloatLinear
from ......nn.modules.linear import NonDynamicallyQuantizableLinear
from ......nn.modules.module import Module
from ...modules import linear as static
from ...modules.utils import _quantize_weight


class Linear(static.Linear):
    """x @ weight.T + bias with float32 x (..., in_features), which is quantized as it comes, and float32 results. The weight is qint8, or has float16's precision."""

    _version = 4

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = dt.qint8) -> None:
        super().__init__(in_features, out_features, bias_, dtype)
        self.version: int | None = 4

    def forward(self, x: Tensor) -> Tensor:
        """The products."""
        return self._packed_params._packed_params.dynamic(x, self.version is not None and self.version >= 4).to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        """Sizes and types."""
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text + (f", qscheme={self.weight().qscheme()}" if self._packed_params.dtype is dt.qint8 else "")

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *others: Any) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """The quantized form of a linear layer that has a `qconfig`. AssertionError for another module."""
        kinds = (FloatLinear, NonDynamicallyQuantizableLinear) if cls is Linear else (cls._FLOAT_MODULE,)
        if type(mod) not in kinds:
            raise AssertionError(f"nn.quantized.dynamic.Linear.from_float only works for one of{[k.__name__ for k in kinds]}, got {type(mod)}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        observer = weight_observer(mod)()
        if observer.dtype not in (dt.qint8, dt.float16):
            raise AssertionError(f"The only supported dtypes for dynamic quantized linear are qint8 and float16, got: {observer.dtype}")
        mod = mod[0] if isinstance(mod, Sequential) else mod
        observer(mod.weight)
        weight = mod.weight.detach().float()
        made = cls(mod.in_features, mod.out_features, dtype=observer.dtype)
        made.set_weight_bias(_quantize_weight(weight, observer) if observer.dtype is dt.qint8 else weight, mod.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Module) -> Linear:
        """The quantized form of a reference layer (a fused one's first part)."""
        layer = ref_qlinear[0] if isinstance(ref_qlinear, Sequential) else ref_qlinear
        made = cls(layer.in_features, layer.out_features, dtype=layer.weight_dtype)
        made.set_weight_bias(layer.get_quantized_weight(), layer.bias)
        return made


def weight_observer(mod: Module) -> Any:
    """What makes the observer of the module's weights."""
    from .....quantization.qconfig import default_dynamic_qconfig
    qconfig = mod.qconfig
    return default_dynamic_qconfig.weight if qconfig is None or qconfig.weight is None else qconfig.weight
