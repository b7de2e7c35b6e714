"""PowerSGD (Vogels, Karimireddy and Jaggi, 2019): gradients travel as products of two thin matrices.

A gradient M (n, m) is about P Q^T, with P (n, r) and Q (m, r): P is the mean of M Q over processes with its columns made orthonormal, Q that of
M^T P. What a process loses by that is added to its next gradient, and the search for Q goes on from the last one.
"""
from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np

from ...._core.dtype import bfloat16, float16
from ...._core.rng_generator import Generator
from ...._functions import torch
from ...._tensor import Tensor
from ...._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from ....futures import Future
from ....linalg import qr, vector_norm
from ....nn.functional import pad
from ...collectives import all_reduce
from ...process_group import ProcessGroup, default_group
from .default_hooks import done, mean

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_log = logging.getLogger(__name__)


class PowerSGDState:
    """Settings and memory of the hooks.

    `matrix_approximation_rank` is r; gradients are averaged as they are in the first `start_powerSGD_iter` iterations, and always where r (n + m)
    `min_compression_rate` is n m or more. `use_error_feedback` keeps what is lost, `warm_start` the last Q. `orthogonalization_epsilon` is added
    to the norms of columns. `batch_tensors_with_same_shape` takes gradients of one shape together. ValueError for a start at 0 or 1 with memory.
    """

    __slots__ = ("process_group", "matrix_approximation_rank", "start_powerSGD_iter", "min_compression_rate", "orthogonalization_epsilon",
                 "use_error_feedback", "warm_start", "batch_tensors_with_same_shape", "rng", "error_dict", "p_memory_dict", "q_memory_dict", "iter",
                 "total_numel_before_compression", "total_numel_after_compression", "compression_stats_logging_frequency", "next_stats_report")

    def __init__(self, process_group: ProcessGroup | None, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1_000,  # noqa: N803
                 min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True, orthogonalization_epsilon: float = 0,
                 random_seed: int = 0, compression_stats_logging_frequency: int = 10_000, batch_tensors_with_same_shape: bool = False) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError("Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only be "
                             "applied after the first two iterations in DDP.")
        self.process_group, self.matrix_approximation_rank, self.start_powerSGD_iter = process_group, matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate, self.use_error_feedback, self.warm_start = min_compression_rate, use_error_feedback, warm_start
        self.orthogonalization_epsilon, self.batch_tensors_with_same_shape = orthogonalization_epsilon, batch_tensors_with_same_shape
        self.rng = np.random.RandomState(random_seed)  # of the same seed in all processes: they start from the same Q
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = self.next_stats_report = self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)

    def __getstate__(self) -> dict[str, Any]:
        _log.warning("NOTE: Process group is not serializable and excluded from a saved state.")
        return {name: getattr(self, name) for name in self.__slots__ if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = default_group()
        _log.warning("NOTE: Process group will be set to a default group (i.e. the world size). If a different group is desired, please set "
                     "`self.process_group` after PowerSGD state is loaded.")
        for name, value in state.items():
            setattr(self, name, value)

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count an iteration at its last bucket."""
        self.iter += bucket.is_last()
        if self.iter == self.start_powerSGD_iter:
            _log.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer numbers were sent than there were, and both numbers."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after else 0, before, after

    # -- for the hooks -------------------------------------------------------------------------------------------------------

    def _count(self, bucket: Any, before: int, after: int) -> None:
        self.total_numel_before_compression += before
        self.total_numel_after_compression += after
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, *totals = self.compression_stats()
            _log.info("Compression stats: iter %s, total before compression %s, total after compression %s, rate %s", self.iter, *totals, rate)
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def _corrected(self, index: int, buffer: Tensor) -> Tensor | None:
        """`buffer`, to which what was lost before is added; a copy of it, if it is needed."""
        if not self.use_error_feedback:
            return None
        if index in self.error_dict:
            buffer.add_(self.error_dict[index])
        return buffer.clone()

    def _factors(self, index: int, shapes: list[tuple[int, int, int]], like: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """The Ps and Qs for batches of matrices, views of the bucket's memory; the Qs of before, or random ones."""
        fresh = not self.warm_start or index not in self.p_memory_dict
        ranks = [min(n, m, self.matrix_approximation_rank) for _, n, m in shapes]
        sides = [[(b, side, r) for (b, *sizes), r in zip(shapes, ranks, strict=True) for side in (sizes[i],)] for i in (0, 1)]
        if fresh:
            for memory, of in zip((self.p_memory_dict, self.q_memory_dict), sides, strict=True):
                memory[index] = torch.empty(sum(map(math.prod, of)), dtype=like.dtype, device=like.device)
        ps, qs = (_cut(memory[index], of) for memory, of in zip((self.p_memory_dict, self.q_memory_dict), sides, strict=True))
        if fresh:
            generator = Generator().manual_seed(int(self.rng.randint(1_000_000_000)))
            for q in qs:
                q.copy_(torch.randn(*q.shape, dtype=like.dtype, generator=generator))
        return ps, qs

    def _approximated(self, index: int, matrices: list[Tensor], group: ProcessGroup) -> list[Tensor]:
        """The mean over processes of batches of matrices (b, n, m), of low rank."""
        if not matrices:
            return []
        ps, qs = self._factors(index, [tuple(m.shape) for m in matrices], matrices[0])
        for m, p, q in zip(matrices, ps, qs, strict=True):
            _orthonormalize(q, self.orthogonalization_epsilon)
            p.copy_(torch.bmm(m, q))
        all_reduce(self.p_memory_dict[index], group=group)
        for m, p, q in zip(matrices, ps, qs, strict=True):
            _orthonormalize(p, self.orthogonalization_epsilon)
            q.copy_(torch.bmm(m.mT, p))
        all_reduce(self.q_memory_dict[index], group=group)
        self.q_memory_dict[index].div_(group.size())
        found = [torch.bmm(p, q.mT) for p, q in zip(ps, qs, strict=True)]
        if not self.warm_start:
            self.p_memory_dict.clear()
            self.q_memory_dict.clear()
        return found


def _cut(memory: Tensor, shapes: list[tuple[int, int, int]]) -> list[Tensor]:
    return [part.view(shape) for part, shape in zip(memory.split([math.prod(s) for s in shapes]), shapes, strict=True)]


def _orthonormalize(matrices: Tensor, epsilon: float) -> None:
    """The columns of each of (b, n, r), in place. QR knows no 16-bit numbers, and takes longer for one or two columns."""
    rank = matrices.shape[2]
    if rank > 2 and matrices.dtype not in (float16, bfloat16):
        matrices.copy_(qr(matrices)[0])
        return
    for i in range(rank):  # Gram-Schmidt
        column, rest = matrices[:, :, i:i + 1], matrices[:, :, i + 1:]
        column.div_(vector_norm(column, dim=1, keepdim=True) + epsilon)
        if i + 1 < rank:
            rest.sub_((column * rest).sum(1, keepdim=True) * column)


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:  # noqa: N802  (torch's name)
    """Each gradient by itself, as a matrix of its first dimension and the others; small ones and vectors as they are."""
    group, buffer = default_group(state.process_group), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(group, buffer)
    whole = state._corrected(bucket.index(), buffer)
    by_shape: dict[tuple[int, int], list[Tensor]] = {}
    others: list[Tensor] = []
    before = after = 0
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1)
        n, m = matrix.shape
        small = (n + m) * min(n, m, state.matrix_approximation_rank)
        compress = small * state.min_compression_rate < n * m
        before, after = before + n * m, after + (small if compress else n * m)
        if compress:
            by_shape.setdefault((n, m), []).append(matrix)
        else:
            others.append(gradient)
    state._count(bucket, before, after)
    if others:
        together = _flatten_dense_tensors(others)
        all_reduce(together, group=group)
        for x, part in zip(others, _unflatten_dense_tensors(together / group.size(), others), strict=True):
            x.copy_(part)
    batches = [part for same in by_shape.values() for part in ([same] if state.batch_tensors_with_same_shape else [[x] for x in same])]
    for batch, found in zip(batches, state._approximated(bucket.index(), [torch.stack(batch) for batch in batches], group), strict=True):
        for x, new in zip(batch, found, strict=True):
            x.copy_(new)
    if whole is not None:
        state.error_dict[bucket.index()] = whole - buffer
    state.maybe_increase_iter(bucket)
    return done(buffer)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future:  # noqa: N802  (torch's name)
    """All gradients of a bucket as one square matrix: quicker, and less true to them."""
    group, buffer = default_group(state.process_group), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(group, buffer)
    side = math.isqrt(len(buffer) - 1) + 1
    state._count(bucket, len(buffer), 2 * side * state.matrix_approximation_rank)
    square = pad(buffer, (0, side * side - len(buffer)))
    whole = state._corrected(bucket.index(), square)
    found = state._approximated(bucket.index(), [square.view(1, side, side)], group)[0].flatten()
    if whole is not None:
        state.error_dict[bucket.index()] = whole - found
    state.maybe_increase_iter(bucket)
    return done(found[:len(buffer)])
