"""What a call does while it is traced: what it reads besides its arguments, and every tensor as it was before."""
from __future__ import annotations

import contextlib
import gc
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._core import history, program
from ._core.garbage import all_known
from ._core.graph import AccumulateGrad, Node, reachable
from ._core.registry import Plan
from ._core.value import Value, is_tracer
from ._fields import fields
from ._storage import Storage
from ._tensor import Tensor
from .optim._rules import Rule, collected
from .optim.optimizer import Optimizer

REPLAYED = "CompiledFunctionBackward"  # the graph node of a replayed call


class NotReplayable(Exception):
    """Why a call must stay recorded eager."""


class SharedMemory(NotReplayable):
    """A replay makes new tensors and cannot say which memory they share; PyTorch's graphs can, so `fullgraph=True` is no reason to raise."""


class Outdated(Exception):
    """Why a replay is not what its call would do by now; nothing is done yet."""


class Capture:
    """What one traced call read besides its arguments; `program.state.capture` while it runs."""

    def __init__(self):
        self.reason: str | None = None
        self.draws: list[tuple[Value, Callable]] = []
        self.steps: list[TracedStep] = []
        self.start, self.node = 0, None  # where the optimizer's step begins that runs now
        self.asked: list[Tensor] = []  # tensors that somebody asked for their `.grad`
        self.offsets = False  # whether somebody asked where in its memory a tensor begins

    def drew(self, value: Value, again: Callable[[], Value]) -> None:
        """`value` was drawn at random, and will be `again()` at each replay."""
        self.draws.append((value, again))

    def interrupted(self, reason: str) -> None:
        self.reason = self.reason or f"{reason} at {history.user_line()}"

    def passed(self, plan: Plan) -> None:
        """An operation on meta tensors: it is not recorded."""

    def begin_draw(self) -> None:
        """Random draws may be replayed."""

    def writes(self, t: Tensor) -> None:
        """In-place writes are found when the call is over."""

    def refreshed(self, t: Tensor) -> bool:
        """A view looks again at its storage; whether that is done."""
        return False

    def viewed(self, t: Tensor) -> None:
        """t is a new view."""

    def asks_for_gradients(self, tensors: Iterable[Tensor]) -> None:
        """What happens next goes by whether these have a `.grad`."""
        self.asked += tensors

    def begin_step(self, optimizer: Optimizer, closure) -> None:
        self.asks_for_gradients(p for group in optimizer.param_groups for p in group["params"])
        if closure is not None:
            self.reason = self.reason or "an optimizer step with a closure"
        self.start, self.node = len(program.state.program.floats), program.state.program.node

    def end_step(self, optimizer: Optimizer) -> None:
        node = self.node if is_ours(optimizer) else program.state.program.node
        while node is not self.node and node is not None:
            if node.plan is not None and not isinstance(node.plan.op, Rule):
                self.reason = self.reason or f"the step of {type(optimizer).__name__}, which computes more than our rules do"
            node = node.parent
        self.steps.append(TracedStep(optimizer, self.start, len(program.state.program.floats)))


class CallCapture(Capture):
    """A capture whose replays read other values: what comes from outside is sealed, as if it were not computed yet."""

    def __init__(self):
        super().__init__()
        self.sealed: dict[int, tuple[Value, Any, Any]] = {}  # by identity: values, their arrays and bounds
        self.guards: list[tuple[Value, Callable[[Value], None]]] = []  # what to check of values from outside before each replay

    def seal(self, values: Iterable[Value]) -> None:
        """Hide what values hold: whoever looks ends the trace."""
        for v in values:
            if v.array is not None and v.array is not program.META_ARRAY and not is_tracer(v.array):
                self.sealed[id(v)] = v, v.array, v.bounds
                v.array, v.bounds, v.epoch = None, None, program.SEALED

    def unseal(self, values: Iterable[Value] | None = None) -> None:
        """Show what these hold; all, when the trace is over."""
        for i in list(self.sealed) if values is None else map(id, values):
            v, array, bounds = self.sealed.pop(i, (None, None, None))
            if v is not None:
                v.array, v.bounds = array, bounds
                if v.epoch is program.SEALED:
                    v.epoch = None

    def interrupted(self, reason: str) -> None:
        super().interrupted(reason)
        self.unseal()

    def drew(self, value: Value, again: Callable[[], Value]) -> None:
        super().drew(value, again)
        if self.reason is None:
            self.seal([value])

    def begin_step(self, optimizer: Optimizer, closure) -> None:
        """An optimizer's own numbers are counted anew at each replay: `TracedStep.numbers`."""
        super().begin_step(optimizer, closure)
        held = (x for given in (*optimizer.state.values(), *optimizer.param_groups) for x in given.values())
        self.unseal([x._value for x in held if isinstance(x, Tensor) and not x.ndim])


