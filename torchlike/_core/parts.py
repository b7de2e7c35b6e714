"""A large program that does not return, in parts of which some do.

A detector's step differs each time, for its loss is taken of as many positions as the pictures have objects; but its network's forward and
backward, which take the time, do not. So what is usual, operations that ran on the same shapes lately, is divided from
what is not: before it, what needs nothing unusual; after it, what nothing unusual needs. Of each, what takes the time and hangs together
is a program of its own, is known when it comes back, and is compiled in time; all the rest is one more.

A program that calls the same compiled function many times (one token after the other, a solver's steps) would be compiled at first sight with as
many copies of it, and again for each number of calls. So each call is a part, of which one is compiled, and what lies between two is another.
"""
from __future__ import annotations

from collections.abc import Callable

from . import costs
from .aval import BOOL, COMPLEX, FLOAT, INT
from .value import Value

LATELY = 16  # large programs between two runs of an operation on the same shapes
STEADY = 6  # such runs in a row that make it usual
LARGE = 0.05  # of a program's work, that a part must have
WORTH = 0.5  # and all of them together
CALLS = 4  # of compiled functions that the program called before, which make each a part


def divided(info, clock: int) -> list[list[int]] | None:
    """A program's steps by parts, in the order in which these run; None where that is not worth it. `clock` counts large programs in NumPy."""
    steps = info.steps
    for plan in {s.plan for s in steps}:
        plan.steady = plan.steady + 1 if clock - plan.last_run <= LATELY else 0
        plan.last_run = clock
    usual = [s.plan.steady >= STEADY for s in steps]
    if not any(usual) or (all(usual) and info.near > 1):
        return None
    maker = {r: k for k, s in enumerate(steps) for r in range(s.out, s.out + len(s.plan.outs))}
    reads = [{maker[r] for r in s.refs if r.__class__ is int and r >= 0} for s in steps]
    after: list[bool] = []  # something unusual
    for k, read in enumerate(reads):
        after.append(not usual[k] or any(after[i] for i in read))
    before = [not u for u in usual]  # something unusual needs it
    for k in reversed(range(len(steps))):
        if before[k]:
            for i in reads[k]:
                before[i] = True
    parts: tuple[list, list, list] = [], [], []
    for k in range(len(steps)):
        parts[0 if not after[k] else 1 if before[k] else 2].append(k)
    work = [costs.work(s.plan) for s in steps]
    first, last = (_large(part, reads, work, LARGE * info.work) for part in (parts[0], parts[2]))
    taken = {k for part in (*first, *last) for k in part}
    if len(taken) == len(steps) or sum(work[k] for k in taken) < WORTH * info.work:
        return None
    return [*first, [k for k in range(len(steps)) if k not in taken], *last]


def calls(info) -> list[list[int]] | None:
    """A program's steps by parts, each a compiled function's call or what lies between two; None where few such calls come again."""
    alone = [s.plan.op.eager_compilation for s in info.steps]
    if sum(alone) - len({s.plan for s, a in zip(info.steps, alone) if a}) < CALLS:
        return None
    found: list[list[int]] = []
    for k, a in enumerate(alone):
        if a or not found or alone[k - 1]:
            found.append([])
        found[-1].append(k)
    return found


def _large(part: list[int], reads: list[set[int]], work: list[float], least: float) -> list[list[int]]:
    """Of some steps, those that hang together and have at least so much work."""
    leader: dict[int, int] = {}

    def leader_of(k: int) -> int:
        while leader[k] != k:
            leader[k] = leader[leader[k]]
            k = leader[k]
        return k
    for k in part:
        leader[k] = k
        for i in reads[k] & leader.keys():
            leader[leader_of(i)] = k
    found: dict[int, list[int]] = {}
    for k in part:
        found.setdefault(leader_of(k), []).append(k)
    return [group for group in found.values() if sum(work[k] for k in group) >= least]


def run(prog, parts: list[list[int]], execute: Callable) -> None:
    """Give a program's live results their arrays; `execute` runs a program of some of its steps."""
    steps = prog.node.program_info.steps
    numbers = _numbers(prog, steps)
    values: dict[int, Value] = {i: v for i, v in enumerate(prog.results) if v is not None} | {~k: v for k, v in enumerate(prog.inputs)}
    last: dict[int, int] = {}  # the part that reads a value last
    for number, part in enumerate(parts):
        last |= dict.fromkeys((r for k in part for r in steps[k].refs if r.__class__ is int), number)
    prog.results, prog.inputs, prog.node = [], [], None  # `values` alone holds what a later part needs
    failed: Exception | None = None
    for number, part in enumerate(parts):
        piece = type(prog)()
        for k in part:
            _append(piece, steps[k], numbers[k], values)
        for r in [r for r in values if last.get(r, -1) <= number and (r < 0 or values[r].epoch is not prog)]:
            del values[r]
        if not piece.results:
            continue
        try:
            execute(piece)
        except Exception as error:
            failed = failed or error
            for v in filter(None, piece.results):
                v.epoch, v.ref = None, error
    if failed is not None:
        raise failed


def _numbers(prog, steps: list) -> list[list]:
    """The Python numbers that each step reads."""
    f, i = iter(prog.floats), iter(prog.ints)
    take = {FLOAT: lambda: next(f), INT: lambda: next(i), BOOL: lambda: bool(next(i)), COMPLEX: lambda: complex(next(f), next(f))}
    return [[take[r]() for r in s.refs if r is not None and r.__class__ is not int] for s in steps]


def _append(piece, step, numbers: list, values: dict[int, Value]) -> None:
    """Record a step once more, for the same results; where what it reads has failed, they have as well."""
    plan, refs = step.plan, []
    outs = [values.pop(r, None) or Value(a) for r, a in enumerate(plan.outs, step.out)]
    values.update(enumerate(outs, step.out))
    read = [values[r] if r.__class__ is int else r for r in step.refs]
    for v in read:
        if v.__class__ is not Value:
            refs.append(v)
        elif v.epoch is not piece and v.array is None:
            for out in outs:
                out.epoch, out.ref = None, v.ref
            return
        else:
            refs.append(v.ref if v.epoch is piece else piece.add_input(v))
    key = plan.op, plan.statics, *refs
    node = piece.node.find(key) or piece.extend(key)
    if piece.device is None:
        piece.device = plan.device
    piece.add_numbers(numbers)
    for v in outs:
        v.epoch, v.ref = piece, len(piece.results)
        piece.results.append(v)
    piece.node = node
