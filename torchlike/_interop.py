"""JAX at any line: Tensors as pytrees, `t.jax()`, `from_jax`, and JAX functions with a backward."""
from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ._core import program
from ._core.aval import aval
from ._core.device import META
from ._core.dtype import from_numpy_dtype
from ._core.grad_mode import mode
from ._core.jax_settings import engine_settings
from ._core.registry import Op, shape_struct
from ._core.value import Value, of_array
from ._fields import fields
from ._tensor import Tensor, apply, as_tensor_value


def to_jax(self: Tensor) -> jax.Array:
    """The tensor's value as a jax.Array (a tracer inside a JAX transformation). Gradients do not flow through this."""
    value = self._current()
    array = program.concrete(value)
    if array is program.META_ARRAY:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    program.raise_failed_checks()
    if not isinstance(array, (jax.Array, jax.core.Tracer)):
        from ._core.executable import to_device
        to_device([value], value.aval.device)
    value.shared = True
    return value.array


def as_operand(self: Tensor) -> jax.Array:
    """The tensor among JAX's own arrays: `jnp.sin(t)`, `array + t`. RuntimeError where its gradient would be lost."""
    if mode.enabled and self.requires_grad:
        raise RuntimeError("Can't hand a Tensor that requires grad to a function of JAX's, which knows nothing of it. Use tensor.detach(), or "
                           "torchlike.jax_function(f), which has a backward.")
    return to_jax(self)


class _AsOperand:
    """`Tensor.__jax_array__`. JAX looks for it, too, where it takes no tensor, to say in its own terms that there must be an array."""

    __wrapped__ = staticmethod(as_operand)

    def __get__(self, t: Tensor | None, cls: type):
        if t is not None and sys._getframe(1).f_code.co_name == "typeof":  # JAX's function of that name; by another, its words are seen
            raise ValueError(f"Expected a jax.Array here, got a {cls.__name__}: write .jax(). (jax.grad takes a function whose result is an array, as "
                             "loss.jax() is, torchlike.func.grad one whose result is a Tensor.)")
        return as_operand if t is None else as_operand.__get__(t)


Tensor.jax = to_jax
Tensor.__jax_array__ = _AsOperand()
Tensor.__numpy_dtype__ = property(lambda self: self.dtype.__numpy_dtype__, doc="What `jnp.zeros_like(t)` and `jnp.result_type(t, array)` ask NumPy for.")


def from_jax(array) -> Tensor:
    """A Tensor over a jax.Array (or tracer), on the array's device, without a copy."""
    if not isinstance(array, (jax.Array, jax.core.Tracer)):
        raise TypeError(f"from_jax expects a jax.Array, got {type(array).__name__}")
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended):
        raise TypeError(f"from_jax expects an array of numbers, got one of {array.dtype}")
    value = of_array(array)
    value.shared = True
    return Tensor._of(value)


class _Opaque:
    """Something JAX put where a Tensor's array would be (a sharding, the dimension to map over) while it rebuilds a tree."""

    def __init__(self, leaf):
        self.leaf = leaf

    @property
    def aval(self):
        raise TypeError(f"this is no tensor, but has one's place in a tree of JAX's, for {self.leaf!r}")


def _flatten(t: Tensor):
    value = fields(t)["_value"]
    if value.__class__ is _Opaque:
        return (value.leaf,), type(t)
    if value.array is program.META_ARRAY:  # to JAX, too, it has a shape and a dtype only
        return (jax.ShapeDtypeStruct(value.aval.shape, value.aval.dtype.np),), type(t)
    return (to_jax(t),), type(t)


