"""Collectives that return new tensors, under the names by which libraries import them. Results are ready when they return."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._functions import torch
from .._tensor import Tensor
from . import collectives as c
from . import nn as differentiable
from . import point_to_point as p2p
from .device_mesh import DeviceMesh
from .process_group import ProcessGroup, ReduceOp, default_group


class AsyncCollectiveTensor(Tensor):
    """What torch's collectives return before they are waited for; here none does."""


def _group(given: Any) -> ProcessGroup:
    """A group from the forms that torch takes: a group, a mesh of one dimension, or (mesh, dimension)."""
    if isinstance(given, tuple):
        return given[0].get_group(given[1])
    return given.get_group() if isinstance(given, DeviceMesh) else default_group(given)


def _op(name: str | ReduceOp) -> ReduceOp.RedOpType:
    return ReduceOp.RedOpType[name.upper()] if isinstance(name, str) else name


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, once its collective is over."""
    return tensor


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:  # noqa: N803  (torch's name)
    """All ranks' tensors combined."""
    made = self.detach().clone()
    c.all_reduce(made, _op(reduceOp), _group(group))
    return made


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of rank `src`."""
    made = self.detach().clone()
    c.broadcast(made, src, _group(group))
    return made


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """All ranks' tensors, joined along a dimension."""
    return all_gather_tensor_autograd(self.detach(), gather_dim, group)


def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """`all_gather_tensor`, differentiable."""
    return torch.cat(differentiable.all_gather(self, _group(group)), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """This rank's part along a dimension of all ranks' tensors combined."""
    return reduce_scatter_tensor_autograd(self.detach(), reduceOp, scatter_dim, group)


def reduce_scatter_tensor_autograd(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """`reduce_scatter_tensor`, differentiable."""
    group = _group(group)
    if self.shape[scatter_dim] % group.size():
        raise AssertionError(f"input dimension 0 ({self.shape[scatter_dim]} must be a multiple of group_size {group.size()}")
    parts = [part.contiguous() for part in self.chunk(group.size(), scatter_dim)]
    return differentiable.reduce_scatter(torch.empty_like(parts[0].detach()), parts, _op(reduceOp), group)


def all_to_all_single(self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any,
                      tag: str = "") -> Tensor:
    """What every rank has for this one."""
    return all_to_all_single_autograd(self.detach(), output_split_sizes, input_split_sizes, group)


def all_to_all_single_autograd(self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any,
                               tag: str = "") -> Tensor:
    """`all_to_all_single`, differentiable."""
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    made = torch.empty((rows, *self.shape[1:]), dtype=self.dtype, device=self.device)
    return differentiable.all_to_all_single(made, self, output_split_sizes, input_split_sizes, _group(group))


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """Rank r's tensor goes to rank `src_dst[r]`."""
    group = _group(group)
    me, made = group.rank(), torch.empty_like(self.detach())
    target, source = src_dst[me], list(src_dst).index(me)
    if target == me:
        return self.detach().clone()
    p2p.send(self.detach(), group=group, group_dst=target)
    p2p.recv(made, group=group, group_src=source)
    return made
