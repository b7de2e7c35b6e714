"""Collectives through which gradients flow: on one rank each is a copy, differentiable as one."""
from collections.abc import Sequence

from ..._tensor import Tensor
from ..collectives import _copy, _root
from ..process_group import ProcessGroup, ReduceOp, default_group

_Group = ProcessGroup | None


def _copied(tensor: Tensor, group: _Group, what: str, root: int = 0) -> Tensor:
    default_group(group)
    _root(what, root)
    return tensor.clone()


def _written(output: Tensor, source: Tensor, group: _Group, what: str) -> Tensor:
    """`source`'s copy, and its values in `output` too."""
    made = _copied(source, group, what)
    _copy(output, source, what)
    return made


def broadcast(tensor: Tensor, src: int, group: _Group = None) -> Tensor:
    """The tensor of rank `src`."""
    return _copied(tensor, group, "broadcast", src)


def gather(tensor: Tensor, dst: int = 0, group: _Group = None) -> tuple[Tensor]:
    """Every rank's tensor, at rank `dst`."""
    return (_copied(tensor, group, "gather", dst),)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: _Group = None) -> Tensor:
    """This rank's of rank `src`'s tensors."""
    return _copied(tensors[0], group, "scatter", src)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: _Group = None) -> Tensor:
    """All ranks' tensors combined, at rank `dst`."""
    return _copied(tensor, group, "reduce", dst)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: _Group = None) -> Tensor:
    """This rank's part of the lists of all ranks combined."""
    return _written(output, input_list[0], group, "reduce_scatter")


def all_gather(tensor: Tensor, group: _Group = None) -> tuple[Tensor]:
    """Every rank's tensor."""
    return (_copied(tensor, group, "all_gather"),)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: _Group = None) -> tuple[Tensor, ...]:
    """What every rank has for this one."""
    return tuple(_written(o, i, group, "all_to_all") for o, i in zip(output_tensor_list, input_tensor_list))


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
                      input_split_sizes: Sequence[int] | None = None, group: _Group = None) -> Tensor:
    """What every rank has for this one, in one tensor."""
    return _written(output, input, group, "all_to_all_single")


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: _Group = None) -> Tensor:
    """All ranks' tensors combined."""
    return _copied(tensor, group, "all_reduce")
