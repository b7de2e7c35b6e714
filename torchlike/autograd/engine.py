"""The backward walk: nodes run when all gradients that reach them are in, newest first."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from .._core import dtype as dt
from .._core import program
from .._core.aval import broadcast_shapes
from .._core.dependence import dependence
from .._core.errors import class_name
from .._core.grad_mode import backwards, mode
from .._core.graph import SECOND_BACKWARD, AccumulateGrad, Node, Outside
from .._core.history import warn
from .._core.layout import is_dense, like
from .._core.program import record
from .._core.registry import OPS
from .._core.value import Value
from .._public import SPARSE_FORMS
from .._tensor import Tensor, _node, apply
from .anomaly_mode import watched
from .graph import GradientEdge, Packed
from .walk import adds_up, replay, structure, sums_of

Places = Tensor | GradientEdge | Sequence[Tensor] | Sequence[GradientEdge]
Gradients = Tensor | Sequence[Tensor | None]


def backward(tensors: Places, grad_tensors: Gradients | None = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Gradients | None = None, inputs: Places | None = None) -> None:
    """torch.autograd.backward: sums the gradients of `tensors` into the `.grad` of the leaves (or of `inputs`)."""
    if grad_variables is not None:
        grad_tensors = grad_variables
    tensors = _sequence(tensors)
    if inputs is not None:
        inputs = _sequence(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if [t for t in tensors if not isinstance(t, Tensor)]:  # what is none may take over
        from ..overrides import handle_torch_function, has_torch_function
        if has_torch_function(tensors):
            return handle_torch_function(backward, tensors, tensors, grad_tensors=grad_tensors, retain_graph=retain_graph, create_graph=create_graph,
                                         inputs=inputs)
        raise AssertionError("Expected output to be a torch.Tensor")
    if inputs is not None:
        _check_inputs(inputs)
    roots = _roots(tensors, _tuple(grad_tensors, len(tensors)), create_graph)
    if create_graph:
        warn("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory "
             "leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the "
             ".grad fields of your parameters to None after use to break the cycle and avoid the leak.", once=True)
    keep = create_graph if retain_graph is None else retain_graph
    run(roots, keep, create_graph, inputs or (), accumulate=True)


def grad(outputs: Places, inputs: Places | dict[str, Tensor], grad_outputs: Gradients | None = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple[Tensor, ...]:
    """torch.autograd.grad: the gradients of `outputs` with respect to `inputs`, as a tuple."""
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    given = inputs
    outputs, inputs = _sequence(outputs), _sequence(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if any(type(x) is not Tensor for x in (*outputs, *inputs)):  # a subclass may take over
        from ..overrides import handle_torch_function, has_torch_function
        if has_torch_function((*outputs, *inputs)):
            return handle_torch_function(grad, (*outputs, *inputs), outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph,
                                         create_graph=create_graph, only_inputs=only_inputs, allow_unused=bool(allow_unused) or materialize_grads,
                                         is_grads_batched=is_grads_batched, materialize_grads=materialize_grads)
        if not all(isinstance(t, Tensor) for t in outputs):
            raise AssertionError("Expected output to be a torch.Tensor")
        _check_inputs(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(outputs, inputs, _tuple(grad_outputs, len(outputs)), keep, create_graph, allow_unused)
    roots = _roots(outputs, _tuple(grad_outputs, len(outputs)), create_graph)
    found = run(roots, keep, create_graph, inputs, accumulate=False)
    if materialize_grads:
        from .. import zeros_like
        edges = [given] if isinstance(given, (GradientEdge, Tensor)) else given
        if any(g is None and isinstance(x, GradientEdge) for x, g in zip(edges, found)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        return tuple(zeros_like(x, requires_grad=create_graph) if g is None else g for x, g in zip(inputs, found))
    unused = [i for i, g in enumerate(found) if g is None]
    if unused and not allow_unused:
        raise RuntimeError(f"The differentiated Tensor at index {unused[0]} appears to not have been used in the graph. Set "
                           "allow_unused=True if this is the desired behavior.")
    return tuple(found)


def _check_inputs(inputs: Sequence) -> None:
    for t in inputs:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {class_name(t)}")


def _sequence(x) -> tuple:
    """One tensor or gradient edge, or several, as a tuple of tensors."""
    if isinstance(x, Tensor) or hasattr(type(x), "__torch_function__"):
        return (x,)
    if isinstance(x, GradientEdge):
        return (x.tensor(),)
    return tuple([e.tensor() if e.__class__ is GradientEdge else e for e in x])


def _batched(outputs, inputs, grads, keep, create_graph, allow_unused):
    """Gradients for a leading batch of grad_outputs, one walk each."""
    from .. import stack
    if any(g is None for g in grads):
        raise ValueError("grad_outputs must be given when is_grads_batched=True")
    for i, (g, out) in enumerate(zip(grads, outputs)):
        if not g.ndim or g.shape[1:] != out.shape:
            raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the "
                               f"remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: grad_output[{i}] "
                               f"has a shape of {g.shape[1:]} and output[{i}] has a shape of {out.shape}. If you only want some tensors in `grad_output` to be "
                               "considered batched, consider using vmap.")
    n = grads[0].shape[0]
    rows = [grad(outputs, inputs, [g[i] for g in grads], keep or i + 1 < n, create_graph, allow_unused=allow_unused)
            for i in range(n)]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows))


def _tuple(grads, n: int) -> tuple:
    if grads is None:
        return (None,) * n
    grads = (grads,) if isinstance(grads, Tensor) else tuple(grads)
    if len(grads) != n:
        raise RuntimeError(f"got {n} tensors and {len(grads)} gradients")
    return grads


def _roots(tensors, grads, create_graph) -> list:
    roots, outside = [], None
    for i, (t, g) in enumerate(zip(tensors, grads)):
        if t._sparse and t.requires_grad:
            if g is not None and g.shape == t.shape:
                t, g = t._entries, t._entries_of(g)
            elif g is None and t.shape.numel() == 1:
                t = t._entries
        if not t._sparse:
            t._current()  # a view whose base was written has another place in the graph now
        if not t.requires_grad:
            outside = i if outside is None else outside
            if g is None:
                continue
        a = t._aval
        if g is None:
            if t._dispatches and backwards:
                g = backwards[0].seed(t)
            if a.numel != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if not a.dtype.is_floating_point:
                raise RuntimeError("grad can be implicitly created only for real scalar outputs but got "
                                   f"torch.{a.dtype.name}")
        else:
            if not isinstance(g, Tensor):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
            if g.shape != a.shape:
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a "
                                   f"shape of {t.shape}.")
            if g.dtype is not a.dtype and not g.dtype.is_complex and not a.dtype.is_complex and not g._dispatches:
                g = g.to(a.dtype)  # the engine's gradients are of their tensors' dtypes
            if g.dtype.is_complex != a.dtype.is_complex:
                raise RuntimeError(f"For complex Tensors, both grad_output and output are required to have the same dtype. "
                                   f"Mismatch in dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a "
                                   f"dtype of {t.dtype}.")
            if not create_graph and not g._dispatches and not g._sparse:
                g = Tensor._of(g._current())
        roots.append((t._edge, t._out, g))
    if outside is not None:  # told of last, as torch looks at the gradients before it looks for a graph
        raise RuntimeError(f"element {outside} of tensors does not require grad and does not have a grad_fn")
    return roots


def _filled(a, number) -> Value:
    return record(OPS["constant"], [], (number, a.shape, a.dtype, a.device))[1][0]


_tasks = itertools.count()  # numbers of backward walks


def run(roots, keep_graph: bool, create_graph: bool, inputs: Sequence[Tensor], accumulate: bool) -> list:
    """Walk from roots `(node, output index, gradient or None for ones)`. Gradients of `inputs` are returned, or added to their `.grad`."""
    captures: dict = {}
    places = []
    leaves: list | None = None  # and their gradients, to be added to `.grad` at the end: the order of a replay, which makes the same program
    if not inputs and not create_graph and not mode.anomaly and not [g for node, _, g in roots if g is not None and (node.plan is None or g._sparse)] and not (
            backwards and backwards[0].takes([g for _, _, g in roots])):
        known = structure(roots) if program.state.limit else None
        made = known and replay(roots, *known, keep_graph)
        if made is not None:
            before, mode.enabled = mode.enabled, False
            try:
                for node, v in made:
                    _accumulate(node, Tensor._of(v), False)
            finally:
                mode.enabled = before
            return []
        leaves = known and []
    inner = getattr(program.state.program, "boundaries", None) if inputs else None  # under vmap: where edges lead that leave the call
    for t in inputs:
        if not t._sparse:
            t._current()
        if not t.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        place = t._edge, t._out
        if inner and place in inner:
            place = inner[place], 0
        places.append(place)
        captures.setdefault(place[0], {})[place[1]] = None
    waiting = _dependencies([node for node, _, _ in roots])
    wanted = _wanted(waiting, captures) if inputs else None
    grads: dict[Node, list] = {}
    ready = []
    for node, out, g in roots:
        _add(grads, node, out, Tensor._of(_filled(node.output_aval(out), 1)) if g is None else g)
    for node in dict.fromkeys(node for node, _, _ in roots):
        if waiting[node][0] == 0:
            ready.append(node)
    before, mode.enabled = mode.enabled, create_graph
    outer_walk, mode.walk = mode.walk, (waiting, wanted, next(_tasks))
    try:
        while ready:
            node = ready.pop()
            mine = grads.pop(node, None)
            if mine is None:
                mine = [None] * node.n_outputs
            captured, leaf = captures.get(node), isinstance(node, AccumulateGrad)
            if leaf and node.grad_dtype is not None and mine[0] is not None and mine[0].dtype is not node.grad_dtype:
                mine = [mine[0].to(node.grad_dtype)]
            runs = not inputs or node in wanted or (accumulate and captured is not None)
            if node.hooks is not None and (runs or captured is not None):
                mine = _tensor_hooks(node, mine)
            seen = mine
            if node.hooks is not None and runs:
                mine = _node_hooks(node, mine)
            if captured is not None:  # what hooks of the node make of a gradient is for the node; a leaf's own adds it up
                for out in captured:
                    captured[out] = None if node.__class__ is Outside else (mine if leaf else seen)[out]
            if wanted is not None and node not in wanted:
                below = [None] * len(node.edges)
                if runs and not leaf and not keep_graph:  # torch runs it, for nothing
                    node.release()
            elif leaf:
                if leaves is not None:
                    leaves.append((node, mine[0]))
                elif not inputs:
                    _accumulate(node, mine[0], create_graph)
                continue
            elif all(g is None for g in mine):
                below = [None] * len(node.edges)
                if node.hooks is not None and node.hooks.post:
                    below = _after(node, below, mine)
            else:
                needs = node.needs
                if wanted is not None:  # gradients that nobody asked for are not made
                    needs = tuple([need and (e[0] in wanted or e[1] in captures.get(e[0], ())) for need, e in zip(needs, node.edges)])
                if not create_graph and adds_up(node, needs) and _added(node, mine[0], grads):
                    below = [None] * len(needs)
                else:
                    below = watched(_run_node, node, mine, create_graph, needs) if mode.anomaly else _run_node(node, mine, create_graph, needs)
                if node.hooks is not None and node.hooks.post:
                    below = _after(node, below, mine)
                if not keep_graph:
                    node.release()
            for edge, g in zip(node.edges, below):
                if edge is None:
                    continue
                if g is not None:
                    _add(grads, edge[0], edge[1], g)
                waiting[edge[0]][0] -= 1
                if waiting[edge[0]][0] == 0:
                    ready.append(edge[0])
        for leaf, g in leaves or ():
            _accumulate(leaf, g, False)
        if outer_walk is None:
            for callback in mode.callbacks or ():  # grows: a callback may queue another
                callback()
    finally:
        mode.enabled, mode.walk = before, outer_walk
        if outer_walk is None:
            mode.callbacks = None
    found = [captures[node][i] for node, i in places]
    found = [t._as_gradient(g) if t._sparse and g is not None else g for t, g in zip(inputs, found)]
    if accumulate:
        for t, g in zip(inputs, found):
            if g is not None and isinstance(t._edge, AccumulateGrad):
                _accumulate(t._edge, g, create_graph)
            elif g is not None and not t.retains_grad:  # else it is there
                _store(t, g, create_graph)
        return found
    return found


def queue_callback(callback) -> None:
    """Call `callback()` at the end of the backward that is under way."""
    if mode.walk is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if mode.callbacks is None:
        mode.callbacks = []
    mode.callbacks.append(callback)


def _dependencies(roots) -> dict:
    """node -> [number of edges that lead to it], for all nodes reachable from roots."""
    waiting: dict = {node: [0] for node in roots}
    stack = list(waiting)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                count = waiting.get(edge[0])
                if count is None:
                    waiting[edge[0]] = [1]
                    stack.append(edge[0])
                else:
                    count[0] += 1
    return waiting


def _wanted(nodes, captures) -> set:
    """Nodes from which a captured node can be reached: only these need to run."""
    parents: dict = {}
    for node in nodes:
        for edge in node.edges:
            if edge is not None:
                parents.setdefault(edge[0], []).append(node)
    wanted, stack = set(), [n for n in captures if n in nodes]
    while stack:
        for parent in parents.get(stack.pop(), ()):
            if parent not in wanted:
                wanted.add(parent)
                stack.append(parent)
    return wanted


def _add(grads: dict, node: Node, out: int, g: Tensor) -> None:
    mine = grads.get(node)
    if mine is None:
        mine = grads[node] = [None] * node.n_outputs
    mine[out] = g if mine[out] is None else _plus(mine[out], g)


def _added(node: Node, g: Tensor, grads: dict) -> bool:
    """Add a view's gradient to its base's, which others have reached before; False where that takes a gradient of the base's size."""
    sums, out = sums_of(node, grads.get)
    if sums is None or node.hooks is not None or backwards or mode.anomaly or hasattr(node, "layouts"):
        return False
    base, plan, saved = sums[out], node.plan, node.saved
    if any(t._sparse or t._dispatches or t.dtype is not plan.avals[0].dtype for t in (g, base)) or base._layout is not None:
        return False
    values = [base._current(), g._current(), *(saved.unpacked() if saved.__class__ is Packed else saved)]
    sums[out] = Tensor._of(record(plan.op.plus, values, plan.statics)[1][0])
    return True


