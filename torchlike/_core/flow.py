"""A program as calls of plans on numbered values, which may be reordered and repeated; `executable.Step`s read their numbers in order."""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .aval import BOOL, COMPLEX, FLOAT, INT
from .registry import BackwardOp, Op, Plan, View

SAME_ORDER = frozenset(("view", "reshape", "unsqueeze", "squeeze"))  # views that are no work
COPIES = frozenset(("clone", "to_copy"))
_KINDS = {FLOAT: "float", INT: "int", BOOL: "bool"}


class Call(NamedTuple):
    """A plan; its arguments: results from 0 on, the program's inputs as ~k, numbers as tuples (see `_number`), None; its results."""

    plan: Plan
    args: tuple
    outs: tuple[int, ...]


def calls(steps: list) -> tuple[list[Call], list[int]]:
    """The calls of a program, those inside of traced calls among them, and its results as they are numbered here."""
    made: list[Call] = []
    count = itertools.count()

    def inline(steps: list, inputs: Sequence | None, floats: Iterator[int], ints: Iterator[int]) -> list:
        known: list = []  # results of these steps
        for step in steps:
            args = tuple([None if r is None else _number(r, floats, ints) if r.__class__ is not int else
                          known[r] if r >= 0 else r if inputs is None else inputs[~r] for r in step.refs])
            op = step.plan.op
            if op.inlined:
                numbers = args[op.n_inputs:]
                within = inline(op.steps, args[:op.n_inputs], iter([n[1] for n in numbers[:op.n_floats]]), iter([n[1] for n in numbers[op.n_floats:]]))
                known += [within[r] if r >= 0 else args[~r] for r in op.outs]
            else:
                outs = tuple([next(count) for _ in step.plan.outs])
                known += outs
                made.append(Call(step.plan, args, outs))
        return known
    results = inline(steps, None, itertools.count(), itertools.count())
    return made, results


def _number(kind, floats: Iterator[int], ints: Iterator[int]) -> tuple:
    """Which numbers of the program an argument is: ("float", k), ("complex", k, k + 1), ("int", k) or ("bool", k)."""
    if kind is COMPLEX:
        return "complex", next(floats), next(floats)
    return _KINDS[kind], next(floats if kind is FLOAT else ints)


def values(call: Call) -> list[int]:
    """The results and inputs among the arguments."""
    return [v for v in call.args if v.__class__ is int]


def forward(op: Op) -> Op:
    """The operation, or the one whose derivative it is."""
    return op.forward if isinstance(op, BackwardOp) else op


def is_view(call: Call) -> bool:
    return isinstance(call.plan.op, View) and not call.plan.op.overlaps
