"""`torch.ops._c10d_functional` and its kin: collectives that return new tensors as operators, which classes and modes with `__torch_dispatch__` see.

A group is given by its name. Results are ready when they return, so `wait_tensor` returns its tensor.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._custom_operator import DEFINED, CustomOpDef
from .._functions import torch
from .._tensor import Tensor
from ..autograd.function import Function
from . import collectives as c
from ._counting import counted
from .process_group import GroupMember, ProcessGroup, ReduceOp, default_group

_OPERATIONS = {"sum": "SUM", "avg": "AVG", "product": "PRODUCT", "min": "MIN", "max": "MAX", "band": "BAND", "bor": "BOR", "bxor": "BXOR"}


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of this process that has a name. RuntimeError where there is none."""
    found = next((g for g in GroupMember.groups if g.group_name == str(group_name)), None)
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")
    return found


def _group(given: Any) -> ProcessGroup:
    return given if isinstance(given, ProcessGroup) else _resolve_process_group(given)


def _op(name: str) -> ReduceOp.RedOpType:
    if name not in _OPERATIONS:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")
    return ReduceOp.RedOpType[_OPERATIONS[name]]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, once its collective is over."""
    return tensor


def all_reduce_(input: Tensor, reduce_op: str, group_name: Any) -> Tensor:
    """All ranks' tensors combined, in the tensor's place."""
    c.all_reduce(input, _op(reduce_op), _group(group_name))
    return input


def all_reduce(input: Tensor, reduce_op: str, group_name: Any) -> Tensor:
    """All ranks' tensors combined."""
    return all_reduce_(input.detach().clone(), reduce_op, group_name)


def broadcast_(input: Tensor, src: int, group_name: Any) -> Tensor:
    """The tensor of rank `src` of the group, in the tensor's place."""
    c.broadcast(input, group=_group(group_name), group_src=src)
    return input


def broadcast(input: Tensor, src: int, group_name: Any) -> Tensor:
    """The tensor of rank `src` of the group."""
    return broadcast_(input.detach().clone(), src, group_name)


def all_gather_into_tensor_out(input: Tensor, group_size: int, group_name: Any, *, out: Tensor) -> Tensor:
    """All ranks' tensors, one behind the other, in `out`."""
    c.all_gather_into_tensor(out, input.detach().contiguous(), _group(group_name))
    return out


def _gathered(input: Tensor, group_size: int) -> Tensor:
    return torch.empty((input.shape[0] * group_size, *input.shape[1:]) if input.ndim else (group_size,), dtype=input.dtype, device=input.device)


def all_gather_into_tensor(input: Tensor, group_size: int, group_name: Any) -> Tensor:
    """All ranks' tensors, one behind the other: (n, ...) to (group_size * n, ...)."""
    return all_gather_into_tensor_out(input, group_size, group_name, out=_gathered(input, group_size))


def reduce_scatter_tensor_out(input: Tensor, reduce_op: str, group_size: int, group_name: Any, *, out: Tensor) -> Tensor:
    """This rank's rows of all ranks' tensors combined, in `out`."""
    c.reduce_scatter_tensor(out, input.detach().contiguous(), _op(reduce_op), _group(group_name))
    return out


