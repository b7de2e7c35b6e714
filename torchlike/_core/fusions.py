"""How much code XLA makes of a program's elementwise operations.

A kernel has a copy of all elementwise operations that lead to its result, back to what lies in memory, also of those that other kernels have and of
those whose results are written by one. In a recurrent network's backward, written step by step, each step's gradients hold all later steps' so: a program
of 2,800 operations makes 29,000, which take half a minute to compile.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence

from .derivative import PutDerivative
from .flow import COPIES, forward
from .registry import Elementwise, Op, View

FUSED = COPIES | {"roll", "flip", "constant_pad_nd", "cat", "stack"}  # those that XLA fuses, beside elementwise ones and writes into views
# which XLA would rather write down than make again
_DEAR = frozenset("acos acosh asin asinh atan atanh atan2 cos cosh div erf erfc exp exp2 expm1 gelu log log10 log1p log2 mish pow reciprocal rsqrt sigmoid silu sin sinh "
                  "softplus sqrt tan tanh".split())


def is_fused(plan) -> bool:
    """Whether an operation becomes a part of others' kernels."""
    return isinstance(forward(plan.op), (Elementwise, View))


def fuses(op: Op) -> bool:
    """Whether XLA computes an operation inside what reads its result."""
    of = forward(op)
    return isinstance(of, (Elementwise, View)) or of.name in FUSED or isinstance(of.derivative, PutDerivative)


def emitted(steps: Sequence, live: Collection[int]) -> int:
    """Elementwise operations in all kernels of a program with these results."""
    fused = [is_fused(s.plan) for s in steps]
    read: set[int] = set()
    again: set[int] = set()  # read by several operations
    written = set(live)  # whatever becomes of it
    for s, f in zip(steps, fused):
        for r in s.refs:
            if r.__class__ is int and r >= 0:
                (again if r in read else read).add(r)
                if not f:
                    written.add(r)
    inside: dict[int, int] = {}  # of each result that is in no memory yet: which operations lead to it, as bits
    kernels: set[int] = set()
    for k, (s, f) in enumerate(zip(steps, fused)):
        if not f:
            kernels.update([inside[r] for r in s.refs if r in inside])
            continue
        made = 1 << k
        for r in s.refs:
            if r in inside:
                made |= inside[r]
        dear = s.plan.op.name in _DEAR
        joins = sum([a is not None and not a.number and a.numel > 1 for a in s.plan.avals]) > 1  # several arrays: reading its result is less work
        for r, a in enumerate(s.plan.outs, s.out):
            if a.numel > 1 and (dear and r in again or joins and r in written):
                kernels.add(made)
                continue
            inside[r] = made
            if r in live or r not in read:
                kernels.add(made)
    return sum([made.bit_count() for made in kernels])
