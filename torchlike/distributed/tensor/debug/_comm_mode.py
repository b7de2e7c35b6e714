"""CommDebugMode: counts collectives in a block, in all and by the modules that run."""
from __future__ import annotations

from collections import defaultdict
from typing import Any

from ....nn.modules.module import Module
from ....nn.parameter import Parameter
from ....ops import c10d, c10d_functional
from ....utils.hooks import RemovableHandle
from ....utils.module_tracker import ModuleTracker
from ..._counting import state
from .._dtensor import DTensor

__all__ = ["CommDebugMode"]

_NAMESPACES = {"c10d": c10d, "c10d_functional": c10d_functional}
_YELLOW, _PLAIN = "\033[1;33m", "\033[0m"


def _operator(name: str) -> Any:
    namespace, name = name.split(".")
    return getattr(_NAMESPACES[namespace], name)


class _Modules(ModuleTracker):
    """Notes the modules that ran, in the order in which they began. A module runs until its own hooks have: what they move counts as its."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Module] = {}
        self._ends: dict[Module, RemovableHandle] = {}

    def _before(self, module: Module, args: Any) -> None:
        super()._before(module, args)
        self.seen.setdefault(self._name(module), module)
        if module not in self._ends:
            self._ends[module] = module.register_forward_hook(super()._after, always_call=True)

    def _after(self, module: Module, args: Any, output: Any) -> None:
        """The hook for all modules, which comes before their own."""

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        for hook in self._ends.values():
            hook.remove()
        self._ends.clear()


class CommDebugMode:
    """Inside the block, collectives are counted by operator: those of DTensors and of functional collectives as `torch.ops.c10d_functional.all_reduce`, others
    as `torch.ops.c10d.allreduce_`. A block begins with nothing counted.

        with CommDebugMode() as counted:
            model(x).sum().backward()
        counted.get_comm_counts()
    """

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[Any, int]]] = {}
        self._modules = _Modules()

    def _count(self, name: str) -> None:
        operator = _operator(name)
        self.comm_counts[operator] += 1
        when = "backward" if self._modules.is_bw else "forward"
        for module in self._modules.parents:
            of_module = self.comm_module_counts.setdefault(module, {"forward": defaultdict(int), "backward": defaultdict(int)})
            of_module[when][operator] += 1

    def __enter__(self) -> CommDebugMode:
        self._reset()
        self._modules.__enter__()
        self._counting = self._count
        state.watchers.append(self._counting)
        return self

    def __exit__(self, *error: object) -> None:
        state.watchers.remove(self._counting)
        self._modules.__exit__(*error)

    def get_comm_counts(self) -> dict[Any, int]:
        """How often each operator ran."""
        return self.comm_counts

    def get_total_counts(self) -> int:
        """How many collectives there were."""
        return sum(self.comm_counts.values())

    def get_parameter_info(self) -> dict[str, dict[str, Parameter]]:
        """The parameters of each module that ran and has some of its own, by its full name."""
        found = {name: dict(module.named_parameters(recurse=False)) for name, module in self._modules.seen.items()}
        return {name: parameters for name, parameters in found.items() if parameters}

    def get_sharding_info(self) -> dict[str, tuple]:
        """How the parameters that are DTensors lie, by their full names."""
        return {f"{module}.{name}": p.placements for module, parameters in self.get_parameter_info().items() for name, p in parameters.items()
                if isinstance(p, DTensor)}

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """A tree of the modules that ran, with their collectives; from `noise_level` 1 on also of which class they are, and how their parameters lie."""
        lines = ["Global", *self._passes("Global", "")]
        for name, module in self._modules.seen.items():
            indent = "    " * (name.count(".") + 1)
            lines.append(indent + name)
            if noise_level > 0:
                lines.append(f"{indent}*module type: class '{type(module).__module__}.{type(module).__qualname__}'")
                lies = {n: p.placements for n, p in module.named_parameters(recurse=False) if isinstance(p, DTensor)}
                lines += [f"{indent}*Parameter List", *(f"{indent} *{n}: {p}" for n, p in lies.items())] if lies else []
            lines += self._passes(name, indent)
        return "\n".join(lines) + "\n"

    def _passes(self, name: str, indent: str) -> list[str]:
        lines = []
        for when, counts in self.comm_module_counts.get(name, {}).items():
            if counts:
                lines += [f"{indent}  {when.upper()} PASS", *(f"{_YELLOW}{indent}    *{operator}: {n}{_PLAIN}" for operator, n in counts.items())]
        return lines

    def log_comm_debug_tracing_table_to_file(self, file_name: str = "comm_mode_log.txt", noise_level: int = 3) -> None:
        """Write the table into a file, without colours."""
        with open(file_name, "w") as file:
            file.write(self.generate_comm_debug_tracing_table(noise_level).replace(_YELLOW, "").replace(_PLAIN, ""))
