"""Forward derivatives. While a level is open the recorder also makes the tangent of each result whose inputs have some.

A tangent belongs to a Value. Values are immutable and every operation makes new ones, so views, writes in place, `no_grad` and backward
passes hand tangents on without knowing of them. What shares memory with a tensor but not its tangent (a dual tensor and its primal,
`detach()`) is a view through a `LENS`. A tangent is made from the derivative of an operation's vector-Jacobian product by its vector.
"""
from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from .. import _resize, _storage, _tensor
from .._core import dtype as dt
from .._core import program
from .._core.aval import NUMBERS, Aval
from .._core.grad_mode import mode
from .._core.graph import Node
from .._core.layout import Layout, contiguous
from .._core.registry import Plan, View
from .._core.value import Value
from .._plainly import keeps_tangents, refuses_out
from .._public import FUNCTIONS
from .._tensor import Tensor
from ..utils._pytree import tree_flatten
from . import engine, function


class _Lens(View):
    """A view of everything. Its static names a cell, in which a level keeps the tangent that is seen here."""

    def layout(self, layout: Layout, rest: tuple) -> Layout:
        return layout

    def layout_of_contiguous(self, a: Aval, rest: tuple) -> Layout:
        return contiguous(a.shape)


LENS = _Lens("lens", lambda xp, x, cell: x, put=lambda xp, base, new, cell: new, layout=None, torch_name="ViewBackward0")
_cells = itertools.count(1)


class Level:
    """The tangents of one forward differentiation."""

    def __init__(self) -> None:
        self.of: WeakKeyDictionary[Value, Tensor] = WeakKeyDictionary()
        self.cells: dict[int, Tensor | None] = {}
        self.inference = mode.inference  # whether inference_mode was on: else there are no tangents inside of it
        self.linear = False  # whether tangents shall depend on those of the inputs also where nothing is to be differentiated backwards
        self.recent: dict[int, tuple] = {}  # of the last operation: what its tangent was made of, for when the node is there

    def dual(self, primal: Tensor, tangent: Tensor | None) -> Tensor:
        """A view of primal that has this tangent."""
        cell = next(_cells)
        self.cells[cell] = tangent
        return primal._view(LENS, (cell,))

    @property
    def marks(self) -> set:
        """What is found among a tensor's marks that has a tangent here: see _functorch/_wrappers.py."""
        return {self}

    def unseen(self) -> contextlib.AbstractContextManager:
        """Inside of the block only the levels around this one see what is recorded."""
        return _seen_by(levels.index(self))

    def tangent(self, t: Tensor) -> Tensor | None:
        """The tangent of a tensor; None where it depends on no dual tensor."""
        if t._sparse:
            return None
        found = self.of.get(t._current())
        if found is None and t._chain:  # a dual tensor that was overwritten has none
            cells = [self.cells.get(statics[0]) for op, _, statics in t._chain if op is LENS and statics[0] in self.cells]
            if cells and cells[-1] is not None:
                found = FUNCTIONS["zeros_like"](t.detach())
        return found


_alias = Tensor._alias
levels: list[Level] = []  # those that are open, the innermost last
_seen = [0]  # how many of them see what is recorded now: making tangents is seen by the levels around theirs alone
_MODULES: tuple[ModuleType, ...] = (_tensor, engine, _storage, _resize)
_before: list[tuple] = []  # what recorded before there was a level


def enter() -> Level:
    """Open a level."""
    if not levels:
        _before[:] = [(m.record, getattr(m, "_node", None)) for m in _MODULES]
        for m in _MODULES:
            m.record = _record
        _tensor._node = engine._node = _made_node
        function.forward_rule.extend((_before_function, _after_function))
        keeps_tangents.append(_refuse_loss)
        refuses_out.append(_refuse_out)
        Tensor._alias = _alias_without
    made = Level()
    levels.append(made)
    _seen[0] = len(levels)
    return made


def leave(level: Level) -> None:
    """Close a level, and those that were left open inside of it: their tangents are forgotten."""
    if level in levels:
        del levels[levels.index(level):]
    _seen[0] = len(levels)
    if not levels:
        function.forward_rule.clear()
        keeps_tangents.clear()
        refuses_out.clear()
        Tensor._alias = _alias
        for m, (record, node) in zip(_MODULES, _before):
            m.record = record
            if node is not None:
                m._node = node


@contextlib.contextmanager
def opened() -> Iterator[Level]:
    """A level for the block."""
    level = enter()
    try:
        yield level
    finally:
        leave(level)


@contextlib.contextmanager
def _seen_by(n: int) -> Iterator[None]:
    before, _seen[0] = _seen[0], n
    try:
        yield
    finally:
        _seen[0] = before


def unseen() -> contextlib.AbstractContextManager:
    """A block in which no level sees what is recorded."""
    return _seen_by(0)


def seeing() -> list[Level]:
    """The levels that see what is recorded now."""
    return levels[:_seen[0]]


