"""The collectives, by their result on one rank: reductions leave the tensor, gathers and scatters copy it."""

import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .._tensor import Tensor
from .process_group import ProcessGroup, ReduceOp, default_group


class Work:
    """What `async_op=True` returns; the work is already done."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True


def _tensor(value: Any, name: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )
    return value


def _tensors(values: Any, name: str, what: str) -> Sequence[Tensor]:
    if not isinstance(values, list) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )
    if len(values) != 1:
        raise RuntimeError(f"{what}: invalid tensor list `{name}` (expected length 1, got {len(values)})")
    return values


def _root(what: str, *ranks: int | None) -> None:
    for rank in ranks:
        if rank is not None and rank != 0:
            raise RuntimeError(f"{what}: invalid root rank: {rank}")


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def _copy(output: Tensor, source: Tensor, what: str) -> None:
    if output.numel() != source.numel():
        raise RuntimeError(f"{what}: invalid tensor size (expected {tuple(source.shape)}, got {tuple(output.shape)})")
    if output.dtype != source.dtype:
        raise RuntimeError(f"{what}: output has dtype {output.dtype}, input has {source.dtype}")
    output.detach().copy_(source.detach().reshape(output.shape))


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    default_group(group)
    return _done(async_op)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    default_group(group)


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    _tensor(tensor, "tensor")
    default_group(group)
    return _done(async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    _tensor(tensor, "tensor")
    default_group(group)
    _root("reduce", dst, group_dst)
    return _done(async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    _tensor(tensor, "tensor")
    default_group(group)
    _root("broadcast", src, group_src)
    return _done(async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    _tensor(tensor, "tensor")
    default_group(group)
    _copy(_tensors(tensor_list, "tensor_list", "all_gather")[0], tensor, "all_gather")
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    default_group(group)
    _copy(_tensor(output_tensor, "output_tensor"), _tensor(input_tensor, "input_tensor"), "all_gather_into_tensor")
    return _done(async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    _tensor(tensor, "tensor")
    default_group(group)
    _root("gather", dst, group_dst)
    if gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    _copy(_tensors(gather_list, "gather_list", "gather")[0], tensor, "gather")
    return _done(async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    _tensor(tensor, "tensor")
    default_group(group)
    _root("scatter", src, group_src)
    if scatter_list is None:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _copy(tensor, _tensors(scatter_list, "scatter_list", "scatter")[0], "scatter")
    return _done(async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    default_group(group)
    _copy(_tensor(output, "output"), _tensors(input_list, "input_list", "reduce_scatter")[0], "reduce_scatter")
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    default_group(group)
    _copy(_tensor(output, "output"), _tensor(input, "input"), "reduce_scatter_tensor")
    return _done(async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    default_group(group)
    outputs = _tensors(output_tensor_list, "output_tensor_list", "all_to_all")
    _copy(outputs[0], _tensors(input_tensor_list, "input_tensor_list", "all_to_all")[0], "all_to_all")
    return _done(async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    default_group(group)
    _copy(_tensor(output, "output"), _tensor(input, "input"), "all_to_all_single")
    return _done(async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    default_group(group)
    object_list[0] = copy.deepcopy(obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    default_group(group)
    _root("gather_object", dst, group_dst)
    if object_gather_list is None:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    object_gather_list[0] = copy.deepcopy(obj)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    default_group(group)
    _root("broadcast_object_list", src, group_src)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    default_group(group)
    _root("scatter_object_list", src, group_src)
    if not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if not scatter_object_input_list:
        raise ValueError("Argument ``scatter_object_input_list`` must be specified on source rank.")
    scatter_object_output_list[0] = copy.deepcopy(scatter_object_input_list[0])
