"""A function recorded apart from the running program: over placeholders, to be turned into one operation.

The trace is a Program of its own, so recording is the usual one. Values from outside become its inputs. The graph of
differentiation stays inside as well: wherever an edge would lead out, a boundary node is put, which remembers where to.
"""
from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

import jax

from .._core import program, program_info
from .._core.aval import COMPLEX, FLOAT, INT, Aval, aval
from .._core.grad_mode import mode
from .._core.graph import Node
from .._core.jax_settings import engine_settings
from .._core.layout import Layout, contiguous, example
from .._core.registry import Plan
from .._core.value import Value
from .._tensor import Tensor, _plain_copy
from ._layers import opened

if TYPE_CHECKING:
    from ._called import Called

_CONTROL_FLOW = ("vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, please file an "
                 "issue at https://github.com/pytorch/pytorch/issues .")
_ITEM = ("vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to rewrite what "
         "you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug report.")
_MEMORY = "Cannot access data pointer of Tensor that doesn't have storage"
_SHAPE = ("vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{}. Please file an issue at "
          "https://github.com/pytorch/pytorch/issues if you need this feature.")
_MASK = "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a boolean mask."
_MASKED_SELECT = ("vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each batch this would return "
                  "a differently shaped Tensor. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.")
_OBSERVING = {  # by the function that looks at a value: torch's words where it belongs to one example of many
    "_truth": _CONTROL_FLOW, "is_nonzero": _CONTROL_FLOW, "tolist": _MEMORY, "numpy": _MEMORY, "_array": _MEMORY, "nonzero": _SHAPE.format("nonzero"),
    "where": _SHAPE.format("where"), "unique": _SHAPE.format("_unique2"), "unique_consecutive": _SHAPE.format("unique_consecutive"), "_expand_masks": _MASK,
    "masked_select": _MASKED_SELECT, "equal": "Batching rule not implemented for aten::equal. We could not generate a fallback.",
    "allclose": "vmap over torch.allclose isn't supported yet. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."}
RANDOM = ("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on "
          "vmap or perform the randomness operation out of vmap")
LOST = "this tensor belongs to a call of vmap that is over; return it from the function to keep it"


_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _refusal() -> str:
    """What torch says of the look at a value that is under way: by the outermost function of ours that is known for looking."""
    found, frame = _ITEM, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        found = _OBSERVING.get(frame.f_code.co_name, found)
        frame = frame.f_back
    return found


class Boundary(Node):
    """An edge out of the trace: `outer` is where it led, `value` what came in there."""

    __slots__ = ("outer", "value")
    torch_name = "AliasBackward0"
    n_outputs = 1

    def __init__(self, outer, value: Value):
        super().__init__(None, (), (), ())
        self.outer, self.value = outer, value

    def output_aval(self, i: int) -> Aval:
        return self.value.aval

    def apply(self, grads: list, create_graph: bool) -> list:
        if self.edges:
            return grads
        raise RuntimeError("backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead or call "
                           "backward() outside of functorch transforms.")

    def open(self) -> None:
        """The call is over: what somebody kept of its graph leads on."""
        self.edges, self.needs = (self.outer,), (True,)

    def tensor(self) -> Tensor:
        """A tensor whose gradient is the gradient at this boundary."""
        t = Tensor._of(self.value)
        t._edge = self
        return t


class Placeholder:
    """An argument as the traced function sees it: one example of `source`, whose dimension `axis` is mapped."""

    __slots__ = ("source", "axis", "value", "tensor", "edge", "layout", "step")

    def __init__(self, source: Tensor, axis: int, value: Value, tensor: Tensor):
        self.source, self.axis, self.value, self.tensor = source, axis, value, tensor
        self.edge, self.layout = tensor._edge, tensor._layout or contiguous(value.aval.shape)
        self.step: int = (source._layout or contiguous(source._aval.shape)).strides[axis]  # in memory, from one example to the next

    def axis_now(self) -> int:
        """Where the batch lies in what the source becomes if the function gave its example another shape in place (`unsqueeze_`, `t_`)."""
        before = [n for n in self.value.aval.shape[:self.axis] if n != 1]
        shape = self.tensor._aval.shape
        if len(shape) == self.value.aval.ndim:
            return self.axis
        return next((k for k in range(len(shape) + 1) if [n for n in shape[:k] if n != 1] == before), min(self.axis, len(shape)))

    def layout_now(self) -> Layout:
        """Where an example lies now."""
        return self.tensor._layout or contiguous(self.tensor._aval.shape)