def _alias_without(t: Tensor) -> Tensor:
    """What `detach` makes: a tensor of the same storage without the tangents."""
    made = _alias(t)
    if all(made._value not in level.of for level in seeing()):
        return made
    cell = next(_cells)
    for level in seeing():
        level.cells[cell] = None
    seen = made._view(LENS, (cell,))
    seen._base = seen._several = None
    return seen


# -- the recorder --------------------------------------------------------------------------------------------------------


def _record(op: Any, values: list, statics: tuple) -> tuple:
    if op is LENS or op is LENS.put:
        return _through_lens(op, values, statics)
    plan, made = _before[0][0](op, values, statics)
    n = _seen[0]
    if plan.__class__ is Plan and plan.differentiable and not getattr(op, "carries_tangents", False):  # what a class returned has its tangents
        for i in range(n):
            if mode.inference and not levels[i].inference:
                continue
            if n == len(levels) and not i:
                _forget_recent()
            _push(i, plan, values, made)
    return plan, made


def _refuse_loss(func: Any, given: tuple, made: Any) -> None:
    """What a class with `__torch_dispatch__` makes of dual tensors holds tangents where no level finds them: NotImplementedError, but of what has none."""
    name = func.overloadpacket.__name__
    if name.startswith(("detach", "new_")) or name.endswith("_like"):
        return
    if any(isinstance(t, Tensor) and t._dispatches and t.dtype.category >= dt.FLOAT for t in tree_flatten(made)[0]):
        if any(isinstance(t, Tensor) and tangents_of(t) for t in tree_flatten(given)[0]):
            raise NotImplementedError(f"torchlike: the forward derivative of '{name}' by dual tensors beside tensors whose class dispatches; "
                                      "torch.func.jvp of a function of both knows it")


def _refuse_out(name: str, out: Tensor, result: Tensor) -> None:
    """torch's error for a dual tensor that a function with `out=` reads or writes."""
    if tangents_of(out) or tangents_of(result):
        raise NotImplementedError(f"Trying to use forward AD with {name}_out that does not support it because it is an out= function")


def _forget_recent() -> None:
    for level in levels:
        level.recent.clear()


def _through_lens(op: Any, values: list, statics: tuple) -> tuple:
    """Look at memory, or write there, with another tangent than that of the memory."""
    plan, made = _before[0][0](op, values, (0,))  # the same program for all cells
    cell, seen = statics[0], made[0]
    for level in seeing():
        outside = level.of.get(values[0])
        if cell not in level.cells:
            found = outside if op is LENS else level.of.get(values[1])
        elif op is LENS:
            found = level.cells[cell]
        else:
            found, new = outside, level.of.get(values[1])
            if new is None and level.cells[cell] is not None:
                new = FUNCTIONS["zeros_like"](level.cells[cell])
            level.cells[cell] = new
        if found is not None:
            level.of[seen] = found
    return plan, made


def _push(i: int, plan: Plan, values: list, made: tuple) -> None:
    """The tangents of an operation's results, for level i."""
    of = levels[i].of
    tangents = [of.get(v) if v.__class__ is Value and v.aval.dtype.category >= dt.FLOAT else None for v in values]
    needs = tuple([t is not None for t in tangents])
    if True not in needs:
        return
    carried = getattr(program.state.program, "carried", None)  # under vmap: its operation shall have derivatives there
    if carried is not None:
        carried(made, needs)
    with _seen_by(i):
        # the vector, in which the product is linear: some formulas look for its sign, so it has one
        places, given = plan.places(needs), [engine._filled(a, 1 if a.dtype.category >= dt.FLOAT else 0) for a in plan.outs]
        saved = [made[~k] if k < 0 else values[k] for k in places]
        back = plan.op.backward
        inner = back.plan(tuple([v.aval if v.__class__ is Value else NUMBERS.get(v.__class__) for v in (*saved, *given)]), (plan, needs))
        wanted = (False,) * len(saved) + tuple([a.dtype.category >= dt.FLOAT for a in plan.outs])
        along = [_like(t, v) for t, v in zip(tangents, values) if t is not None]
        given = given[:len(inner.saved(wanted)[0]) - len(saved)]  # that of a view does not read the vector
        arguments = [*saved, *given, *(t._current() for t in along)]
        statics = inner, wanted
        pushed_plan, pushed = _tensor.record(back.backward, arguments, statics)
        results = [Tensor._of(v) for v in pushed]
        found = pushed_plan, places, len(given), along, arguments, pushed, results
        _attach(found, [None] * len(places), mode.enabled or levels[i].linear)
        levels[i].recent[id(made)] = made, found
        for v, t in zip([v for v, w in zip(made, wanted[len(saved):]) if w], results):
            of[v] = t


def _like(t: Tensor, v: Value) -> Tensor:
    """A tangent in the dtype in which its primal's derivative computes."""
    a = v.aval
    if t.dtype is a.dtype:
        return t
    return t.real.to(a.dtype) if t.dtype.is_complex and not a.dtype.is_complex else t.to(a.dtype)


