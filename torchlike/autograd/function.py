"""torch.autograd.Function: an operation whose backward the user writes in Python."""
from __future__ import annotations

import functools
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .._core import program
from .._core.errors import class_name
from .._core.grad_mode import mode
from .._core.graph import OF_FUNCTION, SECOND_BACKWARD, SEVERAL, AccumulateGrad, Node
from .._core.history import warn
from .._kinds import signature_of
from .._tensor import Tensor, _plain_copy, instance
from . import _under_jax

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]

_requires_grad = Tensor.requires_grad.fget  # a class that takes functions over is not asked
NO_SETUP_CONTEXT = ("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context "
                    "staticmethod. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html")
forward_rule: list[Callable] = []  # what finds and makes tangents before and after a Function, while there is forward differentiation: _tangents.py


class FunctionCtx:
    """What forward hands to backward."""

    def save_for_backward(self, *tensors) -> None:
        """Tensors (or None) that backward reads as `ctx.saved_tensors`; anything else is TypeError once there is a graph to save it for."""
        self.to_save = tensors

    def save_for_forward(self, *tensors) -> None:
        """Tensors that jvp reads."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors) -> None:
        """Inputs that forward changed in place."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Outputs without a gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros (True, the default) or None for outputs without a gradient."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple:
        """The tensors of save_for_backward, with their graphs."""
        node = self.__dict__.get("_node")
        node = node and node()
        if node is not None and node.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        return tuple(t() if t.__class__ is functools.partial else t for t in self.__dict__.get("_saved", self.__dict__.get("to_save", ())))

    @property
    def saved_variables(self) -> tuple:
        """The older name of saved_tensors."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    needs_input_grad: tuple = ()
    saved_for_forward: tuple = ()
    materialize_grads = True
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()


class FunctionNode(Node):
    """The graph node of a Function; `apply` calls the user's backward. It is also what backward calls `ctx`'s node."""

    __slots__ = ("cls", "ctx", "avals")

    def __init__(self, cls, ctx, edges, needs):
        super().__init__(None, edges, needs, ())
        self.cls, self.ctx = cls, ctx

    def name(self) -> str:
        return f"{self.cls.__name__}Backward"

    def __getattr__(self, name):
        if name == "ctx":  # not set yet
            raise AttributeError(name)
        try:
            return getattr(self.ctx, name)  # to torch the node is the ctx
        except AttributeError:
            raise AttributeError(f"'{self.name()}' object has no attribute '{name}'") from None

    def __repr__(self):
        return f"<torch.autograd.function.{self.cls.__name__}Backward object at {hex(id(self))}>"

    _repr_pretty_ = Node._repr_pretty_  # IPython asks the class that has the repr

    @property
    def n_outputs(self) -> int:
        return len(self.avals)

    def output_aval(self, i: int):
        return self.avals[i]

    def release(self) -> None:
        self.saved = None
        self.ctx._saved = ()

    def apply(self, grads: list, create_graph: bool) -> list:
        from .engine import _filled  # what was freed is missed by `ctx.saved_tensors` only: a backward that reads none may run again
        if self.ctx.materialize_grads:
            grads = [Tensor._of(_filled(a, 0)) if g is None and a is not None else g for g, a in zip(grads, self.avals)]
        result = self.cls.backward(self.ctx, *grads)
        result = list(result) if isinstance(result, (tuple, list)) else [result]
        n = len(self.edges)
        if len(result) > n and all(r is None for r in result[n:]):
            result = result[:n]
        if len(result) != n:
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {n}, got {len(result)})")
        for i, (r, edge) in enumerate(zip(result, self.edges)):
            if r is None or edge is None:
                result[i] = None if edge is None else r
                continue
            if not isinstance(r, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(r).__name__})")
            result[i] = _fitted(r, edge[0].output_aval(edge[1]), i, self.name())
        return result


def _fitted(g: Tensor, a, i: int, name: str) -> Tensor:
    """A gradient in its input's shape and dtype; torch's error where the shape cannot fit."""
    if g._aval.shape != a.shape:
        from .._core.aval import broadcast_shapes
        try:
            fits = broadcast_shapes(g._aval.shape, a.shape) == g._aval.shape
        except RuntimeError:
            fits = False
        if not fits:
            raise RuntimeError(f"Function {name} returned an invalid gradient at index {i} - got {list(g._aval.shape)} but expected shape "
                               f"compatible with {list(a.shape)}")
        g = g.sum_to_size(a.shape)
    if g.dtype.is_complex and not a.dtype.is_complex:
        raise RuntimeError(f"Function {name} returned an invalid gradient at index {i} - expected a real one, but got dtype {g.dtype}")
    return g if g.dtype is a.dtype else g.to(a.dtype)


@functools.cache
def _node_class(cls: type) -> type:
    """FunctionNode under the Function's own name, as type(t.grad_fn).__name__ shows it."""
    return type(f"{cls.__name__}Backward", (FunctionNode,), {"__slots__": ()})


