"""How a compiled program takes its Python numbers: they are data, so that another learning rate is no other program."""
from __future__ import annotations

from array import array
from collections.abc import Sequence

import jax
import numpy as np

from .traces import beside

FEW = 8  # numbers that a program takes as two vectors
PATIENCE = 8  # times that a number comes before it is moved to the device


def types(info, calls: Sequence) -> str | None:
    """The type of each number ("d", "q", or "f" where all that reads it works in float32), if each is an argument of its own. None: one vector
    of float64 and one of int64.

    XLA's CPU backend compiles kernels that are alike once; those of two layers are not, where each finds its number at another place of a
    vector. An argument takes 0.3 us of a call. A float64 is converted by every kernel that reads it, which keeps 6 KB of a program's memory.
    """
    if info.device.type != "cpu" or info.n_floats + info.n_ints <= FEW:
        return None
    wide: set[int] = set()
    for call in calls:
        if not call.plan.op.single_precision(call.plan):
            for x in call.args:
                if x.__class__ is tuple and x[0] in ("float", "complex"):
                    wide.update(x[1:])
    return "".join(["d" if k in wide else "f" for k in range(info.n_floats)]) + "q" * info.n_ints


class Numbers:
    """The numbers of an executable's last run as its arguments: NumPy's, which a call copies, or on the device once they came several times in a row.

    JAX starts an executable from C++ where its arguments are of the kinds that an earlier call's were; else, for 172 numbers, that takes 2 ms, with
    NumPy's 0.3, with those on the device 0.06. So a number that now and then is what it was stays where it is.
    """

    __slots__ = ("types", "given", "items", "waiting", "lists")

    def __init__(self, types: str | None):
        self.types = types
        self.given: tuple[bytes, bytes] | None = None  # not as lists: -0.0 == 0.0 and nan != nan
        self.items: list = []
        self.lists: tuple | None = None  # the last ones, where all of them are on the device
        self.waiting: dict[int, int] = {}  # those that are not on the device: how often they came since they were others

    def take(self, floats: Sequence[float], ints: Sequence[int]) -> bool:
        """Take these numbers, in lists that nobody will write; whether all of them lie on the device."""
        last = self.lists
        if last is not None and last[0] is floats and last[1] is ints:
            return True
        self.lists = None
        given = array("d", floats).tobytes(), array("q", ints).tobytes()
        if given == self.given:
            for k in self.waiting:
                self.waiting[k] += 1
            if self.waiting:
                return False
            self.lists = floats, ints
            return True
        new: list = [np.frombuffer(given[0], np.float64), np.frombuffer(given[1], np.int64)]
        if self.types is not None:
            new = [*new[0], *new[1]]
        if self.given is None:
            changed = set(range(len(new)))
        elif self.types is not None:
            bits, before = (np.frombuffer(b"".join(x), np.int64) for x in (given, self.given))
            changed = set(np.flatnonzero(bits != before).tolist())
        else:
            changed = {k for k in (0, 1) if given[k] != self.given[k]}
        self.items = [(_single(x) if self.types is not None and self.types[k] == "f" else x) if k in changed else self.items[k] for k, x in enumerate(new)]
        self.waiting = {k: n + 1 for k, n in self.waiting.items()} | dict.fromkeys(changed, 1)
        self.given = given
        return False

    def move(self, where: jax.Device) -> None:
        """Move what came again and again to the device."""
        places = [k for k, n in self.waiting.items() if n > PATIENCE]
        if places:
            with beside():
                arrays = jax.device_put([self.items[k] for k in places], where)
            for k, moved in zip(places, arrays):
                self.items[k] = moved
                del self.waiting[k]


def _single(x: np.float64) -> np.float32:
    with np.errstate(over="ignore"):  # infinite, as in XLA
        return np.float32(x)
