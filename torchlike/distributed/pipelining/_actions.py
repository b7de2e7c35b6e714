"""What a schedule is made of: one stage's work on one microbatch, and what goes with it, as `2F0` (stage 2, forward, microbatch 0)."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple


class _ComputationType(str, Enum):  # noqa: UP042  (torch's, which prints otherwise)
    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"
    REDUCE_GRAD = "REDUCE_GRAD"

    @staticmethod
    def from_str(action: str) -> _ComputationType:
        try:
            return _ComputationType(action)
        except ValueError as error:
            raise RuntimeError(f"Invalid computation type {action}") from error


FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT = _ComputationType.FORWARD, _ComputationType.BACKWARD_INPUT, _ComputationType.BACKWARD_WEIGHT
UNSHARD, RESHARD, REDUCE_GRAD = _ComputationType.UNSHARD, _ComputationType.RESHARD, _ComputationType.REDUCE_GRAD
SEND_F, RECV_F, SEND_B, RECV_B = _ComputationType.SEND_F, _ComputationType.RECV_F, _ComputationType.SEND_B, _ComputationType.RECV_B
FULL_BACKWARD, OVERLAP_F_B = _ComputationType.FULL_BACKWARD, _ComputationType.OVERLAP_F_B

COMPUTATIONS = (FORWARD, FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, OVERLAP_F_B)
_NAMES = "|".join(sorted((t.value for t in _ComputationType if t is not OVERLAP_F_B), key=len, reverse=True))
_WRITTEN = re.compile(rf"(\d+)({_NAMES})(\d*)")


class _Action(NamedTuple):
    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int | None = None
    sub_actions: tuple[_Action, ...] | None = None

    def __repr__(self) -> str:
        if self.sub_actions is not None:
            return f"({';'.join(map(repr, self.sub_actions))}){self.computation_type.value}"
        return f"{self.stage_index}{self.computation_type.value}{'' if self.microbatch_index is None else self.microbatch_index}"

    @property
    def is_compute_op(self) -> bool:
        return self.computation_type in COMPUTATIONS

    @property
    def parts(self) -> tuple[_Action, ...]:
        """The actions that are done: those of an overlapped pair, or this one."""
        return (self,) if self.sub_actions is None else self.sub_actions

    @staticmethod
    def from_str(action_string: str) -> _Action | None:
        """What `repr` wrote; None for an empty string. RuntimeError for anything else."""
        text = action_string.strip()
        if not text:
            return None
        if text.startswith("(") and ")" in text:
            inside, _, kind = text[1:].partition(")")
            parts = tuple(a for a in map(_Action.from_str, inside.split(";")) if a is not None)
            return _Action(-1, _ComputationType.from_str(kind), None, parts or None)
        found = _WRITTEN.match(text)
        if found is None:
            raise RuntimeError(f"Invalid action string: {text}, should be formatted as [stage][action type][(microbatch)] e.g. 2F0")
        stage, kind, microbatch = found.groups()
        return _Action(int(stage), _ComputationType(kind), int(microbatch) if microbatch else None)


Order = dict[int, list[_Action | None]]  # by rank; None: nothing to do in a step


def written_order(order: Order, error_step: int | None = None) -> str:
    """A table of all ranks' actions: a row per step, a column per rank, and a mark at the step that failed."""
    ranks = sorted(order)
    steps = max(map(len, order.values()))
    columns = [["" if a is None else str(a) for a in order[r]] + [""] * (steps - len(order[r])) for r in ranks]
    labels = [f"Step {i:0{len(str(steps - 1))}}" for i in range(steps)]
    widths = [max(map(len, [labels[0], *column])) for column in columns]
    lines = [" " * (len(labels[0]) + 2) + " ".join(f"Rank {r}".ljust(w) for r, w in enumerate(widths))]
    for i, label in enumerate(labels):
        row = " ".join(column[i].ljust(w) for column, w in zip(columns, widths))
        lines.append(f"{label}: {row}{' <-- ERROR HERE' if i == error_step else ''}")
    return "\n".join(lines) + "\n"
