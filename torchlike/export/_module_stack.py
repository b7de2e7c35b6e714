"""Which modules a call is made inside of: what PyTorch's exported nodes hold in `meta["nn_module_stack"]`."""
from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from ..nn.modules._hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..nn.modules.module import Module

Entry = tuple[str, tuple[str, str]]  # a key, which numbers the module's calls, and the module's path and class


class ModuleStack:
    """Inside of a `with` block: the modules below `root` whose forward runs, from the outermost."""

    def __init__(self, root: Module) -> None:
        self.entries: tuple[Entry, ...] = ()
        self._calls: Counter[str] = Counter()
        self._paths: dict[int, list[str]] = defaultdict(list)
        for path, m in root.named_modules(remove_duplicate=False):
            self._paths[id(m)].append(path)

    def __enter__(self) -> ModuleStack:
        self._hooks = register_module_forward_pre_hook(self._begins), register_module_forward_hook(self._ends, always_call=True)
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self.entries = ()
        self._calls.clear()

    def _begins(self, m: Module, args: Any) -> None:
        if id(m) not in self._paths:
            return
        inside = self.entries[-1][1][0] if self.entries else ""
        # a module of several names goes by the one below the module that calls it
        path = min(self._paths[id(m)], key=lambda p: (not p.startswith(f"{inside}." if inside else ""), p.count(".")))
        k = self._calls[path]
        self._calls[path] += 1
        kind = type(m)
        self.entries += (f"L__self__{path}" + (f"@{k}" if k else ""), (path, f"{kind.__module__}.{kind.__qualname__}")),

    def _ends(self, m: Module, args: Any, out: Any) -> None:
        if id(m) in self._paths:
            self.entries = self.entries[:-1]
