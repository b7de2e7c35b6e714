"""A line search for the strong Wolfe conditions with cubic interpolation (Nocedal and Wright 2006, algorithms 3.5 and 3.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .._tensor import Tensor


class Point(NamedTuple):
    """A point on the line: the step, the loss, the gradient, and the slope along the direction."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def cubic_minimum(a: Point, b: Point, low: float | None = None, high: float | None = None) -> float:
    """The minimum of the cubic through two points and slopes, within bounds (default: between the points)."""
    if low is None:
        low, high = min(a.t, b.t), max(a.t, b.t)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    left, right = (a, b) if a.t <= b.t else (b, a)
    where = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return min(max(where, low), high)


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    t: float,
    size: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance: float = 1e-9,
    most: int = 25,
) -> tuple[Point, int]:
    """The best point found and how many were looked at. `start` is at 0; `size` is the direction's largest element."""

    def rises(p: Point) -> bool:
        return p.loss > start.loss + c1 * p.t * start.slope

    def flat(p: Point) -> bool:
        return abs(p.slope) <= -c2 * start.slope

    before, now, looked = start, evaluate(t), 1
    bracket: list[Point] | None = None
    rounds = 0
    while rounds < most:
        if flat(now) and not (rises(now) or (rounds > 1 and now.loss >= before.loss)):
            return now, looked
        if rises(now) or (rounds > 1 and now.loss >= before.loss) or now.slope >= 0:
            bracket = [before, now]
            break
        t = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10)
        before, now = now, evaluate(t)
        looked += 1
        rounds += 1
    if bracket is None:
        bracket = [start, now]
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    stuck = False
    while rounds < most and abs(bracket[1].t - bracket[0].t) * size >= tolerance:
        t = cubic_minimum(*bracket)
        left, right = min(b.t for b in bracket), max(b.t for b in bracket)
        margin = 0.1 * (right - left)
        near = min(right - t, t - left) < margin
        if near and (stuck or t >= right or t <= left):  # no progress next to an end: move away from it
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            stuck = False
        else:
            stuck = near
        now = evaluate(t)
        looked += 1
        rounds += 1
        if rises(now) or now.loss >= bracket[low].loss:
            bracket[1 - low] = now
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        done = flat(now)
        if not done and now.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = now
        if done:
            break
    return bracket[low], looked
