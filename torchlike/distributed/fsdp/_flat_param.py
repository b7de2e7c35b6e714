"""The parameters of one FullyShardedDataParallel unit, one behind the other in a flat vector of which each rank has a piece."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.dtype import dtype
from ..._functions import torch
from ..._tensor import Tensor, as_tensor_value
from ...autograd.function import Function
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ..collectives import read
from ..process_group import ProcessGroup
from ._packing import gathered, summed, summed_pieces
from ._places import Places
from .api import MixedPrecision

_ALIGNED = 16  # bytes to which parameters begin that keep their own names, as in torch


class FlatParameter(Parameter):
    """A rank's piece of a unit's flat vector."""


class FlatMember:
    """One parameter: its places [(module, name)], its shape, and where it begins in the flat vector."""

    def __init__(self, param: Parameter, places: Places, begin: int) -> None:
        self.places, self.shape, self.numel, self.begin = places, tuple(param.shape), param.numel(), begin
        self.requires_grad, self.name = param.requires_grad, ""


class FlatHandle:
    """Cuts, gathers and reduces the flat vector. `leaves` are what the optimizer sees: one piece, or (`own_names`) this rank's part of each parameter."""

    def __init__(self, module: Module, params: list[tuple[Parameter, Places]], shards: ProcessGroup | None,
                 replicas: ProcessGroup | None, own_names: bool, precision: MixedPrecision, compute_device: Any, on_host: bool) -> None:
        kinds = {p.dtype for p, _ in params}
        if len(kinds) > 1:
            raise ValueError(f"Must flatten tensors with uniform dtype but got {list(kinds)[0]} and {list(kinds)[1]}")
        if not own_names and len({p.requires_grad for p, _ in params}) > 1:
            raise ValueError("Must flatten tensors with uniform `requires_grad` when `use_orig_params=False`")
        self.module, self.shards, self.replicas, self.own_names, self.precision, self.device = module, shards, replicas, own_names, precision, compute_device
        self.dtype: dtype = params[0][0].dtype
        self.size, self.me = (1, 0) if shards is None else (shards.size(), shards.rank())
        self.members: list[FlatMember] = []
        end, step = 0, _ALIGNED // self.dtype.itemsize if own_names else 1
        for p, places in params:
            self.members.append(FlatMember(p, places, end + -end % step))
            end = self.members[-1].begin + p.numel()
        self.total = end + -end % self.size
        self.chunk = self.total // self.size
        home = "cpu" if on_host else compute_device
        spans = [(m.begin, m.begin + m.numel) for m in self.members] if own_names else [(0, self.total)]
        mine = (self.me * self.chunk, (self.me + 1) * self.chunk)
        self.spans = [(max(a, mine[0]), max(min(b, mine[1]), max(a, mine[0]))) for a, b in spans]  # of the leaves, in the flat vector
        flat = self.packed([read(p) for p, _ in params])
        self.leaves: list[Parameter] = []
        for i, (a, b) in enumerate(self.spans):
            source = params[i][0] if own_names else params[0][0]
            shape = source.shape if own_names and shards is None else (b - a,)
            leaf = Parameter(as_tensor_value(flat[a:b].reshape(tuple(shape)).copy(), source.device).to(home), source.requires_grad)
            if not own_names:
                leaf.__class__ = FlatParameter
            self.leaves.append(leaf)
        self.whole: list[Tensor] | None = None
        self.pending: np.ndarray | None = None  # the flat gradient that waits for a backward that reduces
        self.reduces = True
        self.show_pieces()

    # -- the flat vector -----------------------------------------------------------------------------------------------------

    def packed(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        """The flat vector of parameters' arrays; zeros for None."""
        kind = next((a.dtype for a in arrays if a is not None), self.dtype.np)
        flat = np.zeros(self.total, kind)
        for m, a in zip(self.members, arrays):
            if a is not None:
                flat[m.begin:m.begin + m.numel] = a.reshape(-1)
        return flat

    def unpacked(self, flat: np.ndarray) -> list[np.ndarray]:
        """The parameters' arrays, of the flat vector."""
        return [flat[m.begin:m.begin + m.numel].reshape(m.shape) for m in self.members]

    def piece_of(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """This rank's piece, of the leaves' arrays."""
        piece = np.zeros(self.chunk, parts[0].dtype)
        for (a, b), part in zip(self.spans, parts):
            piece[a - self.me * self.chunk:b - self.me * self.chunk] = part.reshape(-1)
        return piece

    def parts_of(self, piece: np.ndarray) -> list[np.ndarray]:
        """The leaves' arrays, of this rank's piece."""
        parts = [piece[a - self.me * self.chunk:b - self.me * self.chunk] for a, b in self.spans]
        return [part.reshape(m.shape) for part, m in zip(parts, self.members)] if self.own_names and self.shards is None else parts

    def gathered(self, parts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Parameters' arrays, of arrays that lie as the leaves."""
        piece = self.piece_of(parts)
        return self.unpacked(piece if self.shards is None else np.concatenate([p for p, in gathered([piece], [[(self.chunk,)]] * self.size, self.shards)]))

    def cut(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Arrays that lie as the leaves, of parameters' arrays."""
        return self.parts_of(self.packed(arrays)[self.me * self.chunk:(self.me + 1) * self.chunk])

    # -- what the modules have -------------------------------------------------------------------------------------------------

    def show_pieces(self) -> None:
        """Give the modules pieces: the leaves under their own names, or nothing but shapes."""
        self.whole = None
        if not self.own_names:
            self.module._parameters["_flat_param"] = self.leaves[0]
        for i, m in enumerate(self.members):
            for module, name in m.places:
                if self.own_names:
                    module._parameters[name] = self.leaves[i]
                else:
                    module._parameters.pop(name, None)
                    object.__setattr__(module, name, torch.empty(m.shape, dtype=self.dtype, device="meta"))

    def show_whole(self, tensors: Sequence[Tensor], as_parameters: bool) -> None:
        """Give the modules whole tensors."""
        self.whole = list(tensors)
        if as_parameters:
            self.module._parameters.pop("_flat_param", None)
        for m, t in zip(self.members, tensors):
            for module, name in m.places:
                if as_parameters:
                    module.__dict__.pop(name, None)
                    module._parameters[name] = t
                else:
                    object.__setattr__(module, name, t)

    def unshard(self) -> None:
        """Gather the parameters for a forward."""
        whole = list(_Unflatten.apply(self, *self.leaves))
        if self.own_names:
            for w in whole:
                w.__class__ = Parameter
        self.show_whole(whole, self.own_names)

    def summon(self, with_grads: bool = False, device: Any = None) -> None:
        """Gather the parameters as leaves of their own."""
        made = [Parameter(as_tensor_value(a.copy(), device or self.device), m.requires_grad)
                for a, m in zip(self.gathered([read(x) for x in self.leaves]), self.members)]
        if with_grads:
            for p, g in zip(made, self.gathered([np.zeros(x.numel(), x.dtype.np) if x.grad is None else read(x.grad) for x in self.leaves])):
                p.grad = as_tensor_value(g.copy(), p.device)
        self.show_whole(made, True)

    def write_back(self, with_grads: bool = False) -> None:
        """Put whole parameters that were summoned, and maybe changed, into the leaves."""
        shown = [m.places[0][0]._parameters[m.places[0][1]] for m in self.members]
        for leaf, part in zip(self.leaves, self.cut([read(p) for p in shown])):
            leaf.data.copy_(as_tensor_value(part.copy(), leaf.device))
        if with_grads and any(p.grad is not None for p in shown):
            for leaf, part in zip(self.leaves, self.cut([None if p.grad is None else read(p.grad) for p in shown])):
                leaf.grad = as_tensor_value(part.copy(), leaf.device)

    # -- gradients -------------------------------------------------------------------------------------------------------------

    def reduce(self, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """The leaves' gradients, of this rank's gradients of whole parameters: the mean over all ranks."""
        wanted = self.precision.reduce_dtype or next(g.dtype for g in grads if g is not None)
        flat = self.packed([None if g is None else read(g.to(wanted)) for g in grads])
        if self.pending is not None:
            flat = flat + self.pending
        if not self.reduces:
            self.pending = flat
            return [None] * len(self.leaves)
        self.pending, ranks = None, self.size
        piece = flat
        if self.shards is not None:
            (piece,) = summed_pieces([[p] for p in np.split(flat, self.size)], self.shards)
        if self.replicas is not None:
            (piece,) = summed([piece], self.replicas)
            ranks *= self.replicas.size()
        piece = (piece / piece.dtype.type(ranks)).astype(piece.dtype)
        return [as_tensor_value(part.copy(), leaf.device).to(leaf.dtype) if part.size else None for part, leaf in zip(self.parts_of(piece), self.leaves)]


class _Unflatten(Function):
    @staticmethod
    def forward(ctx: Any, handle: FlatHandle, *leaves: Tensor) -> tuple[Tensor, ...]:
        ctx.handle = handle
        ctx.set_materialize_grads(False)
        kind = handle.precision.param_dtype
        found = handle.gathered([read(x if kind is None else x.to(kind)) for x in leaves])
        made = [as_tensor_value(a.copy(), handle.device) for a in found]
        ctx.mark_non_differentiable(*[t for t, m in zip(made, handle.members) if not m.requires_grad])
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        return None, *ctx.handle.reduce([None if g is None else g.detach() for g in grads])
