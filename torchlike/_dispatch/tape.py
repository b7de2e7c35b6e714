"""Nodes of the graph for operations that were handed on: what they save, and how that is found again."""
from __future__ import annotations

import functools

from .._core.graph import Hooks, Node, node_class
from .._core.registry import Plan
from . import layer_derivatives  # noqa: F401  (its rules)
from .derivatives import RULES
from .held import Held


class TapedPlan(Plan):
    """A plan whose nodes save what the derivative in PyTorch's operators reads, where there is one."""

    __slots__ = ("of", "rule")

    def saved(self, needs: tuple) -> tuple:
        return self.of.saved(needs) if self.rule is None else self.rule.saved(needs, len(self.avals))

    @property
    def separate(self) -> bool:
        return False


class _Nodes:
    """Facts of a plan's nodes, by which inputs need gradients: see `_tensor._node`."""

    def __init__(self, plan: TapedPlan) -> None:
        self.plan = plan

    @functools.cache  # noqa: B019  a plan lives as long as the process
    def get(self, pattern: int) -> tuple:
        plan = self.plan
        n = len(plan.avals)
        needs = tuple(bool(pattern >> (n - 1 - i) & 1) for i in range(n))
        name = plan.op.torch_name
        return needs, *plan.saved(needs), _taped_class(name if isinstance(name, str) else name(plan))


_plans: dict[tuple[Plan, bool], TapedPlan] = {}


def taped(plan: Plan, kept: int) -> TapedPlan:
    """The plan for an operation on tensors that dispatch, whose forward rule kept so many results for the derivative."""
    rule = RULES.get(plan.op.name)
    key = plan, rule is not None and rule.kept == kept
    found = _plans.get(key)
    if found is None:
        found = object.__new__(TapedPlan)
        for name in Plan.__slots__:
            setattr(found, name, getattr(plan, name))
        found.of, found.rule = plan, rule if key[1] else None
        found.nodes = _Nodes(found)
        _plans[key] = found
    return found


_HOOKS = Node.__dict__["hooks"]


class TapedNode(Node):
    """A node whose backward is handed on as well. Having hooks it is never part of a walk that is recorded at once."""

    __slots__ = ()  # as Node has them: a node's class may be changed for its name

    @property
    def hooks(self) -> Hooks:
        return _HOOKS.__get__(self)

    @hooks.setter
    def hooks(self, given: Hooks | None) -> None:
        _HOOKS.__set__(self, Hooks() if given is None else given)

    def made(self, out: int, t) -> None:
        """Result `out` is t: what is saved of it must not hold this node."""
        if self.saved.__class__ is list:
            from .._leaves import detached
            for place, i in enumerate(self.plan.places(self.needs)):
                v = self.saved[place]
                if i == ~out and v.__class__ is Held and v.tensor is t:
                    self.saved[place] = Held(detached(t)) if t._dispatches else v

    def forgo(self, i: int) -> None:
        self.needs = (*self.needs[:i], False, *self.needs[i + 1:])

    def shown_as(self, torch_name: str, edges: list) -> None:
        self.__class__ = _taped_class(torch_name)


@functools.cache
def _taped_class(torch_name: str) -> type:
    return type(torch_name, (TapedNode, node_class(torch_name)), {"__slots__": (), "torch_name": torch_name})
