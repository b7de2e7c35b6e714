"""The most probable path of a given text through a CTC model's emissions (Viterbi), for torchaudio.functional.forced_align."""
from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._custom_operator import kernel
from .._tensor import Tensor
from ..library import define
from ..ops.from_data import place


def _path(scores: np.ndarray, targets: np.ndarray, blank: int) -> np.ndarray:
    """Labels (time,) of the best path through scores (time, class); targets (length,) without blanks."""
    labels = np.full(2 * len(targets) + 1, blank, np.int64)
    labels[1::2] = targets
    skips = np.zeros(len(labels), bool)  # states that may be entered past the blank before them
    skips[3::2] = targets[1:] != targets[:-1]
    lowest = scores.dtype.type(-np.inf)
    best = np.full(len(labels), lowest)
    best[:2] = scores[0, labels[:2]]
    came = np.zeros((len(scores), len(labels)), np.int8)
    for t in range(1, len(scores)):
        one, two = np.full((2, len(labels)), lowest)
        one[1:], two[2:] = best[:-1], np.where(skips[2:], best[:-2], lowest)
        came[t] = np.where((two > one) & (two > best), 2, np.where((one > best) & (one > two), 1, 0))
        best = np.choose(came[t], (best, one, two)) + scores[t, labels]
    state = len(labels) - 1 if len(labels) == 1 or best[-1] > best[-2] else len(labels) - 2
    path = np.empty(len(scores), np.int64)
    for t in range(len(scores) - 1, -1, -1):
        path[t] = labels[state]
        state -= came[t, state]
    return path


define("torchaudio::forced_align", "(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) -> (Tensor, Tensor)")


@kernel("torchaudio::forced_align", "default")
def forced_align(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """(labels of the best path (1, time), log_probs): one example, whose path depends on the data, so it is found at once on the host."""
    if log_probs.dtype.category != dt.FLOAT:
        raise RuntimeError("log_probs must be float64, float32 or float16 (half) type")
    if targets.dtype not in (dt.int32, dt.int64):
        raise RuntimeError("targets must be int32 or int64 type")
    for t, name, ndim in ((log_probs, "log_probs", 3), (targets, "targets", 2), (input_lengths, "input_lengths", 1), (target_lengths, "target_lengths", 1)):
        if t.dim() != ndim:
            raise RuntimeError(f"{name} must be {ndim}-D")
    if log_probs.size(0) != 1:
        raise RuntimeError("The batch dimension for log_probs must be 1 at the current version.")
    if not 0 <= blank < log_probs.size(-1):
        raise RuntimeError("blank must be within [0, num classes)")
    if input_lengths.max().item() != log_probs.size(1):
        raise RuntimeError("input length mismatch")
    if target_lengths.max().item() != targets.size(1):
        raise RuntimeError("target length mismatch")
    scores, labels = log_probs._host_array()[0], targets._host_array()[0].astype(np.int64)
    repeats = int((labels[1:] == labels[:-1]).sum())
    if len(scores) < len(labels) + repeats:
        raise RuntimeError(f"targets length is too long for CTC. Found log_probs length: {len(scores)}, targets length: {len(labels)}, "
                           f"and number of repeats: {repeats}")
    found = _path(scores if scores.dtype.itemsize > 2 else scores.astype(np.float32), labels, blank)
    return place(found.astype(targets.dtype.np)[None], log_probs.device), log_probs
