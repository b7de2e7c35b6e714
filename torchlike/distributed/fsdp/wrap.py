"""Which submodules become units of their own."""
from __future__ import annotations

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...nn.modules.activation import MultiheadAttention
from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module
from ...nn.parameter import Parameter

__all__ = ["CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy",
           "transformer_auto_wrap_policy", "wrap"]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every submodule."""
    return True


def lambda_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]) -> bool:
    """Submodules for which `lambda_fn` is true."""
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]) -> bool:
    """Submodules of these classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable]) -> bool:
    """Submodules that one of the policies wants."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = 100_000_000,
                                force_leaf_modules: set[type[Module]] | None = None, exclude_wrap_modules: set[type[Module]] | None = None) -> bool:
    """Submodules with `min_num_params` elements that no unit below them has."""
    settled = size_based_auto_wrap_policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(settled if recurse else excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}


class _Policy(ABC):
    @abstractmethod
    def _run_policy(self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]) -> dict[Module, dict[str, Any]]:
        """The submodules to wrap, each with its settings."""


class ModuleWrapPolicy(_Policy):
    """Submodules of these classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)

    def _run_policy(self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]) -> dict[Module, dict[str, Any]]:
        classes = tuple(self._module_classes)
        return {m: copy.copy(root_kwargs) for m in root_module.modules() if m not in ignored_modules and isinstance(m, classes)}

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes})"


class CustomPolicy(_Policy):
    """`lambda_fn(module)` is False, True, or settings that replace those of the root."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]) -> dict[Module, dict[str, Any]]:
        found = {}
        for m in root_module.modules():
            if m not in ignored_modules:
                answer = self._lambda_fn(m)
                if not isinstance(answer, (dict, bool)):
                    raise ValueError(f"The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned {answer}")
                if answer:
                    found[m] = {**root_kwargs, **(answer if isinstance(answer, dict) else {})}
        return found


_enabled: list[dict[str, Any]] = []  # by enable_wrap: the class and its settings


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside, `wrap` wraps."""
    if _enabled:
        raise NotImplementedError("You are already within an autowrap context and we currently do not supported nested autowrap.")
    _enabled.append({"wrapper_cls": wrapper_cls, **wrapper_kwargs})
    try:
        yield
    finally:
        _enabled.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module wrapped as `enable_wrap` says; outside of it the module."""
    if not _enabled:
        return module
    settings = {**_enabled[-1], **wrap_overrides}
    return settings.pop("wrapper_cls")(module, **settings)


def wrap_submodules(root: Module, policy: Any, make: Callable[..., Module], settings: dict[str, Any], ignored_modules: set[Module],
                    ignored_params: set[Parameter]) -> None:
    """Replace the submodules that the policy chooses by units, from the bottom up."""
    if isinstance(policy, _Policy):
        chosen = policy._run_policy(root, ignored_modules, settings)
        _replace(root, chosen, make, {root})
    else:
        _recursive_wrap(root, policy, make, ignored_modules, ignored_params, only_wrap_children=True, **settings)


def _replace(parent: Module, chosen: dict[Module, dict[str, Any]], make: Callable[..., Module], seen: set[Module]) -> None:
    for name, child in list(parent.named_children()):
        if child not in seen:
            seen.add(child)
            _replace(child, chosen, make, seen)
            if child in chosen:
                setattr(parent, name, make(child, **chosen[child]))


def _recursive_wrap(module: Module, auto_wrap_policy: Callable, wrapper_cls: Callable, ignored_modules: set[Module], ignored_params: set[Parameter],
                    only_wrap_children: bool = False, **kwargs: Any) -> tuple[Module, int]:
    """The module, wrapped where the policy says so, and how many elements units below it or it have taken."""
    for child in module.modules():
        if child not in ignored_modules and isinstance(wrapper_cls, type) and isinstance(child, wrapper_cls):
            raise AssertionError(f"Child module {child} is already wrapped by {wrapper_cls}")
    size = sum(p.numel() for p in module.parameters() if not any(p is i for i in ignored_params))
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=size):
        return module, 0
    taken = 0
    for name, child in list(module.named_children()):
        if child not in ignored_modules:
            wrapped, n = _recursive_wrap(child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs)
            setattr(module, name, wrapped)
            taken += n
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=size - taken):
        return wrapper_cls(module, **kwargs), size
    return module, taken