def _plus(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two gradients, each of which may be sparse."""
    if a._sparse and not b._sparse:
        a, b = b, a
    return a + b if b._sparse else apply(OPS["add"], (a, b))


def called(node: Node, grads: list) -> Tensor | None | tuple:
    """What a node that is called by itself makes, without its hooks; what it saved stays."""
    shown, rest = _shown(node, [None] * node.n_outputs)
    if len(grads) != len(shown):
        raise TypeError(f"expected {len(shown)} arguments, got {len(grads)} instead")
    if isinstance(node, AccumulateGrad):
        if grads[0] is not None and node.variable is not None:
            _store(node.variable, grads[0], mode.enabled)
        return ()
    below = [None] * len(node.edges) if all(g is None for g in grads) else _run_node(node, [*grads, *rest], mode.enabled, node.needs)
    made = tuple([below[i] for i in node.shown_places()])
    return made[0] if len(made) == 1 else made


def _run_node(node: Node, grads: list, create_graph: bool, needs: tuple) -> list:
    """The gradients of a node's inputs, one per edge; None for those not needed."""
    plan = node.plan
    if plan is None:
        return node.apply(grads, create_graph)
    saved = node.saved
    if saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    if saved.__class__ is Packed:
        saved = saved.unpacked()
    if True not in needs:
        return [None] * len(needs)
    if needs != node.needs:
        saved = plan.narrowed(saved, node.needs, needs)
    made = backwards[0].run(node, saved, grads, needs, create_graph) if backwards else None
    if made is None:
        made = _derived(node, plan, saved, grads, create_graph, needs)
    made = iter(made)
    made = [next(made) if need else None for need in needs]
    for g, layout in zip(made, getattr(node, "layouts", ())):  # set where the inputs of the operation were not all contiguous
        if g is not None and layout is not None and not g._dispatches:
            g._layout = like(layout)
    return made


def _derived(node: Node, plan, saved, grads: list, create_graph: bool, needs: tuple) -> list:
    """The derivative of an operation, recorded as one operation."""
    zeros: dict = {}
    gs = [_missing(plan, i, zeros) if g is None else g.to_dense() if g._sparse else g for i, g in enumerate(grads)]
    args = []
    if create_graph:
        for i, v in zip(plan.places(needs), saved):
            if v.__class__ is Value:
                t = Tensor._of(v)
                edge = node.edges[i] if i >= 0 else (node, ~i) if v.aval.dtype.category >= dt.FLOAT else None
                if edge is not None:
                    t._edge, t._out = edge
                args.append(t)
            else:
                args.append(v)
        args += gs
        made = apply(plan.op.backward, args, (plan, needs))
        _end_constant(made, args)
    else:
        values = [*saved, *(None if g is None else g._current() for g in gs)]
        made = [Tensor._of(v) for v in record(plan.op.backward, values, (plan, needs))[1]]
    return made


def _end_constant(grads: tuple, args: list) -> None:
    """Gradients made with a graph that depend on nothing that requires grad leave it, as where torch computes them one by one; what none of
    them depends on does too."""
    node = next((t._edge for t in grads if t._edge is not None), None)
    if node is None:
        return
    each = dependence(node.plan)
    read = frozenset().union(*each)
    edges = [e if i in read else None for i, e in enumerate(node.edges)]
    if edges != list(node.edges) and any(edges):
        values = [a._current() if isinstance(a, Tensor) else a for a in args]
        node = _node(node.plan.op, node.plan, edges, values, [t._value for t in grads])
    for t, reads in zip(grads, each):
        if t._edge is not None:
            t._edge = node if any(node.needs[i] for i in reads) else None


def _missing(plan, i: int, zeros: dict) -> Tensor | None:
    """What stands for the gradient of a result that nothing reached: zeros, the same for all results of a kind (of many slices one may be reached)."""
    if i in getattr(plan.op.derivative, "optional", ()):
        return None
    made = zeros.get(plan.outs[i])
    if made is None:
        made = zeros[plan.outs[i]] = Tensor._of(_filled(plan.outs[i], 0))
    return made


def _tensor_hooks(node: Node, grads: list) -> list:
    hooks = node.hooks
    for out, table in hooks.tensor.items():
        for hook in list(table.values()):
            r = hook(grads[out])  # None where nothing came: who counts gradients waits for that one, too
            if r is not None:
                grads[out] = _returned(hook, r, grads[out])
    for out, ref in hooks.retain.items():
        tensor = ref()
        if tensor is not None and grads[out] is not None:
            # of its own: what goes on may be written by a Function's backward
            tensor._grad = grads[out].clone() if tensor._grad is None else _plus(tensor._grad, grads[out])
    return grads


def _returned(hook: Callable, r, before: Tensor | None) -> Tensor | None:
    """What a hook made of a gradient, which has to be one of the same kind."""
    if r is None:
        return None
    if not isinstance(r, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(r).__name__}'")
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    name = getattr(hook, "__name__", "hook")
    if r.dtype is not before.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {before.type()} got {r.type()})")
    if r.device != before.device:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was on {before.device} got {r.device})")
    if r.shape != before.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    return r


