"""torch.utils.flop_counter: floating-point operations by module and operator."""
from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from .. import _ops
from .._core import program
from .._core.aval import NUMBERS, Aval
from .._core.registry import BackwardOp, Plan
from .._custom_operator import CustomOpDef
from .._public import FUNCTIONS
from .._tensor import Tensor
from .._tracing import Capture
from ..nn.modules.module import Module
from . import _pytree
from ._flop_formulas import COUNTED, cost
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

_NUMBERS = frozenset(NUMBERS.values())
_SUFFIXES = ("", "K", "M", "B", "T")


flop_registry: dict[Any, Callable] = {}  # the formulas that programs registered


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: the function says what an operator costs, of its arguments' shapes and `out_shape=`, or with `get_raw` of tensors without
    values and `out_val=`. Operators are those of torch.ops: PyTorch's, where one operation is recorded for them, and a program's own."""
    def register(formula: Callable) -> Callable:
        for target in targets if isinstance(targets, (list, tuple)) else (targets,):
            if not isinstance(target, _ops.OpOverloadPacket):
                raise ValueError(f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), JitFunction, or "
                                 f"HigherOrderOperator, got {target} which is of type {type(target)}")
            if target in flop_registry or target in [getattr(_ops.aten, name) for name in COUNTED]:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula
    return register


def _of_shapes(formula: Callable) -> Callable:
    """A formula of tensors, from one of shapes; what says that it takes tensors is left alone."""
    if getattr(formula, "_get_raw", False):
        return formula

    def run(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = _pytree.tree_map(lambda x: x.shape if isinstance(x, Tensor) else x, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)
    return run


def _without_value(a: Aval) -> Tensor:
    return FUNCTIONS["empty"](a.shape, dtype=a.dtype, device="meta")


class _Watch(Capture):
    """Looks at what is recorded: at each flush, and where the modules that run change."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter, self.seen = counter, (None, None)
        self.inside = 0  # of operators that a formula counts as one

    def look(self) -> None:
        """Count what was recorded since the last look."""
        recorded = program.state.program
        node, last = recorded.node, self.seen[1] if self.seen[0] is recorded else None
        self.seen = recorded, node
        plans = []
        while not self.inside and node is not last and node.parent is not None:
            if node.plan is not None:
                plans.append(node.plan)
            node = node.parent
        for plan in reversed(plans):
            self._add(plan)

    def passed(self, plan: Plan) -> None:
        if not self.inside:
            self._add(plan)

    def _add(self, plan: Plan) -> None:
        if not self._by_program(plan) and (found := cost(plan)) is not None:
            name, count = found
            self.counter._put(getattr(_ops.aten, name), count)

    def _by_program(self, plan: Plan) -> bool:
        """Whether a formula that the program gave counts this operation."""
        formulas = self.counter.flop_registry
        if not formulas:
            return False
        found = None if isinstance(plan.op, BackwardOp) else cost(plan)  # its operator's name is another there
        packet = getattr(_ops.aten, found[0] if found else plan.op.name, None)
        if packet not in formulas:
            return False
        outs = [_without_value(a) for a in plan.outs]
        count = formulas[packet](*[_without_value(a) for a in plan.avals if a is not None and a not in _NUMBERS],
                                out_val=outs[0] if plan.single else tuple(outs))
        self.counter._put(packet, count)
        return True

    def calls(self, op: CustomOpDef, run: Callable, args: tuple, kwargs: dict) -> Any:
        """A program's own operator runs: it counts as one, not as what its kernel does."""
        packet = op._opoverload.overloadpacket
        formula = self.counter.flop_registry.get(packet)
        if formula is None:
            return run(*args, **kwargs)
        self.look()
        self.inside += 1
        try:
            out = run(*args, **kwargs)
        finally:
            self.inside -= 1
        self.seen = program.state.program, program.state.program.node
        self.counter._put(packet, formula(*args, out_val=out, **kwargs))
        return out

    def interrupted(self, reason: str) -> None:
        """The program is about to end."""
        self.look()


class FlopCounterMode:
    """Counts inside the block; `custom_mapping` has further formulas by operator. `mods` is what older programs gave; modules are found as they run.

    Counted are matrix products, convolutions, attention and recurrent layers, forward and backward, with PyTorch's formulas. The table shows modules up to `depth`.
    """

    def __init__(self, mods: Module | list[Module] | None = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict[Any, Callable] | None = None) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.mod_tracker = ModuleTracker()
        self.flop_registry = {**flop_registry, **{op: _of_shapes(formula) for op, formula in (custom_mapping or {}).items()}}

    def _put(self, op: Any, cost: int) -> None:
        for parent in self.mod_tracker.parents:
            self.flop_counts[parent][op] += cost

    def get_total_flops(self) -> int:
        """All together."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, "Global" among them, and operator of torch.ops.aten."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def _rows(self, module: str, depth: int, total: int) -> list[list[str]]:
        power = max(0, min(len(_SUFFIXES) - 1, (len(str(total)) - 2) // 3))
        counts, indent = self.flop_counts[module], " " * depth
        named = [(indent + module, sum(counts.values())), *((f"{indent} - {op}", cost) for op, cost in counts.items())]
        return [[name, f"{cost / 1000 ** power:.3f}{_SUFFIXES[power]}", f"{cost / total:.2%}" if total else "0%"] for name, cost in named]

    def get_table(self, depth: int | None = None) -> str:
        """Modules, what they cost and their share of the total."""
        import tabulate
        tabulate.PRESERVE_WHITESPACE = True
        deepest = depth or self.depth or math.inf
        total, rows = self.get_total_flops(), []
        modules = [m for m in sorted(self.flop_counts) if m != "Global" and m.count(".") < deepest]
        for module in modules:
            rows += self._rows(module, module.count("."), total)
        if "Global" in self.flop_counts and all(sum(self.flop_counts[m].values()) < total for m in modules):
            rows = self._rows("Global", 0, total) + [[" " + name, *rest] for name, *rest in rows]
        return tabulate.tabulate(rows or [["Global", "0", "0%"]], headers=["Module", "FLOP", "% Total"], colalign=("left", "right", "right"))

    def __enter__(self) -> FlopCounterMode:
        program.flush("flops are counted")
        self.flop_counts.clear()
        self._before, self._watch = program.state.capture, _Watch(self)
        program.state.capture = self._watch
        self.mod_tracker.changes = self._watch.look
        self.mod_tracker.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._watch.look()
        program.state.capture = self._before
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))
