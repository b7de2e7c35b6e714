"""torch.autograd.forward_ad: dual tensors. A tangent is the derivative of a vector-Jacobian product by its vector."""
from __future__ import annotations

from typing import NamedTuple

from .._core.grad_mode import mode
from .._core.graph import Identity, Node
from .._public import FUNCTIONS
from .._tensor import Tensor, _new
from . import engine, function

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A primal and its tangent (None for a tensor that depends on no dual)."""

    primal: Tensor
    tangent: Tensor | None


class _State:
    level = -1
    duals: dict[Node, Tensor] = {}


_state = _State()


def enter_dual_level() -> int:
    """Begin forward differentiation; levels do not nest."""
    if _state.level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _state.level, _state.duals = 0, {}
    function.duals_live[0] = True
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End it: tangents are forgotten."""
    if _state.level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != _state.level:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _state.level, _state.duals = -1, {}
    function.duals_live[0] = False


class dual_level:
    """Context manager around the dual tensors of one forward differentiation."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """tensor with a tangent of the same shape."""
    if _state.level < 0:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    for x, name in ((tensor, "primal"), (tangent, "tangent")):
        if x.dtype.category < 2:
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {x.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                           f"Tensor is of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}.")
    t = _new(Tensor)
    t._value, t._layout = tensor._current(), tensor._layout
    t._edge = Identity(t, (tensor._edge, tensor._out) if tensor.requires_grad else None)
    _state.duals[t._edge] = tangent
    return t


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a tensor; the tangent is None where no dual tensor took part."""
    if _state.level < 0 or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    sources, outside = _sources(tensor._edge)
    if not sources:
        return UnpackedDualTensor(tensor, None)
    primal = tensor if outside else tensor._alias()
    before, mode.enabled = mode.enabled, True
    try:
        dummy = FUNCTIONS["zeros_like"](tensor.detach()).requires_grad_()
        inputs = [_at(node) for node in sources]
        with function.turned_around():
            back = engine.grad(tensor, inputs, dummy, create_graph=True, allow_unused=True)
        pairs = [(b, _state.duals[node].to(b.dtype)) for b, node in zip(back, sources) if b is not None and b.requires_grad]
        create = outside or any(t.requires_grad for _, t in pairs)
        made, = engine.grad([b for b, _ in pairs], dummy, [t for _, t in pairs], True, create, allow_unused=True) if pairs else (None,)
    finally:
        mode.enabled = before
    return UnpackedDualTensor(primal, FUNCTIONS["zeros_like"](primal) if made is None else made)


def _at(node: Identity) -> Tensor:
    """A tensor at a dual's place in the graph."""
    from .graph import GradientEdge
    return GradientEdge(node, 0).tensor()


def _sources(root: Node) -> tuple[list[Node], bool]:
    """The dual tensors that a graph leads to, and whether it leads anywhere else."""
    found, outside, stack, seen = [], False, [root], {root}
    while stack:
        node = stack.pop()
        if node in _state.duals:
            found.append(node)
        elif not node.edges:
            outside = True
        for edge in node.edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return found, outside
