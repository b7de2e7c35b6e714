"""The default CPU random engine: a 32-bit Mersenne Twister with the seed rules and state layout of `torch.Generator`.

Matsumoto and Nishimura, "Mersenne Twister: A 623-dimensionally equidistributed uniform pseudo-random number
generator", 1998.
"""

import contextlib
import os
import struct
import threading
from collections.abc import Iterator

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from .rng_ahead import NormalsAhead
from .rng_twister import PIECE, pieces, tempered, untempered
from .rng_twister import N as _N

DEFAULT_SEED = 67280421310721
STATE_BYTES = 5056
# initial seed, words left + 1, seeded, next index | 624 words as uint64 | normal x, y, rho, valid | float normal, valid
_HEADER = struct.Struct("<QiiQ")
_NORMALS = struct.Struct("<dddi4xfB3x")
_WORDS_END = _HEADER.size + 8 * _N
FEW = 16  # numbers that Python makes in less time than NumPy
_AHEAD = 4 * _N  # words made at a time for small draws, at first; then twice as many each time, as a program that drew many draws many more
_MOST_AHEAD = PIECE // 2  # from which on XLA makes them
_LARGE = 1 << 17  # words after which the memory of a draw is given back
_HIGH = np.uint32(2**21 - 1)


def checked_seed(seed: int) -> int:
    """`seed` modulo 2**64, refused as torch refuses it when it is no int or does not fit 64 bits."""
    if isinstance(seed, np.generic):
        raise TypeError("an integer is required")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")  # noqa: TRY004 - torch's class
    if not -(2**63) <= seed < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return seed % 2**64


class _Unseeded(ISeedSequence):
    """For an engine that is seeded right after it is made: NumPy mixes its own seeds, and takes them word by word, a hundred times as long as seeding."""

    def generate_state(self, n_words: int, dtype: type = np.uint32) -> list[int]:
        return [0] * n_words


