"""What is known of each program: its operations, how often it was seen and when, what it costs, what was made to run it.

Most programs of changing code are seen once, and nobody asks for their steps; of those little is kept, and after a while a hash (`forget_unseen`).
"""
from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import attrgetter

from . import costs, host
from .aval import COMPLEX, FLOAT, Aval
from .executable import Executable, Step
from .trie import Node, keep_only

UNSEEN, SELDOM = 1 << 11, 1 << 8  # programs, as many as which run until those that did not return meanwhile are forgotten; and after which what is bound to run one is
NOTED = 20  # a program that lost less than this part of its compilation is not worth remembering
MOST_PASSING = 1 << 17  # programs that were let go, of which it is noted when they were seen

_EAGER, _NUMBER = attrgetter("op.eager_compilation"), attrgetter("number")


class _Clock:
    now = 0  # programs run so far
    swept = 0  # when those that did not return were last forgotten


clock = _Clock()
infos: list[ProgramInfo] = []  # of the programs that ran
_once: dict[int, int] = {}  # signatures of programs that were let go: when they were seen


class ProgramInfo:
    """What is known of one program: its steps, how often it was seen, its executables."""

    __slots__ = ("__weakref__", "node", "read", "text", "first", "short", "n_operations", "n_results", "seen", "near", "last_seen", "executables", "chosen", "lives", "work",
                 "gain", "looked_on_disk", "n_floats", "n_ints", "device", "refusal", "hosts", "eager", "foreign", "earlier", "loop", "_compile_seconds")

    def __init__(self, node, device):
        self.node = node  # where it ends in the trie; None once it was let go
        self.read: tuple[list[Step], list] | None = None  # the steps and the inputs' avals, as long as they are worth keeping
        self.text = avals, operations = node.text()  # flat: most programs are seen once, and nobody asks for their steps; None once they are read
        self.n_results, self.device = node.n_results, device
        self.n_floats = self.n_ints = 0
        for refs in operations[1::2]:
            for r in refs:
                if r.__class__ is Aval:
                    if r is FLOAT or r is COMPLEX:
                        self.n_floats += 1 + (r is COMPLEX)
                    else:
                        self.n_ints += 1
        self.seen = self.near = 0  # sights in all, and sights in a row near each other
        self.earlier = 0  # sights in earlier processes, which did not compile it either
        self.last_seen: float = -inf
        self.executables: list[Executable] = []
        self.chosen: dict = {}
        self.hosts: dict[tuple, host.HostProgram] = {}  # by live results
        self.lives: set[int] = set()
        plans = operations[::2]
        self.n_operations = len(plans)
        self.first = plans[0]
        self.work, self.gain = costs.total_work(plans), costs.gain(plans, len(avals), device)
        self._compile_seconds: float | None = None
        self.looked_on_disk = False
        self.eager = any(map(_EAGER, plans))
        self.short = not self.eager and costs.is_short(self.n_operations, self.work, len(avals))  # until it is compiled
        self.foreign: set | None = None  # plans without a NumPy form
        self.refusal = ""  # why it cannot be compiled
        self.loop: tuple | None = None  # where in a loop it ended, once it ended by its length

    @property
    def steps(self) -> list[Step]:
        return self._path()[0]

    @property
    def input_avals(self) -> list:
        return self._path()[1]

    def operations(self) -> tuple[Sequence, Sequence, int]:
        """Its steps' plans, and their references; how many inputs there are."""
        if self.text is None:
            return [s.plan for s in self.read[0]], [s.refs for s in self.read[0]], len(self.read[1])
        avals, flat = self.text
        return flat[::2], flat[1::2], len(avals)

    @property
    def compile_seconds(self) -> float:
        """By estimate."""
        if self._compile_seconds is None:
            steps = _steps(self.text[1]) if self.read is None else self.read[0]  # not kept: most programs are never compiled
            self._compile_seconds = costs.program_seconds(steps, self.lives, self.device)
        return self._compile_seconds

    def compiles_longer_than(self, seconds: float) -> bool:
        """By estimate; that of a program's fixed part is enough for most."""
        return seconds < costs.PROGRAM_COMPILE or seconds < self.compile_seconds

    def _path(self) -> tuple[list[Step], list]:
        if self.read is not None:
            return self.read
        avals, flat = self.text or self.node.text()
        read = _steps(flat), list(avals)
        if self.node is not None:
            self.read, self.text = read, None
        return read

    def recall(self) -> None:
        """Take up what was noted when the same program was let go."""
        seen = _once.pop(_signature(self.text), None)
        if seen is not None:
            self.seen = self.near = 1
            self.last_seen = seen

    def lost_little(self) -> bool:
        """Whether what its runs lost, as long as it is not compiled, is small beside its compilation."""
        return self.compiles_longer_than(NOTED * self.seen * self.gain)

    def is_passing(self) -> bool:
        """Whether it was seen once, in little time: most such programs never return."""
        return self.seen == 1 and not self.executables and self.lost_little()

    def is_unseen(self) -> bool:
        """Whether it did not return for long, and has lost little time."""
        return clock.now - self.last_seen > UNSEEN and not (self.executables or self.refusal) and self.lost_little()

    def note_sight(self) -> None:
        """Only a hash tells from now on that it was seen. What `explain` prints of it is kept."""
        if len(_once) >= MOST_PASSING:
            _once.clear()
        if self.text is None:
            self.text = self.node.text()
        _once[_signature(self.text)] = self.last_seen
        self.read = self.node = None
        self.hosts.clear()

    def let_go(self) -> None:
        """Leave the trie."""
        self.note_sight()
        if infos[-1] is self:
            infos.pop()
        else:
            infos.remove(self)


def _signature(text: tuple[Sequence, Sequence]) -> int:
    """A hash of a program's operations, which tell their inputs' avals: not by identity, as plans are let go and others take their places."""
    operations = text[1]
    return hash((tuple(map(_NUMBER, operations[::2])), operations[1::2]))


def _steps(operations: Sequence) -> list[Step]:
    steps, n = [], 0
    for plan, refs in zip(operations[::2], operations[1::2]):
        steps.append(Step(plan, refs, n))
        n += len(plan.outs)
    return steps


def first_sight(node: Node, device) -> ProgramInfo:
    """Of the program that ends at a node from now on."""
    info = node.program_info = ProgramInfo(node, device)
    infos.append(info)
    if _once:
        info.recall()
    return info


def forget_unseen() -> None:
    """Let go of the programs that did not return for long: of changing ones some return, in the end, and would be kept forever."""
    clock.swept = clock.now
    kept = []
    for info in infos:
        if info.is_unseen():
            info.node.program_info = None
            info.note_sight()
            continue
        kept.append(info)
        if clock.now - info.last_seen > SELDOM:
            info.hosts.clear()  # to bind it again takes a tenth of the run
    infos[:] = kept
    keep_only([info.node for info in kept])


def steps_to(node) -> list[Step]:
    """The operations of the program that has come to a node of the trie."""
    return _steps(node.text()[1])
