"""The collectives on tensors: what they check, and where their results go. `arrays.py` does the exchange.

Tensors are read when a collective is called, which ends the program recorded so far. Results go into the memory of the
tensors given, outside autograd and without counting as a write, as in torch.
"""

from __future__ import annotations

import concurrent.futures
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from .._core.aval import aval
from .._core.device import CPU
from .._core.dtype import uint8
from .._core.value import Value
from .._public import FUNCTIONS
from .._tensor import Tensor
from . import arrays
from ._seen import seen_as
from .process_group import GroupMember, ProcessGroup, ReduceOp, member
from .work import Work

_Group = ProcessGroup | None


# -- arguments ---------------------------------------------------------------------------------------------------------------


def _tensor(value: Any, name: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )
    return value


def _tensors(values: Any, name: str) -> list[Tensor]:
    if not isinstance(values, list) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )
    return values


def _same_dtype(*tensors: Tensor) -> None:
    for t in tensors:
        if t.dtype != tensors[0].dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {t.dtype}")


def _listed(tensors: list[Tensor], group: ProcessGroup, what: str) -> list[Tensor]:
    if len(tensors) != group.size():
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid output tensor list at index 0 (expected length {group.size()}, got {len(tensors)})")
    return tensors


def _same_shape(tensors: Sequence[Tensor], like: Tensor, what: str) -> None:
    for i, t in enumerate(tensors):
        if t.shape != like.shape:
            shapes = ["(" + ", ".join(map(str, x.shape)) + ")" for x in (like, t)]
            raise RuntimeError(f"ProcessGroupGloo::{what}: invalid tensor size at index {i} (expected {shapes[0]}, got {shapes[1]})")


def _multiple(large: Tensor, small: Tensor, size: int, what: str) -> None:
    if large.numel() != small.numel() * size:
        raise RuntimeError(f"ProcessGroupGloo::{what}: a tensor of {large.numel()} elements for {size} times {small.numel()}")


def root_of(what: str, group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """The rank inside the group that takes or gives."""
    if group_rank is not None and rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if group_rank is None:
        if rank is None:
            raise ValueError("Must specify global_rank or group_rank")
        if group is not GroupMember.default and rank not in group.ranks:
            raise ValueError(f"Global rank {rank} is not part of group {group}")
        group_rank = rank if group is GroupMember.default else group.ranks.index(rank)
    if not 0 <= group_rank < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {group_rank}")
    return group_rank


def reduction(op: Any, tensor: Tensor, what: str) -> str:
    """The name of a reduction that this tensor's dtype has."""
    op = getattr(op, "op", op)
    if not isinstance(op, ReduceOp.RedOpType):
        raise TypeError(f"{what}(): `op` must be a ReduceOp, not {type(op).__name__}")
    dtype = tensor.dtype
    if dtype.is_complex and op.name not in ("SUM", "AVG"):
        raise ValueError(f"{what} does not support {op} on complex tensors")
    if op.name == "PREMUL_SUM":
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if op.name[0] == "B" and dtype.is_floating_point:
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op.name == "AVG" and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype.short}")
    return op.name


def supports_complex(op: Any) -> bool:
    """Whether a reduction has a meaning for complex numbers."""
    return getattr(op, "op", op).name in ("SUM", "AVG", "PREMUL_SUM")


# -- tensors and arrays --------------------------------------------------------------------------------------------------------


def read(t: Tensor) -> np.ndarray:
    return t.detach()._host_array()


def _array_like(t: Tensor) -> np.ndarray:
    """An array of t's size that holds nothing."""
    return np.broadcast_to(np.zeros((), t.dtype.np), tuple(t.shape))


def written(t: Tensor, array: np.ndarray) -> Tensor:
    """Put an array of t's size into its memory."""
    array = array.reshape(tuple(t.shape))
    made = Value(aval(array.shape, t.dtype, CPU), array)
    if t._storage is None and t.device.type == "cpu":
        t._value = made
    else:
        t.data.copy_(Tensor._of(made))
    return t


