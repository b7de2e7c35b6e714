"""DTensorSpec: a mesh, how a tensor lies over it, and what the whole tensor is."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from ..._core.dtype import dtype
from ..._tensor import Size
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensorSpec", "TensorMeta"]


class TensorMeta(NamedTuple):
    """Shape, strides and dtype of the whole."""

    shape: Size
    stride: tuple[int, ...]
    dtype: dtype


@dataclass(frozen=True)
class DTensorSpec:
    """What a DTensor is beside its local tensor: `DTensor(local_tensor, spec, requires_grad=False)` is one."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    tensor_meta: TensorMeta | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "placements", tuple(self.placements))

    def __str__(self) -> str:
        """Such as Spec(f32[4, 3](S(0)))."""
        lies = "".join(map(str, self.placements)) if len(self.placements) == 1 else f"({', '.join(map(str, self.placements))})"
        if self.tensor_meta is None:
            return f"Spec(unknown dtypeunknown shape({lies}))"
        return f"Spec({self.tensor_meta.dtype.abbr}{list(self.shape)}({lies}))"

    def _meta(self) -> TensorMeta:
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    shape = property(lambda self: self._meta().shape)
    stride = property(lambda self: self._meta().stride)
    ndim = property(lambda self: len(self._meta().shape))
    device_mesh = property(lambda self: self.mesh)

    @property
    def num_shards(self) -> int:
        """Into how many pieces the tensor is cut."""
        made = 1
        for i, p in enumerate(self.placements):
            made *= self.mesh.size(i) if p.is_shard() else 1
        return made

    @property
    def num_shards_map(self) -> list[int]:
        """The same for each dimension of the tensor."""
        made = [1] * self.ndim
        for i, p in enumerate(self.placements):
            if isinstance(p, Shard):
                made[p.dim] *= self.mesh.size(i)
        return made

    @property
    def dim_map(self) -> list[int]:
        """For each dimension of the tensor, the one of the mesh over which it is cut; -1 for none. ValueError for one cut over several."""
        made = [-1] * self.ndim
        for i, p in enumerate(self.placements):
            if isinstance(p, Shard):
                if made[p.dim] >= 0:
                    raise ValueError(f"Tensor dim {p.dim} is already sharded on mesh dim {made[p.dim]}, DTensor operator implementation does not support things like "
                                     f"hybrid sharding strategies yet (i.e. [Shard(0), Shard(0)])")
                made[p.dim] = i
        return made

    @property
    def sums(self) -> list[int]:
        """The dimensions of the mesh over which terms are still to be combined."""
        return [i for i, p in enumerate(self.placements) if p.is_partial()]

    def is_replicated(self) -> bool:
        """Whether every rank has the whole."""
        return all(p.is_replicate() for p in self.placements)

    def is_sharded(self) -> bool:
        """Whether ranks have pieces."""
        return any(p.is_shard() for p in self.placements)

    @classmethod
    def from_dim_map(cls, mesh: DeviceMesh, dim_map: list[int], sums: list[int], tensor_meta: TensorMeta | None = None) -> DTensorSpec:
        """The spec of which these are `dim_map` and `sums`."""
        places: list[Placement] = [Replicate()] * mesh.ndim
        for i in sums:
            places[i] = Partial()
        for d, i in enumerate(dim_map):
            if i >= 0:
                if not places[i].is_replicate():
                    raise RuntimeError(f"DeviceMesh dimension can't be mapped to two dimension of the same tensor: {i} and {d}")
                places[i] = Shard(d)
        return cls(mesh, tuple(places), tensor_meta)

    def shallow_copy_with_tensor_meta(self, tensor_meta: TensorMeta | None) -> DTensorSpec:
        """The same for another tensor. AssertionError without one."""
        if tensor_meta is None:
            raise AssertionError("shallow copy with no tensor_meta!")
        return replace(self, tensor_meta=tensor_meta)
