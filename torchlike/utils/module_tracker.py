"""torch.utils.module_tracker: which modules a line runs in, in forward and in backward."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .._core.grad_mode import mode
from .._tensor import Tensor
from ..autograd.graph import register_multi_grad_hook
from ..nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


def _differentiated(x: Any) -> Iterator[Tensor]:
    """The tensors of nested arguments that need gradients."""
    if isinstance(x, Tensor):
        if x.requires_grad:
            yield x
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from _differentiated(y)
    elif isinstance(x, dict):
        yield from _differentiated(tuple(x.values()))


class ModuleTracker:
    """Inside the block, `parents` has the full names of the modules that run now, and "Global"."""

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._in_backward: set[str] = set()

    @property
    def is_bw(self) -> bool:
        """Whether a backward runs."""
        return bool(self._in_backward)

    def changes(self) -> None:
        """Called before `parents` changes."""

    def _name(self, module: Module) -> str:
        """Its path below the first module that was called above it."""
        if module not in self._names:
            self._names[module] = type(module).__name__
        name = self._names[module]
        for child, below in module.named_children():
            if below not in self._names:
                self._names[below] = f"{name}.{child}"
                self._name(below)
        return name

    def _hook(self, change: Callable[[set, str], None], name: str) -> Callable:
        """A hook on gradients: the backward of `name` begins (`set.add`) or ends (`set.discard`)."""
        def run(*grads: Any) -> None:
            self.changes()
            change(self._in_backward, name)
            change(self.parents, name)
        return run

    def _before(self, module: Module, args: Any) -> None:
        self.changes()
        # Modules whose inputs need no gradients see no end of their backward.
        self.parents -= self._in_backward
        self._in_backward.clear()
        name = self._name(module)
        self.parents.add(name)
        tensors = list(_differentiated(args)) if mode.enabled else []
        if tensors:
            register_multi_grad_hook(tensors, self._hook(set.discard, name))

    def _after(self, module: Module, args: Any, output: Any) -> None:
        self.changes()
        name = self._name(module)
        self.parents.discard(name)
        tensors = list(_differentiated(output)) if mode.enabled else []
        if tensors:
            register_multi_grad_hook(tensors, self._hook(set.add, name), mode="any")

    def __enter__(self) -> ModuleTracker:
        self._hooks = register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after, always_call=True)
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self.parents = {"Global"}
        self._in_backward.clear()