def _do(what: str, group: ProcessGroup, async_op: bool, compute: Callable[[Callable], Any], finish: Callable[[Any], list[Tensor]],
        timeout: timedelta | None = None) -> Work | None:
    """`compute(exchange)` sends and receives, in the group's thread if `async_op`; `finish` writes what it returns."""
    exchange = group.exchange(what, timeout)
    if async_op:
        return Work(group.later(lambda: compute(exchange)), finish)
    finish(compute(exchange))
    return None


def finished(tensors: list[Tensor]) -> Work:
    """Work that is done."""
    ready: concurrent.futures.Future = concurrent.futures.Future()
    ready.set_result(None)
    return Work(ready, lambda _: tensors)


def _all_written(tensors: Sequence[Tensor]) -> Callable[[Sequence[np.ndarray]], list[Tensor]]:
    return lambda made: [written(t, a) for t, a in zip(tensors, made)]


def _in(group: _Group, what: str, arguments: Callable[[ProcessGroup], tuple]) -> tuple | None:
    """An operator's arguments, in the group that is meant; None where this process is not in it."""
    group = member(group, what)
    return None if group is None else arguments(group)


# -- collectives ---------------------------------------------------------------------------------------------------------------


@seen_as("barrier", lambda group, async_op, device_ids, timeout: _in(group, "barrier", lambda g: (FUNCTIONS["empty"](1, dtype=uint8), g, list(device_ids or []), async_op)))
def barrier(group: _Group = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None) -> Work | None:
    """Until every rank is here."""
    group = member(group, "barrier")
    if group is None:
        return None
    nothing = np.zeros(0, np.uint8)
    likes = [nothing] * group.size()
    return _do("barrier", group, async_op, lambda exchange: arrays.all_gather(nothing, likes, group.rank(), exchange), lambda _: [], timeout)


def monitored_barrier(group: _Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Until every rank is here; RuntimeError names one that is missing after `timeout`, or the group's."""
    barrier(group, timeout=timeout)


@seen_as("allreduce_", lambda tensor, op, group, async_op: _in(group, "all_reduce", lambda g: ([tensor], g, op, None, async_op)))
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: _Group = None, async_op: bool = False) -> Work | None:
    """Every rank's `tensor` becomes the reduction of all."""
    _tensor(tensor, "tensor")
    group = member(group, "all_reduce")
    if group is None:
        return None
    name, mine = reduction(op, tensor, "all_reduce"), read(tensor)
    return _do("all_reduce", group, async_op, lambda exchange: arrays.all_reduce(mine, name, group.size(), group.rank(), exchange),
               lambda made: [written(tensor, made)])


def all_reduce_coalesced(tensors: list[Tensor], op: Any = ReduceOp.SUM, group: _Group = None, async_op: bool = False) -> Work | None:
    """`all_reduce` of several tensors of one dtype."""
    _deprecated("all_reduce_coalesced", "will be deprecated. If you must use it, please revisit our documentation later at "
                "https://pytorch.org/docs/main/distributed.html#collective-functions")
    return all_reduce_of_several(tensors, op, group, async_op)


@seen_as("allreduce_coalesced_", lambda tensors, op, group, async_op: _in(group, "all_reduce_coalesced", lambda g: (
    [tensors] if isinstance(tensors, Tensor) else tensors, g, op, async_op)))
def all_reduce_of_several(tensors: list[Tensor], op: Any, group: _Group, async_op: bool) -> Work | None:
    tensors = [tensors] if isinstance(tensors, Tensor) else _tensors(tensors, "tensors")
    _same_dtype(*tensors)
    group = member(group, "all_reduce_coalesced")
    if group is None:
        return None
    name, mine = reduction(op, tensors[0], "all_reduce"), [read(t) for t in tensors]
    flat = np.concatenate([a.reshape(-1) for a in mine])
    ends = np.cumsum([a.size for a in mine])[:-1]
    return _do("all_reduce_coalesced", group, async_op, lambda exchange: arrays.all_reduce(flat, name, group.size(), group.rank(), exchange),
               lambda made: _all_written(tensors)(np.split(made, ends)))


