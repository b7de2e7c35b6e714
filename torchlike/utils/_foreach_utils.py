"""torch.utils._foreach_utils: tensors of an optimizer sorted by where and what they are, which libraries' optimizers ask for."""
from __future__ import annotations

from typing import Any

from .._core.device import device
from .._core.dtype import dtype
from .._tensor import Tensor

__all__: list[str] = []

_KINDS = ("cpu", "cuda", "xpu", "mtia", "tpu")  # of device for which it is worth calling a `_foreach` function: PyTorch's, and one of ours


def _device_has_foreach_support(device: device) -> bool:
    """Whether the `_foreach` functions are worth calling on this device, as code that clips gradients like PyTorch's asks."""
    return device.type in _KINDS


def _has_foreach_support(tensors: list[Tensor], device: device) -> bool:
    """Whether they are also for these tensors of the device: plain ones, or None."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is Tensor for t in tensors)


def _group_tensors_by_device_and_dtype(tensorlistlist: list[list], with_indices: bool = False) -> dict[tuple[device, dtype], tuple[list[list], list[int]]]:
    """Lists that belong together, place by place, as groups whose first list has one device and dtype; empty lists stay empty.

    The second part of each group are the places its tensors had, where `with_indices` asks for them.
    """
    if not tensorlistlist or not tensorlistlist[0]:
        raise RuntimeError("the first of the lists of tensors must hold some")
    first = tensorlistlist[0]
    if any(members and len(members) != len(first) for members in tensorlistlist):
        raise RuntimeError("the lists of tensors must be of one length, or empty")
    groups: dict[Any, tuple[list[list], list[int]]] = {}
    for i, tensor in enumerate(first):
        if not isinstance(tensor, Tensor):
            raise RuntimeError(f"Tensors of the first list of nested Tensor lists are supposed to be defined but the {i}-th Tensor is not.")
        lists, indices = groups.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for chosen, members in zip(lists, tensorlistlist):
            if members:
                chosen.append(members[i])
        if with_indices:
            indices.append(i)
    return groups
