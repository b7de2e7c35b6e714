"""What quantized layers have in common: weights quantized as an observer of them says, and a scale for the results."""
from __future__ import annotations

from typing import Any

from ....._core import dtype as dt
from ....._public import FUNCTIONS
from ....._quantized.kernels import LIMITS
from ....._tensor import Tensor
from .....nn.modules.module import Module
from .....ops.from_data import tensor


def _quantize_weight(float_wt: Tensor, observer: Any) -> Tensor:
    """The weight as qint8 within the observer's integers, by the scale and zero point that it calculates."""
    scale, zero_point = observer.calculate_qparams()
    observer = getattr(observer, "activation_post_process", observer)  # of a fake quantization
    made = FUNCTIONS["quantize_per_tensor"](float_wt, float(scale), int(zero_point), dt.qint8) if observer.qscheme.name.startswith("per_tensor") else \
        FUNCTIONS["quantize_per_channel"](float_wt, scale.to(dt.float64), zero_point.to(dt.int64), observer.ch_axis, dt.qint8)
    if (observer.quant_min, observer.quant_max) != LIMITS["qint8"]:
        made = made._like(made.int_repr().clamp(observer.quant_min, observer.quant_max))
    return made


def observed(mod: Module) -> tuple[float, int]:
    """The scale and the zero point that a module's observer has found."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


class Scaled(Module):
    """A module whose results have `scale` and `zero_point`, which are saved as tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"], destination[prefix + "zero_point"] = tensor(self.scale), tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, *lists: Any) -> None:
        self.scale, self.zero_point = float(state_dict.pop(prefix + "scale")), int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, *lists)


class Weighted(Scaled):
    """One with a quantized weight and a bias."""

    def weight(self) -> Tensor:
        """The weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias."""
        return self._weight_bias()[1]

    def _take(self, layer: Module, observer: Any, mod: Module) -> Any:
        """This module with the weight and the bias of a float layer, and the scale that the observer of `mod` has found."""
        self.set_weight_bias(_quantize_weight(layer.weight.detach().float(), observer), layer.bias)
        self.scale, self.zero_point = observed(mod)
        return self

    @classmethod
    def _of_reference(cls, made: Any, layer: Module, scale: Any, zero_point: Any) -> Any:
        """`made` with the weight and the bias of a reference layer, and results of this scale."""
        made.set_weight_bias(layer.get_quantized_weight(), layer.bias)
        made.scale, made.zero_point = float(scale), int(zero_point)
        return made