class Function:
    """Subclass with static `forward(ctx, *args)` (or `forward(*args)` and `setup_context(ctx, inputs, output)`) and
    `backward(ctx, *grads)`; call it by `.apply(*args)`."""

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the class "
                      "itself. Instantiating an autograd function will raise an error in a future version of PyTorch.", DeprecationWarning, stacklevel=2)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with static "
                           "forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with "
                                  "backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap static method or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and record backward when some input requires a gradient."""
        separate = cls.setup_context is not Function.setup_context
        if separate:  # it is told of arguments that were left out, too
            call = signature_of(cls.forward).bind(*args, **kwargs)
            call.apply_defaults()
            args, kwargs = call.args, call.kwargs
        if (_under_jax.state.apart or not _transforming()) and _under_jax.concerns(args):
            return _under_jax.applied(cls, args, kwargs, separate, FunctionCtx)
        ruled = cls.vmap is not Function.vmap
        if _transforming() and cls.__module__.split(".")[0] not in ("torch", "torchlike"):
            if not separate:
                raise RuntimeError(NO_SETUP_CONTEXT)
            ruled = ruled or not cls.generate_vmap_rule
        computed = cls._by_vmap(args, kwargs, separate) if ruled else None
        if computed is not None and not computed[1]:
            return computed[0]
        needs = tuple(isinstance(a, Tensor) and _requires_grad(a) for a in args)
        ctx = FunctionCtx()
        ctx.needs_input_grad = needs
        recorded = mode.enabled and any(needs)
        if recorded and any(need and a._sparse for a, need in zip(args, needs)):
            raise NotImplementedError(f"torchlike: {cls.__name__}.apply of a sparse tensor that requires grad. Hand in its values.")
        tangents = forward_rule[0](cls, args) if forward_rule else ()
        trace = program.state.program if recorded and mode.watchers else None  # that of vmap would call the function again, see _functorch/_called.py
        noted = trace.called(cls, args, kwargs, separate, needs) if hasattr(trace, "called") else None
        before, mode.enabled = mode.enabled, False
        try:
            if separate:
                result = cls.forward(*args, **kwargs) if computed is None else computed[0]
                cls.setup_context(ctx, args, result)
                _refuse_saved_inputs(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **kwargs)
        finally:
            mode.enabled = before
        if cls.vjp is not Function.vjp and cls.vjp is not cls.backward:
            if cls.backward is not Function.backward:
                raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them.")
            cls.backward = cls.vjp
        for t in ctx.dirty_tensors:
            if isinstance(t, Tensor) and not t._sparse and not t._dispatches and (t._base is None or not recorded):  # else it is assigned below
                _count_mark(t)
        if isinstance(result, list):  # outputs are a tensor or a tuple; a list is handed on as it is
            recorded = False
        elif not recorded:
            if ctx.dirty_tensors:
                _check_returned(ctx, result if isinstance(result, tuple) else (result,))
            result = _apart(result, args, ctx)
            if mode.enabled:
                _forbid_writes(cls.__name__, result if isinstance(result, tuple) else (result,), {id(t) for t in ctx.dirty_tensors})
        if not recorded:
            if tangents:
                forward_rule[1](cls, ctx, args, result, tangents)
            return result
        edges = [(a._edge, a._out) if need else None for a, need in zip(args, needs)]
        node = _node_class(cls)(cls, ctx, edges, needs)
        ctx._node = weakref.ref(node)  # which holds ctx
        for watch in mode.watchers:
            watch(node, [a._value if need else None for a, need in zip(args, needs)])
        single = not isinstance(result, tuple)
        outs = [result] if single else list(result)
        node.avals = [o._aval if isinstance(o, Tensor) else None for o in outs]
        plain = {id(t) for t in ctx.non_differentiable}
        dirty = {id(t) for t in ctx.dirty_tensors}
        if dirty:
            _check_dirty(ctx, args, outs)
        made = []
        for i, o in enumerate(outs):
            given = any(o is a for a in args)
            if id(o) in plain and isinstance(o, Tensor) and _requires_grad(o):
                made.append(o.detach())
                continue
            if not isinstance(o, Tensor) or id(o) in plain or o._sparse or o._aval.dtype.category < 2:
                made.append(_seen(o) if given and id(o) not in dirty else o)
                continue
            if id(o) in dirty:
                o._check_write()
                o._edge, o._out = node, i
                if o._base is not None:
                    o._assign(_with_edge(o, node, i))
                made.append(o)
            else:
                made.append(o if not given else _seen(o) if noted is None else o.view_as(o))  # there it is another value than the argument
                made[-1]._edge, made[-1]._out = node, i
        _forbid_writes(cls.__name__, made, dirty)
        _save(ctx, outs, made, node)
        if noted is not None:
            noted.returned(made)
        if tangents:
            forward_rule[1](cls, ctx, args, tuple(made), tangents)
        return made[0] if single else tuple(made)

    @classmethod
    def _by_vmap(cls, args: tuple, kwargs: dict, separate: bool) -> tuple | None:
        """The result by the class's own rule inside of vmap, and whether the derivative is left to be recorded; None elsewhere."""
        from .._functorch._rules import by_rule  # built on this package
        rule = cls.vmap
        if rule is Function.vmap:
            def rule(*_):
                raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the vmap "
                                   "staticmethod or set generate_vmap_rule=True. For more details, please see "
                                   "https://pytorch.org/docs/main/notes/extending.func.html")
        elif cls.generate_vmap_rule:
            def rule(*_):
                raise RuntimeError(f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overriden vmap staticmethod. "
                                   "Please set generate_vmap_rule=False or delete the overriden vmap staticmethod to avoid ambiguity. For more details, "
                                   "please see https://pytorch.org/docs/main/notes/extending.func.html")
        made = by_rule(cls.__name__, rule, cls.apply, args, kwargs)
        if made is not None and made[1] and not separate:
            raise RuntimeError(NO_SETUP_CONTEXT)
        return made