def _attach(found: tuple, saved_edges: list, enabled: bool) -> None:
    """Put tangents into the graph of backward differentiation, by what they were made of. This is done again once the operation has its node, and
    then for the tangents of these tangents, too, some of which were made of its results' tangents."""
    plan, _, n_given, along, arguments, pushed, results = found
    all_edges = [*saved_edges, *[None] * n_given, *(None if t._edge is None else (t._edge, t._out) for t in along)]
    if enabled and any(all_edges) and plan.differentiable:
        node = _tensor._node(plan.op, plan, all_edges, arguments, pushed)
        for k, t in enumerate(results):
            t._edge, t._out = node, k


def _made_node(op: Any, plan: Plan, edges: list, values: list, made: Any) -> Node:
    """A node of the graph; the tangents of its results depend on what it saved, too."""
    trace = program.state.program
    if hasattr(trace, "carried"):
        trace.made = made
    try:
        node = _before[0][1](op, plan, edges, values, made)
    finally:
        if hasattr(trace, "carried"):
            trace.made = None
    for i, level in enumerate(seeing()):
        found = level.recent.get(id(made))
        if found is None:
            continue
        places = found[1][1]
        with _seen_by(i):
            made_of = [(node, ~k) if k < 0 and plan.outs[~k].dtype.category >= dt.FLOAT else edges[k] if k >= 0 else None for k in places]
            _attach(found[1], made_of, True)
    return node


# -- functions with a derivative of their own --------------------------------------------------------------------------


def _before_function(cls: type, args: tuple) -> list[tuple]:
    """(level, tangents of the arguments) where a Function has some. Those of torchlike's own are made while its forward is recorded."""
    if getattr(cls, "__module__", "").split(".")[0] in ("torch", "torchlike") and cls.jvp is function.Function.jvp:
        return []
    found = [(level, [level.tangent(a) if isinstance(a, Tensor) else None for a in args]) for level in reversed(seeing())]
    return [(level, tangents) for level, tangents in found if any(t is not None for t in tangents)]


def _after_function(cls: type, ctx: Any, args: tuple, result: Any, given: list[tuple]) -> None:
    """Tangents of what a Function returned, by its jvp."""
    outs = result if isinstance(result, tuple) else (result,)
    for level, tangents in given:
        if ctx.materialize_grads:
            tangents = [FUNCTIONS["zeros_like"](a.detach()) if t is None and isinstance(a, Tensor) and a.dtype.category >= dt.FLOAT else t
                        for t, a in zip(tangents, args)]
        with level.unseen(), _saved_for_forward(ctx):
            made = cls.jvp(ctx, *tangents)
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(outs):
            raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got {len(made)})")
        plain = {id(x) for x in ctx.non_differentiable}
        for i, (o, t) in enumerate(zip(outs, made)):
            if isinstance(o, Tensor) and o.dtype.category >= dt.FLOAT and id(o) not in plain:
                _check_tangent(i, o, t, args, tangents, ctx.dirty_tensors)
                _set(level, o, t)
            elif isinstance(t, Tensor):
                raise RuntimeError(f"Function's jvp returned a gradient at position {i}, but the corresponding forward output is not a differentiable "
                                   "Tensor. You should return None at that position instead.")
            elif id(o) in plain:
                _set(level, o, None)


def _check_tangent(i: int, o: Tensor, t: Any, args: tuple, tangents: list, dirty: tuple) -> None:
    """torch's errors for a tangent that is no tensor or of another shape, or that does not share memory with those of the arguments as the
    result does with the arguments."""
    if t is None:
        return
    if not isinstance(t, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")
    if t.shape != o.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                           f"Tensor is of size {list(o.shape)} while the given forward gradient is of size {list(t.shape)}.")
    shared = next(((a, given) for a, given in zip(args, tangents) if isinstance(a, Tensor) and given is not None
                   and (o is a or o._storage is not None and o._storage is a._storage)), None)
    if shared is None:
        return
    a, given = shared
    if any(a is d for d in dirty):
        if t is not given or not given._written:
            raise RuntimeError("An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input "
                               "inplace, then the jvp function must modify the corresponding gradient inplace.")
    elif t._base is None:
        raise RuntimeError("A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.")
    elif t._base is not (given if given._base is None else given._base):
        what = "the given grad input" if given._base is None else "the same base as the given grad input"
        raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a view of {what}.")


@contextlib.contextmanager
def _saved_for_forward(ctx: Any) -> Iterator[None]:
    """jvp finds in `saved_tensors` what was saved for it."""
    missing = object()
    before = ctx.__dict__.get("_saved", missing)
    ctx._saved = ctx.saved_for_forward
    try:
        yield
    finally:
        if before is not missing:
            ctx._saved = before
        else:
            ctx.__dict__.pop("_saved", None)


def _set(level: Level, o: Tensor, t: Tensor | None) -> None:
    if t is None:
        level.of.pop(o._current(), None)
    else:
        level.of[o._current()] = t


def tangents_of(t: Tensor) -> list[tuple[Level, Tensor]]:
    """The levels in which a tensor has a tangent, and the tangents."""
    found = [(level, level.tangent(t)) for level in seeing()]
    return [(level, tangent) for level, tangent in found if tangent is not None]
