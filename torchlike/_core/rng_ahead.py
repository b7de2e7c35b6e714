"""Float32 normals of the words that a generator has ahead, made for many draws at once, as a small draw costs what starting NumPy or XLA costs.

Normals come from blocks of 16 words (`rng_blocks`). Those of blocks that follow each other serve every draw of a multiple of 16 numbers that
starts where one of the blocks does. A draw of another size ends in a block of its own, after which blocks start elsewhere: for small ones
the two normals of each word in any block are made.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .rng_blocks import BLOCK, LARGE, LARGE_BLOCKS, MIDDLE, MIDDLE_BLOCKS, PAIRS, PIECE, blocks32, made_by_numpy, made_in_steps, pairs32, scaled

if TYPE_CHECKING:
    from .rng_generator import Generator

_SMALL = PIECE // 2  # normals of a draw that pairs serve
_FEW = 512  # the same where NumPy makes the pairs; and from which on XLA makes blocks, even if most of what it makes is not wanted
_CHUNK = 1 << 14  # normals that NumPy makes at once: temporaries inside the second-level cache
_NEAR = 1 << 12  # words that other draws may take between two draws of normals
_AT_FIRST = 2  # draws that make only what they need: a program may draw once, or draw other things in between
_NOTHING = np.empty((2, 0), np.float32)


class _Ahead:
    """Normals of the words from the generator's place `start` on."""

    def __init__(self, nothing: np.ndarray) -> None:
        self.made, self.start, self.missed = nothing, 0, 0

    def find(self, place: int, n: int) -> int | None:
        """Where those of n words from `place` on are, if they are."""
        at = place - self.start
        return at if 0 <= at <= self.made.shape[-1] - n else None

    def is_due(self, place: int) -> bool:
        """Whether a draw at `place`, for which nothing was found, shall make normals of the words behind its own."""
        self.missed += 1
        size = self.made.shape[-1]
        went_on = size and self.start < place < self.start + size + _NEAR
        if self.missed <= _AT_FIRST and not went_on:
            return False
        self.missed = 0
        return True


class NormalsAhead:
    """What is known of one generator's words, since its seed. For callers that hold the generator's lock."""

    def __init__(self) -> None:
        self._blocks, self._pairs = _Ahead(_NOTHING[0]), _Ahead(_NOTHING)

    def fill(self, gen: Generator, out: np.ndarray, gap: int, mean: float, std: float) -> None:
        """Fill the flat float32 `out`, of 16 numbers or more, from the next words. `gap`: words left out before the block that a ragged end costs."""
        n = out.size
        whole = n - n % BLOCK
        is_small = whole != n and n <= _SMALL
        kernel = PAIRS if is_small else MIDDLE_BLOCKS
        if kernel.call is None:
            made_by_numpy(kernel, n)
        if (is_small or kernel.call is None) and n <= (_FEW if PAIRS.call is None else _SMALL) and self._take_pairs(gen, out, gap, mean, std):
            return
        if whole != n <= MIDDLE - BLOCK:  # the ragged end's block with the others
            words = gen.words(whole + gap + BLOCK)
            made = _normals(np.concatenate((words[:whole], words[whole + gap :])))
            scaled(made[:whole], mean, std, out[:whole])
            scaled(made[whole:], mean, std, out[n - BLOCK :])
            return
        start = 0
        while start < whole:
            part = self._next_blocks(gen, whole - start)
            stop = start + part.size
            scaled(part, mean, std, out[start:stop])
            start = stop
        if whole != n:
            scaled(blocks32(gen.words(gap + BLOCK)[gap:]), mean, std, out[n - BLOCK :])

    def _next_blocks(self, gen: Generator, n: int) -> np.ndarray:
        """The normals of the next whole blocks, n of them or fewer; not to be written."""
        known = self._blocks
        at = known.find(gen.place, BLOCK)
        if at is not None and not at % BLOCK:
            n = min(n, known.made.size - at)
            gen.skip(n)
            return known.made[at : at + n]
        if MIDDLE_BLOCKS.call is None:
            return blocks32(gen.words(min(n, _CHUNK)))
        if n >= LARGE:
            if LARGE_BLOCKS.call is not None:
                return np.asarray(LARGE_BLOCKS.call(gen.words(LARGE)))
            made_in_steps(LARGE)
        if n >= MIDDLE:
            return _normals(gen.words(MIDDLE))
        if not known.is_due(gen.place):
            return _normals(gen.words(n))
        known.made, known.start = _normals(gen.peek(MIDDLE)), gen.place
        return self._next_blocks(gen, n)

    def _take_pairs(self, gen: Generator, out: np.ndarray, gap: int, mean: float, std: float) -> bool:
        """Fill `out` from pairs, if they are known or it is time to make them."""
        known, rows, ragged = self._pairs, out.size // BLOCK, out.size % BLOCK
        words = rows * BLOCK + (gap + BLOCK if ragged else 0)
        at = known.find(gen.place, words - 8)
        if at is None:
            if not known.is_due(gen.place):
                return False
            made = pairs32(gen.peek(max(words, min(gen.known, PIECE)))) if PAIRS.call is None else np.asarray(PAIRS.call(gen.peek(PIECE + 8)))
            known.made, known.start, at = made, gen.place, 0
        pairs = known.made
        blocks = np.ndarray((rows, 2, 8), np.float32, pairs, 4 * at, (4 * BLOCK, pairs.strides[0], 4))
        scaled(blocks, mean, std, out[: rows * BLOCK].reshape(rows, 2, 8))
        if ragged:
            scaled(pairs[:, at + words - BLOCK : at + words - 8], mean, std, out[out.size - BLOCK :].reshape(2, 8))
        gen.skip(words)
        return True


def _normals(words: np.ndarray) -> np.ndarray:
    """Those of whole blocks, MIDDLE words at most."""
    if words.size <= _FEW or MIDDLE_BLOCKS.call is None:
        return blocks32(words)
    if words.size == MIDDLE:
        return np.asarray(MIDDLE_BLOCKS.call(words))
    padded = np.zeros(MIDDLE, np.uint32)
    padded[: words.size] = words
    return np.asarray(MIDDLE_BLOCKS.call(padded))[: words.size]
