"""What a training step computes again in its backward, because keeping it since the forward would take more memory.

Rematerialization, after Griewank (1992) and Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), limited to what costs next
to nothing: results of cheap operations (`Op.cheap`: pointwise ones, norms) whose inputs are kept anyway, as a GELU's and its
linear layer's input; what derivatives compute of the forward once more (`Op.cheap_derivative`), as the probabilities of attention; and, where
a program is so small that XLA's record of its instructions counts beside its values, a twenty-fifth of its products, the first ones. What a backward
reads before it has given back as much memory is kept.
torch keeps less of the former (its kernels have their own saved numbers) and none of the latter.

XLA would find that both computations are the same and keep the first one's result. So the second one's inputs are told apart by a
product with a one that only the run knows: it changes no number but subnormal ones, which XLA's arithmetic on
the CPU takes for zeros anyway, and is a part of whatever reads them.
"""
from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np

from . import dtype as dt
from .aval import Aval, aval
from .costs import multiply_adds
from .flow import Call, is_view, values
from .registry import BackwardOp, Op

ROOMY = 8 << 20  # bytes at the peak below which nothing is worth computing twice
LARGE = 1 << 16  # bytes of a value that is worth it
DEEPEST = 4  # operations in a row, from a value that is kept
SPARE, COMPACT = 1 / 25, 64 << 20  # the part of a program's products that may be computed again; bytes at the peak up to which they may
PRODUCTS = frozenset(("linear", "linear_alone", "matmul", "mm"))


def _apart(xp, x, one):
    return x & one.astype(x.dtype) if x.dtype == np.bool_ else x * one.astype(x.dtype)


APART = Op("apart", _apart, shape=lambda x, one: (x.shape, x.dtype), numpy=None, vjp=False)


def rematerialized(calls: list[Call], live: set[int], inputs: list[Aval]) -> list[Call]:
    """The calls of a program with results `live`, some of them twice; input ~len(inputs) is the one."""
    if not any(isinstance(call.plan.op, BackwardOp) for call in calls):
        return calls
    return _Rewriting(calls, live, inputs).calls()


