"""Collectives that return new tensors, under the names by which libraries import them. Results are ready when they return."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._functions import torch
from .._tensor import Tensor
from ..ops import _c10d_functional as collectives
from ..ops import _c10d_functional_autograd as differentiable
from .device_mesh import DeviceMesh
from .process_group import ProcessGroup, ReduceOp, default_group


class AsyncCollectiveTensor(Tensor):
    """What torch's collectives return before they are waited for; here none does."""


def _group(given: Any) -> ProcessGroup:
    """A group from the forms that torch takes: a group, a mesh of one dimension, or (mesh, dimension)."""
    if isinstance(given, tuple):
        return given[0].get_group(given[1])
    return given.get_group() if isinstance(given, DeviceMesh) else default_group(given)


def _op(name: str | ReduceOp) -> str:
    """A reduction as the operators name it."""
    return name.lower() if isinstance(name, str) else name.name.lower()


def _along(dim: int, gathered: Tensor, group: ProcessGroup) -> Tensor:
    """Ranks' tensors that lie one behind the other, joined along a dimension instead."""
    return gathered if dim == 0 else torch.cat(gathered.chunk(group.size()), dim)


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, once its collective is over."""
    return collectives.wait_tensor(tensor)


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:  # noqa: N803  (torch's name)
    """All ranks' tensors combined."""
    return collectives.all_reduce(self.detach(), _op(reduceOp), _group(group).group_name)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of rank `src`."""
    return collectives.broadcast(self.detach(), src, _group(group).group_name)


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """All ranks' tensors, joined along a dimension."""
    group = _group(group)
    return _along(gather_dim, collectives.all_gather_into_tensor(self.detach(), group.size(), group.group_name), group)


def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """`all_gather_tensor`, differentiable."""
    group = _group(group)
    return _along(gather_dim, differentiable.all_gather_into_tensor(self, group.size(), group.group_name), group)


def _by_rows(tensor: Tensor, dim: int, group: ProcessGroup) -> Tensor:
    """The ranks' parts along a dimension, one behind the other."""
    if tensor.shape[dim] % group.size():
        raise AssertionError(f"input dimension 0 ({tensor.shape[dim]} must be a multiple of group_size {group.size()}")
    return tensor if dim == 0 else torch.cat(tensor.chunk(group.size(), dim))


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """This rank's part along a dimension of all ranks' tensors combined."""
    group = _group(group)
    return collectives.reduce_scatter_tensor(_by_rows(self.detach(), scatter_dim, group), _op(reduceOp), group.size(), group.group_name)


def reduce_scatter_tensor_autograd(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """`reduce_scatter_tensor`, differentiable."""
    group = _group(group)
    return differentiable.reduce_scatter_tensor(_by_rows(self, scatter_dim, group), _op(reduceOp), group.size(), group.group_name)


def _sizes(given: Sequence[int] | None, tensor: Tensor, group: ProcessGroup) -> list[int]:
    """How many rows go to each rank, or come from it: as many to each where that is not given."""
    if given is not None:
        return list(given)
    if tensor.shape[0] % group.size():
        raise AssertionError(f"{tensor.shape[0]} rows do not split evenly over {group.size()} ranks")
    return [tensor.shape[0] // group.size()] * group.size()


def all_to_all_single(self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any,
                      tag: str = "") -> Tensor:
    """What every rank has for this one."""
    group = _group(group)
    came, went = (_sizes(s, self, group) for s in (output_split_sizes, input_split_sizes))
    return collectives.all_to_all_single(self.detach(), came, went, group.group_name)


def all_to_all_single_autograd(self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Any,
                               tag: str = "") -> Tensor:
    """`all_to_all_single`, differentiable."""
    group = _group(group)
    came, went = (_sizes(s, self, group) for s in (output_split_sizes, input_split_sizes))
    return differentiable.all_to_all_single(self, came, went, group.group_name)


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """Rank r's tensor goes to rank `src_dst[r]`."""
    group = _group(group)
    targets, rows = list(src_dst), self.shape[0]
    went = [rows if r == targets[group.rank()] else 0 for r in range(group.size())]
    came = [rows if r == targets.index(group.rank()) else 0 for r in range(group.size())]
    return collectives.all_to_all_single(self.detach(), came, went, group.group_name)