def _scattered(input: Tensor, group_size: int) -> Tensor:
    if input.ndim == 0 or input.shape[0] % group_size:
        raise RuntimeError(f"The first dimension of the reduce_scatter input ({input.shape[0] if input.ndim else 1}) is not divisible by the group size ({group_size}).")
    return torch.empty((input.shape[0] // group_size, *input.shape[1:]), dtype=input.dtype, device=input.device)


def reduce_scatter_tensor(input: Tensor, reduce_op: str, group_size: int, group_name: Any) -> Tensor:
    """This rank's rows of all ranks' tensors combined: (n, ...) to (n / group_size, ...). RuntimeError where n is no multiple."""
    return reduce_scatter_tensor_out(input, reduce_op, group_size, group_name, out=_scattered(input, group_size))


def _exchanged(input: Tensor, output_split_sizes: Sequence[int]) -> Tensor:
    return torch.empty((sum(output_split_sizes), *input.shape[1:]), dtype=input.dtype, device=input.device)


def all_to_all_single(input: Tensor, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], group_name: Any) -> Tensor:
    """What every rank has for this one: rows by `input_split_sizes` go out, by `output_split_sizes` come in."""
    made = _exchanged(input, output_split_sizes)
    c.all_to_all_single(made, input.detach().contiguous(), list(output_split_sizes), list(input_split_sizes), _group(group_name))
    return made


def _each(f: Callable) -> Callable:
    """The same for each of several tensors."""
    return lambda inputs, *settings: [f(x, *settings) for x in inputs]


_REDUCED, _SIZED = "str reduce_op, Any group_name", "int group_size, Any group_name"
_SPLIT = "(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, Any group_name) -> Tensor"


def _like(input: Tensor, *settings: Any) -> Tensor:
    return torch.empty_like(input)


def _shape_of_gathered(input: Tensor, group_size: int, group_name: Any) -> Tensor:
    return _gathered(input, group_size)


def _shape_of_scattered(input: Tensor, reduce_op: str, group_size: int, group_name: Any) -> Tensor:
    return _scattered(input, group_size)


def _shape_of_exchanged(input: Tensor, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], group_name: Any) -> Tensor:
    return _exchanged(input, output_split_sizes)


def _itself(input: Tensor, *settings: Any) -> Tensor:
    return input


def _written_out(*args: Any, out: Tensor) -> Tensor:
    return out


# name, schema, kernel, and what it does to tensors without values
_TABLE = (
    ("wait_tensor", "(Tensor tensor) -> Tensor", wait_tensor, _itself),
    ("_wrap_tensor_autograd", "(Tensor input) -> Tensor", wait_tensor, _itself),  # what torch puts around a tensor that is not ready yet
    ("all_reduce", f"(Tensor input, {_REDUCED}) -> Tensor", all_reduce, _like),
    ("all_reduce_", f"(Tensor(a!) input, {_REDUCED}) -> Tensor(a!)", all_reduce_, _itself),
    ("all_reduce_coalesced", f"(Tensor[] inputs, {_REDUCED}) -> Tensor[]", _each(all_reduce), _each(_like)),
    ("all_reduce_coalesced_", f"(Tensor[](a!) inputs, {_REDUCED}) -> Tensor[](a!)", _each(all_reduce_), _each(_itself)),
    ("broadcast", "(Tensor input, int src, Any group_name) -> Tensor", broadcast, _like),
    ("broadcast_", "(Tensor(a!) input, int src, Any group_name) -> Tensor(a!)", broadcast_, _itself),
    ("all_gather_into_tensor", f"(Tensor input, {_SIZED}) -> Tensor", all_gather_into_tensor, _shape_of_gathered),
    ("all_gather_into_tensor_out", f"(Tensor input, {_SIZED}, *, Tensor(a!) out) -> Tensor(a!)", all_gather_into_tensor_out, _written_out),
    ("all_gather_into_tensor_coalesced", f"(Tensor[] inputs, {_SIZED}) -> Tensor[]", _each(all_gather_into_tensor), _each(_shape_of_gathered)),
    ("reduce_scatter_tensor", f"(Tensor input, str reduce_op, {_SIZED}) -> Tensor", reduce_scatter_tensor, _shape_of_scattered),
    ("reduce_scatter_tensor_out", f"(Tensor input, str reduce_op, {_SIZED}, *, Tensor(a!) out) -> Tensor(a!)", reduce_scatter_tensor_out, _written_out),
    ("reduce_scatter_tensor_coalesced", f"(Tensor[] inputs, str reduce_op, {_SIZED}) -> Tensor[]", _each(reduce_scatter_tensor), _each(_shape_of_scattered)),
    ("all_to_all_single", _SPLIT, all_to_all_single, _shape_of_exchanged),
)


def _define(namespace: str, name: str, schema: str, kernel: Callable, shape: Callable, kind: str = "default") -> None:
    made = CustomOpDef(namespace, name, schema, None)
    made._kernels[kind] = kernel if kind == "composite" or name.endswith(("wait_tensor", "_autograd")) else counted(
        f"c10d_functional.{name.removesuffix('_out').removesuffix('_')}", kernel)
    made.register_fake(shape)


