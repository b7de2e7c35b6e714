"""torch.__future__: how modules take converted and loaded parameters; both ways beside the default one are opt-in."""
from __future__ import annotations

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """True: a conversion (`m.half()`) gives the module new Parameters instead of new data for the ones that it has."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether a conversion gives a module new Parameters."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """True: conversions and `load_state_dict` make new tensors, and swap them with the module's by `torch.utils.swap_tensors`."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions and `load_state_dict` swap tensors."""
    return _swap