class InplaceFunction(Function):
    """An older base of functions that may write in place (stanza); a Function like others."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


def _transforming() -> bool:
    """Whether a function runs under one of torch.func's transforms, which are built on this package."""
    level = sys.modules.get("torchlike.func._level")
    return level is not None and level.transforming()


def _refuse_saved_inputs(ctx: FunctionCtx, args: tuple, result) -> None:
    """torch's error for what setup_context saves of an input that is also the result: which of both it would be is not known there."""
    dirty = {id(t) for t in ctx.dirty_tensors}
    same = {id(o) for o in (result if isinstance(result, tuple) else (result,)) if any(o is a for a in args)} - dirty
    if any(isinstance(t, Tensor) and id(t) in same for t in (*getattr(ctx, "to_save", ()), *ctx.saved_for_forward)):
        raise RuntimeError("An input that has been returned as-is as output is being saved for backward. Where setup_context is overridden this is not "
                           "supported: return and save a view of the input, e.g. x.view_as(x), or set up ctx inside of forward.")


def _check_returned(ctx: FunctionCtx, outs: Sequence) -> None:
    returned = {id(o) for o in outs}
    if any(id(t) not in returned for t in ctx.dirty_tensors):
        raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace "
                           "must all be outputs of the Function.")


def _check_dirty(ctx: FunctionCtx, args: tuple, outs: list) -> None:
    """What a Function says that it changed has to come back from it, and to be no leaf; a view has to come back alone."""
    if any(all(t is not a for a in args) for t in ctx.dirty_tensors):
        warn("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed to ctx.mark_dirty().")
    _check_returned(ctx, outs)
    for t in ctx.dirty_tensors:
        if t.requires_grad and t.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if sum(isinstance(o, Tensor) for o in outs) > 1 and any(t._base is not None for t in ctx.dirty_tensors):
        raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. "
                           "This is not supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for "
                           "example) or make your Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that "
                           "returns a single Tensor and a second one that does the other operations).")


