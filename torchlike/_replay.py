"""A traced call as an operation: what torch.compile makes of a call that was recorded into a program of its own.

What the program read (arguments, outside tensors, random draws, optimizers' numbers) and wrote (results, outside tensors, `.grad`)
becomes a `Replay`: calling it records the whole program as one operation. Where results require a gradient, the backward is traced
as well, and becomes the second operation of the pair.
"""
from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._core import executable, executor, program, program_info
from ._core.aval import BOOL, COMPLEX, FLOAT, INT
from ._core.grad_mode import mode
from ._core.graph import SECOND_BACKWARD, AccumulateGrad, Node, reachable
from ._core.interrupts import Uninterrupted
from ._core.registry import Op
from ._core.value import Value
from ._fields import fields
from ._storage import Storage
from ._tensor import Tensor, _new
from ._tracing import REPLAYED, Before, Boundary, Capture, NotReplayable, Outdated, SharedMemory, gc_held, graph_leaves, made_here
from .autograd import engine
from .optim._rules import write
from .utils._pytree import SUPPORTED_NODES

STEP = "end of compiled step"
_count = itertools.count()


class _Rebuilt:
    """How pytree makes a container of a registered class from its parts; as part of a key it goes by the class and the context."""

    def __init__(self, kind: type, context: Any):
        self.kind, self.context = kind, context

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rebuilt) and self.kind is other.kind and self.context == other.context

    def __hash__(self) -> int:
        return hash(self.kind)


def flatten(x, leaves: list):
    """Structure of nested tuples, lists and dicts, and of classes of dicts that pytree knows (transformers' outputs); leaves are appended."""
    if isinstance(x, (tuple, list)):
        return type(x), tuple([flatten(y, leaves) for y in x])
    if x.__class__ is dict:
        return dict, tuple([(k, flatten(v, leaves)) for k, v in x.items()])
    if isinstance(x, dict) and type(x) in SUPPORTED_NODES:
        parts, context = SUPPORTED_NODES[type(x)].flatten_fn(x)
        return _Rebuilt(type(x), context), tuple([flatten(y, leaves) for y in parts])
    leaves.append(x)
    return None


def unflatten(structure, leaves):
    if structure is None:
        return next(leaves)
    kind, parts = structure
    if kind is dict:
        return {k: unflatten(s, leaves) for k, s in parts}
    made = [unflatten(s, leaves) for s in parts]
    if kind.__class__ is _Rebuilt:
        return SUPPORTED_NODES[kind.kind].unflatten_fn(made, kind.context)
    return kind(*made) if hasattr(kind, "_fields") else kind(made)


class Segment(Op):
    """Steps of a traced program as one operation: inputs by reference, then the numbers (floats, then ints)."""

    inlined = True

    def __init__(self, name: str, steps: list, reads: list[int], outs: list[int], avals: list):
        super().__init__(f"{name}_{next(_count)}", self._kernel, shape=lambda *_: [(a.shape, a.dtype) for a in avals], vjp=False)
        self.stable, self.eager_compilation = False, True
        first = steps[0].out if steps else 0
        position = {r: k for k, r in enumerate(reads)}
        self.steps = [executable.Step(s.plan, tuple(self._local(r, first, position) for r in s.refs), s.out - first) for s in steps]
        self.outs = [self._local(r, first, position) for r in outs]
        self.n_inputs = len(reads)
        kinds = [r for s in steps for r in s.refs if r.__class__ is not int]
        self.n_floats = sum(2 if r is COMPLEX else r is FLOAT for r in kinds)
        self.n_ints = sum(r is INT or r is BOOL for r in kinds)

    @staticmethod
    def _local(ref, first: int, position: dict):
        if ref.__class__ is not int:
            return ref
        return ref - first if ref >= first else -1 - position[ref]

    def _kernel(self, xp, *args):
        inputs, numbers = args[:self.n_inputs], args[self.n_inputs:]
        env: list = []
        executable.evaluate(self.steps, env, inputs.__getitem__, numbers[:self.n_floats], numbers[self.n_floats:],
                          executable.on_host if xp is np else executable.traced)
        return [env[i] if i >= 0 else inputs[-1 - i] for i in self.outs]


