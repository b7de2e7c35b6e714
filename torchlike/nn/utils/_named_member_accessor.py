"""One tensor of a module put in the place of another, as it is: a Tensor may take a Parameter's place (tensordict)."""
from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..modules.module import Module

_MISSING: Any = object()


def _checked(module: Module, name: str) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def swap_tensor(module: Module, name: str, tensor: Tensor, allow_missing: bool = False) -> Tensor:
    """Puts `tensor` in the place of a parameter, buffer or attribute; returns what was there. _MISSING stands for nothing there."""
    _checked(module, name)
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for members in (module._parameters, module._buffers):
        if name in members:
            before = members[name]
            if tensor is _MISSING:
                del members[name]
            else:
                members[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING:
        if not allow_missing:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    elif not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Puts `tensor` in the place of a parameter or buffer, or makes it an attribute."""
    _checked(module, name)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for members in (module._parameters, module._buffers):
        if name in members:
            members[name] = tensor
            return
    setattr(module, name, tensor)
