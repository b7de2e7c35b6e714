"""One level of differentiation: inputs lifted into tensors of their own, results freed of the level again."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.grad_mode import mode
from .._core.graph import AccumulateGrad, Identity, reachable
from .._functorch._layers import state as layers
from .._public import FUNCTIONS
from .._tensor import Tensor, _new
from ..autograd import engine
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten

_alias = Tensor._alias  # as it is outside of forward differentiation: tangents of levels around this one stay


def transforming() -> bool:
    """Whether a function runs under `grad`, `vmap` or another of these in this thread."""
    return bool(layers.open)


def copier(t: Tensor) -> Callable[[], Tensor] | None:
    """What makes another tensor of one whose class has `__torch_dispatch__`, or that stands for such; None for any other."""
    return None if t._sparse else getattr(t._current() if t._dispatches else t._value, "copied", None)


class Level:
    """Differentiates with respect to its own inputs. Inside `with level:` operations are recorded for differentiation."""

    def __init__(self) -> None:
        self.mine = self.marks = set()  # its own nodes
        self.inputs: list[Tensor] = []

    def __enter__(self) -> Level:
        self.outer = mode.enabled
        mode.enabled = True
        layers.open.append(self)
        return self

    def __exit__(self, *exc) -> None:
        mode.enabled = self.outer
        layers.open.remove(self)

    def lift(self, tree: Any) -> Any:
        """The tensors of a tree as inputs of this level; gradients still reach where they came from."""
        from .._functorch import eager_transforms  # which stands on this module

        def one(x: Any) -> Tensor:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
            return eager_transforms._wrap_tensor_for_grad(x, self)
        return tree_map(one, tree)

    def lifted(self, x: Tensor) -> Tensor:
        """A tensor as an input of this level."""
        if x.dtype.category < 2:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        t = _new(Tensor)  # as in PyTorch, which knows the input's class no more: a Parameter's, or one of the program's
        t._value, t._layout = x._current(), x._layout
        if x.requires_grad:  # also without gradients outside: what vjp returns may be called where there are some
            t._edge = Identity(t, (x._edge, x._out))
        else:
            t._edge = AccumulateGrad(t)
        self.mine.add(t._edge)
        self.inputs.append(t)
        return t

    def reaches_outside(self, tensors) -> bool:
        """Whether some graph of the tensors leads to anything but this level's own leaves."""
        nodes = reachable(t._edge for t in tensors if t.requires_grad)
        return any(node not in self.mine if isinstance(node, AccumulateGrad) else not node.edges for node in nodes)

    def free(self, tree: Any) -> Any:
        """The tensors of a result without this level's part of the graph."""
        def one(t):
            if not isinstance(t, Tensor) or t._edge is None or (self.outer and self.reaches_outside([t])):
                return t
            copied = copier(t)
            if copied is None:
                return _alias(t)
            made = copied()
            made._edge, made._out = None, 0
            return made
        return tree_map(one, tree)

    def gradients(self, outputs: list[Tensor], cotangents: list, keep: bool = False) -> list[Tensor]:
        """Gradients of the level's inputs; zeros where outputs do not depend on one."""
        create = self.outer and (self.reaches_outside(outputs) or any(c is not None and c.requires_grad for c in cotangents))
        return derivatives(outputs, self.inputs, cotangents, keep or create, create)


def derivatives(outputs, inputs, cotangents, keep: bool, create: bool) -> list[Tensor]:
    """engine.grad over the outputs that have a graph; zeros where there is no path."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents) if o.requires_grad]
    found = [None] * len(inputs)
    if pairs:
        found = engine.grad([o for o, _ in pairs], inputs, [c for _, c in pairs], keep, create, allow_unused=True)
    return [FUNCTIONS["zeros_like"](x.detach()) if g is None else g for x, g in zip(inputs, found)]


def split(argnums, args: tuple) -> tuple:
    """The arguments that argnums (an int or a tuple of ints) picks."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)) or (isinstance(argnums, tuple) and not all(
            isinstance(i, int) for i in argnums)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    for i in (argnums,) if isinstance(argnums, int) else argnums:
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"Got argnum={i}, but only {len(args)} positional inputs")
    if isinstance(argnums, int):
        return args[argnums]
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    if len({i % len(args) for i in argnums}) != len(argnums):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(args[i] for i in argnums)


def replaced(args: tuple, argnums, new) -> tuple:
    """args with the picked ones replaced."""
    out = list(args)
    for i, x in zip((argnums,) if isinstance(argnums, int) else argnums, (new,) if isinstance(argnums, int) else new):
        out[i] = x
    return tuple(out)


def tensors_of(tree: Any, what: str) -> tuple[list[Tensor], Any]:
    """Leaves and structure of what a function returned to the transform `what`: tensors, at least one."""
    leaves, spec = tree_flatten(tree)
    if not leaves or leaves == [None]:
        raise RuntimeError(f"{what}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(x)}")
    return leaves, spec


__all__ = ["Level", "derivatives", "replaced", "split", "tensors_of", "tree_unflatten"]
