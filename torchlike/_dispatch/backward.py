"""Backward through nodes whose operations modes or classes are to see. The engine asks here once there is such a mode or class."""
from __future__ import annotations

from typing import Any

from .. import _leaves
from .._core import dtype as dt
from .._core.grad_mode import backwards, mode
from .._core.graph import Node
from .._core.value import Value
from .._ops import aten
from .._tensor import Tensor, apply
from ..autograd.function import Function
from .derivatives import ONCE, RULES, Given, fit
from .held import Held, is_held, shown
from .tape import TapedPlan

CHANGED = ("one of the variables needed for gradient computation has been modified by an inplace operation: [{} {}]{} is at version {}; expected version {} "
           "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
           "torch.autograd.set_detect_anomaly(True, check_nan=False).")


IN_ORDER = frozenset("linear linear_alone cat mse_loss smooth_l1_loss huber_loss addcmul".split())


def takes(grads: list) -> bool:
    """Whether a backward from these gradients may be seen by someone."""
    return bool(_leaves.state.stack) or any(g is not None and is_held(g) for g in grads)


def seed(t: Tensor) -> Tensor | None:
    """The gradient that a backward starts with at t, which dispatches."""
    return _leaves.hand_on(aten.ones_like.default, shown(t._current()), pin_memory=False, memory_format=_preserve())


def _preserve() -> Any:
    from ..ops.memory_formats import preserve_format
    return preserve_format


def run(node: Node, saved: list, grads: list, needs: tuple, create_graph: bool) -> list | None:
    """A node's gradients, one for each that is needed; None where nobody is to see how they are made."""
    if not _leaves.state.stack and not any(v.__class__ is Held for v in saved) and not any(g is not None and is_held(g) for g in grads):
        return None
    plan = node.plan
    places = plan.places(needs)
    found = {i: _unpacked(node, i, v, create_graph) for i, v in zip(places, saved)}
    rule = plan.rule if isinstance(plan, TapedPlan) else RULES.get(plan.op.name)
    if rule is not None:
        ins, outs = rule.saved(needs, len(plan.avals))
        if found.keys() >= {*ins, *(~o for o in outs)}:
            made = _by_rule(rule, Given(plan, needs, found, grads))
            if made is not None:
                return made
            if plan.saved(needs) != _original(plan).saved(needs):
                raise NotImplementedError(f"torchlike: the derivative of '{plan.op.name}' with these arguments, for tensors whose class dispatches")
    plan = _original(plan)
    grads = [_zeros(a) if g is None and i not in getattr(plan.op.derivative, "optional", ()) else g for i, (g, a) in enumerate(zip(grads, plan.outs))]
    made = apply(plan.op.backward, [*found.values(), *grads], (plan, needs))
    return list(made) if isinstance(made, tuple) else [made]


def _original(plan: Any) -> Any:
    return plan.of if isinstance(plan, TapedPlan) else plan


def _zeros(a: Any) -> Tensor:
    return Tensor._of(_leaves.program.record(_leaves.OPS["constant"], [], (0, a.shape, a.dtype, a.device))[1][0])


def _by_rule(rule: Any, given: Given) -> list | None:
    functions = rule.run(given)
    if functions is NotImplemented or given.gs[0] is None:
        return None
    wanted = [(i, a) for i, (a, need) in enumerate(zip(given.avals, given.needs)) if need]
    if callable(functions):
        made = functions()
        return _ended(given, [fit(made[i], a) for i, a in wanted])
    if any(functions[i] is None for i, _ in wanted):
        return None
    if given.plan.op.name not in IN_ORDER:
        wanted.reverse()  # as PyTorch makes them: in the order of their names
    made = {i: fit(functions[i](), a) for i, a in wanted}
    return _ended(given, [made[i] for i in sorted(made)])


class _Once(Function):
    """A gradient that an operator made which has no derivative here."""

    @staticmethod
    def forward(ctx: Any, name: str, g: Tensor, *made_of: Tensor) -> Tensor:
        ctx.name = name
        return g

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        raise NotImplementedError(f"torchlike: the second derivative of '{ctx.name}' for tensors whose class dispatches")


def _ended(given: Given, made: list) -> list:
    """Gradients of which a graph is made, though their operator has no derivative: who differentiates through them is told."""
    if not mode.enabled or given.plan.op.name not in ONCE:
        return made
    made_of = [t for t in (*given.gs, *given.found.values()) if isinstance(t, Tensor) and t.requires_grad]
    return [_Once.apply(given.plan.op.name, g, *made_of) if made_of and g is not None and not g.requires_grad else g for g in made]


def _unpacked(node: Node, i: int, v: Any, create_graph: bool) -> Any:
    """What a node saved, as a tensor with its place in the graph."""
    if not isinstance(v, Value):
        return v
    edge = None
    if create_graph:
        edge = (node, ~i) if i < 0 else node.edges[i] if i < len(node.edges) else None
        if v.aval.dtype.category < dt.FLOAT:
            edge = None
    if v.__class__ is not Held:
        t = Tensor._of(v)
    else:
        t = v.tensor
        if t._storage.version != v.version:
            made_by = "" if t._edge is None or t.is_leaf else f", which is output {t._out} of {t._edge.name().partition('Backward')[0]},"
            raise RuntimeError(CHANGED.format(t.type(), list(t.shape), made_by, t._storage.version, v.version))
        if i < 0:
            t = _leaves.detached(t)
        if not create_graph or (None if edge is None else edge) == (None if t._edge is None else (t._edge, t._out)):
            return t
        v = Held(t)
        t = Tensor._of(v)
    if edge is not None:
        t._edge, t._out = edge
    return t


def store(tensor: Tensor, g: Tensor, create_graph: bool) -> bool:
    """Add a gradient into `.grad`, where one of them dispatches; False where neither does."""
    old = tensor._grad
    if not (is_held(g) or old is not None and is_held(old)):
        return False
    g = shown(g._current()) if g._edge is None or not create_graph else g
    if old is not None:
        if create_graph:
            tensor._grad = old + g
        else:
            before, mode.enabled = mode.enabled, False
            try:
                old.add_(g)
            finally:
                mode.enabled = before
    elif create_graph:
        tensor._grad = g.clone()
    elif g._strided().strides == tensor._strided().strides or tuple(g.shape) != tuple(tensor.shape):
        tensor._grad = _leaves.detached(g)
    else:
        made = _leaves.hand_on(aten.new_empty_strided.default, g, list(g.shape), list(tensor._strided().strides), dtype=g.dtype, layout=g.layout, device=g.device)
        made.copy_(g)
        tensor._grad = made
    return True


def install() -> None:
    """Make the engine ask."""
    if not backwards:
        import sys
        backwards.append(sys.modules[__name__])
