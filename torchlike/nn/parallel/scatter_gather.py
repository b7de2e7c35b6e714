"""Batches cut into pieces for several devices, and results put together again, inside nested containers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlike._core.device import device as _device
from torchlike._public import FUNCTIONS as F
from torchlike._tensor import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _place(device: Any) -> _device:
    if isinstance(device, int):
        return _device("cpu") if device < 0 else _device("cuda", device)
    return _device(device)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """For each device its piece: tensors are cut along dim, containers by what they hold, other objects go to all."""
    places = [_place(d) for d in target_gpus]

    def cut(x: Any) -> list:
        if isinstance(x, Tensor):
            return [piece.to(place) for piece, place in zip(x.chunk(len(places), dim), places)]
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return [type(x)(*parts) for parts in zip(*map(cut, x))]
        if isinstance(x, (tuple, list)) and x:
            return [type(x)(parts) for parts in zip(*map(cut, x))]
        if isinstance(x, dict) and x:
            return [type(x)(pairs) for pairs in zip(*map(cut, x.items()))]
        return [x for _ in places]
    return cut(inputs)


def scatter_kwargs(inputs: tuple, kwargs: dict | None, target_gpus: Sequence[Any], dim: int = 0) -> tuple[tuple, tuple]:
    """`scatter` of positional and keyword arguments, filled up to the same number of pieces."""
    args, words = scatter(inputs, target_gpus, dim) if inputs else [], scatter(kwargs, target_gpus, dim) if kwargs else []
    n = max(len(args), len(words))
    return (*args, *[() for _ in range(n - len(args))]), (*words, *[{} for _ in range(n - len(words))])


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The pieces of all devices joined along dim on one device; numbers of no dimension become a vector."""
    place = _place(target_device)

    def join(parts: Any) -> Any:
        first = parts[0]
        if isinstance(first, Tensor):
            return F["cat"]([(p if p.dim() else p.view(1)).to(place) for p in parts], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if not all(len(p) == len(first) for p in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, join([p[key] for p in parts])) for key in first)
        if hasattr(first, "_fields"):
            return type(first)._make(map(join, zip(*parts)))
        return type(first)(map(join, zip(*parts)))
    return join(outputs)