class Generator:
    """A stream of 32-bit words plus the one normal sample kept back by Box-Muller; every method is thread safe.

    `lock` is re-entrant: a distribution holds it while it draws, so that one call's words stay together.

    Words are made some blocks of 624 ahead (`_ahead`), as a call of NumPy costs more than a small draw, and a sampler that does
    not know how many it needs looks at more than it takes. The engine's state where the stream stands (`_at`) follows from the
    words of the block there, which therefore stays in `_ahead`; only at the start (`_at` is 0) it is that of the seed.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.lock = threading.RLock()
        self._bits = np.random.MT19937(_Unseeded())
        self._bulk = np.random.RandomState(self._bits)
        self._state: np.ndarray | None = None  # the engine's, where XLA has gone on from NumPy's
        self.next_normal: float | None = None
        self._next_float_normal: tuple[float, int] = (0.0, 0)
        Generator.manual_seed(self, DEFAULT_SEED)

    def manual_seed(self, seed: int) -> "Generator":
        """Restart from `seed`, an int in [-2**63, 2**64); a negative one counts from 2**64 downwards."""
        seed = checked_seed(seed)
        with self.lock:
            self._seed = seed
            self._bulk.seed(seed & 0xFFFFFFFF)
            self._start(_NOTHING, 0)
            self._untouched = True
            self.next_normal = None
            self._next_float_normal = (0.0, 0)
        return self

    def _start(self, words: np.ndarray, at: int) -> None:
        self._state = None
        self._ahead, self._at, self._end = words, at, words.size
        self._passed = 0  # words from the start to the first of `_ahead`
        self._reach = _AHEAD
        self.normals = NormalsAhead()

    def seed(self) -> int:
        """Restart from 64 bits of the operating system's entropy and return them."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed last set, as an unsigned 64-bit number."""
        return self._seed

    def words(self, n: int) -> np.ndarray:
        """The next `n` 32-bit words (uint32), which the caller must not write."""
        with self.lock:
            found = self.peek(n)
            self.skip(n)
            if n > _LARGE:
                self._extend(0)
            return found

    def few(self, n: int) -> list[int]:
        """The next `n` words as Python's integers."""
        with self.lock:
            if self._at + n > self._end:
                self._extend(n)
            start = self._at
            self.skip(n)
            return self._ahead[start : self._at].tolist()

    @property
    def place(self) -> int:
        """Words from the start (a seed, a state) to the next one."""
        return self._passed + self._at

    @property
    def known(self) -> int:
        """Words that are made."""
        return self._end - self._at

    def peek(self, n: int) -> np.ndarray:
        """The next `n` words, which stay the next ones; for callers that hold the lock."""
        if self._at + n > self._end:
            self._extend(n)
        return self._ahead[self._at : self._at + n]

    def skip(self, n: int) -> None:
        """Take `n` of the words that `peek` gave."""
        if n:
            self._at += n
            self._untouched = False

    def _extend(self, n: int) -> None:
        """Have `n` words ahead, and no earlier ones than the block of the last word."""
        kept = self._ahead[max(self._at - 1, 0) // _N * _N :]
        at = self._at - (self._end - kept.size)
        missing = n - (kept.size - at)
        wanted = max(missing, self._reach) if missing > 0 else 0
        piece = pieces(wanted)
        whole = _N if piece is None else PIECE
        fresh = -(-wanted // whole) * whole
        ahead, state = np.empty(kept.size + fresh, np.uint32), self._state
        ahead[: kept.size] = kept
        if fresh and piece is None:
            if state is not None:
                self._bulk.set_state(("MT19937", state, _N))
                state = None
            ahead[kept.size :] = self._bits.random_raw(fresh)
        elif fresh:
            state = self._bulk.get_state()[1] if state is None else state
            for start in range(kept.size, ahead.size, PIECE):
                ahead[start : start + PIECE], state = piece(state)
            state = np.asarray(state)
        ahead.setflags(write=False)
        passed = self.place - at
        # All of it, or, where Ctrl-C comes before, nothing.
        self._ahead, self._at, self._end, self._state, self._passed, self._reach = ahead, at, ahead.size, state, passed, min(2 * self._reach, _MOST_AHEAD)

    def words64(self, n: int) -> np.ndarray:
        """The next `n` 64-bit words (uint64), each from two 32-bit words, the high half first."""
        pairs = self.words(2 * n)
        out = pairs[0::2].astype(np.uint64)
        out <<= np.uint64(32)
        out |= pairs[1::2]
        return out

    def doubles(self, n: int) -> np.ndarray:
        """Uniform float64 of [0, 1) from the low 53 bits of the next `n` 64-bit words."""
        return as_doubles(self.words(2 * n))

    def double(self) -> float:
        """One of `doubles`."""
        return self.few_doubles(1)[0]

    def few_doubles(self, n: int) -> list[float]:
        """`doubles` as Python's numbers."""
        words = iter(self.few(2 * n))
        return [((high & 0x1FFFFF) << 32 | low) * 2.0**-53 for high, low in zip(words, words, strict=True)]

    def get_state_bytes(self) -> bytes:
        """The state as the 5056 bytes of `torch.get_rng_state()`."""
        with self.lock:
            if self._at:
                start = (self._at - 1) // _N * _N
                key, pos = untempered(self._ahead[start : start + _N]), self._at - start
            else:
                if self._end:  # looked at, nothing taken
                    self._bulk.seed(self._seed & 0xFFFFFFFF)
                    self._state = None
                    self._ahead, self._end = _NOTHING, 0
                key, pos = self._bulk.get_state()[1:3]
            index = 0 if self._untouched else pos
            header = _HEADER.pack(self._seed, _N - pos + 1, 1, index)
            kept = self.next_normal
            normals = _NORMALS.pack(0.0, kept or 0.0, 0.0, kept is not None, *self._next_float_normal)
            return header + key.astype("<u8").tobytes() + normals

    def set_state_bytes(self, state: bytes) -> None:
        """Continue from a state that `get_state_bytes` or `torch.get_rng_state()` gave; RuntimeError if it is not one."""
        if len(state) != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be "
                f"{len(state)}"
            )
        seed, left, seeded, index = _HEADER.unpack_from(state)
        # With one word "left" the engine refills before it reads, so that the index then says nothing.
        if seeded != 1 or not 0 < left <= _N or index > _N or (left > 1 and index != _N + 1 - left):
            raise RuntimeError("Invalid mt19937 state")
        key = np.frombuffer(state, "<u8", _N, _HEADER.size).astype(np.uint32)
        _, kept, _, valid, float_kept, float_valid = _NORMALS.unpack_from(state, _WORDS_END)
        with self.lock:
            self._bulk.set_state(("MT19937", key, _N))
            self._start(tempered(key), _N + 1 - left)
            self._seed = seed
            self._untouched = index == 0
            self.next_normal = kept if valid else None
            self._next_float_normal = (float_kept, float_valid)

    def clone_state(self) -> "Generator":
        """A second generator that will give the same numbers."""
        other = Generator(self.device)
        other.set_state_bytes(self.get_state_bytes())
        return other

    @contextlib.contextmanager
    def fork(self) -> Iterator["Generator"]:
        """Within the `with` block draw as usual; at its end return to the state at its start."""
        state = self.get_state_bytes()
        try:
            yield self
        finally:
            self.set_state_bytes(state)

    def __reduce__(self) -> tuple:
        return _restored, (type(self), self.device, self.get_state_bytes())


_NOTHING = np.empty(0, np.uint32)


def as_doubles(words: np.ndarray) -> np.ndarray:
    """Uniform float64 of [0, 1) from the low 53 bits of each two words, the high half first."""
    out = (words[0::2] & _HIGH) * 2.0**-21
    out += words[1::2] * 2.0**-53
    return out


def _restored(cls: type, device: str, state: bytes) -> Generator:
    generator = cls(device)
    generator.set_state_bytes(state)
    return generator


# PyTorch's default generator starts from entropy; only `Generator()` starts from the fixed default seed.
default_generator = Generator()
default_generator.seed()

# A fork taken while another thread draws would leave the child a lock that nobody will ever release.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: default_generator.lock.acquire(),
        after_in_parent=lambda: default_generator.lock.release(),
        after_in_child=lambda: default_generator.lock.release(),
    )