class Boundary(Node):
    """Stands before an argument that has a graph of its own, so that a traced backward ends there."""

    __slots__ = ("aval",)
    torch_name = "Identity"

    def __init__(self, t: Tensor):
        super().__init__(None, [(t._edge, t._out)], (True,), ())
        self.aval = t._aval

    n_outputs = 1

    def output_aval(self, i: int):
        return self.aval

    def apply(self, grads: list, create_graph: bool) -> list:
        return grads


def objects_of(*groups: Iterable[type]) -> list[list]:
    """For each group of classes the objects of just these, among what the garbage collector knows: maybe millions. Classes are told by identity,
    for theirs may define what is equal, and not by __class__, which a dead weak proxy refuses to tell."""
    objects = gc.get_objects()  # read in no inner function: the list would hold the cell that it is in, and so keep all of them
    place = {id(c): k for k, group in enumerate(groups) for c in group}
    found: list[list] = [[] for _ in groups]
    for x in itertools.compress(objects, map(place.__contains__, map(id, map(type, objects)))):
        found[place[id(type(x))]].append(x)
    return found


def tensor_classes(top: type = Tensor) -> Iterator[type]:
    """Tensor and all its subclasses."""
    yield top
    for c in type.__subclasses__(top):
        yield from tensor_classes(c)


@all_known()
def all_tensors() -> list[Tensor]:
    return objects_of(tensor_classes())[0]


def holder_of(t: Tensor) -> Tensor | Storage:
    """What holds the Value that writes to a tensor replace."""
    return t if t._storage is None else t._storage


def tell_apart(tensors: Iterable[Tensor]) -> None:
    """A Value of its own for each memory: `copy_` shares one, and then nobody knows which of two tensors was read."""
    owners: dict[int, tuple[Value, Tensor | Storage]] = {}
    copies: dict[tuple[int, int], Value] = {}
    for t in tensors:
        v, holder = t._value, holder_of(t)
        if owners.setdefault(id(v), (v, holder))[1] is not holder:
            own = copies.setdefault((id(v), id(holder)), Value(v.aval, v.array))
            own.shared, own.bounds = v.shared, v.bounds
            t._value = own
            if isinstance(holder, Storage) and holder.value is v:
                holder.value = own


def look_again(tensors: Iterable[Tensor]) -> None:
    """Views look at what was written to their memory; those of what was lost say so when they are asked for it."""
    for t in tensors:
        st = t._storage
        if st is not None and st.host is not None:
            st.host.sync(st)
            t._refresh(st)  # also a view that last looked at its own memory alone
        if st is None or st.value.array is not None or st.value.epoch is not None:
            t._current()


class Before:
    """Every tensor as it is when a call begins that is traced: its value, its storage and what that holds, its `.grad`."""

    def __init__(self, tensors: Iterable[Tensor]):
        tensors = [t for t in tensors if fields(t).get("_value").__class__ is Value]
        look_again(tensors)
        program.flush("torch.compile")  # views looked again at their storages
        tell_apart(tensors)
        self.tensors = {id(t): (t, t._value) for t in tensors}
        self.storages = {id(t): t._storage for t in tensors}
        self.grads = {id(t): t._grad for t in tensors}
        self.roots = {id(st): st.value for st in self.storages.values() if st is not None}
        self.owners = {id(g): self.tensors[i][0] for i, g in self.grads.items() if g is not None}

    def values(self) -> list[Value]:
        """What tensors and storages hold."""
        return [*(v for _, v in self.tensors.values()), *self.roots.values()]