def _all_returned(hook: Callable, r, before: list) -> list:
    if not isinstance(r, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(r).__name__}'")
    if len(r) != len(before):
        raise RuntimeError(f"hook '{getattr(hook, '__name__', 'hook')}' has returned an incorrect number of values (got {len(r)}, but expected "
                           f"{len(before)})")
    return [_returned(hook, new, old) for new, old in zip(r, before)]


def _node_hooks(node: Node, grads: list) -> list:
    shown, rest = _shown(node, grads)
    for hook in list(node.hooks.pre.values()):
        r = hook(tuple(shown))
        if r is not None:
            shown = _all_returned(hook, r, shown)
    return [*shown, *rest]


def _shown(node: Node, grads: list) -> tuple[list, list]:
    """The gradients that hooks see, and those of results which torch's function does not differentiate: indices, what only the derivative reads."""
    if node.plan is None:
        return grads, []
    outs, n = node.plan.outs, len(grads) - node.plan.op.private
    while n > 1 and outs[n - 1].dtype.category < dt.FLOAT:
        n -= 1
    return grads[:n], grads[n:]


def _after(node: Node, below: list, grads: list) -> list:
    """What hooks behind a node make of its inputs' gradients: of those that torch's function has."""
    grads, places = _shown(node, grads)[0], node.shown_places()
    seen = [below[i] for i in places]
    for hook in list(node.hooks.post.values()):
        r = hook(tuple(seen), tuple(grads))
        if r is not None:
            seen = _all_returned(hook, r, seen)
    for i, g in zip(places, seen):
        below[i] = g
    return below


