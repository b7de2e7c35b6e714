"""QConfigMapping: which configuration each operation of a traced model gets."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torchlike as torch  # its functions as graphs have them

from ...nn import functional
from ...nn.modules import activation, conv, normalization
from .fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from .observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from .qconfig import QConfig, QConfigAny, default_quint8_weight_qconfig, default_reuse_input_qconfig, get_default_qat_qconfig, get_default_qconfig

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]

FIXED: dict[Any, Any] = {  # operations whose results have a scale that is known
    activation.Hardsigmoid: default_fixed_qparams_range_0to1_observer, functional.hardsigmoid: default_fixed_qparams_range_0to1_observer,
    "hardsigmoid": default_fixed_qparams_range_0to1_observer, "hardsigmoid_": default_fixed_qparams_range_0to1_observer,
    activation.Sigmoid: default_fixed_qparams_range_0to1_observer, torch.sigmoid: default_fixed_qparams_range_0to1_observer,
    "sigmoid": default_fixed_qparams_range_0to1_observer, "sigmoid_": default_fixed_qparams_range_0to1_observer,
    activation.Softmax: default_fixed_qparams_range_0to1_observer, activation.Tanh: default_fixed_qparams_range_neg1to1_observer,
    torch.tanh: default_fixed_qparams_range_neg1to1_observer, "tanh": default_fixed_qparams_range_neg1to1_observer,
    "tanh_": default_fixed_qparams_range_neg1to1_observer,
}
_ATTRIBUTES = {"object_type": "object_type_qconfigs", "module_name_regex": "module_name_regex_qconfigs", "module_name": "module_name_qconfigs",
               "module_name_object_type_order": "module_name_object_type_order_qconfigs"}


class QConfigMapping:
    """Configurations for everything, for kinds of operations, names by pattern, names, and the n-th operation of a kind in a module: the last that fits counts."""

    def __init__(self) -> None:
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict[Callable | str, QConfigAny] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[tuple[str, Callable, int], QConfigAny] = OrderedDict()

    def set_global(self, global_qconfig: QConfigAny) -> QConfigMapping:
        """For all that has no other one."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable | str, qconfig: QConfigAny) -> QConfigMapping:
        """For a class of modules, a function, or a method's name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfigAny) -> QConfigMapping:
        """For modules whose name begins as the pattern says; the first pattern that fits counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfigAny) -> QConfigMapping:
        """For a module and what is inside of it."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(self, module_name: str, object_type: Callable, index: int, qconfig: QConfigAny) -> QConfigMapping:
        """For the operation of that number among those of its kind in a module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name in ("global_qconfig", *_ATTRIBUTES.values()):
            entries = getattr(self, name)
            lines.append(f" {name}")
            lines += [f"  {k}: {v}" for k, v in entries.items()] if isinstance(entries, OrderedDict) and entries else [f"  {entries}"]
        return "\n".join([*lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """The same as lists of pairs."""
        lists = {key: list(getattr(self, name).items()) for key, name in _ATTRIBUTES.items()}
        lists["module_name_object_type_order"] = [(*k, v) for k, v in lists["module_name_object_type_order"]]
        return {"": self.global_qconfig, **lists}

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """Of such lists, each of which may be missing."""
        made = cls()
        made.global_qconfig = qconfig_dict.get("")
        for key, name in _ATTRIBUTES.items():
            for *place, qconfig in qconfig_dict.get(key, []):
                getattr(made, name)[place[0] if len(place) == 1 else tuple(place)] = qconfig
        return made


def _default(qat: bool, backend: str, version: int) -> QConfigMapping:
    qconfig = (get_default_qat_qconfig if qat else get_default_qconfig)(backend, version)
    weight = default_weight_fake_quant if qat else default_weight_observer
    transposed = QConfig(activation=qconfig.activation, weight=weight) if backend in ("fbgemm", "x86") else qconfig
    norm = QConfig(activation=qconfig.activation, weight=default_placeholder_observer)
    made = QConfigMapping().set_global(qconfig).set_object_type("reshape", default_reuse_input_qconfig)
    for kind in (conv.ConvTranspose1d, conv.ConvTranspose2d, conv.ConvTranspose3d, functional.conv_transpose1d, functional.conv_transpose2d,
                 functional.conv_transpose3d):
        made.set_object_type(kind, transposed)
    for kind in (functional.layer_norm, normalization.LayerNorm):
        made.set_object_type(kind, norm)
    made.set_object_type(activation.PReLU, default_quint8_weight_qconfig)
    by_observer: dict[Any, QConfig] = {}
    for kind, observer in FIXED.items():
        if observer not in by_observer:
            by_observer[observer] = QConfig(activation=FixedQParamsFakeQuantize.with_args(observer=observer) if qat else observer, weight=weight)
        made.set_object_type(kind, by_observer[observer])
    return made


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """That of models which are observed and quantized after training, for one of PyTorch's engines. AssertionError for another one."""
    return _default(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """That of training which knows of quantization."""
    return _default(True, backend, version)
