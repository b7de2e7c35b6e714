"""Values that are read in shifted windows, as a stencil's are, or several times after a long chain of operations, made as arrays.

XLA's CPU backend computes a cheap value again inside whatever reads it. Read at one place per element that costs nothing; read in five windows
or by eight rolls it is computed as many times, and in a loop of such steps compilation grows with every one; so it does where each block of a
network adds to a value that others read in another order. Such a value goes through a branch
that only the run knows, across which XLA does not fuse. And what is computed from such windows and written into the tensor that they show is fused with the write.
"""
from __future__ import annotations

import itertools
from collections import defaultdict

import jax.numpy as jnp
from jax import lax

from . import dtype as dt
from .aval import Aval, aval
from .flow import COPIES, SAME_ORDER, Call, forward, is_view, values
from .fusions import fuses
from .registry import BackwardOp, Elementwise, Op, View
from .reordering import across

LARGE = 1 << 10  # elements of a value that is worth it
TIMES = 1.5  # so many times its elements are read in windows: halves and thirds of a layer's result are read once
MANY, WIDE = 6, 1 << 14  # arrays that a value is computed from, and elements of it, from which on it is made once
BIG, HALF = 1 << 18, 2  # elements of what is written into, and how many times those of the part they are at most
PASSES, AN_ARRAY = 3, 1 << 30  # uses: of a norm's input; of what a product or another kernel reads as an array
PIECES = 4  # of a joined array, from which on its gradient is made before it is divided
MOVING = frozenset(("roll", "flip", "constant_pad_nd"))  # operations that read each element at another place than they write it
TURNING = MOVING | {"permute", "transpose", "t"}


def _made(xp, x, one):
    return lax.cond(one == 2, lambda x: jnp.zeros(x.shape, x.dtype), lambda x: x, x)


MADE = Op("made", _made, shape=lambda x, one: (x.shape, x.dtype), numpy=None, vjp=False)


def written_together(calls: list[Call]) -> list[Call]:
    """The calls of a program in which a part that is computed from windows of what it is written into, as a step of a heat equation does it, is
    computed where it is written. XLA, which writes into that array itself, would make an array of each window before."""
    origin: dict[int, int] = {}  # of a view or a copy: of which value
    windows: dict[int, set[int]] = defaultdict(set)  # of a value that is computed where it is read: the origins of the windows that it reads
    out = []
    for call in calls:
        op, made = call.plan.op, call.outs[0]
        if isinstance(op, (Elementwise, View)):
            windows[made] = set().union(*[windows[v] for v in values(call)])
        if is_view(call) or op.name in COPIES:
            origin[made] = origin.get(call.args[0], call.args[0])
            if call.plan.outs[0].numel < call.plan.avals[0].numel and len(call.args) == 1:
                windows[made].add(origin[made])
        elif op.spread is not None and len(call.args) == 2:
            base, new = call.args
            a, b = call.plan.avals
            if a.numel >= BIG and HALF * b.numel >= a.numel and a.dtype is b.dtype and origin.get(base, base) in windows[new]:
                call = call._replace(plan=op.spread.plan(call.plan.avals, call.plan.statics))
        out.append(call)
    return out


def made_once(calls: list[Call], live: list[int], inputs: list[Aval]) -> tuple[list[Call], list[int]]:
    """The calls and results of a program in which what is read in windows is an array for all its readers; input ~len(inputs) is the one."""
    found = _in_windows(calls) | _of_long_chains(calls, live) | _of_pieces(calls) | across(calls, live)
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


def _in_windows(calls: list[Call]) -> set[int]:
    """The values that XLA would compute again for each of several windows."""
    cheap: dict[int, Aval] = {v: a for call in calls if fuses(call.plan.op) for v, a in zip(call.outs, call.plan.outs) if a.numel >= LARGE}
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


def _of_long_chains(calls: list[Call], live: list[int]) -> set[int]:
    """Values of many arrays that are read several times, and in the end in another order: XLA would compute them anew for each reader. In a stream
    that every block of a network adds to, as Swin's, that would be the work of all blocks before, and grow with the square of the depth."""
    uses: dict[int, int] = defaultdict(int)  # how often a value is read by what may be fused with its making
    turned: set[int] = set()  # what is read in another order
    for v in live:
        uses[v] = AN_ARRAY
    for call in reversed(calls):
        op = call.plan.op
        if is_view(call) and op.name in SAME_ORDER:
            read = uses[call.outs[0]]
        elif fuses(op):
            read = sum(uses[v] > 0 for v in call.outs)
        else:
            read = PASSES if _is_norm(op) else AN_ARRAY
        for v in values(call):
            uses[v] += read
        if read < AN_ARRAY and (forward(op).name in TURNING or not turned.isdisjoint(call.outs)):
            turned.update(values(call))
    found: set[int] = set()
    arrays: dict[int, frozenset] = {}  # from which a value is computed
    for call in calls:
        if not fuses(call.plan.op) and not _is_norm(call.plan.op):
            continue
        read = frozenset(itertools.islice(frozenset().union(*[arrays.get(v, (v,)) for v in values(call)]), 4 * MANY))
        for v, a in zip(call.outs, call.plan.outs):
            if uses[v] >= AN_ARRAY:
                continue
            if len(read) > MANY and uses[v] > 1 and v in turned and a.numel >= WIDE:
                found.add(v)
            else:
                arrays[v] = read
    return found


def _of_pieces(calls: list[Call]) -> set[int]:
    """Gradients, computed as they are read, of what was joined of many pieces. Each piece's would be computed where that is read; in DenseNet, where a
    layer normalizes the results of all before it, a layer's gradient is a sum over all after it, and such code grows with the square of the depth."""
    fused = {v for call in calls if fuses(call.plan.op) or forward(call.plan.op).normalizes for v, a in zip(call.outs, call.plan.outs) if a.numel >= LARGE}
    joined = [call for call in calls if isinstance(call.plan.op, BackwardOp) and call.plan.op.forward.name in ("cat", "stack") and len(call.outs) >= PIECES]
    return {values(call)[-1] for call in joined} & fused


def _is_norm(op: Op) -> bool:
    """Whether XLA fuses an operation's passes over its input with what makes that, and the last with what reads the result."""
    return forward(op).normalizes and bool(forward(op).cheap)
