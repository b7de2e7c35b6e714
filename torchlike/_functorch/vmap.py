"""torch.vmap: a function of one example as a function of a batch. The function runs once, over placeholders."""
from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .._core import program, program_info
from .._core.grad_mode import mode
from .._core.graph import Node
from .._core.layout import Examples, Layout, is_dense
from .._core.value import Value
from .._fields import fields
from .._public import FUNCTIONS
from .._tensor import Tensor, apply
from ..autograd import _tangents, engine
from ..autograd.grad_mode import no_grad
from ..ops.random import get_rng_state, set_rng_state
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._mapped import Mapped, mapped
from ._trace import Boundary, Trace, innermost, tracing
from ._views import from_outside, intact, shared, sharing


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None) -> Callable:
    """func over a batch: `in_dims` names the mapped dimension of each argument (None: all examples see the same argument),
    `out_dims` where the batch goes in the results. `randomness` is 'error', 'different' or 'same' for all examples;
    `chunk_size` examples run at a time. Raises ValueError where structures or sizes do not fit, RuntimeError where the
    function looks at an example's value."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        size, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
        if any(d is not None and isinstance(x, Tensor) and x._dispatches for x, d in zip(flat, dims)):
            return _one_by_one(func, size, dims, flat, spec, kwargs, out_dims, randomness)
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, dims, flat, spec, kwargs, out_dims, randomness)
        return _in_chunks(func, size, dims, flat, spec, kwargs, out_dims, randomness, chunk_size)
    return wrapped


# -- what a library may replace ----------------------------------------------------------------------------------------
#
# tensordict puts functions of its own in the place of these three, which know its containers, and calls the two for one
# tensor that follow. Hence their names and arguments are PyTorch's.


def _process_batched_inputs(in_dims: Any, args: tuple, func: Callable) -> tuple:
    """(batch size, one dimension or None per leaf, leaves, structure) of a call."""
    name = _get_name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple "
                         f"matching the structure of inputs, got: {type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function "
                         "with no inputs. The latter is unsupported.")
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims has "
                         f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}.")
    dims = [_checked_dim(name, in_dims, x, d) for x, d in zip(flat, dims)]
    sizes = [x.shape[d] for x, d in zip(flat, dims) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return sizes[0], dims, flat, spec


def _create_batched_inputs(flat_in_dims: list, flat_args: list, vmap_level: int, args_spec: Any) -> Any:
    """The arguments with one example in the place of every mapped tensor."""
    return tree_unflatten([x if d is None else _add_batch_dim(x, d, vmap_level) for x, d in zip(flat_args, flat_in_dims)], args_spec)


def _unwrap_batched(batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable) -> Any:
    """The results with all examples in the place of one."""
    name = _get_name(func)
    leaves, spec = tree_flatten(batched_outputs)
    dims = _out_dims(name, out_dims, leaves, spec)
    return tree_unflatten([_maybe_remove_batch_dim(name, t, vmap_level, batch_size, d) for t, d in zip(leaves, dims)], spec)


def _add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Tensor:
    """One example of `tensor`, inside of the call of vmap that has this level."""
    trace = _trace(level)
    with trace.outside():
        v = tensor._current()
    if v.epoch is trace and v.ref >= 0 and trace is innermost():  # computed inside, of tensors that all examples share
        (tensor, _), = _evaluated(trace, tensor)
    return with_tangents(trace, tensor, in_dim)


def _evaluated(trace: Trace, tensor: Tensor) -> list:
    from ._rules import evaluated  # which stands on this module
    return evaluated(trace, [tensor])


def with_tangents(trace: Trace, source: Tensor, axis: int) -> Tensor:
    """One example of `source`, with one example of its tangent."""
    made = trace.placeholder(source, axis)
    for level, tangent in _tangents.tangents_of(source):
        with level.unseen(), trace.outside():
            tangent._current()
        with level.unseen():
            level.of[made._value] = with_tangents(trace, tangent, axis)
    return made


def _leave(trace: Trace, name: str, t: Tensor, axis: int | None) -> Tensor:
    """What the caller gets of a result, and of its tangents."""
    itself = None if _tangents.levels else _itself(trace, t, axis)
    if itself is not None:
        return itself
    shell = trace.leave(name, t, axis)
    for level, tangent in _tangents.tangents_of(t):
        with level.unseen():
            trace.duals.append((level, shell, _leave(trace, name, tangent, axis)))
    return shell


def _itself(trace: Trace, t: Tensor, axis: int | None) -> Tensor | None:
    """The very tensor from outside that the caller gets, where the function returns an argument or what it captured."""
    if axis is None:
        return trace.look_again(t) if from_outside(trace, t) else None
    place = intact(trace, t)
    return place.source if place is not None and axis in (place.axis_now(), place.axis_now() - t.ndim - 1) else None


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None) -> Any:
    """What vmap returns for one result; with `out_dim` None one that all examples share."""
    if not isinstance(batched_output, Tensor):
        if out_dim is None:
            return batched_output
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. Did you mean to set out_dims= to "
                         "None for output?")
    return _leave(_trace(vmap_level), name, batched_output, out_dim)


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """All examples of `tensor`, while the call goes on: tensordict takes them apart again and keeps the pieces in its containers."""
    trace = _trace(level)
    if trace is not innermost():
        return _leave(trace, "", tensor, out_dim)
    (outer, axis), = _evaluated(trace, tensor)
    with trace.suspended():
        outer = outer.unsqueeze(out_dim).expand(*outer.shape[:out_dim], batch_size, *outer.shape[out_dim:]) if axis is None else outer.movedim(axis, out_dim)
        outer._current()
    return outer


def _trace(level: int) -> Trace:
    trace = innermost()
    while trace is not None and trace.level != level:
        trace = trace.outer
    if trace is None:
        raise RuntimeError(f"vmap: there is no call of level {level}")
    return trace


def _get_name(func: Callable) -> str:
    return getattr(func, "__name__", repr(func))


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether an open call of vmap maps over the tensor."""
    v = tensor._current()
    return _mapped_over(v.epoch, v.ref)


