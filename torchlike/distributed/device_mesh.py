"""DeviceMesh: ranks in a grid with named dimensions. One process is a grid in which every dimension has size 1."""
from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from ..ops.creation import as_tensor
from .process_group import GroupMember, ProcessGroup, get_rank, init_process_group

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """A grid of ranks; `mesh["name"]` is the part of it along some of its dimensions."""

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None) -> None:
        from .. import int32
        self.mesh = as_tensor(mesh, dtype=int32)
        self.device_type, self.mesh_dim_names = device_type, None if mesh_dim_names is None else tuple(mesh_dim_names)
        if GroupMember.default is None:
            init_process_group()
        if self.mesh.numel() > 1:
            raise RuntimeError(f"Mesh should not be bigger than default world size 1, but found {self.mesh.numel()} ranks!")
        self._groups = [GroupMember.default] * self.mesh.ndim

    shape = property(lambda self: tuple(self.mesh.shape))
    ndim = property(lambda self: self.mesh.ndim)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """This process's rank in the world."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...]:
        """Where this process stands in the grid."""
        return (0,) * self.ndim

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process stands along a dimension."""
        return self.get_coordinate()[self._dim(mesh_dim)]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The processes along a dimension."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups of all dimensions."""
        return list(self._groups)

    def _dim(self, dim: int | str | None) -> int:
        if dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        return self._named(dim) if isinstance(dim, str) else dim or 0

    def _named(self, *names: str) -> int:
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if not set(names) <= set(self.mesh_dim_names):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {list(self.mesh_dim_names)}.")
        return self.mesh_dim_names.index(names[0])

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        names = (names,) if isinstance(names, str) else names
        self._named(*names)
        return DeviceMesh(self.device_type, self.mesh.reshape((1,) * len(names)), mesh_dim_names=names)

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        dims = ", ".join(map(str, self.shape)) + ",)"[self.ndim > 1:] if names is None else \
            ", ".join(f"{n}={s}" for n, s in zip(names, self.shape)) + ")"
        strides = ", ".join(["()"] * self.ndim) + ",)"[self.ndim > 1:]  # a dimension of one rank has no step
        return f"DeviceMesh(({dims}, {self.device_type!r}, stride=({strides})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple:
        return self.device_type, self.shape, self.mesh_dim_names


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """The grid of this shape over all ranks."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. "
                f"Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}",
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}.",
            )
    ranks: Tensor = as_tensor(list(range(math.prod(mesh_shape)))).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
