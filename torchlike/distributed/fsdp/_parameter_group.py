"""The parameters that `fully_shard` gathers and reduces together.

Between uses a module holds pieces (DTensors, leaves of the graph); around its forward it holds whole tensors, made from the pieces by one
operation whose backward sums the gradients of all ranks into pieces. So gradients reach the pieces through the graph, and only the time at which
whole tensors are dropped is a matter of settings.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.device import resolve
from ..._core.grad_mode import mode
from ..._tensor import Tensor, as_tensor_value
from ...autograd.function import Function
from ...nn.parameter import Parameter
from ..collectives import read
from ..device_mesh import DeviceMesh
from ..tensor import DTensor, Replicate, Shard
from ..tensor._dtensor import marked, piece
from ..tensor.placement_types import Placement, _StridedShard, pieces
from ._packing import gathered, summed, summed_pieces
from ._places import Places
from ._policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy


class ShardedParameter:
    """One parameter, and where it is found."""

    def __init__(self, param: Parameter, places: Places, mesh: DeviceMesh, dim: int, on_host: bool) -> None:
        self.places, self.dim = places, dim
        self.whole_lies: tuple | None = None  # (mesh, placements, shape) of the whole where that is a DTensor itself: of a tensor parallel layer
        lies, shape = (*[Replicate()] * (mesh.ndim - 1), Shard(dim)), tuple(param.shape)
        if isinstance(param, DTensor):
            self.whole_lies = param.device_mesh, param.placements, tuple(param.shape)
            lies, param_mesh = _lying_in_both(param, mesh, dim)
            param_local = param.to_local().detach()
        else:
            param_mesh, param_local = mesh, param.detach()
        self.shape = tuple(param_local.shape)
        self.pending: Tensor | None = None  # gradients of whole tensors that wait for a backward that reduces
        self.partial: np.ndarray | None = None  # gradients that are reduced over the shards but not over the replicas
        sizes = pieces(self.shape[dim], mesh.size(mesh.ndim - 1))
        me = mesh.get_coordinate()[-1]
        local = param_local.narrow(dim, sum(sizes[:me]), sizes[me]).clone()
        if on_host:
            local = local.cpu()
        placed = marked(local, param_mesh, lies, shape)
        self.param = Parameter(placed, param.requires_grad)
        for name, value in vars(param).items():
            if name not in vars(self.param):
                setattr(self.param, name, value)
        self.shapes = [tuple(n if d == dim else k for d, k in enumerate(self.shape)) for n in sizes]  # of all ranks' pieces
        self.install(self.param)

    def install(self, tensor: Tensor) -> None:
        """Give the modules this tensor as their parameter."""
        for module, name in self.places:
            module._parameters[name] = tensor

    def current(self) -> DTensor:
        """The pieces as the module has them: loading and moving may have replaced them."""
        module, name = self.places[0]
        held = module._parameters[name]
        if isinstance(held, DTensor) and held is not self.param:
            self.param = held
            self.install(held)
        return self.param


class ParameterGroup:
    """The parameters of one call of `fully_shard`."""

    def __init__(self, params: list[tuple[Parameter, Places]], mesh: DeviceMesh, place: Any, mp_policy: MixedPrecisionPolicy,
                 offload_policy: OffloadPolicy) -> None:
        self.mesh, self.policy = mesh, mp_policy
        self.shards, self.replicas = mesh.get_group(mesh.ndim - 1), mesh.get_group(0) if mesh.ndim == 2 else None
        on_host = isinstance(offload_policy, CPUOffloadPolicy)
        self.members = [ShardedParameter(p, places, mesh, _dim(p, place, mesh), on_host) for p, places in params]
        self.whole: list[Tensor] | None = None
        self.versions: list[int] = []
        self.reduces = self.reduces_replicas = True
        self.reshards_after_forward: bool = True
        self.reshards_after_backward = True
        self.divide_by: float | None = None

    # -- whole and in pieces ---------------------------------------------------------------------------------------------

    def unshard(self) -> None:
        """Give the modules whole parameters."""
        held = [m.current() for m in self.members]
        wanted = mode.enabled and any(p.requires_grad for p in held)
        if self.whole is not None:
            same = self.versions == [p._written for p in held] and (not wanted or any(w._edge is not None for w in self.whole))
            if same:
                return
        self.versions = [p._written for p in held]
        self.whole = list(_Unshard.apply(self, *[piece(p) for p in held]))
        for m, w in zip(self.members, self.whole):
            if m.whole_lies is None:
                w.__class__ = Parameter
            else:
                marked(w, *m.whole_lies)._is_param = True
            m.install(w)

    def reshard(self) -> None:
        """Give the modules their pieces back."""
        if self.whole is not None:
            self.whole = None
            for m in self.members:
                m.install(m.param)

    def forget(self) -> None:
        """Drop gradients that were not reduced yet."""
        for m in self.members:
            m.pending = m.partial = None

    # -- arrays ----------------------------------------------------------------------------------------------------------

    def gather(self, locals_: Sequence[Tensor]) -> list[Tensor]:
        """Whole tensors, in the dtype to compute in and on the mesh's device."""
        dtype, device = self.policy.param_dtype, resolve(self.mesh.device_type)
        cast = [t.to(dtype) if dtype is not None and t.dtype.is_floating_point else t for t in locals_]
        shapes = [[m.shapes[r] for m in self.members] for r in range(self.shards.size())]
        found = gathered([read(t) for t in cast], shapes, self.shards)
        return [as_tensor_value(np.concatenate(parts, axis=m.dim), device) for m, parts in zip(self.members, zip(*found))]

    def reduce(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The pieces of the mean over all ranks of whole gradients."""
        wanted = self.policy.reduce_dtype
        added = [g if m.pending is None else m.pending if g is None else m.pending + g for m, g in zip(self.members, grads)]
        if not self.reduces:
            for m, g in zip(self.members, added):
                m.pending = g if g is None or wanted is None else g.to(wanted)
            return [None] * len(added)
        made: list[Tensor | None] = [None] * len(added)
        for dtype in dict.fromkeys(g.dtype if wanted is None else wanted for g in added if g is not None):
            chosen = [i for i, g in enumerate(added) if g is not None and (wanted or g.dtype) is dtype]
            for i, array in zip(chosen, self._reduced([read(added[i].to(dtype)) for i in chosen], [self.members[i] for i in chosen])):
                if array is not None:
                    p = self.members[i].param
                    made[i] = as_tensor_value(array, p.device).to(p.dtype)
        for m in self.members:
            m.pending = None
        return made

    def _reduced(self, grads: list[np.ndarray], members: list[ShardedParameter]) -> list[np.ndarray | None]:
        n = self.shards.size()
        cut = [np.split(g, np.cumsum(pieces(g.shape[m.dim], n))[:-1], axis=m.dim) for g, m in zip(grads, members)]
        found = summed_pieces([[np.ascontiguousarray(parts[r]) for parts in cut] for r in range(n)], self.shards)
        if self.replicas is not None:
            found = [a if m.partial is None else m.partial + a for a, m in zip(found, members)]
            if not self.reduces_replicas:
                for a, m in zip(found, members):
                    m.partial = a
                return [None] * len(found)
            for m in members:
                m.partial = None
            found = summed(found, self.replicas)
            n *= self.replicas.size()
        share = self.divide_by or n
        return [(a / a.dtype.type(share)).astype(a.dtype) for a in found]


def _lying_in_both(param: DTensor, mesh: DeviceMesh, dim: int) -> tuple[tuple[Placement, ...], DeviceMesh]:
    """How pieces of a tensor parallel layer's pieces lie, and on which mesh: that of which both meshes are parts."""
    inner = param.device_mesh
    if mesh._whole is None or mesh._whole is not inner._whole:
        raise ValueError("FSDP requires the DP and model parallel TP/EP mesh to have the same parent mesh but got: \n"
                         f"DP's mesh: {mesh}\nTP/EP's mesh: {inner}")
    cuts = math.prod(inner.size(i) for i, p in enumerate(param.placements) if p.is_shard(dim))
    outer = (*[Replicate()] * (mesh.ndim - 1), _StridedShard(dim, split_factor=cuts) if cuts > 1 else Shard(dim))
    return (*outer, *param.placements), mesh._whole[(*mesh.mesh_dim_names, *inner.mesh_dim_names)]


def param_shape(param: Tensor) -> tuple[int, ...]:
    """The size that fully_shard cuts: of a tensor parallel layer this rank's."""
    return tuple(param.to_local().shape if isinstance(param, DTensor) else param.shape)


def _dim(param: Parameter, place: Any, mesh: DeviceMesh) -> int:
    """The dimension along which a parameter is cut."""
    chosen = None if place is None else place(param)
    dim = 0 if chosen is None else chosen.dim
    dim += param.dim() if dim < 0 else 0
    if dim and param_shape(param)[dim] % mesh.size(mesh.ndim - 1):
        raise NotImplementedError(f"FSDP does not support uneven sharding on dim {dim}: {param_shape(param)} (world size: {mesh.size(mesh.ndim - 1)})")
    return dim


class _Unshard(Function):
    @staticmethod
    def forward(ctx: Any, group: ParameterGroup, *locals_: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        ctx.set_materialize_grads(False)
        made = group.gather(locals_)
        ctx.mark_non_differentiable(*[w for w, t in zip(made, locals_) if not t.requires_grad])
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        group = ctx.group
        found = group.reduce([None if g is None else g.detach() for g in grads])
        if group.reshards_after_backward:
            group.reshard()
        return None, *found
