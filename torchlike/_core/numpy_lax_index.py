"""Windows of an array at computed places, shared by gather and scatter.

An operand is seen as rows: the trailing dimensions that every window covers whole are one row, and a window is a set of
row numbers, `base(starts) + offsets`.
"""
from __future__ import annotations

import math

import numpy as np


def mode_of(eqn) -> str:
    """'clip', 'fill' or 'promise'."""
    name = getattr(eqn.params["mode"], "name", str(eqn.params["mode"])).lower()
    return "clip" if "clip" in name else "promise" if "promise" in name else "fill"


class Windows:
    """`sizes`: the window's extent in every operand dimension; `start_map`: the dimension that each index column moves
    along; `batching`: pairs of (operand dimension, batch dimension of the indices) that run together."""

    def __init__(self, shape, sizes, start_map, batching, batch_shape):
        self.shape, self.sizes, self.batch_shape = shape, sizes, batch_shape
        self.start_map = start_map
        self.room = [shape[d] - sizes[d] for d in start_map]
        tail = len(shape)
        while tail and sizes[tail - 1] == shape[tail - 1]:
            tail -= 1
        self.tail = tail
        self.row = math.prod(shape[tail:])
        steps = [math.prod(shape[d + 1:tail]) for d in range(tail)]
        self.steps = [steps[d] if d < tail else 0 for d in start_map]
        offsets = np.zeros((), np.intp)
        for d in range(tail):
            offsets = offsets[..., None] + np.arange(sizes[d]) * steps[d]
        self.offsets = offsets.reshape(-1)
        along = np.zeros((1,) * len(batch_shape), np.intp)
        for d, b in batching:
            column = [1] * len(batch_shape)
            column[b] = shape[d]
            along = along + (np.arange(shape[d]) * (steps[d] if d < tail else 0)).reshape(column)
        self.along = along if batching else None

    def columns(self, indices: np.ndarray) -> list:
        """Starts along each indexed dimension, over the batch."""
        return [indices[..., j].astype(np.intp) for j in range(len(self.start_map))]

    def clamped(self, columns: list) -> list:
        return [np.minimum(np.maximum(c, 0), most) for c, most in zip(columns, self.room)]

    def inside(self, columns: list) -> np.ndarray | None:
        """Which windows lie inside the operand; None: all."""
        ok = None
        for c, most in zip(columns, self.room):
            this = (c >= 0) & (c <= most)
            ok = this if ok is None else ok & this
        return None if ok is None or ok.all() else ok

    def rows(self, columns: list) -> np.ndarray:
        """Row numbers, (batch size, rows per window)."""
        base = self.along
        for c, step in zip(columns, self.steps):
            if step:
                c = c if step == 1 else c * step
                base = c if base is None else base + c
        if base is None:
            base = np.zeros(self.batch_shape, np.intp)
        base = np.broadcast_to(base, self.batch_shape).reshape(-1, 1)
        return base if len(self.offsets) == 1 else base + self.offsets

    def slices(self, columns: list) -> tuple:
        """The only window, as slices."""
        start = [0] * len(self.shape)
        for d, c in zip(self.start_map, columns):
            start[d] = int(c.reshape(()))
        return tuple([slice(s, s + k) for s, k in zip(start, self.sizes)])