class _Rewriting:
    def __init__(self, calls: list[Call], live: set[int], inputs: list[Aval]):
        self.given, self.inputs, self.one = calls, inputs, ~len(inputs)
        self.made: dict[int, tuple[int, Call]] = {v: (k, call) for k, call in enumerate(calls) for v in call.outs}
        self.root: dict[int, int] = {}  # of a view: whose memory it is
        self.reads: dict[int, list[int]] = defaultdict(list)  # of a root: the calls that read it
        for k, call in enumerate(calls):
            for v in values(call):
                self.reads[self._root(v)].append(k)
            if is_view(call):
                self.root[call.outs[0]] = self._root(call.args[0])
        self.live = {self._root(v) for v in live}
        self.waiting = self._waiting()
        self.top, self.peak = max(enumerate(self.waiting), key=lambda pair: pair[1])
        self.spare = SPARE * sum(multiply_adds(call.plan) for call in calls) if self.peak <= COMPACT else 0.0  # multiply-adds that may be done again
        self.depth: dict[int, int] = {}  # of roots that are computed again: how many operations in a row that takes
        self.again: dict[int, int] = {}  # values: what stands for them from the peak on
        self.count = itertools.count(max(self.made, default=0) + 1)
        self.out: list[Call] = []

    def _root(self, v: int) -> int:
        return self.root.get(v, v)

    def _aval(self, v: int) -> Aval:
        if v < 0:
            return self.inputs[~v]
        call = self.made[v][1]
        return call.plan.outs[call.outs.index(v)]

    def _bytes(self, v: int) -> int:
        a = self._aval(v)
        return a.numel * a.dtype.itemsize

    def _waiting(self) -> list[int]:
        """How many bytes wait to be read after each call."""
        change = [0] * (len(self.given) + 1)
        for v, (k, _) in self.made.items():
            if v not in self.root and v not in self.live and self.reads[v]:
                change[k] += self._bytes(v)
                change[self.reads[v][-1]] -= self._bytes(v)
        return list(itertools.accumulate(change))

    def calls(self) -> list[Call]:
        if self.peak < ROOMY:
            return self.given
        for v, (k, call) in self.made.items():  # in the order of the program, so that a chain knows its beginning
            if k <= self.top and v not in self.root and self._gains(v, call):
                self.depth[v] = 1 + max((self.depth.get(self._root(u), 0) for u in values(call)), default=0)
        self.out = self.given[:self.top + 1]
        for call in self.given[self.top + 1:]:
            forward = call.plan.op.forward if isinstance(call.plan.op, BackwardOp) else None
            told = forward is not None and forward.cheap_derivative
            self.out.append(call._replace(args=tuple([self._late(v, told) if v.__class__ is int else v for v in call.args])))
        return self.out

    def _gains(self, v: int, call: Call) -> bool:
        """Whether a value that waits at the peak need not: those it is computed from are there as long as it is read."""
        op = call.plan.op
        if v in self.live or not (op.cheap or op.name in PRODUCTS) or self._bytes(v) < LARGE or not self.reads[v] or self.reads[v][-1] <= self.top:
            return False
        if self.waiting[next(k for k in self.reads[v] if k > self.top)] + self._bytes(v) > self.peak:  # it would be there again while nearly all else is
            return False
        last, cost = self.reads[v][-1], 0 if op.cheap else multiply_adds(call.plan)
        if cost > self.spare or not all(self._lasts(self._root(u), last) for u in values(call)) or all(self._bytes(u) < LARGE for u in values(call)):
            return False
        self.spare -= cost
        return True

    def _lasts(self, v: int, last: int) -> bool:
        if v in self.depth:
            return self.depth[v] < DEEPEST
        return self._can_be_told(v) and (v in self.live or self._bytes(v) < LARGE or self.reads[v][-1] >= last)

    def _can_be_told(self, v: int) -> bool:
        return self._aval(v).dtype.category != dt.COMPLEX

    def _late(self, v: int, told: bool) -> int:
        """What a call after the peak reads for v; `told`: it computes something of the forward again."""
        root = self._root(v)
        early = v < 0 or self.made[v][0] <= self.top
        if root in self.depth or (told and early and self._bytes(root) >= LARGE and self._can_be_told(root)):
            return self._another(v)
        return v

    def _another(self, v: int) -> int:
        """What stands for v after the peak: computed again, as far as it is not kept."""
        found = self.again.get(v)
        if found is None:
            is_view = v in self.root
            if not is_view and v not in self.depth:  # it is kept
                return self._told(v) if self._bytes(v) >= LARGE else v
            call = self.made[v][1]
            self._add(call.plan, self._late_arguments(call), call.outs)
            found = self.again[v]
        return found

    def _late_arguments(self, call: Call) -> tuple:
        """What a call that is done again reads: all of it told apart, or only what the operation names."""
        cheap = call.plan.op.cheap
        named = [] if isinstance(cheap, bool) else [i for i in cheap if call.args[i] is not None]
        args = list(call.args)
        for i, u in enumerate(args):
            if i in named:
                args[i] = self._told(u)
            elif u.__class__ is int and (not named or self._root(u) in self.depth):
                args[i] = self._another(u)
        return tuple(args)

    def _told(self, v: int) -> int:
        """v, told apart from what the forward read."""
        if v not in self.again:
            a = self._aval(v)
            self._add(APART.plan((a, aval((), dt.float32, a.device)), ()), (v, self.one), (v,))
        return self.again[v]

    def _add(self, plan, args: tuple, stands_for: tuple) -> None:
        new = tuple([next(self.count) for _ in stands_for])
        self.out.append(Call(plan, args, new))
        self.again.update(zip(stands_for, new))
