"""Tensors copied to several devices, and summed from them: what synchronized batch norms in libraries are written with."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from torchlike._tensor import Tensor
from torchlike.autograd.function import Function
from torchlike.nn.parallel.scatter_gather import _place

__all__ = ["Broadcast", "ReduceAddCoalesced"]


def _copies(places: Sequence[Any], tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """All tensors for the first place, then all for the second, and so on."""
    return tuple(t.to(place, copy=True) for place in places for t in tensors)


def _sums(place: Any, n: int, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The inverse order of `_copies`: sum i is over the tensors i, i + n, i + 2n, ..."""
    return tuple(reduce(add, (t.to(place) for t in tensors[i::n])) for i in range(n))


class Broadcast(Function):
    """`apply(devices, *tensors)`: the tensors on each device, one device after the other."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Sequence[Any], *inputs: Tensor) -> tuple[Tensor, ...]:
        if any(x.device.type == "cpu" for x in inputs):
            raise AssertionError("Broadcast function not implemented for CPU tensors")
        ctx.n, ctx.place = len(inputs), inputs[0].device if inputs else None
        return _copies([_place(x) for x in target_gpus], inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, *_sums(ctx.place, ctx.n, grads)


class ReduceAddCoalesced(Function):
    """`apply(destination, n, *tensors)`: n sums on one device, of n tensors from each of several."""

    @staticmethod
    def forward(ctx: Any, destination: Any, num_inputs: int, *grads: Tensor) -> tuple[Tensor, ...]:
        ctx.places = [x.device for x in grads[::num_inputs]]
        for i, x in enumerate(grads[::num_inputs]):
            if x.device.type == "cpu":
                raise AssertionError(f"reduce_add expects all inputs to be on GPUs, but input {i} is on CPU")
        return _sums(_place(destination), num_inputs, grads)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *_copies(ctx.places, grads)
