"""What a user says about the graph's inputs, results, attributes, and modules of his own."""
from __future__ import annotations

from typing import Any

from ..quant_type import QuantType

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig"]


class _Config:
    """Settings, each of which gives the configuration back; `to_dict` and `from_dict` know them by older names."""

    _older: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({ {k: v for k, v in vars(self).items() if len(v)} })"

    @classmethod
    def from_dict(cls, config: dict[str, Any]) -> Any:
        """Of the dictionary that to_dict makes."""
        made = cls()
        for older, name in cls._older.items():
            if older in config:
                value = config[older]
                setattr(made, name, {_kind(k): dict(v) for k, v in value.items()} if isinstance(value, dict) else value)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The settings, by older names; those that say nothing are left out where they are tables."""
        made = {}
        for older, name in self._older.items():
            value = getattr(self, name)
            made[older] = {_NAMES[k]: v for k, v in value.items()} if isinstance(value, dict) else value
        return made


_NAMES = {QuantType.STATIC: "static", QuantType.DYNAMIC: "dynamic", QuantType.QAT: "qat", QuantType.WEIGHT_ONLY: "weight_only"}


def _kind(name: str) -> QuantType:
    found = {v: k for k, v in _NAMES.items()}.get(name)
    if found is None:
        raise ValueError(f"Unknown QuantType name '{name}'")
    return found


class PrepareCustomConfig(_Config):
    """For prepare_fx and prepare_qat_fx."""

    _older = {"float_to_observed_custom_module_class": "float_to_observed_mapping", "non_traceable_module_name": "non_traceable_module_names",
              "non_traceable_module_class": "non_traceable_module_classes", "input_quantized_idxs": "input_quantized_indexes",
              "output_quantized_idxs": "output_quantized_indexes", "preserved_attributes": "preserved_attributes"}

    def __init__(self) -> None:
        self.float_to_observed_mapping: dict[QuantType, dict[type, type]] = {}
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []
        self.preserved_attributes: list[str] = []

    def set_float_to_observed_mapping(self, float_class: type, observed_class: type, quant_type: QuantType = QuantType.STATIC) -> PrepareCustomConfig:
        """A class of modules whose observed form `observed_class.from_float` makes."""
        self.float_to_observed_mapping.setdefault(quant_type, {})[float_class] = observed_class
        return self

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Modules that stay one step each."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> PrepareCustomConfig:
        """Classes of such modules."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Inputs that will come quantized."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Results that stay quantized."""
        self.output_quantized_indexes = indexes
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> PrepareCustomConfig:
        """Attributes of the model that the graph's module keeps."""
        self.preserved_attributes = attributes
        return self


class ConvertCustomConfig(_Config):
    """For convert_fx."""

    _older = {"observed_to_quantized_custom_module_class": "observed_to_quantized_mapping", "preserved_attributes": "preserved_attributes"}

    def __init__(self) -> None:
        self.observed_to_quantized_mapping: dict[QuantType, dict[type, type]] = {}
        self.preserved_attributes: list[str] = []

    def set_observed_to_quantized_mapping(self, observed_class: type, quantized_class: type, quant_type: QuantType = QuantType.STATIC) -> ConvertCustomConfig:
        """A class of observed modules whose quantized form `quantized_class.from_observed` makes."""
        self.observed_to_quantized_mapping.setdefault(quant_type, {})[observed_class] = quantized_class
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> ConvertCustomConfig:
        """Attributes of the model that the graph's module keeps."""
        self.preserved_attributes = attributes
        return self


class FuseCustomConfig(_Config):
    """For fuse_fx."""

    _older = {"preserved_attributes": "preserved_attributes"}

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def set_preserved_attributes(self, attributes: list[str]) -> FuseCustomConfig:
        """Attributes of the model that the graph's module keeps."""
        self.preserved_attributes = attributes
        return self
