"""Values that are read in shifted windows, as a stencil's are, made as arrays.

XLA's CPU backend computes a cheap value again inside whatever reads it. Read at one place per element that costs nothing; read in five windows
or by eight rolls it is computed as many times, and in a loop of such steps compilation grows with every one. Such a value goes through a branch
that only the run knows, across which XLA does not fuse.
"""
from __future__ import annotations

import itertools
from collections import defaultdict

import jax.numpy as jnp
from jax import lax

from . import dtype as dt
from .aval import Aval, aval
from .derivative import PutDerivative
from .flow import Call, is_view, values
from .registry import BackwardOp, Elementwise, Op, View

LARGE = 1 << 10  # elements of a value that is worth it
TIMES = 1.5  # so many times its elements are read in windows: halves and thirds of a layer's result are read once
MOVING = frozenset(("roll", "flip", "constant_pad_nd"))  # operations that read each element at another place than they write it
FUSED = frozenset(("roll", "flip", "constant_pad_nd", "clone", "to_copy", "cat", "stack"))  # those that XLA fuses, beside elementwise ones and writes into views


def _made(xp, x, one):
    return lax.cond(one == 2, lambda x: jnp.zeros(x.shape, x.dtype), lambda x: x, x)


MADE = Op("made", _made, shape=lambda x, one: (x.shape, x.dtype), numpy=None, vjp=False)


def made_once(calls: list[Call], live: list[int], inputs: list[Aval]) -> tuple[list[Call], list[int]]:
    """The calls and results of a program in which what is read in windows is an array for all its readers; input ~len(inputs) is the one."""
    found = _in_windows(calls)
    if not found:
        return calls, live
    count = itertools.count(1 + max(v for call in calls for v in call.outs))
    arrays: dict[int, int] = {}
    out = []
    for call in calls:
        out.append(call._replace(args=tuple([arrays.get(v, v) if v.__class__ is int else v for v in call.args])))
        for v, a in zip(call.outs, call.plan.outs):
            if v in found:
                arrays[v] = next(count)
                out.append(Call(MADE.plan((a, aval((), dt.float32, a.device)), ()), (v, ~len(inputs)), (arrays[v],)))
    return out, [arrays.get(v, v) for v in live]


def _fuses(op: Op) -> bool:
    """Whether XLA computes an operation inside what reads its result."""
    of = op.forward if isinstance(op, BackwardOp) else op
    return isinstance(of, (Elementwise, View)) or of.name in FUSED or isinstance(of.derivative, PutDerivative)


def _in_windows(calls: list[Call]) -> set[int]:
    """The values that XLA would compute again for each of several windows."""
    cheap: dict[int, Aval] = {v: a for call in calls if _fuses(call.plan.op) for v, a in zip(call.outs, call.plan.outs) if a.numel >= LARGE}
    root: dict[int, int] = {}
    windows: dict[int, dict] = defaultdict(dict)  # of a value: what is read of it, with its elements
    for call in calls:
        op = call.plan.op
        if is_view(call):
            base = call.args[0]
            at = root[call.outs[0]] = root.get(base, base)
            if at in cheap and call.plan.outs[0].numel < call.plan.avals[0].numel:
                windows[at][call.plan, call.args[1:]] = call.plan.outs[0].numel
        elif op.name in MOVING or (isinstance(op, BackwardOp) and isinstance(op.forward, View)):
            for v in values(call):
                v = root.get(v, v)
                if v in cheap:
                    windows[v][call.plan, call.args[1:]] = cheap[v].numel
    return {v for v, read in windows.items() if sum(read.values()) > TIMES * cheap[v].numel}