class Lost(RuntimeError):
    """What a placeholder's value says once the call of vmap is over: which example of what it was."""

    def __init__(self, place: Placeholder, level: int, size: int):
        super().__init__(LOST)
        self.place, self.level, self.size = place, level, size


class Gone:
    """How to come by a value that was made in a call of vmap, once that is over: one that all examples shared, as a counter or a table of angles that a
    module keeps, is computed again from what it was made of (where the call's program came to, its inputs and numbers, and which inputs differed)."""

    __slots__ = ("made_of", "number")

    def __init__(self, made_of: tuple, number: int):
        self.made_of, self.number = made_of, number

    def again(self) -> Value:
        """The value in the program that is recorded now; RuntimeError where each example had its own."""
        node, inputs, floats, ints, differing = self.made_of
        steps, needed = program_info.steps_to(node), {self.number}
        for s in reversed(steps):
            if not needed.isdisjoint(range(s.out, s.out + len(s.plan.outs))):
                needed.update(r for r in s.refs if r.__class__ is int)
        if any(~r in differing for r in needed):
            raise RuntimeError(LOST)
        found: dict[int, Value] = {r: inputs[~r] for r in needed if r < 0}
        coming = {FLOAT: iter(floats), INT: iter(ints)}

        def number(kind):
            if kind is COMPLEX:
                return complex(next(coming[FLOAT]), next(coming[FLOAT]))
            return next(coming[FLOAT]) if kind is FLOAT else next(coming[INT]) if kind is INT else next(coming[INT]) != 0
        for s in steps:
            values = [found.get(r) if r.__class__ is int else r if r is None else number(r) for r in s.refs]
            made = range(s.out, s.out + len(s.plan.outs))
            if not needed.isdisjoint(made):
                found.update(zip(made, program.record(s.plan.op, values, s.plan.statics)[1]))
        return found[self.number]


