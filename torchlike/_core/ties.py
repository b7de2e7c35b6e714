"""Updates that wait for the last reader of what they replace, so that XLA need not copy it first.

An optimizer's new parameter takes over the memory of the old one (see executor.py). XLA's CPU backend writes in place only what is computed
from everything else that reads the old value. The gradient of a layer's input reads the weight and is no part of the weight's own gradient, so
XLA would copy each weight at the start of each step. The tie is a choice that never falls on that gradient, which only the run knows.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import jax.numpy as jnp

from . import dtype as dt
from .aval import Aval, aval
from .flow import Call, is_view, values
from .registry import Op

LARGE = 1 << 14  # bytes of a copy that is worth a tie


def _tied(xp, x, one, *late):
    for y in late:
        x = jnp.where(one == 2, y[(0,) * y.ndim], x)
    return x


TIED = Op("tied", _tied, shape=lambda x, *_: (x.shape, x.dtype), numpy=None, vjp=False)


def tied(calls: list[Call], donated: Sequence[int], live: Sequence[int], inputs: list[Aval]) -> list[Call]:
    """The calls of a program whose first results `live` take over the inputs `donated`; input ~len(inputs) is the one."""
    if not donated:
        return calls
    flow = _Flow(calls, live)
    taken = {r: ~i for i, r in zip(donated, live)}
    out, new = [], max(flow.made, default=0)
    for at, call in enumerate(calls):
        args = list(call.args)
        for position, r in enumerate(call.outs):
            row, old = call.plan.op.row(call.plan, position), taken.get(r)
            if row is None or old is None or (place := next((i for i in row if call.args[i] == old), None)) is None:
                continue
            a = inputs[~old]
            late = flow.late(at, old, [call.args[i] for i in row], a) if a.numel * a.dtype.itemsize >= LARGE else []
            if late:
                new += 1
                plan = TIED.plan((a, aval((), dt.float32, a.device), *map(flow.aval, late)), ())
                out.append(Call(plan, (old, ~len(inputs), *late), (new,)))
                args[place] = new
        out.append(call._replace(args=tuple(args)))
    return out


class _Flow:
    """Who reads an input, and from what a value is computed."""

    def __init__(self, calls: list[Call], live: Sequence[int]):
        self.calls = calls
        self.made = {v: k for k, call in enumerate(calls) for v in call.outs}
        self.readers: dict[int, list[int]] = defaultdict(list)  # of an input or its views: calls
        self.bit: dict[int, int] = {}  # of each of those calls
        self.before: list[int] = []  # for each call, the bits of those that it is computed from
        root: dict[int, int] = {}
        for k, call in enumerate(calls):
            read = {root.get(v, v) for v in values(call)}
            before = 0
            for v in values(call):
                before |= self._bits(v)
            self.before.append(before)
            if is_view(call) and len(read) == 1 and min(read) < 0:
                root[call.outs[0]], = read
                continue
            for v in read:
                if v < 0:
                    self.bit.setdefault(k, 1 << len(self.bit))
                    self.readers[v].append(k)
        self.read = self._needed(live)

    def _bits(self, v: int) -> int:
        """Of the readers that v is computed by."""
        return 0 if v < 0 else self.before[self.made[v]] | self.bit.get(self.made[v], 0)

    def aval(self, v: int) -> Aval:
        call = self.calls[self.made[v]]
        return call.plan.outs[call.outs.index(v)]

    def late(self, at: int, old: int, row: list, a: Aval) -> list[int]:
        """What earlier calls compute from input `old` for others than its update: the part of call `at` that has the arguments `row`.

        The call that makes the update's gradient may read `old` for its other results, so it is not among those that came before for certain."""
        before = 0
        for v in row:
            if v.__class__ is int and v >= 0:
                before |= self.before[self.made[v]]
        for_update = set(values(self.calls[at]))
        found = [v for k in self.readers[old] if k < at and not before & self.bit[k] for v in self.calls[k].outs if v in self.read and v not in for_update]
        return [v for v in found if self.aval(v).dtype is a.dtype and self.aval(v).numel]

    def _needed(self, live: Sequence[int]) -> set[int]:
        """What the results are computed from, and they."""
        found, waiting = set(), list(live)
        while waiting:
            v = waiting.pop()
            if v not in found:
                found.add(v)
                if v >= 0:
                    waiting += values(self.calls[self.made[v]])
        return found