def _count_mark(t: Tensor) -> None:
    """Being marked as dirty counts as a write."""
    st = t._storage
    if st is None:
        t._writes += 1
        return
    t._current()
    st.version += 1
    if t._base is None:
        t._seen = st.version


def _seen(t):
    """An input that forward returns as it is: a view of it, which gets a place in the graph of its own."""
    if not isinstance(t, Tensor) or t._sparse:
        return t
    if t._dispatches:
        return _plain_copy(t)
    out = t._alias()
    out._base = t if t._base is None else t._base
    return out if t.__class__._plain else instance(out, t.__class__)


def _apart(result, args: tuple, ctx: FunctionCtx):
    """What forward returned where nothing is recorded: inputs are not handed back themselves."""
    outs = result if isinstance(result, tuple) else (result,)
    same = [isinstance(o, Tensor) and any(o is a for a in args) for o in outs]
    if not any(same):
        return result
    dirty, plain = {id(t) for t in ctx.dirty_tensors}, {id(t) for t in ctx.non_differentiable}
    made = tuple(o if not s or id(o) in dirty else o.detach() if id(o) in plain and _requires_grad(o) else _seen(o) for o, s in zip(outs, same))
    return made if isinstance(result, tuple) else made[0]


def _forbid_writes(name: str, outs: list, dirty: set) -> None:
    """Views that a Function returns may not be written: the write would take the place of its backward."""
    reason = OF_FUNCTION if sum(isinstance(o, Tensor) and o._edge is not None for o in outs) < 2 else SEVERAL
    for i, o in enumerate(outs):
        if isinstance(o, Tensor) and o._base is not None and id(o) not in dirty:
            o._several = name, i, o._written, reason


def _with_edge(t: Tensor, node: Node, i: int) -> Tensor:
    out = _plain_copy(t)
    out._edge, out._out = node, i
    return out


def _save(ctx: FunctionCtx, outs, made, node) -> None:
    """Saved inputs are kept as they were, also those that are handed back as views; saved outputs must not keep their own node alive in a cycle."""
    position = {id(o): i for i, (o, m) in enumerate(zip(outs, made)) if isinstance(o, Tensor) and m is o}
    saved = []
    for place, t in enumerate(getattr(ctx, "to_save", ())):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument {place} is of type {class_name(t)}")
        i = None if t is None else position.get(id(t))
        if i is None:
            saved.append(None if t is None else t.detach() if t._sparse else _plain_copy(t) if not isinstance(t._edge, AccumulateGrad) else t)
        else:
            saved.append(functools.partial(_saved_output, made[i]._current(), weakref.ref(node) if made[i]._edge is node else None, i))
    if mode.saved_hooks:
        from .graph import packed_tensor
        saved = [t if t is None else packed_tensor(t if isinstance(t, Tensor) else t()) for t in saved]
    ctx._saved = saved
    ctx.to_save = ()


def _saved_output(value, node: weakref.ref | None, i) -> Tensor:
    t = Tensor._of(value)
    if node is not None:
        t._edge, t._out = node(), i
    return t


def once_differentiable(fn: Callable) -> Callable:
    """A backward that cannot be differentiated itself: its results fail in a second backward."""
    @functools.wraps(fn)
    def backward(ctx, *grads):
        before, mode.enabled = mode.enabled, False
        try:
            result = fn(ctx, *grads)
        finally:
            mode.enabled = before
        if not before or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return result
        outs = result if isinstance(result, tuple) else (result,)
        failed = tuple(None if o is None else _Refuses.apply(o, *[g for g in grads if g is not None]) for o in outs)
        return failed if isinstance(result, tuple) else failed[0]
    return backward


class _Refuses(Function):
    @staticmethod
    def forward(ctx, value, *grads):
        return value.clone()

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

