"""DTensor: a tensor with a mesh and a placement per dimension of the mesh.

With one process the local tensor is the whole tensor, so a DTensor is that tensor under another class, and nothing is ever
sent. Results keep the placements of an operand of their own shape; where shapes change they are replicated.
"""
from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from ...overrides import override
from ...utils._pytree import tree_leaves, tree_map_only
from ..device_mesh import DeviceMesh
from .placement_types import Placement, Replicate, Shard

replicating = contextvars.ContextVar("replicating", default=False)  # whether plain tensors count as replicated ones
_READS = {"__get__", "size", "dim", "numel", "stride", "is_contiguous", "data_ptr", "storage_offset", "element_size"}


class DTensor(Tensor):
    """A tensor over a mesh; made by `distribute_tensor` or `DTensor.from_local`."""

    @staticmethod
    def from_local(local_tensor: Tensor, device_mesh: DeviceMesh, placements: Sequence[Placement] | None = None, *,
                   run_check: bool = False, shape: Any = None, stride: Any = None) -> DTensor:
        """The tensor of which this is the piece of this rank; differentiable."""
        return _placed(local_tensor, device_mesh, _checked(local_tensor, device_mesh, placements))

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The piece of this rank; differentiable."""
        return self.as_subclass(Tensor)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor; differentiable."""
        return self.as_subclass(Tensor)

    def redistribute(self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
                     async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None) -> DTensor:
        """The same tensor with other placements."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        mesh = self.device_mesh if device_mesh is None else device_mesh
        local = self.to_local()
        return _placed(local, mesh, _checked(local, mesh, placements))

    @property
    def _local_tensor(self) -> Tensor:
        return self.to_local().detach()

    @property
    def device_mesh(self) -> DeviceMesh:
        return self.__dict__["_mesh"]

    @property
    def placements(self) -> tuple[Placement, ...]:
        return self.__dict__["_placements"]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"


def _dispatch(cls: type, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    kwargs = kwargs or {}
    operands = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    spread = [x for x in operands if isinstance(x, DTensor)]
    if len(spread) < len(operands) and func.__name__ not in _READS and not replicating.get() and \
            any(x.dim() for x in operands if not isinstance(x, DTensor)):
        raise RuntimeError(f"{func.__name__} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to "
                           "DTensor before calling distributed operators!")
    result = Tensor.__torch_function__.__func__(DTensor, func, types, args, kwargs)
    if isinstance(result, Tensor) and not isinstance(result, DTensor) and func.__name__ == "__get__":
        result = result.as_subclass(DTensor)  # a gradient
    if isinstance(result, Tensor) or type(result) in (tuple, list):
        return tree_map_only(DTensor, lambda t: t if "_mesh" in t.__dict__ else _specified(t, *_inherited(t, spread)), result)
    return result


def _inherited(result: DTensor, operands: list[DTensor]) -> tuple[DeviceMesh, tuple[Placement, ...]]:
    for x in operands:
        if x._aval.shape == result._aval.shape:
            return x.device_mesh, x.placements
    return operands[0].device_mesh, (Replicate(),) * operands[0].device_mesh.ndim


def _specified(t: DTensor, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> DTensor:
    t.__dict__.update(_mesh=mesh, _placements=placements)
    return t


def _placed(local: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> DTensor:
    if mesh.size() > 1:
        raise RuntimeError("DTensor over several processes is not supported yet by torchlike: a mesh of one process holds whole tensors")
    if "__torch_function__" not in DTensor.__dict__:  # the first one: until then torch's functions need not ask for it
        DTensor.__torch_function__ = classmethod(_dispatch)
        override(DTensor)
    return _specified(local.as_subclass(DTensor), mesh, placements)


def _checked(t: Tensor, mesh: DeviceMesh, placements: Sequence[Placement] | None) -> tuple[Placement, ...]:
    """Placements by default, with dimensions counted from the front."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    if len(placements) != mesh.ndim:
        raise ValueError("`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
                         f"{len(placements)}, and device_mesh.ndim: {mesh.ndim}.")
    found = []
    for p in placements:
        if isinstance(p, Shard) and p.dim < 0:
            p = dataclasses.replace(p, dim=p.dim + t.dim())
        if isinstance(p, Shard) and p.dim >= t.dim():
            raise AssertionError(f"Sharding dim {p.dim} greater than tensor ndim {t.dim()}")
        found.append(p)
    return tuple(found)


def distribute_tensor(tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
                      *, src_data_rank: int | None = 0) -> DTensor:
    """A leaf tensor, spread over the mesh."""
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if device_mesh is None:
        raise RuntimeError("distribute_tensor needs a device mesh")
    found, local = _checked(tensor, device_mesh, placements), tensor.detach()
    whole = all(p.is_replicate() for p in found)  # then the ranks share the tensor itself; pieces are copies
    made = _placed(local if whole else local.clone(), device_mesh, found)
    return made.requires_grad_(tensor.requires_grad)


DTensor.__module__ = "torch.distributed.tensor"