@seen_as("reduce_", lambda tensor, dst, op, group, async_op, group_dst: _in(group, "reduce", lambda g: (
    [tensor], g, op, root_of("reduce", g, dst, group_dst), 0, async_op)))
def reduce(tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: _Group = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:
    """`tensor` of rank `dst` becomes the reduction of all."""
    _tensor(tensor, "tensor")
    group = member(group, "reduce")
    if group is None:
        return None
    root, name, mine = root_of("reduce", group, dst, group_dst), reduction(op, tensor, "reduce"), read(tensor)
    likes = [mine] * group.size()

    def compute(exchange):
        found = arrays.gather(mine, likes, root, group.rank(), group.size(), exchange)
        return arrays.combine(name, found) if found else mine
    return _do("reduce", group, async_op, compute, lambda made: [tensor if made is mine else written(tensor, made)])


@seen_as("broadcast_", lambda tensor, src, group, async_op, group_src: _in(group, "broadcast", lambda g: (
    [tensor], g, root_of("broadcast", g, src, group_src), 0, async_op)))
def broadcast(tensor: Tensor, src: int | None = None, group: _Group = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Every rank's `tensor` becomes that of rank `src`."""
    _tensor(tensor, "tensor")
    group = member(group, "broadcast")
    if group is None:
        return None
    root, me = root_of("broadcast", group, src, group_src), group.rank()
    mine = read(tensor) if me == root else _array_like(tensor)
    return _do("broadcast", group, async_op, lambda exchange: arrays.broadcast(mine, root, me, group.size(), exchange),
               lambda made: [tensor if me == root else written(tensor, made)])


@seen_as("allgather_", lambda tensor_list, tensor, group, async_op: _in(group, "all_gather", lambda g: ([tensor_list], [tensor], g, async_op)))
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: _Group = None, async_op: bool = False) -> Work | None:
    """`tensor_list` becomes the tensors of all ranks."""
    outputs = _tensors(tensor_list, "tensor_list")
    _same_dtype(*outputs, _tensor(tensor, "tensor"))
    group = member(group, "all_gather")
    if group is None:
        return None
    _same_shape(_listed(outputs, group, "allgather"), tensor, "allgather")
    mine, likes = read(tensor), [_array_like(t) for t in outputs]
    return _do("all_gather", group, async_op, lambda exchange: arrays.all_gather(mine, likes, group.rank(), exchange), _all_written(outputs))


@seen_as("_allgather_base_", lambda output_tensor, input_tensor, group, async_op: _in(group, "all_gather_into_tensor", lambda g: (
    output_tensor, input_tensor, g, async_op)))
def all_gather_single(output_tensor: Tensor, input_tensor: Tensor, group: _Group = None, async_op: bool = False) -> Work | None:
    """`output_tensor` becomes the tensors of all ranks, one after the other."""
    _same_dtype(_tensor(output_tensor, "output_tensor"), _tensor(input_tensor, "input_tensor"))
    group = member(group, "all_gather_into_tensor")
    if group is None:
        return None
    _multiple(output_tensor, input_tensor, group.size(), "allgather")
    mine = read(input_tensor)
    return _do("all_gather_into_tensor", group, async_op, lambda exchange: arrays.all_gather(mine, [mine] * group.size(), group.rank(), exchange),
               lambda made: [written(output_tensor, np.stack(made))])


def all_gather_coalesced(output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: _Group = None, async_op: bool = False) -> Work | None:
    """The k-th tensor of list r becomes the k-th of rank r."""
    _deprecated("all_gather_coalesced", "will be deprecated. If you must use it, please revisit our documentation later at "
                "https://pytorch.org/docs/main/distributed.html#collective-functions")
    inputs = _tensors(input_tensor_list, "input_tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        _tensors(outputs, "output_tensor_lists")
    group = member(group, "all_gather_coalesced")
    if group is None:
        return None
    if len(output_tensor_lists) != group.size():
        raise RuntimeError("ProcessGroupGloo::allgather_coalesced: output lists should be equal to world size")
    for outputs in output_tensor_lists:
        if len(outputs) != len(inputs):
            raise RuntimeError(f"ProcessGroupGloo::allgather_coalesced: invalid output size: (expected length {len(inputs)}, got {len(outputs)})")
    works = [all_gather(list(outputs), t, group, True) for outputs, t in zip(zip(*output_tensor_lists, strict=True), inputs, strict=True)]
    for work in works:
        work.wait()
    return finished([t for outputs in output_tensor_lists for t in outputs]) if async_op else None


@seen_as("gather_", lambda tensor, gather_list, dst, group, async_op, group_dst: _in(group, "gather", lambda g: (
    [gather_list] if gather_list else [], [tensor], g, root_of("gather", g, 0 if dst is None and group_dst is None else dst, group_dst), async_op)))
def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: _Group = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:
    """`gather_list` of rank `dst` becomes the tensors of all ranks."""
    outputs = _tensors(gather_list or [], "gather_list")
    _same_dtype(*outputs, _tensor(tensor, "tensor"))
    group = member(group, "gather")
    if group is None:
        return None
    root, me = root_of("gather", group, 0 if dst is None and group_dst is None else dst, group_dst), group.rank()
    _only_at_root(outputs, me == root, "gather_list", "destination")
    if me == root:
        _same_shape(_listed(outputs, group, "gather"), tensor, "gather")
    mine = read(tensor)
    return _do("gather", group, async_op, lambda exchange: arrays.gather(mine, [mine] * group.size(), root, me, group.size(), exchange), _all_written(outputs))


def _only_at_root(tensors: list[Tensor], at_root: bool, name: str, role: str) -> None:
    if at_root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")
    if tensors and not at_root:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")


@seen_as("scatter_", lambda tensor, scatter_list, src, group, async_op, group_src: _in(group, "scatter", lambda g: (
    [tensor], [scatter_list] if scatter_list else [], g, root_of("scatter", g, 0 if src is None and group_src is None else src, group_src), async_op)))
def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: _Group = None, async_op: bool = False,
            group_src: int | None = None) -> Work | None:
    """`tensor` becomes this rank's of the tensors of rank `src`."""
    inputs = _tensors(scatter_list or [], "scatter_list")
    _same_dtype(_tensor(tensor, "tensor"), *inputs)
    group = member(group, "scatter")
    if group is None:
        return None
    root, me = root_of("scatter", group, 0 if src is None and group_src is None else src, group_src), group.rank()
    _only_at_root(inputs, me == root, "scatter_list", "source")
    if me == root:
        _same_shape(_listed(inputs, group, "scatter"), tensor, "scatter")
    parts = [read(t) for t in inputs]
    return _do("scatter", group, async_op, lambda exchange: arrays.scatter(parts, _array_like(tensor), root, me, exchange),
               lambda made: [written(tensor, made)])


@seen_as("reduce_scatter_", lambda output, input_list, op, group, async_op: _in(group, "reduce_scatter", lambda g: (
    [output], [input_list], g, op, async_op)))
def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: _Group = None, async_op: bool = False) -> Work | None:
    """`output` becomes this rank's part of the reduction of all lists."""
    inputs = _tensors(input_list, "input_list")
    _same_dtype(_tensor(output, "output"), *inputs)
    group = member(group, "reduce_scatter")
    if group is None:
        return None
    _same_shape(_listed(inputs, group, "reduce_scatter")[group.rank():group.rank() + 1], output, "reduce_scatter")
    return _reduce_scattered(output, [read(t) for t in inputs], op, group, async_op)


