"""`torch.ops.c10d`: the collectives that write into tensors, as operators. They take a group itself, and ranks in it; a timeout is the group's."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._custom_operator import CustomOpDef
from .._tensor import Tensor
from . import collectives as c
from . import point_to_point as p2p
from .work import Work

_GROUP, _WORK, _OP = "__torch__.torch.classes.c10d.ProcessGroup process_group", "__torch__.torch.classes.c10d.Work", "__torch__.torch.classes.c10d.ReduceOp reduce_op"
_HOW = "bool async_op=True, int timeout=-1"


def _done(work: Work | None, tensors: list[Tensor]) -> Work:
    """What one waits for: done already, where the collective was waited for."""
    return c.finished(tensors) if work is None else work


def broadcast_(tensors: list, group: Any, root_rank: int, root_tensor: int, async_op: bool = True, timeout: int = -1) -> tuple:
    return tensors, _done(c.broadcast.plain(tensors[0], group=group, async_op=async_op, group_src=root_rank), tensors)


def allreduce_(tensors: list, group: Any, reduce_op: Any, sparse_indices: Tensor | None, async_op: bool = True, timeout: int = -1) -> tuple:
    return tensors, _done(c.all_reduce.plain(tensors[0], reduce_op, group, async_op), tensors)


def allreduce_coalesced_(tensors: list, group: Any, reduce_op: Any, async_op: bool = True, timeout: int = -1) -> Work:
    return _done(c.all_reduce_of_several.plain(tensors, reduce_op, group, async_op), tensors)


def reduce_(tensors: list, group: Any, reduce_op: Any, root_rank: int, root_tensor: int, async_op: bool = True, timeout: int = -1) -> Work:
    return _done(c.reduce.plain(tensors[0], None, reduce_op, group, async_op, root_rank), tensors)


def allgather_(output_tensors: list, input_tensors: list, group: Any, async_op: bool = True, timeout: int = -1) -> tuple:
    return output_tensors, _done(c.all_gather.plain(output_tensors[0], input_tensors[0], group, async_op), output_tensors[0])


def _allgather_base_(output_tensor: Tensor, input_tensor: Tensor, group: Any, async_op: bool = True, timeout: int = -1) -> tuple:
    return output_tensor, _done(c.all_gather_single.plain(output_tensor, input_tensor, group, async_op), [output_tensor])


def gather_(output_tensors: list, input_tensors: list, group: Any, root_rank: int, async_op: bool = True, timeout: int = -1) -> Work:
    outputs = output_tensors[0] if output_tensors else []
    return _done(c.gather.plain(input_tensors[0], outputs, None, group, async_op, root_rank), outputs)


def scatter_(output_tensors: list, input_tensors: list, group: Any, root_rank: int, async_op: bool = True, timeout: int = -1) -> tuple:
    work = c.scatter.plain(output_tensors[0], input_tensors[0] if input_tensors else [], None, group, async_op, root_rank)
    return output_tensors, _done(work, output_tensors)


def reduce_scatter_(output_tensors: list, input_tensors: list, group: Any, reduce_op: Any, async_op: bool = True, timeout: int = -1) -> tuple:
    return output_tensors, _done(c.reduce_scatter.plain(output_tensors[0], input_tensors[0], reduce_op, group, async_op), output_tensors)


def _reduce_scatter_base_(output_tensor: Tensor, input_tensor: Tensor, group: Any, reduce_op: Any, async_op: bool = True, timeout: int = -1) -> tuple:
    return output_tensor, _done(c.reduce_scatter_single.plain(output_tensor, input_tensor, reduce_op, group, async_op), [output_tensor])


def alltoall_(output_tensors: list, input_tensors: list, group: Any, async_op: bool = True, timeout: int = -1) -> tuple:
    return output_tensors, _done(c.all_to_all.plain(output_tensors, input_tensors, group, async_op), output_tensors)


def alltoall_base_(output: Tensor, input: Tensor, group: Any, output_split_sizes: list, input_split_sizes: list, async_op: bool = True, timeout: int = -1) -> Work:
    return _done(c.all_to_all_single.plain(output, input, output_split_sizes, input_split_sizes, group, async_op), [output])


def barrier(tensor: Tensor, group: Any, device_ids: list, async_op: bool = True, timeout: int = -1) -> Work:
    return _done(c.barrier.plain(group, async_op), [])


def send(tensors: list, group: Any, dst: int, tag: int) -> Work:
    return p2p.isend.plain(tensors[0], None, group, tag, dst)


def recv_(tensors: list, group: Any, src: int, tag: int) -> Work:
    return p2p.irecv.plain(tensors[0], None, group, tag, src)


def recv_any_source_(tensors: list, group: Any, tag: int) -> Work:
    return p2p.irecv.plain(tensors[0], None, group, tag)


_SCHEMAS: dict[Callable, str] = {
    broadcast_: f"(Tensor[] tensors, {_GROUP}, int root_rank, int root_tensor, {_HOW}) -> (Tensor[], {_WORK})",
    allreduce_: f"(Tensor[] tensors, {_GROUP}, {_OP}, Tensor? sparse_indices, {_HOW}) -> (Tensor[], {_WORK})",
    allreduce_coalesced_: f"(Tensor[] tensors, {_GROUP}, {_OP}, {_HOW}) -> {_WORK}",
    reduce_: f"(Tensor[] tensors, {_GROUP}, {_OP}, int root_rank, int root_tensor, {_HOW}) -> {_WORK}",
    allgather_: f"(Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP}, {_HOW}) -> (Tensor[][], {_WORK})",
    _allgather_base_: f"(Tensor output_tensor, Tensor input_tensor, {_GROUP}, {_HOW}) -> (Tensor, {_WORK})",
    gather_: f"(Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP}, int root_rank, {_HOW}) -> {_WORK}",
    scatter_: f"(Tensor[] output_tensors, Tensor[][] input_tensors, {_GROUP}, int root_rank, {_HOW}) -> (Tensor[], {_WORK})",
    reduce_scatter_: f"(Tensor[] output_tensors, Tensor[][] input_tensors, {_GROUP}, {_OP}, {_HOW}) -> (Tensor[], {_WORK})",
    _reduce_scatter_base_: f"(Tensor output_tensor, Tensor input_tensor, {_GROUP}, {_OP}, {_HOW}) -> (Tensor, {_WORK})",
    alltoall_: f"(Tensor[] output_tensors, Tensor[] input_tensors, {_GROUP}, {_HOW}) -> (Tensor[], {_WORK})",
    alltoall_base_: f"(Tensor output, Tensor input, {_GROUP}, int[] output_split_sizes, int[] input_split_sizes, {_HOW}) -> {_WORK}",
    barrier: f"(Tensor tensor, {_GROUP}, int[] device_ids, {_HOW}) -> {_WORK}",
    send: f"(Tensor[] tensors, {_GROUP}, int dst, int tag) -> {_WORK}",
    recv_: f"(Tensor[] tensors, {_GROUP}, int src, int tag) -> {_WORK}",
    recv_any_source_: f"(Tensor[] tensors, {_GROUP}, int tag) -> {_WORK}",
}
for _kernel, _schema in _SCHEMAS.items():
    CustomOpDef("c10d", _kernel.__name__, _schema, None)._kernels["default"] = _kernel
