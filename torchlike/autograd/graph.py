"""torch.autograd.graph: nodes and edges of the graph, hooks on what it saves, hooks on several gradients at once."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .._core.errors import class_name
from .._core.grad_mode import mode
from .._core.graph import AccumulateGrad, Node, _handle  # noqa: F401
from .._core.hook_handles import RemovableHandle
from .._core.registry import Op
from .._core.shown import Shown
from .._core.value import Value
from .._tensor import Tensor

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
           "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks", "set_warn_on_accumulate_grad_stream_mismatch"]


class GradientEdge(NamedTuple):
    """The place in the graph where a tensor's gradient arrives: output `output_nr` of `node`."""

    node: Node
    output_nr: int
    ownership_token: Any = None

    def tensor(self) -> Tensor:
        """A tensor of that place, without data."""
        t = Tensor._of(Value(self.node.output_aval(self.output_nr)))
        t._edge, t._out = self.node, self.output_nr
        return t


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge whose gradient is `tensor`'s; `torch.autograd.grad` and `backward` take it in the tensor's place."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(tensor._edge, tensor._out)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write that torchlike could not see."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if t._storage is None:
            t._writes += 1
        else:
            t._storage.version += 1


# -- what nodes save -----------------------------------------------------------------------------------------------------


class Packed(list):
    """What a node saved, as the pack hook returned it: pairs (unpack hook, packed), or the value itself for numbers. `order`: in which they were packed."""

    order: Sequence[int]

    def unpacked(self) -> list:
        made = list(self)
        for i in self.order:
            if made[i].__class__ is tuple:
                made[i] = _unpack(*made[i])
        return made

    def unpacked_at(self, position: int) -> Value:
        return _unpack(*self[position])


def _unpack(unpack: Callable, packed: Any) -> Value:
    return _unpacked_tensor(unpack, packed)._current()


def _unpacked_tensor(unpack: Callable, packed: Any) -> Tensor:
    with _without_hooks():
        t = unpack(packed)
    if not isinstance(t, Tensor):
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}")
    return t


@contextlib.contextmanager
def _without_hooks() -> Iterator[None]:
    before = mode.enabled, mode.watchers, mode.saved_hooks
    mode.enabled, mode.watchers, mode.saved_hooks = False, (), ()
    try:
        yield
    finally:
        mode.enabled, mode.watchers, mode.saved_hooks = before


def _pack(t: Tensor, hooks: tuple[Callable, Callable] | None = None) -> tuple:
    pack, unpack = hooks or mode.saved_hooks[-1]
    version = t._written
    with _without_hooks():
        packed = pack(t)
    if t._written != version:
        raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by "
                           "in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place "
                           "operations on the input to a pack hook.")
    return unpack, packed


def packed_tensor(t: Tensor) -> Callable[[], Tensor]:
    """A tensor that a Function saves, through the hooks: a call gives it back with its graph."""
    unpack, packed = _pack(t)
    return functools.partial(_restored, unpack, packed, t._edge, t._out)


def _restored(unpack, packed, edge, out) -> Tensor:
    t = Tensor._of(_unpacked_tensor(unpack, packed)._current())
    t._edge, t._out = edge, out
    return t


def _pack_node(node: Node, values) -> None:
    """Watches new nodes while saved_tensors_hooks is on."""
    if not node.saved or node.plan is None:
        return
    ins, outs = node.plan.saved(node.needs)
    packed = Packed(node.saved)
    places_of_all = range(len(packed))
    packed.order = (1, 0, *places_of_all[2:]) if ins[:2] == (0, 1) and _other_first(node.plan.op) else places_of_all
    for i in packed.order:
        if packed[i].__class__ is Value:
            packed[i] = _pack(_placed(node, i, packed[i]))
    node.saved = packed


def _placed(node: Node, position: int, value: Value) -> Tensor:
    """What a node saves at a position, as a tensor with its place in the graph."""
    ins, outs = node.plan.saved(node.needs)
    place = node.edges[ins[position]] if position < len(ins) else (node, outs[position - len(ins)])
    t = Tensor._of(value)
    if place is not None:
        t._edge, t._out = place
    return t