@seen_as("_reduce_scatter_base_", lambda output, input, op, group, async_op: _in(group, "reduce_scatter_tensor", lambda g: (
    output, input, g, op, async_op)))
def reduce_scatter_single(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: _Group = None, async_op: bool = False) -> Work | None:
    """`output` becomes this rank's part of the reduction of all inputs, whose parts lie one after the other."""
    _same_dtype(_tensor(output, "output"), _tensor(input, "input"))
    group = member(group, "reduce_scatter_tensor")
    if group is None:
        return None
    _multiple(input, output, group.size(), "reduce_scatter")
    return _reduce_scattered(output, np.split(read(input).reshape(-1), group.size()), op, group, async_op)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: _Group = None, async_op: bool = False) -> Work | None:
    """`all_gather_single`, by its old name."""
    _deprecated("all_gather_into_tensor", "is deprecated. Please use `torch.distributed.all_gather_single` instead.")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: _Group = None, async_op: bool = False) -> Work | None:
    """`reduce_scatter_single`, by its old name."""
    _deprecated("reduce_scatter_tensor", "is deprecated. Please use `torch.distributed.reduce_scatter_single` instead.")
    return reduce_scatter_single(output, input, op, group, async_op)


def _deprecated(name: str, words: str) -> None:
    """torch's warning about a collective, on the caller's line."""
    warnings.warn(f"`torch.distributed.{name}` {words}", FutureWarning, stacklevel=3)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: _Group = None, async_op: bool = False) -> Work | None:
    """`all_gather_single`, by its old name."""
    _deprecated("_all_gather_base", "is a private function and will be deprecated. Please use `torch.distributed.all_gather_single` instead.")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def _reduce_scatter_base(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: _Group = None, async_op: bool = False) -> Work | None:
    """`reduce_scatter_single`, by its old name."""
    _deprecated("_reduce_scatter_base", "is a private function and will be deprecated. Please use `torch.distributed.reduce_scatter_single` instead.")
    return reduce_scatter_single(output, input, op, group, async_op)