def _memory_of(t: Tensor) -> Value:
    """All of the memory that a tensor shows, or a part of."""
    shown = t._current()
    return shown if t._storage is None else t._storage.value


def _reads(steps: list, outs: list[int]) -> list[int]:
    """References from outside that steps and results need, each once."""
    first = steps[0].out if steps else 0
    refs = [r for s in steps for r in s.refs if r.__class__ is int] + list(outs)
    return list(dict.fromkeys(r for r in refs if r < first))


class Replay:
    """A traced call: the operation, where its inputs come from, and where its results go."""

    def __init__(self, name: str, leaves: list, shown: list, before: Before, after: list[Tensor], result, capture: Capture, prog):
        self.inputs = []  # how to get the Value of each input
        sources = {id(v): ("draw", k) for k, (v, _) in enumerate(capture.draws)}
        for i, x in enumerate(leaves):
            if isinstance(x, Tensor):
                sources.setdefault(id(before.tensors[id(x)][1]), ("argument", i))
        for t, v in before.tensors.values():
            sources.setdefault(id(v), ("grad", before.owners[id(t)]) if id(t) in before.owners else ("tensor", t))
        for t, _ in before.tensors.values():  # memory of which tensors from outside show only parts
            if t._storage is not None and id(t._storage) in before.roots:
                sources.setdefault(id(before.roots[id(t._storage)]), ("memory", t))
        self.result_leaves: list = []
        self.structure = flatten(result, self.result_leaves)
        self.draws, self.steps = [draw for _, draw in capture.draws], capture.steps
        self.floats, self.ints = list(prog.floats), list(prog.ints)  # never written: others are other lists
        self.numbers: list[list[float]] = [[] for _ in self.steps]  # those of the optimizers' steps among them
        self._refuse_aliases(before)
        made = {id(t): t for t in self.result_leaves if isinstance(t, Tensor) and id(t) not in before.tensors and _pending(t, prog)}
        counters = {id(x) for step in capture.steps for state in step.optimizer.state.values() for x in state.values()}
        self.effects, self.gradients = self._effects(leaves, before, after, prog, counters)
        self._refuse_gradients_of(leaves, shown)
        forward_end, checks = len(prog.results), list(prog.checks)
        outs = {i: t._value.ref for i, t in made.items()}
        self.differentiable = [t for t in self.result_leaves if id(t) in outs and t._edge is not None
                               and all(node.saved is not None for node in reachable([t._edge]))]  # a backward inside may have freed some
        backward = self._trace_backward(shown, prog) if self.differentiable else None
        recorded = program_info.steps_to(prog.node)
        steps = [s for s in recorded if s.out < forward_end]
        wanted = list(dict.fromkeys([*(r for _, _, r in self.effects), *(r for _, _, r in self.gradients if r is not None), *outs.values(),
                                     *(_reference(v, prog) for check in checks for v in (check.ok, check.found) if v is not None)]))
        if backward is not None:
            rest = [s for s in recorded if s.out >= forward_end]
            grads, placeholders = backward
            needs = _reads(rest, [g for g in grads if g is not None])
            self.saved = [r for r in needs if r not in placeholders]
            order = [*self.saved, *placeholders]
            wanted_back = [g for g in grads if g is not None]
            self.backward_floats, self.backward_ints = prog.floats[len(self.floats):], prog.ints[len(self.ints):]
            self.backward = Segment(f"compiled_{name}_backward", rest, order, wanted_back, [_aval(prog, r) for r in wanted_back])
            self.grads = grads
            wanted = list(dict.fromkeys([*wanted, *(r for r in self.saved if r >= 0)]))
        reads = _reads(steps, wanted)
        if backward is not None:
            reads = list(dict.fromkeys([*reads, *(r for r in self.saved if r < 0)]))
        self.reads = {r: k for k, r in enumerate(reads)}
        for r in reads:
            v = prog.inputs[-1 - r]
            self.inputs.append(sources.get(id(v), ("constant", v)))
        written = {id(x) for kind, x, _ in self.effects if kind != "argument"}
        self.replaced = frozenset(k for k, (kind, x) in enumerate(self.inputs) if kind == "tensor" and (id(x) in written or id(x._storage) in written))
        used = {id(x) for kind, x in self.inputs if kind == "grad"} | {id(x) for kind, x, _ in self.effects if kind == "grad"}
        used |= {id(t) for t, _, _ in self.gradients} | set(map(id, capture.asked))
        self.watched = [t for t, _ in before.tensors.values() if id(t) in used]
        self.avals = [_aval(prog, r) for r in wanted]
        self.forward = Segment(f"compiled_{name}", steps, reads, wanted, self.avals)
        self.position = {r: k for k, r in enumerate(wanted)}
        self.checks = [(self.position[check.ok.ref], check.error, None if check.found is None else self.position[_reference(check.found, prog)])
                       for check in checks]
        self.guards = [(sources.get(id(v), ("constant", v)), again) for v, again in capture.guards]
        self.effects = [(kind, x, self.position[r]) for kind, x, r in self.effects]
        self.gradients = [(t, g, None if r is None else self.position[r]) for t, g, r in self.gradients]
        self._find_outside()
        shared = [(t, before.storages[id(t)]) for t, _ in before.tensors.values()]
        self.memory = [(weakref.ref(t), st) for t, st in shared if id(st) in self.storages]  # who shows memory that is written as a whole
        weakref.finalize(self, executor.retire, [self.forward] if backward is None else [self.forward, self.backward]).atexit = False
        self.exe: executable.Executable | None = None  # what ran last
        self.holders: list[int | None] = []
        self.end: program.Node | None = None  # where the program ends that is a replay and nothing else
        number = {id(t): k for k, t in enumerate(self.differentiable)}
        self.results = [("value", outs[id(t)], (t, number.get(id(t)))) if isinstance(t, Tensor) and id(t) in outs else self._given(t, leaves, before, sources)
                        for t in self.result_leaves]

    def _refuse_aliases(self, before: Before) -> None:
        """A replay's results are new tensors: they cannot share memory with others."""
        outside = {id(t._storage) for t, _ in before.tensors.values()} - {id(None)}
        seen: set[int] = set()
        for t in {id(t): t for t in self.result_leaves if isinstance(t, Tensor) and id(t) not in before.tensors}.values():
            if t._storage is None:
                continue
            if id(t._storage) in outside:
                raise SharedMemory("a result shares memory with a tensor from outside")
            if id(t._storage) in seen:
                raise SharedMemory("two results share memory")
            seen.add(id(t._storage))

    def _find_outside(self) -> None:
        """The tensors and storages from outside that no argument may share memory with: those it writes, and those it reads if it
        writes to an argument."""
        self.outside = [x for kind, x, _ in self.effects if kind == "tensor"]
        self.owners = [x for kind, x, _ in self.effects if kind == "grad"] + [t for t, _, _ in self.gradients]
        self.storages = {id(x) for kind, x, _ in self.effects if kind == "storage"}
        if any(kind == "argument" for kind, _, _ in self.effects):
            self.outside += [x for kind, x in self.inputs if kind in ("tensor", "memory")]
            self.owners += [x for kind, x in self.inputs if kind == "grad"]
        self.writes = bool(self.outside or self.owners or self.storages)

    def meets(self, leaves: list) -> bool:
        """Whether an argument shares memory with what a replay writes or reads elsewhere."""
        return bool(leaves) and self.writes and any(isinstance(x, Tensor) and self._is_outside(x) for x in leaves)

    def _is_outside(self, x: Tensor) -> bool:
        st = x._storage
        if st is None:
            return any(t is x for t in self.outside) or any(t._grad is x for t in self.owners)
        return (id(st) in self.storages or any(t._storage is st for t in self.outside)
                or any(t._grad is not None and t._grad._storage is st for t in self.owners))

    def _refuse_gradients_of(self, leaves: list, shown: list) -> None:
        """Arguments are others at each call, and so would their gradients be."""
        given = {id(x) for x in (*leaves, *shown) if isinstance(x, Tensor)}
        if any(id(t) in given for t, _, _ in self.gradients) or any(kind == "grad" and id(t) in given for kind, t, _ in self.effects):
            raise NotReplayable("it accumulates into the .grad of an argument")

    def _effects(self, leaves: list, before: Before, after: list[Tensor], prog, counters: set[int]):
        """Outside tensors that now hold something else, those that replace an input first and in the order of the inputs, so that each
        can take over the buffer of what it replaces; and `.grad` attributes that changed: (tensor, gradient, its reference where it is new)."""
        entered = {id(v): k for k, v in enumerate(prog.inputs)}
        arguments = {id(x): i for i, x in enumerate(leaves) if isinstance(x, Tensor)}
        effects, storages = [], set()
        for t, v in before.tensors.values():
            st, was = t._storage, before.storages[id(t)]
            if st is not was and (was is not None or id(st) in before.roots):
                raise SharedMemory("it exchanges the memory of a tensor from outside")
            old, new = (v, t._value) if st is None else (before.roots.get(id(st), v), st.value)
            if new is old or id(st) in storages or (id(t) in counters and new.array is not None):  # a step counts its numbers itself
                continue
            if t._edge is not None and not isinstance(t._edge, AccumulateGrad):
                raise NotReplayable("an in-place write to a tensor that is part of a graph")
            holder = ("argument", arguments[id(t)]) if id(t) in arguments else ("grad", before.owners[id(t)]) if id(t) in before.owners else ("tensor", t)
            if st is not None:
                storages.add(id(st))
                given = next((x for x in leaves if isinstance(x, Tensor) and x._storage is st), None)
                if given is not None and given._chain:
                    raise SharedMemory("an in-place write through an argument that is a view")
                if given is not None:
                    holder = "argument", arguments[id(given)]
                elif holder[0] != "grad":
                    holder = "storage", st
            effects.append((entered.get(id(old), len(entered)), (*holder, _reference(new, prog))))
        changed = []
        for t, _ in before.tensors.values():
            g = t._grad
            if g is not before.grads[id(t)]:
                if g is not None and id(g) not in before.tensors and g._storage is not None:
                    raise SharedMemory("a new gradient shares memory")
                changed.append((t, g, _reference(g._current(), prog) if g is not None and id(g) not in before.tensors else None))
        attached = {id(g) for _, g, _ in changed}
        results = {id(x) for x in self.result_leaves}
        if attached & results - set(before.tensors) - {id(None)}:
            raise NotReplayable("a result is a new gradient")
        unknown = [t for t in after if id(t) not in before.tensors and id(t) not in attached and id(t) not in results and made_here(t, prog)]
        views = [fields(x) for x in self.result_leaves if isinstance(x, Tensor) and id(x) not in before.tensors]  # each holds what it is a view of
        ours = [after, unknown, *views]
        if any(gc_held(t, ours) for t in unknown):
            raise NotReplayable("it keeps a new tensor outside its results")
        return [effect for _, effect in sorted(effects, key=operator.itemgetter(0))], changed

    @staticmethod
    def _given(x, leaves: list, before: Before, sources: dict):
        """How a replay gets a result that is no new tensor."""
        if isinstance(x, Tensor):
            for i, leaf in enumerate(leaves):
                if leaf is x:
                    return ("argument", i, None)
            if id(x) in before.owners:
                raise NotReplayable("a result is the .grad of a tensor from outside")
            if id(x) in before.tensors:
                return ("constant", x, None)
            kind, k = sources.get(id(x._value), (None, None))
            if kind == "draw":
                return ("draw", k, None)
            raise NotReplayable("a result that is computed outside the trace")
        return ("constant", x, None)

    def _trace_backward(self, shown: list, prog):
        """Record the backward into the same program: (results per differentiable input, references of output gradients)."""
        self.leaves = graph_leaves(list(dict.fromkeys(t._edge for t in self.differentiable)))
        targets = []
        for node in self.leaves:
            if isinstance(node, Boundary):
                t = next(x for x in shown if isinstance(x, Tensor) and x._edge is node)
            else:
                t = node.variable
            targets.append(t)
        marks = [Tensor._of(Value(t._aval, np.ones(t._aval.shape, t.dtype.np))) for t in self.differentiable]
        roots = [(t._edge, t._out, g) for t, g in zip(self.differentiable, marks)]
        # Hooks run where a replay's gradients arrive. And an argument's own graph may lead to the same leaves (a cell's parameters, in a loop).
        outside = [(node.hooks, node.edges) for node in self.leaves]
        try:
            for node in self.leaves:
                node.hooks, node.edges = None, ()
            found = engine.run(roots, True, False, targets, accumulate=False)
        finally:
            for node, (hooks, edges) in zip(self.leaves, outside):
                node.hooks, node.edges = hooks, edges
        grads = [None if g is None else _reference(g._current(), prog) for g in found]
        return grads, [_reference(g._current(), prog) for g in marks]

    # -- replaying -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _value(source: tuple, leaves: list, drawn: list[Value]) -> Value:
        kind, x = source
        return (x._current() if kind == "tensor" else leaves[x]._current() if kind == "argument" else drawn[x] if kind == "draw" else
                x._grad._current() if kind == "grad" else _memory_of(x) if kind == "memory" else x)

    def __call__(self, leaves: list):
        """Outdated where that is not what the call would do by now."""
        for t, st in self.memory:
            if (alias := t()) is not None and alias._storage is not st:
                raise Outdated("a tensor from outside has other memory")
        for step in self.steps if self.draws else self.steps[1:]:  # before the generator or the first step moves
            step.check()
        drawn = [draw() for draw in self.draws] if self.draws else self.draws
        for source, again in self.guards:
            again(self._value(source, leaves, drawn))
        numbers = [step.numbers() for step in self.steps]
        if not all(map(operator.is_, numbers, self.numbers)):
            floats = list(self.floats)
            for step, known in zip(self.steps, numbers):
                floats[step.start:step.end] = known
            self.floats, self.numbers = floats, numbers
        values = [(x._value if x._storage is None else x._current()) if kind == "tensor" else self._value((kind, x), leaves, drawn) for kind, x in self.inputs]
        with program.lock:
            made = self._at_once(values, leaves) or self._recorded(values, leaves)
        node = self._node(values, made, leaves) if self.differentiable and mode.enabled else None
        outs = []
        for kind, x, t in self.results:
            if kind == "value":
                t, k = t
                out = _new(Tensor)
                out._value = made[self.position[x]]
                out._layout = t._layout if t._layout is None or t._layout.offset == 0 else None
                if t.__class__ is not Tensor:
                    out.__class__ = t.__class__
                if t._inference:
                    out._inference = True
                if t._edge is not None and mode.enabled:
                    # a backward inside the call freed the graph: its own node says so when asked again
                    out._edge, out._out = (t._edge, t._out) if k is None else (node, k)
                outs.append(out)
            else:
                outs.append(leaves[x] if kind == "argument" else Tensor._of(drawn[x]) if kind == "draw" else x)
        if self.steps and program.state.program.results:
            program.cut(STEP)
        return outs[0] if self.structure is None else unflatten(self.structure, iter(outs))

    def _recorded(self, values: list[Value], leaves: list):
        alone = not program.state.program.results
        _, made = program.record(self.forward, [*values, *self.floats, *self.ints], ())
        for st in self._assign(made, leaves):
            st.host.write(st)
        for each in self._checks(made):
            program.check(*each)
        # a graph may save what would be donated, and an argument may be a view this time
        if alone and self.steps and not self.differentiable and all(kind != "argument" for kind, _, _ in self.effects):
            self.end = program.state.program.node
        return made

    def _at_once(self, values: list[Value], leaves: list):
        """A whole training step that was a program by itself before is one again: it needs no recording."""
        if self.end is None or self.end.program_info is None or not program.is_idle():
            return None
        found = executor.known(self.end.program_info, values, self.replaced)
        if found is None:
            return None
        exe = found[0]
        if exe is not self.exe:
            self.exe, self.holders = exe, self._holders(exe)
        made = [Value(a) if i is None else values[i] for a, i in zip(self.avals, self.holders)]
        with Uninterrupted():  # what is donated is gone until the results have their arrays
            for t, _, k in self.gradients:
                if k is not None:
                    t._grad = None  # the new one takes its memory
            try:
                executor.run_alone(self.end.program_info, *found, self.floats, self.ints, made, STEP)
            finally:  # meanwhile XLA's threads compute
                shown = self._assign(made, leaves)
        for st in shown:
            st.host.write(st)
        if self.checks:
            program.check_later(self._checks(made))
        return made

    def _holders(self, exe: executable.Executable) -> list[int | None]:
        """For each result the input whose Value takes it up: that of an outside tensor which it replaces, and which nobody else holds."""
        places = {(id(x), self.end.program_info.input_avals[i]): i for i, (kind, x) in enumerate(self.inputs) if kind == "tensor" and i in exe.gone}
        holders: list[int | None] = [None] * len(self.avals)
        for kind, x, k in self.effects:
            if kind == "tensor" and self.avals[k].dtype.is_floating_point:  # the bounds of an index tensor are kept in its Value
                holders[k] = places.pop((id(x), self.avals[k]), None)
        return holders

    def _checks(self, made: Sequence[Value]) -> list[program.Check]:
        return [program.Check(made[ok], error, None if found is None else made[found]) for ok, error, found in self.checks]

    def _assign(self, made: Sequence[Value], leaves: list) -> list[Storage]:
        """Outside tensors get the results; storages whose memory NumPy shares, which must show them."""
        shown = []
        for kind, x, k in self.effects:
            if kind == "tensor" and x._storage is None:
                x._value = made[k]
                x._writes += 1
                continue
            if kind != "storage":
                t = leaves[x] if kind == "argument" else x._grad if kind == "grad" else x
                x = t._storage
                if x is None:
                    t._value = made[k]
                    t._writes += 1
                    continue
                if t._chain:
                    write((t,), (made[k],))
                    continue
            x.value = made[k]
            x.version += 1
            if x.host is not None:
                shown.append(x)
        for t, g, k in self.gradients:
            if k is not None:
                like, g = g, _new(Tensor)
                g._value, g._layout = made[k], like._layout
            t._grad = g
        return shown

    def _node(self, values, made, leaves) -> ReplayNode:
        edges = []
        for leaf in self.leaves:
            k = self.boundary.get(leaf)  # an argument is another tensor at each call
            t = leaf.variable if k is None else leaves[k]
            edges.append((t._edge, t._out))
        saved = [made[self.position[r]] if r >= 0 else values[self.reads[r]] for r in self.saved]
        return ReplayNode(self, edges, saved)


