"""Which inputs a result depends on: what `requires_grad` of a gradient made with create_graph=True goes by.

torch computes the gradients of an operation's inputs one by one, where ours are the results of one operation. Here its jaxpr
tells which input takes part in which. Some of torch's derivatives (of `minimum`, `amax`, `clamp`) are made of comparisons, which carry
no gradient; others that compare (of `relu`) are functions whose second derivative is a zero: `Op.compares` names the former.
"""
from __future__ import annotations

import jax
import jax.numpy as jnp

from .derivative import OF_ALL
from .jax_settings import engine_settings
from .registry import Plan, shape_struct


def dependence(plan: Plan) -> tuple[frozenset[int], ...]:
    """For each result of a derivative's plan: the numbers of the inputs it depends on."""
    if plan._depends is None:
        given = [i for i, a in enumerate(plan.avals) if a is not None]
        if any(plan.avals[i].numel == 0 for i in given):  # what has no elements is folded away
            forward, needs = plan.statics
            saved = len(forward.saved(needs)[0]) + len(forward.saved(needs)[1]) if plan.op.compares else 0
            plan._depends = (frozenset(i for i in given if i >= saved),) * len(plan.outs)
            return plan._depends
        if isinstance(plan.op.forward.derivative, OF_ALL):  # no trace has to tell
            plan._depends = (frozenset(given),) * len(plan.outs)
            return plan._depends
        with engine_settings():
            closed = jax.make_jaxpr(plan.jax)(*(shape_struct(a) for a in plan.avals))
        found = _walk(closed.jaxpr, [frozenset({i}) for i in given], plan.op.compares)
        plan._depends = tuple(found)
    return plan._depends


def _walk(jaxpr, ins: list[frozenset], compares: bool) -> list[frozenset]:
    from jax.extend.core import Literal  # importing it takes 20 ms or more, and only create_graph=True comes here
    none: frozenset = frozenset()
    known = dict(zip(jaxpr.invars, ins))

    def read(v) -> frozenset:
        return none if isinstance(v, Literal) else known.get(v, none)
    for eqn in jaxpr.eqns:
        sources = [read(v) for v in eqn.invars]
        inner = next((eqn.params[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if k in eqn.params), None)
        inner = getattr(inner, "jaxpr", inner)
        if inner is not None and len(inner.invars) == len(eqn.invars) and len(inner.outvars) == len(eqn.outvars) and "length" not in eqn.params:
            results = _walk(inner, sources, compares)
        else:
            results = [none.union(*sources)] * len(eqn.outvars)
        for v, r in zip(eqn.outvars, results):
            known[v] = none if compares and not jnp.issubdtype(v.aval.dtype, jnp.inexact) else r
    return [read(v) for v in jaxpr.outvars]
