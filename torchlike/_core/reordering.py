"""Values that are read across: in an order whose neighbours lie far apart. They are made as arrays before, and after where they are computed with.

XLA's CPU backend copies an array into another order in blocks. Fused with what makes the array or with what reads it, the copy goes element by
element across the rows: up to 5 times as long, most where these are a multiple of 1,024 bytes; and what makes the array is computed anew
for each window that a pool reads (benchmarks/reordering.py)."""
from __future__ import annotations

from collections import defaultdict

from .flow import COPIES, SAME_ORDER, Call, forward, is_view, values
from .fusions import fuses, is_fused
from .layout import contiguous
from .registry import BackwardOp, View

MANY, HUGE = 1 << 16, 1 << 20  # elements of a value from which on that is worth two copies, and up to which they stay in the caches
FAR, CLASH = 512, 1024  # bytes between neighbours; of rows whose elements take one another's place in the cache
SHORT, SHORT_FOR_A_NORM = 32, 96  # neighbours in a row that are read one by one as soon
FEW = 8  # times fewer elements has what is summed up, which XLA adds up in the order that they lie in
FOLDED = frozenset(("mm", "bmm", "matmul", "linear", "linear_alone", "unrounded_matmul"))  # products take care of it: ops/cpu_products.py


def across(calls: list[Call], live: list[int]) -> set[int]:
    """The values of a program that had better be arrays."""
    found: set[int] = set()
    readers: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        for v in values(call):
            readers[v].append(call)
    computed: set[int] = set()  # as they are read
    for call in calls:
        (v, *others), turned, a = values(call) or [None], call.outs[0], call.plan.outs[0]
        if _fuses(call) and (v in computed or others or not isinstance(forward(call.plan.op), View)):
            computed.update(call.outs)
        step, row = _neighbours(call)
        if step == 1:
            continue
        names = _names(turned, readers)
        reading = [r for name in names for r in readers[name] if r.outs[0] not in names and not _in_order(r, a.numel)]
        far = step * a.dtype.itemsize
        slow = far % CLASH == 0 or (far > FAR and a.numel <= HUGE)
        if v in computed and (any(not _fuses(r) for r in reading) or (slow and (reading or not names.isdisjoint(live)))):
            found.add(v)
        if slow and any(_fuses(r) and row >= _long(r) and not _reads_other(r, names, a.numel) for r in reading):
            found.add(turned)
            computed.discard(turned)
    return found


def _fuses(call: Call) -> bool:
    return fuses(call.plan.op) or forward(call.plan.op).normalizes


def _neighbours(call: Call) -> tuple[int, int]:
    """Of a view of all elements of a large array, or of its derivative: how far apart its neighbours lie there, and how many lie so in a row."""
    plan = call.plan.statics[0] if isinstance(call.plan.op, BackwardOp) else call.plan
    if not isinstance(plan.op, View) or plan.op.overlaps or len(plan.avals) != 1 or not MANY <= plan.avals[0].numel == plan.outs[0].numel:
        return 1, 1
    there = plan.op.layout(contiguous(plan.avals[0].shape), plan.statics)
    sizes = [(n, here, there) for n, here, there in zip(there.shape, contiguous(there.shape).strides, there.strides) if n > 1]
    if plan is not call.plan:
        sizes = [(n, there, here) for n, here, there in sorted(sizes, key=lambda size: -size[2])]
    step, row = sizes[-1][2], 1
    for n, _, there in reversed(sizes):
        if there != step * row:
            break
        row *= n
    return step, row


def _long(call: Call) -> int:
    return SHORT if is_fused(call.plan) else SHORT_FOR_A_NORM


def _in_order(call: Call, numel: int) -> bool:
    """Whether it reads elements in the order that they lie in."""
    return forward(call.plan.op).name in FOLDED or FEW * sum([a.numel for a in call.plan.outs]) <= numel


def _reads_other(call: Call, names: set[int], numel: int) -> bool:
    """Whether it reads as many elements in their own order too: XLA copies the value in blocks then."""
    return is_fused(call.plan) and any(arg not in names and arg.__class__ is int and a is not None and a.numel == numel for arg, a in zip(call.args, call.plan.avals))


def _names(v: int, readers: dict[int, list[Call]]) -> set[int]:
    """The value, and its copies and views in the same order."""
    names, new = {v}, [v]
    while new:
        for call in readers[new.pop()]:
            if (is_view(call) and call.plan.op.name in SAME_ORDER) or call.plan.op.name in COPIES:
                names.add(call.outs[0])
                new.append(call.outs[0])
    return names
