"""The mask of a weight, and modules by their names."""
from __future__ import annotations

from typing import Any

from ....nn import Module
from ....nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = ["FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_contains_param", "module_to_fqn", "swap_module"]


class FakeSparsity(Module):
    """A parametrization: a tensor times `mask`, of its shape. AssertionError for another. States have no masks: a sparsifier's own state has them."""

    def __init__(self, mask: Any) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Any) -> Any:
        """The tensor with zeros where the mask has them."""
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> dict:
        """Nothing."""
        return {}


def module_contains_param(module: Module, parametrization: type[Module]) -> bool:
    """Whether a tensor of the module itself has such a parametrization."""
    return is_parametrized(module) and any(isinstance(p, parametrization) for each in module.parametrizations.values() for p in each)


def swap_module(mod: Module, mapping: dict[type[Module], type[Module]]) -> Module:
    """What the class that `mapping` has for the module's makes of it by `from_dense`, with its hooks, on its device; the module where there is none."""
    kind = type_before_parametrizations(mod)
    if kind not in mapping:
        return mod
    made = mapping[kind].from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        made.register_forward_hook(hook)
    devices = {t.device for t in (*mod.parameters(), *mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}")
    for device in devices:
        made.to(device)
    return made


def module_to_fqn(model: Module, module: Module, prefix: str = "") -> str | None:
    """The name by which a module is found in a model, "" for the model itself; None where it is not in it."""
    name = next((name for name, m in model.named_modules() if m is module), None)
    return prefix + name if name else name


def fqn_to_module(model: Module | None, path: str) -> Any:
    """The module or tensor of that name; None where there is none."""
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model: Module, tensor_fqn: str) -> dict[str, Any]:
    """Of a tensor's name in a model: `module_fqn`, `module`, `tensor_name` and `tensor_fqn`."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {"module_fqn": module_fqn, "module": fqn_to_module(model, module_fqn), "tensor_name": tensor_name, "tensor_fqn": tensor_fqn}
