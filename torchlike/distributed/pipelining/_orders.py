"""The order in which each rank of a schedule works: which stage, forward or backward, on which microbatch, and where it waits (None)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from ._actions import BACKWARD_INPUT, BACKWARD_WEIGHT, FORWARD, FULL_BACKWARD, OVERLAP_F_B, Order, _Action, _ComputationType

Actions = list[_Action | None]


def stage_to_rank(ranks: int, stages: int, style: str = "loop") -> dict[int, int]:
    """Which rank has which stage: round and round, or, for `style="v"`, forth and back."""
    if style == "loop":
        return {s: s % ranks for s in range(stages)}
    if style != "v":
        raise ValueError(f"Style {style} is not supported.")
    if stages % ranks:
        raise ValueError(f"num_stages {stages} must be evenly divisible by pp_size {ranks} for V schedules")
    return {s: s % ranks if s // ranks % 2 == 0 else ranks - 1 - s % ranks for s in range(stages)}


def gpipe(rank: int, stages: int, microbatches: int) -> Actions:
    """All forwards, then all backwards."""
    wait = [None] * (3 * (stages - 1 - rank))
    return ([None] * rank + [_Action(rank, FORWARD, m) for m in range(microbatches)] + wait
            + [_Action(rank, FULL_BACKWARD, m) for m in range(microbatches)])


def one_forward_one_backward(rank: int, stages: int, microbatches: int) -> Actions:
    """As many forwards as stages follow, then forward and backward in turn, then the backwards that are left."""
    ahead = min(stages - 1 - rank, microbatches)
    forwards = [_Action(rank, FORWARD, m) for m in range(microbatches)]
    backwards = [_Action(rank, FULL_BACKWARD, m) for m in range(microbatches)]
    found: Actions = [None] * rank + forwards[:ahead] + [None] * (2 * (stages - 1 - rank))
    for pair in zip(forwards[ahead:], backwards):
        found += pair
    for action in backwards[microbatches - ahead:]:
        found += (None, action)
    return found


def looped_bfs(rank: int, ranks: int, local_stages: int, microbatches: int) -> Actions:
    """All microbatches through a stage before the next one of the same rank."""
    stages = range(rank, ranks * local_stages, ranks)
    return ([None] * rank + [_Action(s, FORWARD, m) for s in stages for m in range(microbatches)] + [None] * (2 * (ranks - 1 - rank))
            + [_Action(s, FULL_BACKWARD, m) for s in reversed(stages) for m in reversed(range(microbatches))])


def _in_rounds(rank: int, ranks: int, local_stages: range, per_round: int, microbatches: int, kind: _ComputationType) -> Iterator[_Action]:
    """Each round's microbatches through all of a rank's stages."""
    for first in range(0, microbatches, per_round):
        for s in local_stages:
            for m in range(first, first + per_round):
                yield _Action(s * ranks + rank, kind, m)


def interleaved(rank: int, ranks: int, local_stages: int, per_round: int, microbatches: int, zero_bubble: bool = False) -> Actions:
    """Rounds of microbatches through a rank's stages, forward and backward in turn. `zero_bubble`: the weights' gradients come later than the inputs'."""
    total = local_stages * microbatches
    ahead = min((local_stages - 1) * per_round + (1 if zero_bubble else 2) * (ranks - 1 - rank), total)
    wait = ranks - rank - 1 if zero_bubble else local_stages * ranks + 2 * (ranks - 1 - rank) - (ahead + rank)
    forwards = list(_in_rounds(rank, ranks, range(local_stages), per_round, microbatches, FORWARD))
    backwards = list(_in_rounds(rank, ranks, range(local_stages)[::-1], per_round, microbatches, BACKWARD_INPUT if zero_bubble else FULL_BACKWARD))
    weights = deque(a._replace(computation_type=BACKWARD_WEIGHT) for a in backwards) if zero_bubble else deque()
    found: Actions = [None] * rank + forwards[:ahead]
    if ahead:
        found += [None] * wait
    for i, action in enumerate(backwards):
        if ahead + i < total:
            found.append(forwards[ahead + i])
        elif not zero_bubble:
            found.append(None)  # the others have a forward here
        found.append(action)
        if zero_bubble and i >= rank:
            found.append(weights.popleft())
    return found + list(weights)


def with_bubbles(order: Order) -> Order:
    """The order with a None wherever a forward would come before the one of the stage before it."""
    place, done, found = dict.fromkeys(order, 0), set(), {rank: [] for rank in order}
    while any(place[rank] < len(actions) for rank, actions in order.items()):
        new = []
        for rank, actions in order.items():
            if place[rank] == len(actions):
                continue
            action = actions[place[rank]]
            if action is not None and action.computation_type is FORWARD and action.stage_index:
                if action._replace(stage_index=action.stage_index - 1) not in done:
                    found[rank].append(None)
                    continue
            found[rank].append(action)
            place[rank] += 1
            new.append(action)
        done.update(new)
    return found


