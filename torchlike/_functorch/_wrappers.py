"""What a tensor is inside of transforms, as PyTorch shows it: a wrapper per transform that it depends on.

Here it is none. An example of a batch belongs to the Trace of its vmap, and what depends on inputs of a derivative has a graph that leads
to them, or a tangent. PyTorch also wraps what does not depend on the inputs (constants, comparisons, `detach()`); such are plain here.
"""
from __future__ import annotations

import contextlib
import textwrap
from typing import NamedTuple

from .._tensor import Tensor
from ..autograd import _tangents
from ..autograd.grad_mode import no_grad
from ._layers import state
from ._rules import evaluated
from ._trace import Boundary, Trace


class Wrapper(NamedTuple):
    """The outermost: the number of its transform (0: there is none), the dimension of the batch (-1: no batch), and what it holds."""

    level: int
    dim: int
    value: Tensor


def _marks(t: Tensor) -> set:
    """The nodes that a tensor's graph leads to, also outside of calls of vmap, and the levels in which it has a tangent."""
    seen, stack = set(), [t._edge]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += [edge[0] for edge in node.edges if edge is not None]
            if isinstance(node, Boundary) and node.outer is not None:
                stack.append(node.outer[0])
    return seen.union(level for level, _ in _tangents.tangents_of(t))


def _outermost(t: Tensor, n: int, marks: set, stack: contextlib.ExitStack) -> Wrapper:
    """The wrapper that t is inside of the first n open transforms. `stack` suspends calls of vmap, until who called is done with its value."""
    for k in reversed(range(n)):
        layer = state.open[k]
        if not isinstance(layer, Trace):
            if not marks.isdisjoint(layer.marks):
                return Wrapper(k + 1, -1, t)
            continue
        with no_grad(), _tangents.unseen():
            (t, dim), = evaluated(layer, [t])
        stack.enter_context(layer.suspended())
        if dim is not None:
            return Wrapper(k + 1, dim, t)
    return Wrapper(0, -1, t)


def wrapper(t: Tensor) -> Wrapper:
    """What t is inside of all open transforms."""
    with contextlib.ExitStack() as stack:
        return _outermost(t, len(state.open), _marks(t), stack)


def shown(t: Tensor) -> str | None:
    """repr of a tensor that is wrapped, else None."""
    return _shown(t, len(state.open), _marks(t), False)


def _shown(t: Tensor, n: int, marks: set, inside: bool) -> str | None:
    with contextlib.ExitStack() as stack:
        level, dim, value = _outermost(t, n, marks, stack)
        if not level:
            return _plain(value) if inside or value is not t else None
        text = textwrap.indent(_shown(value, level - 1, marks, True), "    ")
    return f"GradTrackingTensor(lvl={level}, value=\n{text}\n)" if dim < 0 else f"BatchedTensor(lvl={level}, bdim={dim}, value=\n{text}\n)"


def _plain(t: Tensor) -> str:
    """repr of what all wrappers hold."""
    before, state.open = state.open, []
    try:
        return repr(t.detach())
    finally:
        state.open = before


# -- what PyTorch's torch._C._functorch answers -------------------------------------------------------------------------


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether the outermost wrapper is that of a batch."""
    return wrapper(tensor).dim >= 0


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Whether the outermost wrapper is that of a derivative."""
    found = wrapper(tensor)
    return found.level > 0 > found.dim


def is_functorch_wrapped_tensor(tensor: Tensor) -> bool:
    """Whether there is a wrapper."""
    return wrapper(tensor).level > 0


def maybe_get_level(tensor: Tensor) -> int:
    """The number of the outermost wrapper's transform, the outermost transform being 1; -1 without a wrapper."""
    return wrapper(tensor).level or -1


def maybe_get_bdim(tensor: Tensor) -> int:
    """The dimension of the batch, -1 where the outermost wrapper is not that of one."""
    return wrapper(tensor).dim


def get_unwrapped(tensor: Tensor) -> Tensor:
    """What the outermost wrapper holds. RuntimeError without a wrapper, NotImplementedError where derivatives around this one go on through it."""
    level, dim, value = wrapper(tensor)
    if not level:
        raise RuntimeError("No wrappers present!")
    if dim >= 0:
        return value
    marks = _marks(tensor)
    if any(not marks.isdisjoint(layer.marks) for layer in state.open[:level - 1] if not isinstance(layer, Trace)):
        raise NotImplementedError("torchlike: what a derivative's wrapper holds, inside of another derivative")
    return tensor.detach()


def maybe_current_level() -> int | None:
    """The number of the innermost transform that is open."""
    return len(state.open) or None
