"""A traced function over a batch, as one operation: jax.vmap of its steps, with the traced backward as its derivative."""
from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from .._core import derived, executable, executor
from .._core.aval import BOOL, COMPLEX, FLOAT, INT
from .._core.registry import Op

if TYPE_CHECKING:
    from ._called import Called

MOST = 512  # operations kept for calls that return
_count = itertools.count()


class Steps:
    """Recorded steps as a function of inputs and numbers. `needs`: which inputs of a step carry gradients, by its first
    result; the others are cut off, so that derivatives of the whole see detach() and no_grad() as they were."""

    def __init__(self, steps: list, needs: dict, functions: list[Called]):
        self.functions = functions  # in the order of their ends
        self.steps = [executable.Step((s.plan, needs.get(s.out)), s.refs, s.out) for s in steps]
        self.n_floats, self.n_ints = _numbers(steps)

    def __call__(self, inputs, numbers, wanted: list[int], cut: bool) -> list:
        env: list = []
        floats, ints = numbers[:self.n_floats], numbers[self.n_floats:]
        run, steps = _cut_run if cut else _run, self.steps
        for f in self.functions if derived.state.differentiating else ():
            n = next((i for i, s in enumerate(steps) if s.out >= f.end), len(steps))
            n_floats, n_ints = _numbers(steps[:n])
            executable.evaluate(steps[:n], env, inputs.__getitem__, floats, ints, run)
            f.again(env, inputs)
            steps, floats, ints = steps[n:], floats[n_floats:], ints[n_ints:]
        executable.evaluate(steps, env, inputs.__getitem__, floats, ints, run)
        return [env[r] if r >= 0 else inputs[-1 - r] for r in wanted]


def _numbers(steps: list) -> tuple[int, int]:
    """How many floats and integers steps take."""
    kinds = [r for s in steps for r in s.refs if r.__class__ is not int]
    return sum(2 if r is COMPLEX else r is FLOAT for r in kinds), sum(r is INT or r is BOOL for r in kinds)


def _run(step):
    return functools.partial(derived.step, step[0])


def _cut_run(step):
    plan, needs = step
    needs = needs or (False,) * len(plan.avals)

    def call(*args):
        return derived.step(plan, *[x if need or x is None else jax.lax.stop_gradient(x) for x, need in zip(args, needs)])
    return call


class Mapped(Op):
    """Inputs: the trace's inputs, then one more for each further edge into the trace, then numbers.

    axes     the mapped axis of each input, None where all examples see the same
    outs     references of the results; `spread` says of each whether it has one row per example
    grads    reference of the gradient of each input that has one; `marks` are the inputs where the results' gradients enter
    """

    carries_tangents = True  # the traced function computed its results' tangents as further results

    def __init__(self, name: str, steps: list, forward_end: int, needs: dict, functions: list[Called], axes: list, outs: list, spread: list, avals: list,
                 grads: dict, marks: list, positions: list):
        super().__init__(f"vmap_{name}_{next(_count)}", self._forward, shape=self._shape, numpy=None)
        self.stable = False
        self.torch_name = "VmapBackward"
        self.forward_steps = Steps([s for s in steps if s.out < forward_end], {}, [f for f in functions if f.end <= forward_end])
        self.all_steps = Steps(steps, needs, functions)
        self.axes, self.outs, self.spread, self.avals = axes, outs, spread, avals
        self.grads, self.marks, self.positions = grads, marks, positions
        self.derivative = _Derivative(self)

    def size(self, inputs) -> int:
        return next(x.shape[a] for x, a in zip(inputs, self.axes) if a is not None)

    def _shape(self, *inputs):
        n = self.size(inputs)
        return [((n, *a.shape) if s else a.shape, a.dtype) for a, s in zip(self.avals, self.spread)]

    def _split(self, args):
        n = len(self.axes)
        return args[:n], args[n:]

    def _forward(self, xp, *args):
        inputs, numbers = self._split(args)
        numbers = [*numbers[:self.forward_steps.n_floats], *numbers[self.all_steps.n_floats:][:self.forward_steps.n_ints]]

        def one(*inputs):
            return self.forward_steps(self._placed(inputs, ()), numbers, self.outs, False)
        return jax.vmap(one, tuple(self.axes), [0 if s else None for s in self.spread], axis_size=self.size(inputs))(*inputs)

    def _placed(self, inputs, marks) -> list:
        """Op inputs and marks as the trace numbers its inputs."""
        placed = [inputs[p] if p is not None else None for p in self.positions]
        for i, g in zip(self.marks, marks):
            placed[i] = g
        return placed


class _Derivative:
    def __init__(self, op: Mapped):
        self.op = op
        self.kernel_names: list[str] = []

    def saved(self, plan, needs) -> tuple:
        return tuple(range(len(plan.avals))), ()

    def bind(self, plan, needs):
        def run(xp, arrays):
            n = len(plan.avals)
            return self._gradients(plan, needs, arrays[:n], arrays[n:])
        return run

    def _gradients(self, plan, needs, ins, gs) -> list:
        op = self.op
        inputs, numbers = op._split(ins)
        n = op.size(inputs)
        wanted = [i for i, need in enumerate(needs) if need]
        with_grad = [i for i in wanted if i in op.grads]
        # a result that all examples share has one gradient: the first example carries it
        gs = [g if s else jnp.zeros((n, *g.shape), g.dtype).at[0].set(g) for g, s in zip(gs, op.spread)][:len(op.marks)]
        marks = len(gs)

        def one(*args):
            return op.all_steps(op._placed(args[marks:], args[:marks]), numbers, [op.grads[i] for i in with_grad], True)
        made = jax.vmap(one, (0,) * marks + tuple(op.axes), [op.axes[i] or 0 for i in with_grad], axis_size=n)(*gs, *inputs) if with_grad else []
        found = {i: g if op.axes[i] is not None else g.sum(0) for i, g in zip(with_grad, made)}
        return [found[i] if i in found else jnp.zeros(plan.avals[i].shape, plan.avals[i].dtype.np) for i in wanted]


_known: dict = {}


def mapped(key: tuple, make) -> Mapped:
    """The operation of a trace seen before, or a new one; the oldest are forgotten."""
    op = _known.pop(key, None)
    if op is None:
        op = make()
        if len(_known) >= MOST:
            executor.retire([_known.pop(next(iter(_known)))])
    _known[key] = op
    return op