class Trace(program.Program):
    """The program of one traced call, and what torch.compile calls its capture."""

    def __init__(self, size: int, randomness: str, before: tuple):
        super().__init__()
        self.size, self.randomness, self.before, self.outer_capture = size, randomness, before, before[2]
        self.outer = before[0] if isinstance(before[0], Trace) else None
        self.level: int = 1 if self.outer is None else self.outer.level + 1
        self.known: list[tuple[Value, object, object]] = []  # outside values, and what they were to the program outside
        self.placeholders: dict[int, Placeholder] = {}  # by input number
        self.examples: dict[int, Placeholder] = {}  # by id of the tensor that the function has of it
        self.stacked: dict[int, Value] = {}  # id of a random draw -> the draws of all examples
        self.nodes: set[Node] = set()
        self.boundaries: dict[tuple, Boundary] = {}
        self.functions: list[Called] = []  # calls of torch.autograd.Function
        self.draws = 0  # how often random numbers were drawn
        self.needs: dict[int, tuple] = {}  # first result of a step -> which of its inputs carry gradients
        self.written: list[tuple] = []
        self.stale: list = []  # views from outside that took a value of this program
        self.left: list[tuple] = []  # (function's name, result, where its batch goes, what the caller has of it)
        self.made: tuple | None = None  # the results of the operation whose node is being made, where others were recorded since
        self.duals: list[tuple] = []  # (level of forward differentiation, what the caller has of a result, what of its tangent)
        self.closing = False  # while gradients from outside, which nobody knows yet, are sent through

    # -- inputs ----------------------------------------------------------------------------------------------------------

    def add_input(self, v: Value) -> int:
        lost = v.ref
        if isinstance(lost, Lost) and lost.level == self.level and lost.size == self.size:  # tensordict keeps examples for the next call
            return self.again(v, lost.place)
        if v.array is program.META_ARRAY and self.device is not v.aval.device:
            raise program.RunsNow
        self.known.append((v, v.epoch, v.ref))
        if not v.aval.ndim and v.aval.device.type == "cpu" and self.device is not None and self.device.type != "cpu":
            moved = program.move(v, self.device)
            v.epoch, v.ref = self, self.enter(moved)
            return v.ref
        return self.enter(v)

    def placeholder(self, source: Tensor, axis: int) -> Tensor:
        """One example of `source`, to be called the function with."""
        a = source._aval
        value = Value(aval(a.shape[:axis] + a.shape[axis + 1:], a.dtype, a.device))
        ref = self.enter(value)
        t = Tensor._of(value)
        if mode.enabled and source.requires_grad:
            t._edge = self.boundary((source._edge, source._out), value)
        if axis or source._layout is not None:
            t._layout = example(source._layout or contiguous(a.shape), axis, self.level)
        self.placeholders[-1 - ref] = self.examples[id(t)] = Placeholder(source, axis, value, t)
        return t

    def again(self, v: Value, place: Placeholder) -> int:
        """A placeholder of an earlier call of the same level: one example of what its source holds now."""
        with self.outside():
            place.source._current()
        ref = self.enter(v)
        v.epoch, v.ref = self, ref
        self.placeholders[-1 - ref] = place
        if place.tensor._edge is not None:
            self.nodes.add(place.tensor._edge)
        return ref

    def leave(self, name: str, t: Tensor, axis: int | None) -> Tensor:
        """What the caller gets of a result: it has its shape now, and the rest when the call is over."""
        a = t._aval
        shape = a.shape if axis is None else (*a.shape[:axis % (a.ndim + 1)], self.size, *a.shape[axis % (a.ndim + 1):])
        shell = Tensor._of(Value(aval(shape, a.dtype, a.device)))
        self.left.append((name, t, axis, shell))
        return shell

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Inside of the block operations are recorded where the call stands."""
        inside = _swap(self.before)
        try:
            yield
        finally:
            _swap(inside)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Inside of the block the call has not begun: values of outside are what they are there, and may be computed."""
        mine = [(v, v.ref) for v, _, _ in self.known if v.epoch is self]
        self._give_back(self.known)
        inside = _swap(self.before)
        try:
            yield
        finally:
            self.before = _swap(inside)  # a program that ran has been replaced
            self.known = [(v, v.epoch, v.ref) for v in {id(v): v for v, _, _ in self.known}.values()]
            for v, ref in mine:
                v.epoch, v.ref = self, ref

    def position(self) -> tuple:
        """How far the recording is, for `back_to`."""
        return self.node, self.device, *(len(held) for held in self._held())

    def _held(self) -> tuple[list, ...]:
        return self.results, self.inputs, self.known, self.floats, self.ints, self.checks

    def back_to(self, position: tuple) -> None:
        """Forget what was recorded since."""
        self.node, self.device, n_results, n_inputs, n_known, *_ = position
        self._give_back(self.known[n_known:])
        self._lose([*self.results[n_results:], *self.inputs[n_inputs:]], None)
        for held, n in zip(self._held(), position[2:]):
            del held[n:]
        self.needs = {out: needs for out, needs in self.needs.items() if out < n_results}
        self.functions = [f for f in self.functions if f.end <= n_results]

    @staticmethod
    def _give_back(known: list) -> None:
        for v, epoch, ref in reversed(known):
            v.epoch, v.ref = (epoch, ref) if v.array is None else (None, None)

    def begin_draw(self) -> None:
        if self.randomness == "error":
            raise RuntimeError(RANDOM)

    def drew(self, value: Value, redraw) -> None:
        """A random operation drew `value`; the other examples' draws follow where they differ."""
        self.draws += 1
        if self.randomness == "different":
            import numpy as np

            def all_draws(first=None):
                rows = ([] if first is None else [first]) + [redraw() for _ in range(self.size - (first is not None))]
                arrays = [program.concrete(r) for r in rows]
                if any(map(program.is_tracer, arrays)):
                    with engine_settings():
                        made = jax.numpy.stack(arrays)
                else:
                    made = np.stack([np.asarray(a) for a in arrays])
                return Value(aval((self.size, *value.aval.shape), value.aval.dtype, value.aval.device), made)
            self.stacked[id(value)] = all_draws(value)
            self.known.append((value, value.epoch, value.ref))
            if self.outer_capture is not None:
                self.outer_capture.drew(self.stacked[id(value)], all_draws)
        elif self.outer_capture is not None:
            self.outer_capture.drew(value, redraw)

    # -- the graph -------------------------------------------------------------------------------------------------------

    def boundary(self, edge: tuple, value: Value) -> Boundary:
        found = self.boundaries.get(edge)
        if found is None:
            found = self.boundaries[edge] = Boundary(edge, value)
        return found

    def inner(self, node: Node) -> bool:
        return node in self.nodes or (isinstance(node, Boundary) and self.boundaries.get(node.outer) is node)

    def watch(self, node: Node, values) -> None:
        """A node was made: keep the graph inside."""
        self.nodes.add(node)
        if node.edges:
            node.edges = [e if e is None or self.inner(e[0]) else (self.boundary(e, v), 0) for e, v in zip(node.edges, values)]
        if node.plan is not None:
            self.carried(self.made or self.results[-len(node.plan.outs):], node.needs)

    def carried(self, made: tuple | list, needs: tuple) -> None:
        """Derivatives go through these inputs of a step."""
        out = made[0].ref
        self.needs[out] = tuple(map(max, needs, self.needs.get(out, needs)))

    def called(self, cls: type, args: tuple, kwargs: dict, separate: bool, needs: tuple) -> Called:
        """A Function is called whose derivative is recorded; the result is to be told what it returns."""
        from ._called import Called  # which stands on what loads this
        return Called(self, cls, args, kwargs, separate, needs)

    def reference(self, v: Value) -> int:
        return v.ref if v.epoch is self else self.add_input(v)

    # -- what cannot be recorded -----------------------------------------------------------------------------------------

    def interrupted(self, reason: str) -> None:
        if reason == "device change":
            raise RuntimeError("Expected all tensors to be on the same device inside a function under vmap")
        raise RuntimeError(_refusal())

    def begin_step(self, optimizer, closure) -> None:
        raise RuntimeError("vmap: an optimizer cannot take a step inside a function under vmap")

    def writes(self, t: Tensor) -> None:
        """t is about to be written: a tensor from outside gets its new value when the call is over."""
        st = t._storage
        v = t._value if st is None else st.value
        if self.holds(v):
            return
        if st is None:
            self.written.append((weakref.ref(t), None, v, t._edge, t._out))
        else:
            base = t if t._base is None else t._base
            self.written.append((weakref.ref(base), st, v, base._edge, base._out))

    def holds(self, v: Value) -> bool:
        """Whether v was made in the call, or differs between its examples."""
        return v.epoch is self and (v.ref >= 0 or -1 - v.ref in self.placeholders or id(v) in self.stacked)

    def wrote(self, t: Tensor) -> bool:
        """Whether the function wrote memory from outside that t shows."""
        st = t._storage
        owners = [(ref(), was) for ref, was, *_ in self.written]
        return any(t is owner or st is not None and (st is was or owner is not None and owner._storage is st) for owner, was in owners)

    def refreshed(self, t: Tensor) -> bool:
        """A view looks again at its storage: outside of the call, where its gradients belong, unless what it sees was written inside."""
        v = t._storage.value
        if self.holds(v):
            self.stale.append(weakref.ref(t))
            return False
        with self.suspended():
            t._current()
        return True

    def passed(self, plan: Plan) -> None:
        """An operation on meta tensors: whoever counts outside is told."""
        if self.outer_capture is not None:
            self.outer_capture.passed(plan)

    def viewed(self, t: Tensor) -> None:
        """t is a new view: one of memory from outside is good when the call is over, too, if somebody kept it."""
        if not self.holds(t._storage.value):
            self.stale.append(weakref.ref(t))

    def look_again(self, t: Tensor) -> Tensor:
        """t, which is a view of memory from outside; once the call is over it looks there for what it shows."""
        if t._storage is not None and self.holds(t._value):
            self.stale.append(weakref.ref(t))
        return t

    def restore_written(self) -> list[tuple]:
        """Give written outside tensors their old values back; (tensor, what it was inside, whether its place in the graph was to stay)
        of each that still lives."""
        found, seen = [], set()
        for ref, st, old, edge, out in self.written:
            t = ref()
            if st is None:
                if t is None:
                    continue
                st = t._storage  # somebody made a view since
            key = id(ref if st is None else st)
            if key in seen:
                continue
            seen.add(key)
            quiet = t is None or t._edge is edge
            if quiet:
                now = Tensor._of(t._value if st is None else st.value)
            else:
                t._current()
                now = _plain_copy(t)
            if st is None:
                t._value = old
            else:
                st.value = old
                st.version += 1
            if t is not None:
                t._edge, t._out = edge, out
            if st is not None and quiet:  # all of the memory, whatever part of it the tensor shows
                t = Tensor._of(old)
                t._storage, t._seen, t._layout = st, st.version, st.layout
            found.append((t, now, quiet))
        return found

    def close(self) -> None:
        """Forget what the values of outside were here; values made here are lost to whoever kept them, but for what all examples shared."""
        for t in (ref() for ref in self.stale):
            if t is not None:
                t._seen = t._storage.version - 1
                if t._edge in self.nodes:  # a node of this call; the view makes another when it looks
                    t._several = None
        self._give_back(self.known)
        for boundary in self.boundaries.values():
            boundary.open()
        differing = {k for k, v in enumerate(self.inputs) if k in self.placeholders or id(v) in self.stacked}
        self._lose([*self.results, *(p.value for p in self.placeholders.values())], (self.node, self.inputs, self.floats, self.ints, differing))

    def _lose(self, values: list, made_of: tuple | None) -> None:
        """Values that were made here say so when they are asked for."""
        for v in values:
            if v is not None and v.epoch is self and v.array is None:
                place = self.placeholders.get(-1 - v.ref)
                v.epoch, v.ref = None, (Lost(place, self.level, self.size) if place is not None else
                                        RuntimeError(LOST) if made_of is None else Gone(made_of, v.ref))


def _swap(new: tuple) -> tuple:
    """Put a program, its limit, a capture and watchers in force; returns what was."""
    state = program.state
    old = state.program, state.limit, state.capture, mode.watchers
    state.program, state.limit, state.capture, mode.watchers = new
    return old


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """Inside of the block no call of vmap is open: operations on JAX's tracers are done at once, as JAX traces them."""
    inside = _swap((program.Program(), program.state.limit, None, ()))
    try:
        yield
    finally:
        _swap(inside)


def innermost() -> Trace | None:
    """The open call of vmap, if one is."""
    current = program.state.program
    return current if isinstance(current, Trace) else None


@contextlib.contextmanager
def tracing(size: int, randomness: str) -> Iterator[Trace]:
    """Operations inside the block are recorded into the Trace instead of running."""
    with program.lock:
        state = program.state
        before = state.program, state.limit, state.capture, mode.watchers
        trace = Trace(size, randomness, before)
        _swap((trace, 1 << 60, trace, (trace.watch,)))
        try:
            with opened(trace):
                yield trace
        except BaseException:
            trace.restore_written()
            raise
        finally:
            _swap(trace.before)
            trace.close()