class _Counting:
    """A growing list of actions, each on the next microbatch of its stage and kind."""

    def __init__(self, start: int = 0) -> None:
        self.actions: Actions = [None] * start
        self.next: Counter = Counter()
        self.weights: deque[_Action] = deque()  # whose inputs' gradients are there, but not their own

    def made(self, stage: int, kind: _ComputationType) -> _Action:
        counted = BACKWARD_INPUT if kind is FULL_BACKWARD else kind
        action = _Action(stage, kind, self.next[stage, counted])
        self.next[stage, counted] += 1
        if kind is FULL_BACKWARD:
            self.next[stage, BACKWARD_WEIGHT] += 1
        elif kind is BACKWARD_INPUT:
            self.weights.append(_Action(stage, BACKWARD_WEIGHT, action.microbatch_index))
        return action

    def add(self, stage: int, *kinds: _ComputationType) -> None:
        self.actions += [self.made(stage, kind) for kind in kinds]

    def add_together(self, forward: int, backward: int) -> None:
        parts = self.made(forward, FORWARD), self.made(backward, FULL_BACKWARD)
        self.actions.append(_Action(-1, OVERLAP_F_B, None, parts))

    def add_weight(self) -> None:
        if self.weights:
            self.actions.append(self.weights.popleft())


def zero_bubble_v(rank: int, ranks: int, stages: int, microbatches: int) -> Actions:
    """Two stages per rank, forth and back (https://arxiv.org/pdf/2401.10241, section 6). Fewer microbatches than fill the pipeline leave gaps."""
    forth, back, filled = rank, stages - 1 - rank, max(2 * ranks - 1, microbatches)
    c = _Counting(rank)
    both = (BACKWARD_INPUT, BACKWARD_WEIGHT)
    c.add(forth, *[FORWARD] * (2 * (ranks - rank) - 1))
    for _ in range(rank):
        c.add(back, FORWARD)
        c.add(forth, FORWARD)
    for _ in range(ranks - rank):
        c.add(back, FORWARD, *both)
    while c.next[back, FORWARD] < c.next[forth, FORWARD] or c.next[forth, FORWARD] < filled:
        if c.next[forth, FORWARD] < filled:
            c.add(forth, FORWARD)
        c.add(forth, *both)
        c.add(back, FORWARD, *both)
    for _ in range(rank):
        c.add(forth, BACKWARD_INPUT)
        c.add(back, BACKWARD_INPUT)
    for _ in range(ranks - rank):
        c.add(forth, *both)
    for stage in (back, forth):
        c.add(stage, *[BACKWARD_WEIGHT] * (c.next[stage, BACKWARD_INPUT] - c.next[stage, BACKWARD_WEIGHT]))
    return [a if a is not None and a.microbatch_index < microbatches else None for a in c.actions]


def dual_pipe_v(rank: int, ranks: int, microbatches: int) -> Actions:
    """Two stages per rank, forth and back; a forward of one goes with a backward of the other (https://github.com/deepseek-ai/DualPipe)."""
    forth, back, after = rank, 2 * ranks - 1 - rank, ranks - 1 - rank
    c = _Counting()
    c.add(forth, *[FORWARD] * (2 * after))
    for _ in range(rank + 1):
        c.add(forth, FORWARD)
        c.add(back, FORWARD)
    for _ in range(after):
        c.add(back, BACKWARD_INPUT)
        c.add_weight()
        c.add(back, FORWARD)
    for i in range(microbatches - 2 * ranks + rank + 1):
        if i == 0 and after == 0:
            c.add(forth, FORWARD)
            c.add(back, FULL_BACKWARD)
        else:
            c.add_together(forth, back)
        c.add_together(back, forth)
    for _ in range(after):
        c.add(back, FULL_BACKWARD)
        c.add_together(back, forth)
    half, kind = (rank + 1) // 2, FULL_BACKWARD
    for i in range(rank + 1):  # in the second half the weights' gradients wait
        if i == half and rank % 2:
            kind = BACKWARD_INPUT
        c.add(back, kind)
        if i == half and rank % 2 == 0:
            kind = BACKWARD_INPUT
        c.add(forth, kind)
    for _ in range(after):
        c.add_weight()
        c.add(forth, kind)
    for _ in range(rank + 1):
        c.add_weight()
    return c.actions
