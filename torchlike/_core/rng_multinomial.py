"""Draws of category indices from rows of weights."""

import numpy as np

from .rng_dtypes import DIGITS, scalar_type
from .rng_generator import Generator

_MOST_CATEGORIES = 2**24
_CHUNK = 1 << 17  # weights, or samples, of the rows that are looked at together


def with_replacement(gen: Generator, weights: np.ndarray, num_samples: int) -> np.ndarray:
    """Inverse transform: search each uniform double in the row's running sums."""
    # Half-width rows are summed in float, double rows in double; both one element after the other.
    work = np.float64 if weights.dtype == np.float64 else np.float32
    out = np.empty((len(weights), num_samples), np.int64)
    step = max(1, _CHUNK // max(1, weights.shape[1], num_samples))
    for start in range(0, len(weights), step):
        _search(gen, weights[start : start + step].astype(work, copy=False), out[start : start + step])
    return out


def _search(gen: Generator, rows: np.ndarray, out: np.ndarray) -> None:
    sums = np.cumsum(rows, axis=1, dtype=rows.dtype)
    if not (rows.size and rows.min() >= 0 and rows.max() < np.inf and sums[:, -1].min() > 0):
        if len(rows) > 1:  # rows before the wrong one draw
            for k in range(len(rows)):
                _search(gen, rows[k : k + 1], out[k : k + 1])
            return
        if not (rows >= 0).all():
            raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
        if not np.isfinite(rows).all():
            raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    edges = (sums / sums[:, -1:]).astype(np.float64)
    edges[:, -1] = 1.0
    u = gen.doubles(out.size).reshape(out.shape)
    for edge, numbers, indices in zip(edges, u, out, strict=True):
        indices[:] = edge.searchsorted(numbers)


def _largest(row: np.ndarray, k: int) -> np.ndarray:
    """Indices of the `k` largest entries, the largest first, the lower index first among equals."""
    if 4 * k < row.size:
        candidates = np.flatnonzero(row >= np.partition(row, row.size - k)[row.size - k])
        row = row[candidates]
        return candidates[np.argsort(-row, kind="stable")[:k]]
    return np.argsort(-row, kind="stable")[:k]


def check_weights(weights: np.ndarray) -> None:
    """RuntimeError unless every weight is finite and not negative and every row has a positive one."""
    if weights.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if weights.dtype.itemsize == 2:
        weights = weights.astype(np.float32)
    largest = weights.max(axis=1)
    if not (weights.min() >= 0 and largest.max() < np.inf):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if largest.min() == 0:
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def without_replacement(weights: np.ndarray, exponentials: np.ndarray, num_samples: int) -> np.ndarray:
    """The largest weight / exponential(1) ratios (Efraimidis and Spirakis 2006, "Weighted random sampling")."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = weights / exponentials
    if num_samples == 1:
        return ratios.argmax(axis=1)[:, None]
    if ratios.dtype.itemsize == 2:
        ratios = ratios.astype(np.float32)
    return np.stack([_largest(row, num_samples) for row in ratios])


def check_arguments(probs: np.ndarray, num_samples: int, replacement: bool) -> None:
    """RuntimeError for a wrong rank, dtype, count or width of `probs`."""
    if probs.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if probs.dtype not in DIGITS:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {scalar_type(probs.dtype)}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > probs.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if probs.shape[-1] > _MOST_CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")