def _mapped_over(trace: Any, ref: Any) -> bool:
    """Whether a result or input of a trace differs between examples of this call, or of one around it."""
    if not isinstance(trace, Trace):
        return False
    reached = [{-1 - ref}]
    if ref >= 0:
        reached = []
        for s in program_info.steps_to(trace.node):
            inputs = set().union(*(reached[r] if r >= 0 else {-1 - r} for r in s.refs if r.__class__ is int))
            reached.extend([inputs] * len(s.plan.outs))
    found = reached[ref] if ref >= 0 else reached[0]
    if any(i in trace.placeholders or id(trace.inputs[i]) in trace.stacked for i in found):
        return True
    values = {id(trace.inputs[i]) for i in found}
    return any(_mapped_over(epoch, ref) for v, epoch, ref in trace.known if id(v) in values)


# -- arguments -----------------------------------------------------------------------------------------------------------


def _checked_dim(name: str, in_dims, x, d) -> int | None:
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if d is None:
        return None
    if not isinstance(d, int):
        raise ValueError(f"{where}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None.")
    if not isinstance(x, Tensor):
        raise ValueError(f"{where}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor arguments, "
                         "please use None as the respective in_dim")
    if not -x.ndim <= d < x.ndim:
        raise ValueError(f"{where}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.ndim} so expected in_dim to "
                         f"satisfy -{x.ndim} <= in_dim < {x.ndim}.")
    return d % x.ndim


def _out_dims(name: str, out_dims, outputs: list, spec) -> list:
    """One dimension or None per result."""
    kinds = tree_flatten(out_dims)[0]
    if not all(d is None or isinstance(d, int) for d in kinds):
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints representing "
                         "where in the outputs the vmapped dimension should appear.")
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None and isinstance(out_dims, tuple) and len(out_dims) == 1 and spec.is_leaf() and isinstance(outputs[0], Tensor):
        dims = _broadcast_to_and_flatten(out_dims[0], spec)
    if dims is None:
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims "
                         f"has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}.")
    for t, d in zip(outputs, dims):
        if not isinstance(t, Tensor) and d is not None:
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(t)}. Did you mean to set out_dims= to None for "
                             "output?")
    return dims


