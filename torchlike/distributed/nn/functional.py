"""Collectives through which gradients flow. Each one's gradient is the collective that brings the results' gradients back."""

from __future__ import annotations

from collections.abc import Sequence

from ..._functions import torch
from ..._tensor import Tensor
from ...autograd.function import Function
from .. import collectives as c
from .. import process_group as _process_group
from ..process_group import ProcessGroup, ReduceOp, default_group

_Group = ProcessGroup | None


def _summed(tensor: Tensor, group: ProcessGroup, op: ReduceOp = ReduceOp.SUM) -> Tensor:
    made = tensor.detach().clone()
    c.all_reduce(made, op, group)
    return made


def _exchanged(inputs: Sequence[Tensor], outputs: Sequence[Tensor], group: ProcessGroup) -> tuple[Tensor, ...]:
    """Tensor r to rank r: what came from every rank, in tensors like `outputs`."""
    made = [torch.empty_like(o) for o in outputs]
    c.all_to_all(made, [i.detach().contiguous() for i in inputs], group)
    return tuple(made)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        made = tensor.detach().clone()
        c.broadcast(made, src, group)
        return made

    @staticmethod
    def backward(ctx, g):
        g = g.detach().clone()
        c.reduce(g, ctx.src, ReduceOp.SUM, ctx.group)
        at_source = c.root_of("broadcast", ctx.group, ctx.src, None) == ctx.group.rank()
        return None, None, g if at_source else torch.zeros_like(g)


class _Gather(Function):
    @staticmethod
    def forward(ctx, dst, group, tensor):
        ctx.dst, ctx.group = dst, group
        made = [torch.zeros_like(tensor) for _ in range(group.size())]
        at_root = c.root_of("gather", group, dst, None) == group.rank()
        c.gather(tensor.detach().contiguous(), made if at_root else None, dst, group)
        return tuple(made)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, _scattered(list(grads), ctx.dst, ctx.group)


def _scattered(tensors: list[Tensor], src: int, group: ProcessGroup) -> Tensor:
    made = torch.empty_like(tensors[0])
    at_root = c.root_of("scatter", group, src, None) == group.rank()
    c.scatter(made, [t.detach().contiguous() for t in tensors] if at_root else None, src, group)
    return made


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        return _scattered(list(tensors), src, group)

    @staticmethod
    def backward(ctx, g):
        return None, None, *gather(g, ctx.src, ctx.group)


class _Reduce(Function):
    @staticmethod
    def forward(ctx, dst, op, group, tensor):
        ctx.dst, ctx.group = dst, group
        made = tensor.detach().clone()
        c.reduce(made, dst, op, group)
        return made

    @staticmethod
    def backward(ctx, g):
        return None, None, None, broadcast(g, ctx.dst, ctx.group)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, outputs, *inputs):
        ctx.group, ctx.likes = group, [torch.zeros_like(i) for i in inputs]
        return _exchanged(inputs, outputs, group)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *_exchanged(grads, ctx.likes, ctx.group)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, output, *inputs):
        ctx.group = group
        made = torch.empty_like(output)
        c.reduce_scatter(made, [i.detach().contiguous() for i in inputs], op, group)
        return made

    @staticmethod
    def backward(ctx, g):
        return None, None, None, *all_gather(g, ctx.group)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        made = [torch.empty_like(tensor) for _ in range(group.size())]
        c.all_gather(made, tensor.detach().contiguous(), group)
        return tuple(made)

    @staticmethod
    def backward(ctx, *grads):
        return None, sum(_exchanged(grads, grads, ctx.group))


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        return _summed(tensor, group, op)

    @staticmethod
    def backward(ctx, g):
        return None, None, _summed(g, ctx.group, ctx.op)


def broadcast(tensor: Tensor, src: int, group: _Group = None) -> Tensor:
    """The tensor of rank `src`."""
    return _Broadcast.apply(src, default_group(group), tensor)


def gather(tensor: Tensor, dst: int = 0, group: _Group = None) -> tuple[Tensor, ...]:
    """Every rank's tensor at rank `dst`, zeros elsewhere."""
    return _Gather.apply(dst, default_group(group), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: _Group = None) -> Tensor:
    """This rank's of rank `src`'s tensors."""
    return _Scatter.apply(src, default_group(group), *tensors)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: _Group = None) -> Tensor:
    """All ranks' tensors combined, at rank `dst`."""
    return _Reduce.apply(dst, op, default_group(group), tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: _Group = None) -> Tensor:
    """This rank's part of the lists of all ranks combined; in `output` too."""
    made = _ReduceScatter.apply(op, default_group(group), output, *input_list)
    c.written(output, c.read(made))
    return made


def all_gather(tensor: Tensor, group: _Group = None) -> tuple[Tensor, ...]:
    """Every rank's tensor."""
    return _AllGather.apply(default_group(group), tensor)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: _Group = None) -> tuple[Tensor, ...]:
    """What every rank has for this one; in the outputs too."""
    made = _AllToAll.apply(default_group(group), output_tensor_list, *input_tensor_list)
    for o, m in zip(output_tensor_list, made):
        c.written(o, c.read(m))
    return made


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
                      input_split_sizes: Sequence[int] | None = None, group: _Group = None) -> Tensor:
    """What every rank has for this one, in one tensor; in `output` too."""
    size = default_group(group).size()
    outputs = output.split(list(output_split_sizes or [len(output) // size] * size))
    inputs = input.split(list(input_split_sizes or [len(input) // size] * size))
    made = torch.cat(_AllToAll.apply(default_group(group), outputs, *inputs))
    c.written(output, c.read(made))
    return made


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: _Group = None) -> Tensor:
    """All ranks' tensors combined."""
    return _AllReduce.apply(op, default_group(group), tensor)


globals()["group"] = _process_group.group  # libraries import it from here, where parameters have the name