def _unflatten(cls, leaves) -> Tensor:
    (leaf,) = leaves
    if isinstance(leaf, Tensor):  # a tree of trees, as jax.jacobian makes it
        return leaf
    if isinstance(leaf, (jax.Array, jax.core.Tracer)):
        t = from_jax(leaf)
    elif isinstance(leaf, jax.ShapeDtypeStruct) and leaf.sharding is None:
        t = Tensor._of(Value(aval(leaf.shape, from_numpy_dtype(leaf.dtype), META), program.META_ARRAY))
    elif hasattr(leaf, "__array__") and hasattr(leaf, "dtype"):
        t = Tensor._of(of_array(leaf))
    else:
        t = Tensor._of(_Opaque(leaf))
    if cls is not Tensor:
        t.__class__ = cls
    return t


def _flatten_with_keys(t: Tensor):
    (leaf,), cls = _flatten(t)
    return ((jax.tree_util.GetAttrKey("jax"), leaf),), cls


def register(cls: type) -> None:
    """Make a Tensor class a JAX pytree node (a tree of one leaf, its array)."""
    jax.tree_util.register_pytree_with_keys(cls, _flatten_with_keys, _unflatten, _flatten)


register(Tensor)
_init_subclass = Tensor.__init_subclass__.__func__


def _register_subclass(cls, **kwargs):
    _init_subclass(cls, **kwargs)
    register(cls)


Tensor.__init_subclass__ = classmethod(_register_subclass)
_count = itertools.count()


def jax_function(function: Callable) -> Callable:
    """A function of JAX arrays as a function of Tensors, differentiable by `.backward()`.

    Arguments and results are any trees; Tensors, arrays and JAX's keys among the arguments become arrays, everything else must be hashable
    and is part of the compiled program. As by jax.jit the function is traced once for arguments of a kind: what else it reads, it reads then.
    It runs with 64-bit types where an argument has one, or your own JAX settings say so.
    """
    ops: dict = {}

    @functools.wraps(function)
    def call(*args, **kwargs):
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, Tensor))
        keys = {}
        for i, x in enumerate(leaves):
            if isinstance(x, np.ndarray):
                leaves[i] = as_tensor_value(np.array(x))
            elif not isinstance(x, Tensor) and isinstance(x, jax.Array):
                if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
                    keys[i], x = jax.random.key_impl(x), jax.random.key_data(x)
                leaves[i] = from_jax(x)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        rest = tuple(None if isinstance(x, Tensor) else x for x in leaves)
        where = tuple(i for i, x in enumerate(leaves) if isinstance(x, Tensor))
        wide = jax.config.jax_enable_x64 or any(x.dtype.to_real().itemsize == 8 for x in tensors)
        key = (tree, rest, where, wide, tuple(keys.items()))
        known = ops.get(key)
        if known is None:
            known = ops[key] = _function_op(function, tree, rest, where, wide, keys)
        op, out_tree = known
        made = apply(op, tensors)
        return jax.tree_util.tree_unflatten(out_tree[0], list(made))
    return call


def _function_op(function: Callable, tree, rest: tuple, where: tuple, wide: bool, keys: dict) -> tuple[Op, list]:
    """The operation, and a list that has the tree of its results once its shapes are known."""
    out_tree: list = []

    def kernel(xp, *arrays):
        leaves = list(rest)
        for i, x in zip(where, arrays):
            leaves[i] = jax.random.wrap_key_data(x, impl=keys[i]) if i in keys else x
        args, kwargs = jax.tree_util.tree_unflatten(tree, leaves)
        with jax.enable_x64(wide):
            outs, structure = jax.tree_util.tree_flatten(function(*args, **kwargs))
        out_tree[:] = [structure]
        return [xp.asarray(o) for o in outs]

    def shape(*avals):  # of its own for what the function raises, which is not torch's
        with engine_settings():
            return [(o.shape, from_numpy_dtype(o.dtype)) for o in jax.eval_shape(functools.partial(kernel, jnp), *map(shape_struct, avals))]
    op = Op(f"jax_{getattr(function, '__name__', 'function')}_{next(_count)}", kernel, shape=shape, numpy=None)
    op.stable = False
    return op, out_tree
