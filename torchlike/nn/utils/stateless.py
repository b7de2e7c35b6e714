"""functional_call: a module called with other tensors in place of its parameters and buffers."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchlike._tensor import Tensor
from torchlike.nn.modules.module import Module

from ._named_member_accessor import swap_tensor

__all__ = ["functional_call"]


def _owner(module: Module, name: str) -> tuple[Module, str]:
    path, _, leaf = name.rpartition(".")
    return module.get_submodule(path), leaf


def _tied_groups(module: Module) -> list[set[str]]:
    """The names that stand for the same tensor, where there are several."""
    names: dict[int, set[str]] = {}
    members = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    for name, tensor in members:
        names.setdefault(id(tensor), set()).add(name)
    return [group for group in names.values() if len(group) > 1]


def _untied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """`given`, with a tensor given for one name also under the names tied to it."""
    untied = dict(given)
    for group in _tied_groups(module):
        named = sorted(group & given.keys())
        if not named:
            continue
        if len({id(given[name]) for name in named}) > 1:
            raise ValueError(f"functional_call got multiple values for keys {sorted(group)}, which are tied. Consider "
                             "using tie_weights=False")
        for name in group:
            untied[name] = given[named[0]]
    return untied


@contextmanager
def _reparametrize_module(module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False,
                          strict: bool = False, stack_weights: bool = False) -> Iterator[None]:
    """Inside, the module uses the given tensors."""
    given = _untied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        own = {name for name, _ in (*module.named_parameters(remove_duplicate=False),
                                    *module.named_buffers(remove_duplicate=False))}
        errors = []
        for keys, kind in ((given.keys() - own, "Unexpected"), (own - given.keys(), "Missing")):
            if keys:
                errors.append(f"{kind} key(s): {', '.join(map(repr, sorted(keys)))}.")
        if errors:
            raise RuntimeError("Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(),
                                                                                  "\n\t".join(errors)))
    saved: list[tuple[Module, str, Any]] = []
    try:
        for name, tensor in given.items():
            owner, leaf = _owner(module, name)
            saved.append((owner, leaf, swap_tensor(owner, leaf, tensor, allow_missing=True)))
        yield
    finally:
        for owner, leaf, before in reversed(saved):
            after = swap_tensor(owner, leaf, before, allow_missing=True)
            # A buffer assigned to during the call: its new tensor is what the caller's dictionary gets.
            if leaf in owner._buffers and after is not parameters_and_buffers.get(leaf):
                _store_new_buffer(module, owner, leaf, after, parameters_and_buffers)


def _store_new_buffer(module: Module, owner: Module, leaf: str, tensor: Tensor, given: dict[str, Tensor]) -> None:
    for prefix, child in module.named_modules():
        name = f"{prefix}.{leaf}" if prefix else leaf
        if child is owner and name in given:
            given[name] = tensor


def functional_call(module: Module, parameters_and_buffers: dict[str, Tensor], args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """The deprecated place of `torch.func.functional_call`."""
    warnings.warn("`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of "
                  "PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.", FutureWarning, stacklevel=2)
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(module: Module, parameters_and_buffers: dict[str, Tensor], args: Any = None,
                     kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