# -- the call ------------------------------------------------------------------------------------------------------------


def _run(func, size, dims, flat, spec, kwargs, out_dims, randomness):
    with tracing(size, randomness) as trace:
        result = func(*_create_batched_inputs(dims, flat, trace.level, spec), **kwargs)
        results = _unwrap_batched(result, out_dims, trace.level, size, func)
        made, given = _sorted(trace)
        call = _Call(trace, _get_name(func), [t for _, t, _, _ in made])
        memory = sharing(trace, [t for _, t, _, _ in made]) if not _tangents.levels else [None] * len(made)
    for (name, t, place, shell), how, (out, spread) in zip(made, memory, call.apply()):
        if place is None and spread:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        if place is not None and not spread:
            out = out.unsqueeze(0).expand(size, *out.shape)
        elif spread and how is None and t._layout is not None:
            out._layout = _all_examples(t._layout, trace.level, size)
        out = out.movedim(0, place) if place else out
        fields(shell).update(fields(out if how is None else shared(how, out, place % out.ndim)))
    for name, place, shell, t, axis in given:
        if place is None:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        t = t.unsqueeze(0).expand(size, *t.shape) if axis is None else t
        fields(shell).update(fields(t if place == (axis or 0) else t.movedim(axis or 0, place)))
    for level, shell, tangent in trace.duals:
        level.of[shell._current()] = tangent
    return results


def _all_examples(a: Layout, level: int, size: int) -> Layout | None:
    """The layout of a new tensor whose examples have this one."""
    if a.__class__ is Examples:
        return a.whole(level, size)
    return Layout((size, *a.shape), (math.prod(a.shape), *a.strides)) if is_dense(a) else None  # one example after the other


def _sorted(trace: Trace) -> tuple[list, list]:
    """The results that the operation makes, as they left; and those that are there: (function's name, where the batch goes, what the
    caller has, the tensor, where the batch is in it)."""
    if _tangents.levels:
        return trace.left, []
    made, given = [], []
    for left in trace.left:
        name, t, place, shell = left
        found = intact(trace, t)
        if found is not None:
            given.append((name, place, shell, found.source, found.axis_now()))
        elif from_outside(trace, t):
            given.append((name, place, shell, trace.look_again(t), None))
        else:
            made.append(left)
    return made, given


def _in_chunks(func, size, dims, flat, spec, kwargs, out_dims, randomness, chunk_size):
    parts = []
    state = get_rng_state() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        n = min(chunk_size, size - start)
        if state is not None:
            set_rng_state(state)  # the same numbers in every chunk, too
        part = [x if d is None else x.narrow(d, start, n) for x, d in zip(flat, dims)]
        parts.append(_run(func, n, dims, part, spec, kwargs, out_dims, randomness))
    return _joined(func, parts, out_dims, FUNCTIONS["cat"])


def _joined(func, parts: list, out_dims, join: Callable):
    """The results of some examples each, joined where their batch goes."""
    leaves, spec = tree_flatten(parts[0])
    places = _out_dims(_get_name(func), out_dims, leaves, spec)
    columns = zip(*(tree_flatten(p)[0] for p in parts))
    return tree_unflatten([c[0] if d is None else join(list(c), d) for c, d in zip(columns, places)], spec)


def _one_by_one(func, size, dims, flat, spec, kwargs, out_dims, randomness):
    """The function on an example after the other: what a class with `__torch_dispatch__` does is not known before it does it."""
    made = []
    state = get_rng_state() if randomness == "same" else None
    for i in range(size):
        if state is not None:
            set_rng_state(state)
        made.append(func(*tree_unflatten([x if d is None else x.select(d, i) for x, d in zip(flat, dims)], spec), **kwargs))
    return _joined(func, made, out_dims, FUNCTIONS["stack"])


