"""Changes of placement along one dimension of a mesh, on the local tensors: each is a function through which gradients flow.

A gradient lies as its tensor does, and is whole everywhere where the tensor is a sum of terms. So the gradient of one move is another move.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..._tensor import Tensor, as_tensor_value
from ...autograd.function import Function
from .. import arrays
from .._counting import tell
from ..collectives import read
from ..process_group import ProcessGroup
from .placement_types import pieces, share


def _made(array: np.ndarray, like: Tensor) -> Tensor:
    return as_tensor_value(np.ascontiguousarray(array).reshape(array.shape), like.device)


def _cut(array: np.ndarray, dim: int, group: ProcessGroup) -> list[np.ndarray]:
    return np.split(array, np.cumsum(pieces(array.shape[dim], group.size()))[:-1], axis=dim)


def _like(array: np.ndarray, dim: int, size: int) -> np.ndarray:
    """An array of another length that holds nothing."""
    shape = (*array.shape[:dim], size, *array.shape[dim + 1:])
    return np.broadcast_to(np.zeros((), array.dtype), shape)


class Gather(Function):
    """The whole, of pieces of a dimension whose length in all is `size`."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, dim: int, size: int, group: ProcessGroup) -> Tensor:
        ctx.dim, ctx.group = dim, group
        mine = read(local)
        likes = [_like(mine, dim, n) for n in pieces(size, group.size())]
        tell("c10d_functional.all_gather_into_tensor")
        return _made(np.concatenate(arrays.all_gather(mine, likes, group.rank(), group.exchange("all_gather")), axis=dim), local)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return Piece.apply(g, ctx.dim, ctx.group), None, None, None


class Piece(Function):
    """This rank's piece of what every rank has."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, dim: int, group: ProcessGroup) -> Tensor:
        ctx.dim, ctx.group, ctx.size = dim, group, local.shape[dim]
        size, begin = share(ctx.size, group.size(), group.rank())
        return local.narrow(dim, begin, size).clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return Gather.apply(g, ctx.dim, ctx.size, ctx.group), None, None


class Reduce(Function):
    """The whole, of every rank's term."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, op: str, group: ProcessGroup) -> Tensor:
        ctx.share = 1 / group.size() if op == "avg" else 1
        tell("c10d_functional.all_reduce")
        return _made(arrays.all_reduce(read(local), op.upper(), group.size(), group.rank(), group.exchange("all_reduce")), local)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return g if ctx.share == 1 else g * ctx.share, None, None


class ReduceScatter(Function):
    """This rank's piece of the whole, of every rank's term."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, op: str, dim: int, group: ProcessGroup) -> Tensor:
        ctx.dim, ctx.group, ctx.size, ctx.share = dim, group, local.shape[dim], 1 / group.size() if op == "avg" else 1
        parts = _cut(read(local), dim, group)
        tell("c10d_functional.reduce_scatter_tensor")
        return _made(arrays.reduce_scatter(parts, op.upper(), group.rank(), group.exchange("reduce_scatter")), local)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        g = Gather.apply(g, ctx.dim, ctx.size, ctx.group)
        return g if ctx.share == 1 else g * ctx.share, None, None, None


class Exchange(Function):
    """Pieces of dimension `to`, of pieces of dimension `dim` whose length in all is `size`."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, dim: int, to: int, size: int, group: ProcessGroup) -> Tensor:
        ctx.dim, ctx.to, ctx.group, ctx.size = dim, to, group, local.shape[to]
        parts = _cut(read(local), to, group)
        likes = [_like(parts[group.rank()], dim, n) for n in pieces(size, group.size())]
        tell("c10d_functional.all_to_all_single")
        return _made(np.concatenate(arrays.all_to_all(parts, likes, group.rank(), group.exchange("all_to_all")), axis=dim), local)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return Exchange.apply(g, ctx.to, ctx.dim, ctx.size, ctx.group), None, None, None, None


class Terms(Function):
    """Equal terms whose sum is the whole that every rank has."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, op: str, group: ProcessGroup) -> Tensor:
        return local / group.size() if op == "sum" else local.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return g, None, None


class Spread(Function):
    """What every rank has, used by each for its part of the work: the gradient is the sum of what the ranks find."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        return Reduce.apply(g, "sum", ctx.group), None
