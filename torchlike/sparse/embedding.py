"""Look-ups whose gradient for the table is a sparse tensor: one entry per looked up row."""
from __future__ import annotations

from typing import Any

import numpy as np

from .._core import dtype as dt
from .._tensor import Tensor, apply
from ..autograd.function import Function
from . import forms  # noqa: F401  (what adds gradients up)
from .coo import coo
from .tensor import on_device


class Embedding(Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, index: Tensor, padding: int | None) -> Tensor:
        from ..nn._functional.embedding import EMBEDDING  # above this file
        ctx.rows, ctx.padding = weight.shape[0], padding
        ctx.save_for_backward(index)
        return apply(EMBEDDING, (weight, index), (padding,))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple:
        (index,) = ctx.saved_tensors
        index, entries = index.reshape(-1).to(dt.int64), g.reshape(index.numel(), g.shape[-1])
        if ctx.padding is not None:
            kept = on_device(np.flatnonzero(index._host_array() != ctx.padding), index)
            index, entries = index.index_select(0, kept), entries.index_select(0, kept)
        return coo(index.unsqueeze(0), entries, (ctx.rows, entries.shape[1]), False, True), None, None


lookup = Embedding.apply