def _accumulate(node: AccumulateGrad, g: Tensor | None, create_graph: bool) -> None:
    """The end of the walk at a leaf: its hooks run where no gradient came, too."""
    tensor = node.variable
    if tensor is None:
        return
    if g is not None:
        _store(tensor, g, create_graph)
    if node.post_accumulate:
        seen = tensor
        for hook in list(node.post_accumulate.values()):
            r = _returned(hook, hook(seen), seen)
            seen = seen if r is None else r
        if seen is not tensor:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    if node.hooks is not None and node.hooks.post:
        _after(node, [], [g])


def _store(tensor: Tensor, g: Tensor, create_graph: bool) -> None:
    if backwards and backwards[0].store(tensor, g, create_graph):
        return
    if SPARSE_FORMS and (g._sparse or (tensor._grad is not None and tensor._grad._sparse)):
        old = tensor._grad
        g = g if create_graph else g.detach()
        tensor._grad = g if old is None else _plus(old, g)
        return
    if g._value.aval.shape != tensor._value.aval.shape:  # the tensor was resized since
        g = g.expand(broadcast_shapes(g.shape, tensor.shape))
        if g.shape != tensor.shape:
            raise RuntimeError(f"output with shape {list(tensor.shape)} doesn't match the broadcast shape {list(g.shape)}")
    old = tensor._grad
    if old is None:
        made = Tensor._of(g._current())
        if tensor._layout is not None and is_dense(tensor._layout):
            made._layout = like(tensor._layout)
        if create_graph:
            made._edge, made._out = g._edge, g._out
        tensor._grad = made
    elif create_graph:
        tensor._grad = apply(OPS["add"], (old, g))
    else:
        total = record(OPS["add"], [old._current(), g._current()], ())[1][0]
        old._assign(Tensor._of(total))