class ReplayNode(Node):
    """The graph node of a replayed call."""

    __slots__ = ("replay",)
    torch_name = REPLAYED

    def __init__(self, replay: Replay, edges, saved):
        super().__init__(None, edges, (True,) * len(edges), saved)
        self.replay = replay

    @property
    def n_outputs(self) -> int:
        return len(self.replay.differentiable)

    def output_aval(self, i: int):
        return self.replay.differentiable[i]._aval

    def apply(self, grads: list, create_graph: bool) -> list:
        if create_graph:
            raise RuntimeError("torch.compile with aot_autograd does not currently support double backward")
        if self.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        r = self.replay
        gs = [engine._filled(self.output_aval(i), 0) if g is None else g._current() for i, g in enumerate(grads)]
        made = iter(program.record(r.backward, [*self.saved, *gs, *r.backward_floats, *r.backward_ints], ())[1])
        return [None if g is None else Tensor._of(next(made)) for g in r.grads]


def _pending(t: Tensor, prog) -> bool:
    v = t._current()
    return v.epoch is prog and v.array is None and v.ref >= 0


def _reference(v: Value, prog) -> int:
    return v.ref if v.epoch is prog else prog.add_input(v)


def _aval(prog, ref: int):
    return prog.results[ref].aval if ref >= 0 else prog.inputs[-1 - ref].aval
