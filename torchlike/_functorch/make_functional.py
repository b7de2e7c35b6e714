"""Modules as functions of their parameters, as functorch had it before `torch.func.functional_call`."""
from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from .._public import FUNCTIONS
from .._tensor import Tensor
from ..nn import Module, Parameter
from ..nn.utils.stateless import _functional_call


def _extracted(module: Module, named: Iterable[tuple[str, Tensor]]) -> tuple[tuple[Tensor, ...], dict[str, list[str]]]:
    """The tensors, each once, and all names of each under its first; the module keeps their shapes."""
    firsts: dict[int, str] = {}
    names: dict[str, list[str]] = {}
    tensors = {}
    for name, tensor in list(named):
        first = firsts.setdefault(id(tensor), name)
        names.setdefault(first, []).append(name)
        tensors[first] = tensor
        path, _, last = name.rpartition(".")
        shape = tensor.detach().to("meta")
        setattr(module.get_submodule(path), last, Parameter(shape, tensor.requires_grad) if isinstance(tensor, Parameter) else shape)
    return tuple(tensors.values()), names


class FunctionalModuleWithBuffers(Module):
    """A module called with its parameters and its buffers before its arguments."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...], param_names_map: dict[str, list[str]],
                 buffer_names_map: dict[str, list[str]]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> tuple:
        model = copy.deepcopy(model)
        params, param_names = _extracted(model, model.named_parameters(remove_duplicate=False))
        buffers, buffer_names = _extracted(model, model.named_buffers(remove_duplicate=False))
        if disable_autograd_tracking:
            for p in params:
                p.requires_grad_(False)
        return FunctionalModuleWithBuffers(model, tuple(param_names), tuple(buffer_names), param_names, buffer_names), params, buffers

    def forward(self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        given = zip((*self.param_names, *self.buffer_names), (*params, *buffers))
        return _functional_call(self.stateless_model, {alias: t for name, t in given for alias in self.all_names_map[name]}, args, kwargs,
                                tie_weights=False)


class FunctionalModule(Module):
    """A module called with its parameters before its arguments."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], names_map: dict[str, list[str]]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> tuple:
        both, params, _ = FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)
        return FunctionalModule(both.stateless_model, both.param_names, both.all_names_map), params

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        given = zip(self.param_names, params)
        return _functional_call(self.stateless_model, {alias: t for name, t in given for alias in self.names_map[name]}, args, kwargs,
                                tie_weights=False)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """(function, parameters) of a module without buffers; RuntimeError if it has some."""
    if any(True for _ in model.buffers()):
        raise RuntimeError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> tuple:
    """(function, parameters, buffers) of a module."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple:
    """(function, parameters, buffers) of modules of one kind, tensors stacked along a new first dimension, for vmap."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, params, buffers = zip(*(make_functional_with_buffers(m) for m in models))
    stack = FUNCTIONS["stack"]
    return functions[0], tuple(stack(p).detach() for p in zip(*params)), tuple(stack(b).detach() for b in zip(*buffers))
