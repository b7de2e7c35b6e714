"""A Function called inside of a function that JAX transforms: `jax.custom_vjp`, so that jax.grad takes its backward, too, and not the derivative of
what forward does."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from .._core.grad_mode import mode
from .._core.jax_settings import engine_settings
from .._core.traces import is_clean
from .._core.value import Value, is_tracer
from .._tensor import Tensor


class _State(threading.local):
    apart: Callable | None = None  # the block inside of which Functions run that have nothing to do with the transforms of torch.func that are open


state = _State()


@contextlib.contextmanager
def set_apart(block: Callable) -> Iterator[None]:
    """Inside of the block Functions of tracers are JAX's, whatever torch.func does around it, and run inside of `block()`, also when JAX calls them later."""
    before, state.apart = state.apart, block
    try:
        yield
    finally:
        state.apart = before


def concerns(args: tuple) -> bool:
    """Whether some argument is a tracer, and autograd will not ask for gradients itself."""
    tensors = [] if is_clean() else [t for t in args if isinstance(t, Tensor) and not t._sparse and not t._dispatches]
    return any(is_tracer(_value(t).array) for t in tensors) and not (mode.enabled and any(t.requires_grad for t in tensors))


def _value(t: Tensor) -> Value:
    return t._current()


class _Call:
    """One call: what forward left that is no array, for the backward that follows."""

    def __init__(self, cls: type, args: tuple, kwargs: dict, separate: bool, context: Any):
        self.cls, self.args, self.kwargs, self.separate, self.context = cls, args, kwargs, separate, context
        self.around = state.apart or contextlib.nullcontext
        self.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        self.result: list = []  # with None in the place of tensors
        self.single = False
        self.written: dict[int, int] = {}  # results that are arguments changed in place
        self.rest: tuple = ()
        self.kept: dict[int, int] = {}  # places in `to_save` of tensors that are results
        self.call: Callable = self.forward  # what JAX differentiates

    def run(self, arrays: tuple) -> tuple[list, Any]:
        """(the results' arrays, the context) of forward."""
        with self.around():
            return self._run(arrays)

    def _run(self, arrays: tuple) -> tuple[list, Any]:
        ctx, args = self.context(), list(self.args)
        for i, x in zip(self.places, arrays):
            args[i] = _of(x)
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.dtype.is_floating_point or isinstance(a, Tensor) and a.dtype.is_complex for a in args)
        before, mode.enabled = mode.enabled, False
        try:
            if self.separate:
                result = self.cls.forward(*args, **self.kwargs)
                self.cls.setup_context(ctx, tuple(args), result)
            else:
                result = self.cls.forward(ctx, *args, **self.kwargs)
        finally:
            mode.enabled = before
        self.single = not isinstance(result, (tuple, list))
        outs = [result] if self.single else list(result)
        dirty = {id(t) for t in ctx.dirty_tensors}
        self.written = {k: i for k, o in enumerate(outs) for i in self.places if o is args[i] and id(o) in dirty}
        self.result = [None if isinstance(o, Tensor) else o for o in outs]
        self.tensors = [k for k, o in enumerate(outs) if isinstance(o, Tensor)]
        places = {id(outs[k]): i for i, k in enumerate(self.tensors)}
        self.kept = {at: places[id(t)] for at, t in enumerate(getattr(ctx, "to_save", ())) if id(t) in places}
        plain = {id(t) for t in ctx.non_differentiable}
        made = [jax.lax.stop_gradient(o.jax()) if id(o) in plain else o.jax() for o in outs if isinstance(o, Tensor)]
        return made, ctx

    def forward(self, *arrays):
        _, ctx = self.run(arrays)
        made = self.call(*arrays)  # where JAX differentiates this, it is by the Function's own rule, too; so are results that backward reads
        if self.kept:
            with self.around():
                ctx.to_save = tuple([_of(made[self.kept[at]]) if at in self.kept else t for at, t in enumerate(ctx.to_save)])
        leaves, tree = jax.tree_util.tree_flatten(dict(ctx.__dict__))
        arrays = [isinstance(x, (jax.Array, jax.core.Tracer)) for x in leaves]
        self.rest = tree, [None if a else x for x, a in zip(leaves, arrays)], arrays
        return made, [x for x, a in zip(leaves, arrays) if a]

    def backward(self, kept: list, grads: list) -> tuple:
        with self.around():
            return self._backward(kept, grads)

    def _backward(self, kept: list, grads: list) -> tuple:
        tree, leaves, arrays = self.rest
        given = iter(kept)
        ctx = self.context()
        ctx.__dict__.update(jax.tree_util.tree_unflatten(tree, [next(given) if a else x for x, a in zip(leaves, arrays)]))
        cls = self.cls
        backward = cls.vjp if "vjp" in cls.__dict__ and "backward" not in cls.__dict__ else cls.backward
        takes: list = [None] * len(self.result)
        for k, g in zip(self.tensors, grads):
            takes[k] = None if g.dtype == jax.dtypes.float0 else _of(_conjugated(g))
        found = backward(ctx, *takes)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        found += [None] * (len(self.args) - len(found))
        return tuple([self.fitted(found[i], self.args[i], i) for i in self.places])

    def fitted(self, g: Tensor | None, a: Tensor, i: int):
        from .function import _fitted  # above this file
        value = _value(a)
        kind = value.aval.dtype.np
        if a.dtype.is_floating_point or a.dtype.is_complex:
            with engine_settings():
                return jax.numpy.zeros(a.shape, kind) if g is None else _conjugated(_fitted(g, value.aval, i, self.cls.__name__).jax())
        return np.zeros(tuple(a.shape), jax.dtypes.float0)


def _conjugated(x):
    """torch's gradient of complex numbers is the conjugate of JAX's cotangent."""
    return jax.lax.conj(x) if jax.numpy.iscomplexobj(x) else x


def _of(array) -> Tensor:
    from .._interop import from_jax  # above this file
    return from_jax(array)


def applied(cls: type, args: tuple, kwargs: dict, separate: bool, context: type) -> Any:
    """What `cls.apply` returns."""
    call = _Call(cls, args, kwargs, separate, context)
    f = jax.custom_vjp(lambda *arrays: call.run(arrays)[0])
    f.defvjp(call.forward, call.backward)
    call.call = f
    made = f(*[args[i].jax() for i in call.places])
    outs = list(call.result)
    for k, x in zip(call.tensors, made):
        outs[k] = _of(x)
        if k in call.written:
            target = args[call.written[k]]
            target._assign(outs[k])
            outs[k] = target
    return outs[0] if call.single else tuple(outs)