class SavedTensor(metaclass=Shown):
    """What a node saved at one place (`grad_fn._raw_saved_self`), which may get a pair of hooks of its own."""

    __module__ = "torch._C._autograd"

    def __init__(self) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def _of(cls, node: Node, place: int | None, input: int | None) -> SavedTensor:
        made = object.__new__(cls)
        made._node, made._place = node, place
        return made

    def register_hooks(self, *hooks: Callable) -> None:
        """register_hooks(pack, unpack): the tensor goes through pack now, and through unpack whenever it is read."""
        node, i = self._node, self._place
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(f"register_hooks(): incompatible function arguments: two callables (pack, unpack) are expected, but got {hooks}")
        if node.saved is None:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when "
                               "you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time "
                               "or if you need to access saved variables after calling backward.")
        if i is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if node.saved[i].__class__ is not Value:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a "
                               "time.")
        packed = _pack(_placed(node, i, node.saved[i]), hooks)
        if node.saved.__class__ is not Packed:
            node.saved = Packed(node.saved)
            node.saved.order = range(len(node.saved))
        node.saved[i] = packed


def _other_first(op: Op) -> bool:
    """Whether torch saves the second operand before the first: it goes by the alphabet, and calls them self and other, or self and mat2."""
    if op.name in ("linear_alone", "linalg_cross", "grid_sampler_2d", "grid_sampler_3d"):
        return True
    return op.derivative is not None and op.derivative.kernel_names[:2] == ["x", "y"] and op.name not in ("mv", "dot")  # self and vec, self and tensor


class saved_tensors_hooks:
    """Inside the block, what the graph saves goes through `pack_hook(tensor)`, and comes back by `unpack_hook(packed)`."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if mode.saved_hooks_disabled is not None:
            raise RuntimeError(mode.saved_hooks_disabled)
        for hook in (self.pack_hook, self.unpack_hook):
            if not callable(hook):
                raise TypeError(f"a hook on saved tensors has to be callable, but got {class_name(hook)}")
        self.before = mode.saved_hooks, mode.watchers
        mode.saved_hooks = (*mode.saved_hooks, (self.pack_hook, self.unpack_hook))
        if _pack_node not in mode.watchers:
            mode.watchers = (*mode.watchers, _pack_node)

    def __exit__(self, *exc) -> None:
        mode.saved_hooks, mode.watchers = self.before


class save_on_cpu(saved_tensors_hooks):
    """What the graph saves waits on the CPU for its backward."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, saved_tensors_hooks raises RuntimeError(error_message), as this does inside of such hooks."""
    if mode.saved_hooks:
        raise RuntimeError(error_message)
    before, mode.saved_hooks_disabled = mode.saved_hooks_disabled, error_message
    try:
        yield
    finally:
        mode.saved_hooks_disabled = before


class _SavedValues:
    """What allow_mutation_on_saved_tensors yields; nothing to clear, since values are never written."""

    def clear(self) -> None:
        """Nothing was cloned."""


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_SavedValues]:
    """Allowed everywhere: the graph saves values, which in-place operations do not change."""
    if mode.allows_mutation:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    mode.allows_mutation = True
    try:
        yield _SavedValues()
    finally:
        mode.allows_mutation = False


# -- hooks on several gradients ------------------------------------------------------------------------------------------


class _Handles(RemovableHandle):
    def __init__(self, handles: list[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for h in self.handles:
            h.remove()

    def __getstate__(self):
        return self.handles

    def __setstate__(self, state) -> None:
        self.handles = state


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> RemovableHandle:
    """mode 'all': fn(gradients, None where there is none) once all of a backward's gradients of `tensors` are in;
    'any': fn(gradient) with the first."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if not all(t.requires_grad for t in tensors):
        raise AssertionError("Expected gradient function to be set")
    edges = [get_gradient_edge(t) for t in tensors]
    walk_of: list = [None]
    seen: dict = {}

    def arrived(i: int, g: Tensor | None) -> None:
        walk = _walk()
        if walk_of[0] is not walk:
            walk_of[0] = walk
            seen.clear()
            if mode == "any":
                fn(g)
        if mode == "any":
            return
        seen[i] = g
        reached, run, _ = walk
        expected = sum(e.node in reached and (run is None or e.node in run or isinstance(e.node, AccumulateGrad)) for e in edges)
        if len(seen) == expected:
            fn([seen.get(j) for j in range(len(edges))])
            walk_of[0] = None
    return _Handles([e.node.add_tensor_hook(e.output_nr, functools.partial(arrived, i)) for i, e in enumerate(edges)])


def _walk():
    return mode.walk


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Nothing to warn of: a device has one stream."""
