"""An order of computations with all that goes with them: sends and receives, whole parameters of FSDP, the end of a stage's gradients."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from ._actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    FULL_BACKWARD,
    RECV_B,
    RECV_F,
    REDUCE_GRAD,
    RESHARD,
    SEND_B,
    SEND_F,
    UNSHARD,
    Order,
    _Action,
    written_order,
)

Lowered = dict[int, list[_Action]]
_BACKWARDS = (BACKWARD_INPUT, FULL_BACKWARD)


def add_reduce_grad(actions: list[_Action | None], microbatches: int) -> list[_Action]:
    """After a stage's last backward: its gradients are complete."""
    found, seen = [], Counter()
    for action in actions:
        if action is None:
            continue
        found.append(action)
        for part in action.parts:
            if part.computation_type in (BACKWARD_WEIGHT, FULL_BACKWARD):
                seen[part.stage_index] += 1
                if seen[part.stage_index] == microbatches:
                    found.append(_Action(part.stage_index, REDUCE_GRAD))
    return found


def add_unshard_reshard(actions: list[_Action | None], max_active_stages: int = 3) -> list[_Action]:
    """The parameters of the next few stages are whole, those of others are not."""
    stages = [[p.stage_index for p in a.parts] if a is not None else [] for a in actions]
    active: set[int] = set()
    found: list[_Action] = []

    def reshard(unneeded: set[int]) -> None:
        found.extend(_Action(s, RESHARD) for s in sorted(unneeded))
        active.difference_update(unneeded)

    for i, action in enumerate(actions):
        if action is None:
            continue
        coming: dict[int, None] = {}
        for following in stages[i:]:
            coming.update(dict.fromkeys(following))
            if len(coming) >= max_active_stages:
                break
        reshard(active.difference(coming))
        found.extend(_Action(s, UNSHARD) for s in coming if s not in active)
        active.update(coming)
        found.append(action)
    reshard(set(active))
    return found


def add_send_recv(order: Lowered, stage_to_rank: Callable[[int], int], stages: int) -> Lowered:
    """What crosses ranks is sent right after it is computed, and received in the order in which it is sent, so that no rank waits in a circle."""
    waiting = {rank: list(reversed(actions)) for rank, actions in sorted(order.items()) if actions}
    found: Lowered = {rank: [] for rank in order}
    done: dict[int, set[_Action]] = {rank: set() for rank in order}

    def ready(a: _Action, rank: int) -> bool:
        s, m = a.stage_index, a.microbatch_index
        if a.computation_type is FORWARD and s:
            needs = (_Action(s, RECV_F, m), _Action(s - 1, FORWARD, m))
        elif a.computation_type in _BACKWARDS and s != stages - 1:
            needs = (_Action(s, RECV_B, m), _Action(s + 1, BACKWARD_INPUT, m), _Action(s + 1, FULL_BACKWARD, m))
        else:
            return True
        return not done[rank].isdisjoint(needs)

    def put(rank: int, *actions: _Action) -> None:
        found[rank] += actions
        done[rank].update(actions)

    while waiting:
        stuck = True
        for rank in list(waiting):
            action = waiting[rank][-1]
            if not all(ready(part, rank) for part in action.parts):
                continue
            stuck = False
            waiting[rank].pop()
            found[rank].append(action)
            for part in action.parts:
                done[rank].add(part)
                s, m = part.stage_index, part.microbatch_index
                if part.computation_type is FORWARD:
                    to, send, receive = s + 1, SEND_F, RECV_F
                elif part.computation_type in _BACKWARDS:
                    to, send, receive = s - 1, SEND_B, RECV_B
                else:
                    continue
                if 0 <= to < stages and stage_to_rank(to) != stage_to_rank(s):
                    put(rank, _Action(s, send, m))
                    put(stage_to_rank(to), _Action(to, receive, m))
            if not waiting[rank]:
                del waiting[rank]
        if stuck:
            raise AssertionError("Malformed compute schedule, can't schedule sends/recvs")
    return found


def defer_receives(order: Lowered, stage_to_rank: Callable[[int], int]) -> Lowered:
    """Receives right before what needs them; on the lower rank of two, before it sends to the other one."""
    found: Lowered = {}
    for rank, actions in order.items():
        new: list[_Action] = []
        deferred: dict[_Action, int] = {}  # to the rank that sends
        for action in actions:
            kind, s = action.computation_type, action.stage_index
            if kind in (RECV_F, RECV_B):
                deferred[action] = stage_to_rank(s - 1 if kind is RECV_F else s + 1)
                continue
            if kind in (SEND_F, SEND_B):
                peer = stage_to_rank(s + 1 if kind is SEND_F else s - 1)
                due = [a for a, source in deferred.items() if source == peer] if rank < peer else []
            else:
                due = []
            for part in action.parts:
                if part.computation_type is FORWARD:
                    due.append(_Action(part.stage_index, RECV_F, part.microbatch_index))
                elif part.computation_type in _BACKWARDS:
                    due.append(_Action(part.stage_index, RECV_B, part.microbatch_index))
            new += [a for a in due if deferred.pop(a, None) is not None]
            new.append(action)
        if deferred:
            raise AssertionError(f"Malformed input schedule on rank {rank}: leftover RECV ops with no consumer found: {list(deferred)}. "
                                 "Every RECV must be consumed by a downstream compute op.")
        found[rank] = new
    return found


_NEEDS = {FULL_BACKWARD: ("Full Backward", FORWARD, "Forward"), BACKWARD_INPUT: ("Backward Input", FORWARD, "Forward"),
          BACKWARD_WEIGHT: ("Backward Weight", BACKWARD_INPUT, "Backward Input")}


def validated(order: Order, ranks: int, stages: int, microbatches: int) -> dict[int, int]:
    """Which rank has which stage. AssertionError where an order is not complete, or does something before what it needs."""
    if len(order) != ranks:
        raise AssertionError(f"Schedule has incorrect number of ranks - expected {ranks}, actual {len(order)}")
    for rank in range(ranks):
        if rank not in order:
            raise AssertionError(f"Schedule is missing actions for rank {rank}")
    done: dict = defaultdict(set)
    found: dict[int, int] = {}
    for rank, actions in order.items():
        for step, action in enumerate(actions):
            if action is None:
                continue
            if not isinstance(action, _Action):
                raise AssertionError(f"Rank {rank}, step {step}: Got an invalid action: {action}, expected instance of _Action")
            for s, kind, m, _ in action.parts:
                name, needed, needed_name = _NEEDS.get(kind, (None, None, None))
                if name and m not in done[s, needed]:
                    raise AssertionError(f"Rank {rank}, step {step}: Running {name} for stage {s}, microbatch {m} without first running {needed_name}"
                                         f"\n\nFull pipeline schedule:\n{written_order(order, step)}")
                done[s, kind].add(m)
                if found.setdefault(s, rank) != rank:
                    raise AssertionError(f"Rank {rank}, step {step}: Stage {s} is assigned to both rank {rank} and rank {found[s]}")
    for s in range(stages):
        f, b, i, w = (len(done[s, kind]) for kind in (FORWARD, FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT))
        if f != microbatches:
            raise AssertionError(f"Got {f} {FORWARD} microbatches for stage {s}, expected {microbatches}")
        if i != w:
            raise AssertionError(f"Invalid backward microbatches for stage {s}: I and W must have equal counts, but got I={i}, W={w}")
        if b + i != microbatches:
            raise AssertionError(f"Invalid backward microbatches for stage {s}: expected {microbatches} total backwards, but got B={b}, I={i}, W={w}")
    return found
