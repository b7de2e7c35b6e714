"""From a jaxpr to a list of NumPy steps: the table of rules, and the program that runs them.

A rule takes an equation once and returns the function that evaluates it. Calls (jit, custom derivatives, checkpoints)
are inlined, equations nobody reads are dropped, small constant parts are computed once, and an intermediate is released
after its last use. Values between steps are arrays or NumPy scalars; no step writes into its arguments.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np

from .dtype import is_narrow
from .named_calls import numpy_form

RULES: dict[str, Callable] = {}
FOLDED = 1 << 14  # elements: constant results up to this size are computed once, when the program is built

# primitives that call one jaxpr: the parameter that holds it
CALLS = {"jit": "jaxpr", "eval_jaxpr": "call_jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_closed_call": "call_jaxpr",
         "core_call": "call_jaxpr", "call": "call_jaxpr", "xla_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr",
         "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "call_jaxpr", "remat": "jaxpr", "remat2": "jaxpr",
         "checkpoint": "jaxpr", "composite": "jaxpr"}
# primitives whose results are their operands
PASS = {"stop_gradient", "copy", "copy_p", "optimization_barrier", "name", "device_put", "sharding_constraint",
        "layout_constraint", "mesh_cast", "reshard", "pvary", "pcast", "random_clone"}


class Lacks(Exception):
    """There is no rule for this primitive (or for these parameters of it)."""


def rule(*names: str) -> Callable:
    """Register `make(eqn) -> function of the operands` for these primitives."""
    def register(make):
        for name in names:
            RULES[name] = make
        return make
    return register


def direct(name: str, function: Callable) -> None:
    """Register a primitive that is one NumPy function of its operands whatever its parameters."""
    RULES[name] = lambda eqn: function


def shape_of(eqn, i: int = 0) -> tuple:
    return tuple(eqn.invars[i].aval.shape)


def dtype_of(eqn, i: int = 0) -> np.dtype:
    return _numpy_dtype(eqn, eqn.invars[i].aval.dtype)


def out_shape(eqn, i: int = 0) -> tuple:
    return tuple(eqn.outvars[i].aval.shape)


def out_dtype(eqn, i: int = 0) -> np.dtype:
    return _numpy_dtype(eqn, eqn.outvars[i].aval.dtype)


def _numpy_dtype(eqn, dtype) -> np.dtype:
    if isinstance(dtype, np.dtype):
        return dtype
    if str(dtype) == "key<fry>":
        return np.dtype(np.uint64)  # see numpy_lax_random
    raise Lacks(f"{eqn.primitive.name} of {dtype}")


def is_float(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or is_narrow(dtype)


def in_float32(function: Callable, dtype: np.dtype) -> Callable:
    """`function` computed in float32 when `dtype` is narrower, and rounded once."""
    if not is_narrow(dtype):
        return function
    return lambda *xs: function(*[np.asarray(x, np.float32) for x in xs]).astype(dtype)


def total_order(x: np.ndarray) -> np.ndarray:
    """Integers ordered as IEEE totalOrder orders the floats x."""
    kind = np.dtype(f"i{x.dtype.itemsize}")
    bits = np.asarray(x).view(kind)
    return np.where(bits < 0, bits ^ np.iinfo(kind).max, bits)


class Program:
    """Steps over numbered slots; called with a list of arrays it returns a list of values."""

    __slots__ = ("template", "n_inputs", "steps", "outs")

    def __init__(self, template, n_inputs, steps, outs):
        self.template, self.n_inputs, self.steps, self.outs = template, n_inputs, steps, outs

    def __call__(self, inputs: Sequence) -> list:
        env = self.template[:]
        env[:self.n_inputs] = inputs
        for function, ins, out, dead in self.steps:
            if out.__class__ is int:
                env[out] = function(*[env[i] for i in ins])
            else:
                for i, value in zip(out, function(*[env[i] for i in ins]), strict=True):
                    env[i] = value
            for i in dead:
                env[i] = None
        return [env[i] for i in self.outs]


def opened(jaxpr) -> tuple:
    """(jaxpr, constants) of a closed or an open jaxpr."""
    inner = getattr(jaxpr, "jaxpr", None)
    return (jaxpr, ()) if inner is None else (inner, tuple(jaxpr.consts))


def build(jaxpr) -> Program:
    """Raises Lacks when some equation has no rule."""
    inner, consts = opened(jaxpr)
    return _Builder().program(inner, consts)


class _Builder:
    def __init__(self):
        self.template: list = []
        self.known: dict = {}
        self.flat: list = []  # (eqn, in slots, out slots)
        self.own: dict = {}  # the functions of calls that NumPy has a form of, by their out slots

    def slot(self) -> int:
        self.template.append(None)
        return len(self.template) - 1

    def constant(self, value, dtype=None) -> int:
        if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
            raise Lacks("a key")
        i = self.slot()
        value = np.asarray(value, dtype)
        self.template[i] = self.known[i] = value
        return i

    def program(self, jaxpr, consts) -> Program:
        inputs = [self.slot() for _ in jaxpr.invars]
        outs = self.inline(jaxpr, consts, inputs)
        wanted = set(outs)
        kept = []
        for record in reversed(self.flat):
            if not wanted.isdisjoint(record[2]) or record[0].effects:
                kept.append(record)
                wanted.update(record[1])
        steps = []
        for eqn, ins, out in reversed(kept):
            function = self.own.get(tuple(out)) or self.resolve(eqn, ins)
            many = eqn.primitive.multiple_results
            if all(i in self.known for i in ins) and sum(v.aval.size for v in eqn.outvars) <= FOLDED:
                values = function(*[self.known[i] for i in ins])
                for i, value in zip(out, values if many else [values]):
                    self.template[i] = self.known[i] = np.asarray(value)
            else:
                steps.append((function, ins, tuple(out) if many else out[0]))
        return Program(self.template, len(inputs), _with_releases(steps, {*outs, *self.known}), outs)

    def inline(self, jaxpr, consts, inputs) -> list[int]:
        from jax.extend.core import Literal  # importing it takes 20 ms or more, and most programs trace nothing
        env = dict(zip(jaxpr.invars, inputs, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            env[var] = self.constant(value)

        def read(atom):
            if isinstance(atom, Literal):
                return self.constant(atom.val, atom.aval.dtype)
            return env[atom]
        for eqn in jaxpr.eqns:
            name = eqn.primitive.name
            ins = [read(a) for a in eqn.invars]
            if name in PASS:
                out = ins
            elif name in CALLS:
                inner, inner_consts = opened(eqn.params[CALLS[name]])
                own = numpy_form(eqn, inner, _steps_of)
                if own is None:
                    out = self.inline(inner, inner_consts, ins)
                else:
                    out = [self.slot()]
                    self.own[tuple(out)] = own
                    self.flat.append((eqn, ins, out))
            else:
                out = [self.slot() for _ in eqn.outvars]
                self.flat.append((eqn, ins, out))
            env.update(zip(eqn.outvars, out))
        return [read(a) for a in jaxpr.outvars]

    def resolve(self, eqn, ins) -> Callable:
        name = eqn.primitive.name
        if name == "cond" and ins[0] in self.known:
            branches = eqn.params["branches"]
            branch = build(branches[min(max(int(self.known[ins[0]]), 0), len(branches) - 1)])
            return lambda index, *args: branch(args)
        make = RULES.get(name)
        if make is None:
            raise Lacks(name)
        try:
            return make(eqn)
        except KeyError as missing:  # another JAX release spells a parameter differently
            raise Lacks(f"{name} without the parameter {missing}") from None


def _steps_of(jaxpr) -> list[str]:
    """The primitives of an elementwise jaxpr in order, those of what it calls in the place of the calls; without what fits its constants to a batch."""
    steps: list[str] = []
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in CALLS:
            steps += _steps_of(opened(eqn.params[CALLS[name]])[0])
        elif name not in PASS and name != "broadcast_in_dim":
            steps.append(name)
    return steps


def _with_releases(steps, kept: set) -> list:
    last: set = set(kept)
    done = []
    for function, ins, out in reversed(steps):
        outs = (out,) if out.__class__ is int else out
        dead = []
        for i in (*ins, *outs):
            if i not in last:
                last.add(i)
                dead.append(i)
        done.append((function, tuple(ins), out, tuple(dead)))
    done.reverse()
    return done