class _Call:
    """A finished trace: the operation it makes, the operation's inputs, and where results go."""

    def __init__(self, trace: Trace, name: str, outputs: list, whole: bool = True):
        """`whole`: with what the function did besides; else only the outputs, of a trace that goes on."""
        self.trace = trace
        self.n_outputs = len(outputs)
        for t in outputs:
            t._current()
        self.targets = _effects(trace) if whole else []
        self.tangents: list[tuple] = []  # of what was written, and of these tangents: (number of whose it is, level, tangent)
        for i, e in enumerate(self.targets if _tangents.levels else ()):
            self._add_tangents(i, e.made)
        tensors = [*outputs, *(e.made for e in self.targets), *(tangent for _, _, tangent in self.tangents)]
        values = [t._current() for t in tensors]
        self.differentiable = [t.requires_grad for t in tensors]  # the operation's other results may be
        self.checks = list(trace.checks) if whole else []
        checked = [v for check in self.checks for v in (check.ok, check.found) if v is not None]
        outs = [_reference(v, trace) for v in (*values, *checked)]
        forward_end = len(trace.results)
        n_numbers = len(trace.floats), len(trace.ints)
        grads, marks = _backward(trace, tensors) if mode.enabled else ([], [])
        marked = [-1 - _reference(m, trace) for m in marks]
        steps = program_info.steps_to(trace.node)
        batched = _batched(trace, steps, outs)
        self.spread = batched
        self._refuse(batched)
        self.inputs, axes, positions, given = [], [], [], {}
        for i, v in enumerate(trace.inputs):
            if i in marked:
                positions.append(None)
                continue
            positions.append(len(axes))
            place = trace.placeholders.get(i)
            axes.append(place.axis if place is not None else 0 if id(v) in trace.stacked else None)
            self.inputs.append(Tensor._of(place.source._current()) if place is not None else Tensor._of(trace.stacked.get(id(v), v)))
        grad_refs = {}
        for boundary, ref in grads:
            i = -1 - boundary.value.ref
            p = positions[i]
            if p in given:  # the same value along two edges
                axes.append(axes[p])
                self.inputs.append(Tensor._of(self.inputs[p]._value))
                p = len(axes) - 1
            given[p] = True
            self.inputs[p]._edge, self.inputs[p]._out = boundary.outer
            grad_refs[p] = ref
        self.numbers = [*trace.floats, *trace.ints]
        key = (trace.node, tuple(axes), tuple(outs), tuple(sorted(grad_refs.items())), tuple(marked), forward_end, n_numbers,
               (tuple(sorted(trace.needs.items())), *(f.key() for f in trace.functions)) if grads else ())
        avals = [_aval(trace, r) for r in outs]
        functions = trace.functions if grads else []
        self.op = mapped(key, lambda: Mapped(name, steps, forward_end, trace.needs, functions, axes, outs, batched, avals, grad_refs, marked, positions))

    def _add_tangents(self, i: int, t: Tensor) -> None:
        for level, tangent in _tangents.tangents_of(t):
            with level.unseen():
                self.tangents.append((i, level, tangent))
                self._add_tangents(len(self.targets) + len(self.tangents) - 1, tangent)

    def _refuse(self, batched: list) -> None:
        for effect, spread in zip(self.targets, batched[self.n_outputs:]):
            if effect.axis is None and spread:
                raise RuntimeError("vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
                                   "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
                                   "over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said "
                                   "operator is being called inside the PyTorch framework, please file a bug report instead.")

    def apply(self):
        """Record the operation; an iterator of (result, whether it has a row per example)."""
        if not self.op.outs:
            return iter(())
        made = apply(self.op, (*self.inputs, *self.numbers))
        for t, needs in zip(made, self.differentiable):
            if not needs:
                t._edge = None
        n, m = self.n_outputs, self.n_outputs + len(self.targets) + len(self.tangents)
        written, spreads = list(made[n:m]), self.spread[n:m]
        if self.tangents:  # they have rows for the examples where their tensor has, and the other way round
            owners = list(range(len(self.targets)))
            for i, _, _ in self.tangents:
                owners.append(owners[i])
            wide = {owner for owner, spread in zip(owners, spreads) if spread}
            written = [t if spread or owner not in wide else t.expand(self.trace.size, *t.shape) for t, spread, owner in zip(written, spreads, owners)]
            spreads = [owner in wide for owner in owners]
        for (i, level, _), tangent in zip(self.tangents, written[len(self.targets):]):
            level.of[written[i]._current()] = tangent
        for (t, axis, _, quiet, layout), new, spread in zip(self.targets, written, spreads):
            with no_grad() if quiet else contextlib.nullcontext():
                if axis is None:
                    t._assign(new)
                    continue
                if layout is not None:
                    t.as_strided_(layout.shape, layout.strides)
                t.copy_(new.unsqueeze(axis) if not spread else new if not axis else new.movedim(0, axis))
        rest = iter(made[m:])
        for _, error, found in self.checks:
            program.check(next(rest)._value, error, None if found is None else next(rest)._value)
        return zip(made[:n], self.spread)


