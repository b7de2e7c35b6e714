"""The names of quantized tensors on torch and on plain tensors. What they do is in `torchlike._quantized`, loaded at the first call."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .._public import FUNCTIONS, Refused, called
from .._qscheme import SCHEMES, qscheme
from .._tensor import Tensor

FUNCTIONS.update(SCHEMES, qscheme=qscheme)
_PACKAGE = __package__.replace(".ops", "._quantized")


def _later(name: str) -> Callable:
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(f"{_PACKAGE}.factories"), name)(*args, **kwargs)
    call.__name__ = call.__qualname__ = name
    return call


for _name in ("quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "_make_per_tensor_quantized_tensor",
              "_make_per_channel_quantized_tensor", "_empty_affine_quantized", "_empty_per_channel_affine_quantized", "empty_quantized",
              "_choose_qparams_per_tensor", "_saturate_weight_to_fp16"):
    FUNCTIONS[_name] = _later(_name)


def _only_quantized(name: str, function: bool) -> None:
    def ask(input: Tensor) -> Any:
        if input._sparse:
            return getattr(type(input), name)(input)
        raise Refused(name, input.device.type.upper())
    ask.__name__ = ask.__qualname__ = name
    setattr(Tensor, name, ask)
    if function:
        FUNCTIONS[name] = called(ask)


for _name in ("int_repr", "q_scale", "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis"):
    _only_quantized(_name, True)
_only_quantized("qscheme", False)