def graph_leaves(roots: list[Node]) -> list[Node]:
    """The leaves and boundaries under a graph; NotReplayable where Python code sits in it."""
    found = []
    for node in reachable(roots, stop=Boundary):
        if isinstance(node, (AccumulateGrad, Boundary)):
            found.append(node)
        elif node.plan is None and node.torch_name != REPLAYED:
            raise NotReplayable(f"a custom autograd.Function ({node.name()}) in the graph")
        elif node.hooks is not None:
            raise NotReplayable(f"a hook on {node.name()}")
    return found


def _form(optimizer: Optimizer) -> list:
    """What decides which operations a step records: switches, whether decay and momentum are there at all, and which options are tensors."""
    return [(k, bool(v) if k in ("weight_decay", "momentum") else v if v.__class__ in (bool, str) else isinstance(v, Tensor))
            for group in optimizer.param_groups for k, v in group.items()]


def is_ours(optimizer: Optimizer) -> bool:
    return type(optimizer).step.__module__.startswith("torchlike.optim.")


class TracedStep:
    """An optimizer's step inside a traced call: where its numbers lie among the call's, and what they are now."""

    def __init__(self, optimizer: Optimizer, start: int, end: int):
        self.optimizer, self.start, self.end, self.form = optimizer, start, end, _form(optimizer)
        self.updated = [p for group in optimizer.param_groups for p in group["params"] if p._grad is not None]
        self.together = self._together()
        # our own rules' numbers follow from the groups' options, where these are not tensors and no steps are counted
        counts = any("step" in s for s in optimizer.state.values())
        given = any(isinstance(v, Tensor) for group in optimizer.param_groups for v in group.values())
        self.constant = is_ours(optimizer) and "step" not in optimizer.__dict__ and not counts and not given
        self.options: list = []
        self.known: list = []

    @contextlib.contextmanager
    def _with_gradients(self) -> Iterator[None]:
        """Whoever had a gradient when the step was traced has one now, whatever it is."""
        before = [(p, p._grad) for group in self.optimizer.param_groups for p in group["params"]]
        try:
            for p, _ in before:
                p._grad = None
            for p in self.updated:
                p._grad = p
            yield
        finally:
            for p, g in before:
                p._grad = g

    def _together(self) -> list[int]:
        """Which parameters have taken as many steps and are updated in one operation; empty where all have."""
        state = self.optimizer.state
        counts = [s["step"] for s in map(state.get, self.updated) if s and "step" in s]
        if len({id(t._value) if isinstance(t, Tensor) else t for t in counts}) < 2:  # as a step leaves them
            return []
        numbers = [float(t) for t in counts]
        return [] if len(set(numbers)) == 1 else [numbers.index(n) for n in numbers]

    def check(self) -> None:
        """Outdated where the step would record other operations than those traced."""
        if _form(self.optimizer) != self.form or self._together() != self.together:
            raise Outdated("the optimizer's step is another one")

    def numbers(self) -> list[float]:
        """The step's numbers; Outdated, before it counts, where it would record other operations than those traced."""
        options: list = []
        for group in self.optimizer.param_groups:
            options += group.values()
        if self.constant and len(options) == len(self.options) and all(map(operator.is_, options, self.options)) and not self.optimizer._has_step_hooks():
            return self.known
        self.check()
        with collected() as numbers, self._with_gradients():
            self.optimizer.step()
        if len(numbers) != self.end - self.start:
            raise Outdated("the optimizer's step is another one")
        self.options, self.known = options, numbers
        return numbers


def gc_held(t: Tensor, ours: list) -> bool:
    """Whether something besides the tracer's own lists and dictionaries refers to a tensor."""
    mine = {id(o) for o in ours} | {id(fields(t))}
    return any(id(r) not in mine and not _is_frame(r) for r in gc.get_referrers(t))


def made_here(t: Tensor, prog) -> bool:
    v = fields(t).get("_value") if t._storage is None else t._storage.value
    return v.__class__ is Value and v.epoch is prog and v.ref >= 0 and v.array is None


def _is_frame(x) -> bool:
    return type(x).__name__ in ("frame", "generator")
