"""Optax's gradient transformations as optimizers with torch's interface; a step is one recorded operation."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax

from .._core.jax_settings import engine_settings
from .._core.registry import Op
from .._tensor import Tensor, apply
from .optimizer import Optimizer, ParamsT, _use_grad_for_differentiable, closure_loss

_count = itertools.count()
_LEAVES = "leaves"


class OptaxOptimizer(Optimizer):
    """`OptaxOptimizer(model.parameters(), optax.adamw(1e-3))`.

    The transformation sees one group's parameters as a list (a dict by name for named parameters), several groups as a
    list of those. Its state lies in `self.state["optax"]["leaves"]`. With `optax.inject_hyperparams` its learning rate is
    `param_groups[0]["lr"]`, which torch's schedulers may change. Parameters without a gradient count as having zeros.
    ValueError for options of a group that a transformation does not read.
    """

    def __init__(self, params: ParamsT, transformation: Any) -> None:
        if not (callable(getattr(transformation, "init", None)) and callable(getattr(transformation, "update", None))):
            raise TypeError(f"expected an optax gradient transformation, but got {type(transformation).__name__}")
        self.transformation = transformation
        super().__init__(params, {})
        self._prepare()
        for i, group in enumerate(self.param_groups):
            if unread := group.keys() - {"params", "param_names", "lr" if i == 0 and self._rate is not None else ""}:
                raise ValueError(f"parameter group {i} has {sorted(unread)}, which an optax transformation does not read: optax.multi_transform treats groups apart")

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "transformation": self.transformation}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._prepare()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Groups can only be given at once: RuntimeError when the transformation's state exists already."""
        if "optax" in self.state:
            raise RuntimeError(
                "an optax transformation's state cannot grow: give all parameter groups to the constructor"
            )
        super().add_param_group(param_group)

    def _params(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _tree(self, leaves: list) -> Any:
        """Parameters (or gradients) as the transformation sees them."""
        rest, groups = iter(leaves), []
        for group in self.param_groups:
            part = list(itertools.islice(rest, len(group["params"])))
            names = group.get("param_names")
            groups.append(part if names is None else dict(zip(names, part)))
        return groups[0] if len(groups) == 1 else groups

    def _leaves(self, tree: Any) -> list:
        """The inverse of `_tree`."""
        out = []
        for group, part in zip(self.param_groups, [tree] if len(self.param_groups) == 1 else tree):
            out += [part[n] for n in group["param_names"]] if "param_names" in group else part
        return out

    def _prepare(self) -> None:
        """The structure of the state, and the state itself unless it was loaded."""
        params = self._params()
        shapes = [jax.ShapeDtypeStruct(tuple(p.shape), p._aval.dtype.np) for p in params]
        self._wide = jax.config.jax_enable_x64 or any(p.dtype.to_real().itemsize == 8 for p in params)
        self._keys = {}  # by their places among the state's leaves: what makes numbers of them

        def first(tree):
            state = self.transformation.init(tree)
            for i, x in enumerate(jax.tree_util.tree_leaves(state)):
                if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
                    self._keys[i] = jax.random.key_impl(x)
            return state
        with engine_settings(), jax.enable_x64(self._wide):
            structure = jax.eval_shape(first, self._tree(shapes))
        self._structure = jax.tree_util.tree_structure(structure)
        self._rate = _rate_position(structure)
        self._steps: dict[tuple, Op] = {}
        if "optax" not in self.state:

            def init(xp, *arrays):
                with jax.enable_x64(self._wide):
                    return self._state_arrays(self.transformation.init(self._tree(list(arrays))))

            leaves = (
                _results(apply(_op("init", init), [p.detach() for p in params])) if self._structure.num_leaves else []
            )
            self.state["optax"] = {_LEAVES: leaves}
        if self._rate is not None and "lr" not in self.param_groups[0]:
            self.param_groups[0]["lr"] = float(self.state["optax"][_LEAVES][self._rate])

    def _state_arrays(self, state: Any) -> list:
        """The leaves of a transformation's state, its keys as numbers."""
        return [jax.random.key_data(x) if i in self._keys else x for i, x in enumerate(jax.tree_util.tree_leaves(state))]

    @_use_grad_for_differentiable
    def step(self, closure: Callable | None = None, **extra: Any) -> Any:
        """Update the parameters once; `extra` goes to the transformation's `update`: trees of tensors and numbers, and functions of JAX arrays, as
        `value=loss, grad=[p.grad for p in params], value_fn=f` where it searches along a line. Another function is compiled anew."""
        loss = closure_loss(closure)
        params = self._params()
        if all(p.grad is None for p in params):
            return loss
        grads = [p.new_zeros(p.shape) if p.grad is None else p.grad for p in params]
        leaves = self.state["optax"][_LEAVES]
        given, tree = jax.tree_util.tree_flatten(extra, is_leaf=lambda x: isinstance(x, Tensor))
        functions = tuple(x if callable(x) and not isinstance(x, Tensor) else None for x in given)
        op = self._steps.get((tree, functions))
        if op is None:
            op = self._steps[tree, functions] = self._step_op(tree, functions)
        rate = [] if self._rate is None else [float(self.param_groups[0]["lr"])]
        made = _results(apply(op, (*params, *grads, *leaves, *rate, *[x for x, f in zip(given, functions) if f is None])))
        for p, new in zip(params, made):
            p._assign(new)
        self.state["optax"] = {_LEAVES: made[len(params) :]}
        return loss

    def _step_op(self, extra: Any, functions: tuple) -> Op:
        """The operation of a step with `extra` arguments of that structure, which has `functions` in their places and None where values are."""
        n, k = len(self._params()), self._structure.num_leaves

        def step(xp, *arrays):
            params, grads, leaves, rest = arrays[:n], arrays[n : 2 * n], list(arrays[2 * n : 2 * n + k]), iter(arrays[2 * n + k :])
            if self._rate is not None:
                leaves[self._rate] = xp.asarray(next(rest)).astype(leaves[self._rate].dtype)
            known = [jax.random.wrap_key_data(x, impl=self._keys[i]) if i in self._keys else x for i, x in enumerate(leaves)]
            state = jax.tree_util.tree_unflatten(self._structure, known)
            values = jax.tree_util.tree_unflatten(extra, [next(rest) if f is None else f for f in functions])
            with jax.enable_x64(self._wide):
                updates, state = self.transformation.update(self._tree(list(grads)), state, self._tree(list(params)), **values)
            moved = [(p + u).astype(p.dtype) for p, u in zip(params, self._leaves(updates))]
            after = [xp.asarray(new).astype(old.dtype) for new, old in zip(self._state_arrays(state), leaves)]
            return moved + after

        return _op("step", step)


def _op(name: str, kernel: Callable) -> Op:
    op = Op(f"optax_{name}_{next(_count)}", kernel, numpy=None, vjp=False)
    op.stable = False
    return op


def _results(made: Any) -> list[Tensor]:
    return list(made) if isinstance(made, tuple) else [made]


def _rate_position(structure: Any) -> int | None:
    """Where an injected learning rate is among the state's leaves."""
    for i, (path, _) in enumerate(jax.tree_util.tree_flatten_with_path(structure)[0]):
        keys = [str(getattr(k, "name", getattr(k, "key", ""))) for k in path]
        if keys[-2:] == ["hyperparams", "learning_rate"]:
            return i
    return None


def from_optax(transformation: Any) -> Callable[..., OptaxOptimizer]:
    """A constructor of optimizers: `from_optax(optax.lion(1e-4))(model.parameters())`."""

    def make(params: ParamsT) -> OptaxOptimizer:
        return OptaxOptimizer(params, transformation)

    return make