class _Effect(NamedTuple):
    """What a function wrote: the tensor outside, its mapped axis (None: all examples wrote the same), what it is inside, whether its place
    in the graph stays as it was, and what the tensor becomes where its example took another shape in place."""

    target: Tensor
    axis: int | None
    made: Tensor
    quiet: bool
    layout: Layout | None = None


def _effects(trace: Trace) -> list[_Effect]:
    found = [_Effect(t, None, made, quiet) for t, made, quiet in trace.restore_written()]
    for p in trace.placeholders.values():
        v = p.tensor._current()
        if v is not p.value:
            quiet, axis, here, layout = p.tensor._edge is p.edge, p.axis_now(), p.layout_now(), None
            if here != p.layout:
                layout = Layout((*here.shape[:axis], trace.size, *here.shape[axis:]), (*here.strides[:axis], p.step, *here.strides[axis:]))
            found.append(_Effect(p.source, axis, Tensor._of(v) if quiet else p.tensor, quiet, layout))
    return found


def _backward(trace: Trace, tensors: list) -> tuple[list, list]:
    """Record the gradients at the trace's boundaries: (boundary, reference) pairs, and one mark per result."""
    roots, marks, nodes = [], [], []
    differentiable = [t for t in tensors if t.requires_grad]
    reached = _boundaries([t._edge for t in differentiable])
    if not reached:
        return [], []
    for b in reached:  # what was read by a rule alone, outside, is an input because of its gradient
        if _reference(b.value, trace) >= 0:  # computed in here again for a graph outside (utils.checkpoint): the operation has no input to differentiate by
            raise RuntimeError("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case.")
    for t in tensors:
        mark = Value(t._aval)
        trace.enter(mark)
        marks.append(mark)
        if t.requires_grad:
            g = Boundary(None, mark)
            trace.nodes.add(g)
            nodes.append(g)
            roots.append((t._edge, t._out, g.tensor()))
    trace.closing = True
    try:
        found = engine.run(roots, True, True, [b.tensor() for b in reached], accumulate=False)
    finally:
        trace.closing = False
    grads = [(b, _reference(g._current(), trace)) for b, g in zip(reached, found) if g is not None]
    return grads, marks


def _boundaries(roots: list[Node]) -> list[Boundary]:
    seen, stack, found = set(roots), list(dict.fromkeys(roots)), []
    while stack:
        node = stack.pop()
        if isinstance(node, Boundary):
            found.append(node)
        for edge in node.edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return found


def _batched(trace: Trace, steps: list, outs: list) -> list[bool]:
    """Whether each result differs between examples: it is reached from a placeholder."""
    inputs = [i in trace.placeholders or id(v) in trace.stacked for i, v in enumerate(trace.inputs)]
    results: list[bool] = []
    for s in steps:
        mixed = any((results[r] if r >= 0 else inputs[-1 - r]) for r in s.refs if r.__class__ is int)
        results.extend([mixed] * len(s.plan.outs))
    return [results[r] if r >= 0 else inputs[-1 - r] for r in outs]


def _reference(v: Value, trace: Trace) -> int:
    return v.ref if v.epoch is trace else trace.add_input(v)


def _aval(trace: Trace, ref: int):
    return trace.results[ref].aval if ref >= 0 else trace.inputs[-1 - ref].aval
