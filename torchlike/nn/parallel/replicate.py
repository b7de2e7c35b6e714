"""Copies of a module for several devices."""
from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from torchlike.nn.modules.module import Module
from torchlike.nn.parallel.scatter_gather import _place

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """A copy of the network on each device. Its tensors are results of `network`'s parameters, so gradients add up there, unless detach."""
    return [_copy(network, _place(d), detach, {}) for d in devices]


def _copy(module: Module, place: Any, detach: bool, done: dict[int, Module]) -> Module:
    """`done`: copies by the module's id, so that shared modules stay shared."""
    if id(module) in done:
        return done[id(module)]
    new = done[id(module)] = copy.copy(module)
    new._modules = {name: None if m is None else _copy(m, place, detach, done) for name, m in module._modules.items()}
    new._former_parameters = {}
    new._parameters = {}
    for name, p in module._parameters.items():
        if p is None:
            new._parameters[name] = None
            continue
        moved = p.detach().to(place) if detach else p.to(place) * 1
        object.__setattr__(new, name, moved)
        new._former_parameters[name] = moved
    new._buffers = {name: None if b is None else b.detach().to(place) for name, b in module._buffers.items()}
    new._is_replica = True
    return new
