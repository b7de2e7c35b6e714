"""DeviceMesh: ranks in a grid with named dimensions, and a group of processes along each."""
from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from .._core.dtype import int32
from .._functions import torch
from .._tensor import Tensor
from .process_group import GroupMember, ProcessGroup, get_process_group_ranks, get_rank, get_world_size, init_process_group, new_group

__all__ = ["DeviceMesh", "init_device_mesh"]


_entered: list[DeviceMesh] = []  # by `with mesh`
_meshes: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # those that were made, by themselves


class DeviceMesh:
    """A grid of ranks; `mesh["name"]` is the part of it along some of its dimensions."""

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: tuple[str, ...] | None = None) -> None:
        self._stand(device_type, mesh, mesh_dim_names)
        self._groups = [self._along(d) for d in range(self.ndim)]
        _meshes[self] = self

    def _stand(self, device_type: str, mesh: Any, mesh_dim_names: tuple[str, ...] | None) -> None:
        """Which ranks there are, and where this one is."""
        self.mesh = mesh.detach().to(int32) if isinstance(mesh, Tensor) else torch.tensor(mesh, dtype=int32, device="cpu")
        self.device_type, self.mesh_dim_names = device_type, None if mesh_dim_names is None else tuple(mesh_dim_names)
        if GroupMember.default is None:
            init_process_group()
        if self.mesh.numel() > get_world_size():
            raise RuntimeError(f"Mesh should not be bigger than default world size {get_world_size()}, but found {self.mesh.numel()} ranks!")
        self._grid = np.array(self.mesh.tolist())
        found = np.argwhere(self._grid == get_rank())
        self._coordinate = tuple(found[0].tolist()) if len(found) else None
        self._whole: DeviceMesh | None = None  # the mesh of which this is a part

    @staticmethod
    def from_group(group: ProcessGroup | list[ProcessGroup], device_type: str, mesh: Any = None, *, mesh_dim_names: tuple[str, ...] | None = None) -> DeviceMesh:
        """The grid whose lines are groups that are there: of one group its ranks; of several, one for each dimension, `mesh` says which ranks stand where.
        ValueError where they do not fit."""
        if isinstance(group, ProcessGroup):
            ranks, groups = get_process_group_ranks(group), [group]
            if mesh is not None and (mesh.tolist() if isinstance(mesh, Tensor) else mesh) != ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {ranks}")
            mesh = ranks
        else:
            groups = list(group)
            if not groups:
                raise ValueError("Expects at least one ProcessGroup to be passed")
            if mesh is None or mesh_dim_names is None:
                raise ValueError(f"Must pass {'mesh' if mesh is None else 'mesh_dim_names'} if passing multiple ProcessGroups")
            found = mesh if isinstance(mesh, Tensor) else torch.tensor(mesh)
            if found.ndim != len(groups):
                raise ValueError(f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {found.tolist()} and {len(groups)} ProcessGroups")
        made = object.__new__(DeviceMesh)
        made._stand(device_type, mesh, mesh_dim_names)
        made._groups = groups
        _meshes[made] = made
        return made

    def _along(self, dim: int) -> ProcessGroup | None:
        """This process's group along a dimension. All processes make all groups."""
        if self._grid.shape[dim] == get_world_size():
            return GroupMember.default
        lines = np.moveaxis(self._grid, dim, -1).reshape(-1, self._grid.shape[dim])
        made = [new_group(line.tolist()) for line in lines]
        return next((g for g in made if isinstance(g, ProcessGroup)), None)

    shape = property(lambda self: tuple(self.mesh.shape))
    ndim = property(lambda self: self.mesh.ndim)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks there are, in all or along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """This process's rank in the world."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process stands in the grid; None outside."""
        return self._coordinate

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
        names = (names,) if isinstance(names, str) else tuple(names)
        self._named(*names)
        kept = [self.mesh_dim_names.index(n) for n in names]
        here = tuple(slice(None) if d in kept else (self._coordinate or (0,) * self.ndim)[d] for d in range(self.ndim))
        part = object.__new__(DeviceMesh)
        part.__dict__ |= self.__dict__
        part._grid = self._grid[here].transpose(np.argsort(np.argsort(kept)))
        part._whole = self._whole or self
        part.mesh, part.mesh_dim_names = torch.as_tensor(part._grid, dtype=self.mesh.dtype), names
        part._coordinate = None if self._coordinate is None else tuple(self._coordinate[d] for d in kept)
        part._groups = [self._groups[d] for d in kept]
        return part

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        dims = ", ".join(map(str, self.shape)) + ",)"[self.ndim > 1:] if names is None else \
            ", ".join(f"{n}={s}" for n, s in zip(names, self.shape)) + ")"
        steps = [math.prod(self.shape[d + 1:]) for d in range(self.ndim)]
        strides = ", ".join("()" if n == 1 else str(k) for n, k in zip(self.shape, steps)) + ",)"[self.ndim > 1:]  # one rank: no step
        return f"DeviceMesh(({dims}, {self.device_type!r}, stride=({strides})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __deepcopy__(self, memo: dict) -> DeviceMesh:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"device_type": self.device_type, "mesh": self._grid.tolist(), "mesh_dim_names": self.mesh_dim_names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The mesh that was pickled, with the groups that this process has for it."""
        self.__dict__ |= {**state, "_grid": np.array(state["mesh"]), "mesh": torch.as_tensor(state["mesh"])}
        found = _meshes.get(self)
        self.__dict__ |= vars(DeviceMesh(**state) if found is None else found)

    def __enter__(self) -> DeviceMesh:
        _entered.append(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _entered.pop()

    def _key(self) -> tuple:
        return self.device_type, self._grid.tobytes(), self.shape, self.mesh_dim_names


def current_mesh() -> DeviceMesh:
    """The mesh of the innermost `with mesh`."""
    if not _entered:
        raise RuntimeError("No device mesh is currently active!")
    return _entered[-1]


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
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    ranks: Tensor = torch.arange(math.prod(mesh_shape), dtype=int32, device="cpu").reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
