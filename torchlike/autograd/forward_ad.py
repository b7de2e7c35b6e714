"""torch.autograd.forward_ad: dual tensors."""
from __future__ import annotations

from typing import NamedTuple

from .._core.errors import class_name
from .._tensor import Tensor
from . import _tangents

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A primal and its tangent (None for a tensor that depends on no dual)."""

    primal: Tensor
    tangent: Tensor | None


class _State:
    level: _tangents.Level | None = None


_state = _State()
_current_level = -1  # torch's number of the level that is open


def enter_dual_level() -> int:
    """Begin forward differentiation; levels do not nest."""
    if _state.level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    global _current_level
    _state.level, _current_level = _tangents.enter(), 0
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End it: tangents are forgotten."""
    if _state.level is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != 0:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    global _current_level
    left, _state.level, _current_level = _state.level, None, -1
    _tangents.leave(left)


class dual_level:
    """Context manager around the dual tensors of one forward differentiation."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of tensor that has a tangent of the same shape."""
    if _state.level is None or (level is not None and level < 0):
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    for x, name in ((tensor, "primal"), (tangent, "tangent")):
        if x.dtype.category < 2:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {x.dtype}")
    if level:
        raise RuntimeError("Invalid level given to _make_dual")
    if _state.level.tangent(tensor) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported.")
    if _state.level.tangent(tangent) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level0 is not supported.")
    if tensor.shape != tangent.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                           f"Tensor is of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}.")
    if tensor._dispatches or tangent._dispatches:  # its operations are not known before its class does them: the tangent would be lost
        raise RuntimeError("make_dual: tensors of classes with __torch_dispatch__ are not supported yet by torchlike; torch.func.jvp takes them")
    return _state.level.dual(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a tensor; the tangent is None where no dual tensor took part."""
    if _state.level is None or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {class_name(tensor)}")
    if level:
        raise RuntimeError("Invalid level given to _fw_primal")
    tangent = _state.level.tangent(tensor)
    return UnpackedDualTensor(tensor if tangent is None else _state.level.dual(tensor, None), tangent)
