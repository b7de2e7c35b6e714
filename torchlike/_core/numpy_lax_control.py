"""NumPy rules for loops, branches and the implicit solver."""
from __future__ import annotations

import numpy as np

from .numpy_lax_rules import build, opened, out_dtype, out_shape, rule


@rule("cond")
def _cond(eqn):
    branches = [build(b) for b in eqn.params["branches"]]
    last = len(branches) - 1
    return lambda index, *args: branches[min(max(int(index), 0), last)](args)


@rule("while")
def _while(eqn):
    p = eqn.params
    test, body = build(p["cond_jaxpr"]), build(p["body_jaxpr"])
    a, b = p["cond_nconsts"], p["body_nconsts"]

    def loop(*args):
        test_consts, body_consts, carry = args[:a], args[a:a + b], args[a + b:]
        while test([*test_consts, *carry])[0]:
            carry = body([*body_consts, *carry])
        return carry

    def batched(*args):
        """Many loops at once (under vmap, the test has a value for each): those that have ended keep what they carry."""
        test_consts, body_consts, carry = args[:a], args[a:a + b], args[a + b:]
        while (running := np.asarray(test([*test_consts, *carry])[0])).any():
            made = body([*body_consts, *carry])
            carry = [np.where(running.reshape(running.shape + (1,) * (np.ndim(new) - running.ndim)), new, old) for new, old in zip(made, carry)]
        return carry
    return batched if opened(p["cond_jaxpr"])[0].outvars[0].aval.shape else loop


@rule("scan")
def _scan(eqn):
    p = eqn.params
    body, length, reverse = build(p["jaxpr"]), p["length"], p["reverse"]
    inner, _ = opened(p["jaxpr"])
    # what has one dimension more outside than inside is scanned over; JAX releases name these counts differently
    scanned = sum(len(v.aval.shape) > len(w.aval.shape) for v, w in zip(eqn.invars, inner.invars))
    n_carry = sum(len(v.aval.shape) == len(w.aval.shape) for v, w in zip(eqn.outvars, inner.outvars))
    n_consts = len(eqn.invars) - n_carry - scanned
    stacked = [(out_shape(eqn, i), out_dtype(eqn, i)) for i in range(n_carry, len(eqn.outvars))]

    def scan(*args):
        consts, carry, xs = args[:n_consts], args[n_consts:n_consts + n_carry], args[n_consts + n_carry:]
        ys = [np.empty(shape, dtype) for shape, dtype in stacked]
        for i in range(length - 1, -1, -1) if reverse else range(length):
            results = body([*consts, *carry, *[x[i] for x in xs]])
            carry = results[:n_carry]
            for y, value in zip(ys, results[n_carry:]):
                y[i] = value
        return [*carry, *ys]
    return scan


@rule("custom_linear_solve")
def _custom_linear_solve(eqn):
    lengths, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    solve = build(jaxprs.solve)
    start = lengths.matvec + lengths.vecmat
    end = start + lengths.solve
    rest = end + lengths.transpose_solve
    n_out = len(eqn.outvars)
    return lambda *args: solve([*args[start:end], *args[rest:]])[:n_out]


@rule("platform_index")
def _platform_index(eqn):
    platforms = eqn.params["platforms"]
    chosen = next(i for i, names in enumerate(platforms) if names is None or "cpu" in names)
    return lambda: np.int32(chosen)
