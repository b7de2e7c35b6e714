"""The collectives on NumPy arrays, each made of one exchange of messages or two.

`exchange(outgoing, sources)` sends to some ranks of a group and receives from some: {rank: bytes-like}. Sums go over the ranks
in their order, so that every rank gets the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

SMALL = 1 << 15  # bytes up to which everybody sends all of an array to everybody

Exchange = Callable[[dict, set], dict]


def combine(op: str, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The reduction of several arrays of one dtype, in their order."""
    first = arrays[0]
    if op == "AVG":
        return (combine("SUM", arrays) / len(arrays)).astype(first.dtype)
    if op == "SUM":
        ufunc = np.logical_or if first.dtype == bool else np.add
    elif op == "PRODUCT":
        ufunc = np.logical_and if first.dtype == bool else np.multiply
    else:
        ufunc = {"MIN": np.minimum, "MAX": np.maximum, "BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor}[op]
    return functools.reduce(ufunc, arrays).astype(first.dtype, copy=False)


def _read(data, like: np.ndarray) -> np.ndarray:
    if len(data) != like.nbytes:
        raise RuntimeError(f"the ranks of a collective gave tensors of different sizes: {len(data)} bytes arrived where {like.nbytes} were expected")
    return np.frombuffer(data, like.dtype).reshape(like.shape)


def all_to_all(outputs: Sequence[np.ndarray], likes: Sequence[np.ndarray], me: int, exchange: Exchange) -> list[np.ndarray]:
    """`outputs[r]` goes to rank r; what rank r has for this one is like `likes[r]`."""
    others = [r for r in range(len(outputs)) if r != me]
    arrived = exchange({r: outputs[r] for r in others}, set(others))
    return [outputs[me] if r == me else _read(arrived[r], likes[r]) for r in range(len(outputs))]


def all_gather(mine: np.ndarray, likes: Sequence[np.ndarray], me: int, exchange: Exchange) -> list[np.ndarray]:
    return all_to_all([mine] * len(likes), likes, me, exchange)


def reduce_scatter(parts: Sequence[np.ndarray], op: str, me: int, exchange: Exchange) -> np.ndarray:
    """The reduction of what all ranks have as their part `me`."""
    return combine(op, all_to_all(parts, [parts[me]] * len(parts), me, exchange))


def all_reduce(mine: np.ndarray, op: str, size: int, me: int, exchange: Exchange) -> np.ndarray:
    if size == 1:
        return combine(op, [mine])
    if mine.nbytes <= SMALL:
        return combine(op, all_gather(mine, [mine] * size, me, exchange))
    parts = np.array_split(mine.reshape(-1), size)  # each rank reduces one part
    reduced = reduce_scatter(parts, op, me, exchange)
    return np.concatenate(all_gather(reduced, parts, me, exchange)).reshape(mine.shape)


def gather(mine: np.ndarray, likes: Sequence[np.ndarray] | None, root: int, me: int, size: int, exchange: Exchange) -> list[np.ndarray]:
    """All ranks' arrays at the root; nothing elsewhere."""
    if me != root:
        exchange({root: mine}, set())
        return []
    arrived = exchange({}, set(range(size)) - {me})
    return [mine if r == me else _read(arrived[r], like) for r, like in enumerate(likes)]


def scatter(parts: Sequence[np.ndarray] | None, like: np.ndarray, root: int, me: int, exchange: Exchange) -> np.ndarray:
    """The root's part for this rank."""
    if me != root:
        return _read(exchange({}, {root})[root], like)
    exchange({r: part for r, part in enumerate(parts) if r != me}, set())
    return parts[me]


def broadcast(mine: np.ndarray, root: int, me: int, size: int, exchange: Exchange) -> np.ndarray:
    return scatter([mine] * size if me == root else None, mine, root, me, exchange)
