"""What libraries' own optimizers take from torch.optim.optimizer (timm, axolotl, nequip).

Here every step becomes one program, so how tensors are grouped changes no speed.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .._core.device import device
from .._core.dtype import dtype, float32, float64, get_default_dtype
from .._tensor import Tensor
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype

__all__: list[str] = []

DeviceDict: TypeAlias = dict[device | None, Tensor]
DeviceDtypeDict: TypeAlias = dict[tuple[device, dtype] | None, Tensor]

_foreach_doc = "foreach (bool, optional): whether to use operations on lists of tensors (default: None)"
_fused_doc = "fused (bool, optional): whether to use one operation for the whole step (default: None)"
_capturable_doc = "capturable (bool, optional): whether steps can be captured in a CUDA graph (default: False)"
_differentiable_doc = "differentiable (bool, optional): whether autograd goes through the step (default: False)"
_maximize_doc = "maximize (bool, optional): whether to maximize the objective (default: False)"
_params_doc = "params (iterable): parameters to optimize, named ones or not, or dicts that define groups"

_FOREACH_ON = ["cuda", "xpu", "mtia", "privateuseone"]  # PyTorch's devices, in its order
FUSED_ON = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _is_compiling() -> bool:
    from ..compiler import is_compiling  # above the optimizers
    return is_compiling()


def _get_value(x: Any) -> Any:
    """A tensor's number; the tensor itself in compiled code."""
    return x.item() if isinstance(x, Tensor) and not _is_compiling() else x


def _stack_if_compiling(x: Any) -> Any:
    """A list of tensors as it is; stacked in compiled code."""
    if not _is_compiling():
        return x
    from ..ops.joining import stack
    return stack(x)


def _get_scalar_dtype(is_fused: bool | None = None) -> dtype:
    """Of what dtype a count of steps is."""
    return float64 if not is_fused and get_default_dtype() == float64 else float32


def _default_to_fused_or_foreach(params: list[Tensor | None], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Which form of a step PyTorch would choose for these parameters."""
    from ..nn.parameter import Parameter
    there = [p for p in params if p is not None]
    if differentiable or any(type(p) not in (Tensor, Parameter) for p in there):
        return False, False
    if use_fused and all(p.device.type in FUSED_ON and p.is_floating_point() for p in there):
        return True, False
    return False, all(p.device.type in _FOREACH_ON for p in there)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Devices on which steps can be captured."""
    return ["cuda", "xpu", "hpu", "privateuseone", *["xla"] * supports_xla]


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put real views in the place of complex parameters, and of what belongs to these."""
    from ..ops.bit_views import view_as_real
    for i, p in enumerate(params):
        if p.is_complex():
            for each in (params, *state_and_grads):
                each[i] = view_as_real(each[i])


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """torch's RuntimeError for a parameter that a fused step does not take."""
    devices = [kind for kind in FUSED_ON if not (cuda_unsupported and kind == "cuda")]
    if not p.is_floating_point() or p.device.type not in devices:
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors of "
                           f"supported devices: {devices} but {p.dtype} and {p.device.type}")


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable | None = None) -> Callable:
    """A decorator of a step's function. PyTorch's compiler leaves some such steps alone; here all are recorded alike."""
    return lambda fn: fn


class GroupsTensors:
    """The method of optimizers that sorts lists of tensors by device and dtype."""

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: list[list], with_indices: bool = False) -> dict:
        """One group of everything in compiled code."""
        if _is_compiling():
            return {(None, None): (tensorlistlist, list(range(len(tensorlistlist[0]))))}
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)