def _reduce_scattered(output: Tensor, parts: list[np.ndarray], op: Any, group: ProcessGroup, async_op: bool) -> Work | None:
    name = reduction(op, output, "reduce_scatter")
    return _do("reduce_scatter", group, async_op, lambda exchange: arrays.reduce_scatter(parts, name, group.rank(), exchange), lambda made: [written(output, made)])


@seen_as("alltoall_", lambda output_tensor_list, input_tensor_list, group, async_op: _in(group, "all_to_all", lambda g: (
    output_tensor_list, input_tensor_list, g, async_op)))
def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: _Group = None, async_op: bool = False) -> Work | None:
    """Tensor r of the inputs goes to rank r; tensor r of the outputs becomes what came from rank r."""
    outputs, inputs = _tensors(output_tensor_list, "output_tensor_list"), _tensors(input_tensor_list, "input_tensor_list")
    _same_dtype(*outputs, *inputs)
    group = member(group, "all_to_all")
    if group is None:
        return None
    parts, likes = [read(t) for t in _listed(inputs, group, "alltoall")], [_array_like(t) for t in _listed(outputs, group, "alltoall")]
    return _do("all_to_all", group, async_op, lambda exchange: arrays.all_to_all(parts, likes, group.rank(), exchange), _all_written(outputs))


@seen_as("alltoall_base_", lambda output, input, output_split_sizes, input_split_sizes, group, async_op: _in(group, "all_to_all_single", lambda g: (
    output, input, g, list(output_split_sizes or []), list(input_split_sizes or []), async_op)))
def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None, input_split_sizes: list[int] | None = None,
                      group: _Group = None, async_op: bool = False) -> Work | None:
    """`all_to_all` of pieces along the first dimension: equal ones, or of the sizes given."""
    _same_dtype(_tensor(output, "output"), _tensor(input, "input"))
    group = member(group, "all_to_all_single")
    if group is None:
        return None
    parts, likes = _split(read(input), input_split_sizes, group), _split(_array_like(output), output_split_sizes, group)
    return _do("all_to_all_single", group, async_op, lambda exchange: arrays.all_to_all(parts, likes, group.rank(), exchange),
               lambda made: [written(output, np.concatenate(made))])


def _split(array: np.ndarray, sizes: list[int] | None, group: ProcessGroup) -> list[np.ndarray]:
    if not sizes:
        if array.shape[0] % group.size():
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return np.split(array, group.size())
    if len(sizes) != group.size():
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != array.shape[0]:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return np.split(array, np.cumsum(sizes)[:-1])


