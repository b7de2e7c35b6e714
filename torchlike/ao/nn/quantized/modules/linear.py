"""The weight and the bias of a quantized linear layer, as a module: they are saved and loaded as the two tensors."""
from __future__ import annotations

from typing import Any

from ....._core import dtype as dt
from ....._public import FUNCTIONS
from ....._tensor import Tensor
from .....nn.modules.module import Module
from .....ops.creation import zeros


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