# -- with gradients: each one's is the collective that brings the results' gradients back ------------------------------------------


def _gather_backward(g: Tensor, size: int, group: Any) -> tuple:
    return _operator("reduce_scatter_tensor")(g, "sum", size, group), None, None


def _scatter_backward(g: Tensor, op: str, size: int, group: Any) -> tuple:
    if op != "sum":
        raise RuntimeError(f"reduce_scatter_tensor backward only supports 'sum' reduction, got '{op}'")
    return _operator("all_gather_into_tensor")(g, size, group), None, None, None


def _exchange_backward(g: Tensor, came: Sequence[int], went: Sequence[int], group: Any) -> tuple:
    return _operator("all_to_all_single")(g, went, came, group), None, None, None


def _operator(name: str) -> CustomOpDef:
    return DEFINED[f"_c10d_functional::{name}"]


class _Collective(Function):
    """An operator, with the one that brings its gradient back."""

    @staticmethod
    def forward(ctx, name, backward, input, *settings):
        ctx.bring_back, ctx.settings = backward, settings
        return _operator(name)(input, *settings)

    @staticmethod
    def backward(ctx, g):
        return None, None, *ctx.bring_back(g.contiguous(), *ctx.settings)


_DERIVATIVES = {"all_gather_into_tensor": _gather_backward, "reduce_scatter_tensor": _scatter_backward, "all_to_all_single": _exchange_backward}
for _row in _TABLE:
    _define("_c10d_functional", *_row)
for _name, _schema, _, _shape in _TABLE:
    if _name in _DERIVATIVES:
        _define("_c10d_functional_autograd", _name, _schema, functools.partial(_Collective.apply, _name, _DERIVATIVES[_name]), _shape, "composite")


# -- the older ones, `torch.ops.c10d_functional`, which say their group by its ranks in the world ------------------------------------


def _of_ranks(tag: str, ranks: Sequence[int], group_size: int) -> ProcessGroup:
    found = next((g for g in GroupMember.groups if g.ranks == list(ranks)), None)
    if found is None:
        default_group()  # whose error says that there are no groups yet
        raise RuntimeError(f"There is no process group of the ranks {list(ranks)}: make it with torch.distributed.new_group")
    return found


_RANKS = "str tag, int[] ranks, int group_size"
_define("c10d_functional", "wait_tensor", "(Tensor self) -> Tensor", wait_tensor, _itself)
for _name, _text, _kernel, _shape in (
    ("all_reduce", "Tensor self, str reduceOp", lambda x, op, *g: all_reduce(x, op, _of_ranks(*g)), _like),
    ("broadcast", "Tensor self, int src", lambda x, src, *g: broadcast(x, src, _of_ranks(*g)), _like),
    ("all_gather_into_tensor", "Tensor shard", lambda x, *g: all_gather_into_tensor(x, g[-1], _of_ranks(*g)), lambda x, *g: _gathered(x, g[-1])),
    ("reduce_scatter_tensor", "Tensor input, str reduceOp", lambda x, op, *g: reduce_scatter_tensor(x, op, g[-1], _of_ranks(*g)),
     lambda x, op, *g: _scattered(x, g[-1])),
):
    _define("c10d_functional", _name, f"({_text}, {_RANKS}) -> Tensor", _kernel, _shape)
    if _name != "broadcast":
        _first = _text.replace("Tensor ", "Tensor[] ").replace("shard", "input").replace("Tensor[] input, str", "Tensor[] inputs, str")
        _define("c10d_functional", f"{_name}_coalesced", f"({_first}, {_RANKS}) -> Tensor[]", _each(_kernel), _each(_shape))


def _exchanged_by_ranks(input: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, *g: Any) -> Tensor:
    even = [input.shape[0] // g[-1]] * g[-1]
    return all_to_all_single(input, output_split_sizes or even, input_split_sizes or even, _of_ranks(*g))


_define("c10d_functional", "all_to_all_single", f"(Tensor input, SymInt[]? output_split_sizes, SymInt[]? input_split_sizes, {_RANKS}) -> Tensor",
        _exchanged_by_ranks, lambda x, came, went, *g: _exchanged(x, came or [x.shape[0]]))
