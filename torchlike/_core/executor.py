"""Running a finished program: which results are still wanted, which tier runs it, which arrays may be donated.

Tiers on the CPU: a program runs in NumPy until it has proved that it returns, then it is compiled by XLA as a whole.
A loop proves it sooner: the same program again within the last few, until what it lost in NumPy is, by an estimate, a third of what
its compilation costs; the later, the more others run in between (a detector's). A program that comes back only now and then (one of many
sequence lengths) must have lost six times that much. What it lost in earlier processes counts, so a script that is run often gets
compiled. A program that takes no longer in NumPy than JAX's dispatch stays there. The rule counts, it does not time, so that two
runs of a script compute the same bits. A program that an earlier process compiled is loaded from the persistent cache at first sight.

On a GPU or TPU the host does in NumPy what it does sooner than a compiler would be done: a program is compiled once it has lost there a third
of what its compilation costs, which a large one would at first sight. Results stay on the host until a compiled program reads them.
"""
from __future__ import annotations

import atexit
import contextlib
import gc
import itertools
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from operator import attrgetter
from time import perf_counter  # not by its module: tests replace the clock there

import jax
import numpy as np

from . import allocator, checks, costs, disk_cache, history, host, mappings, observers, parts, runs
from .aval import FLOAT
from .executable import Executable, build
from .interrupts import Uninterrupted
from .program_info import ProgramInfo, clock, first_sight, infos
from .registry import OPS, Op, plans
from .traces import beside
from .value import Value

NEAR, FAR = 8, 64  # programs between two sights in a loop; from the one to the other, a sight counts ever less
SIGHTS_LIGHT, SIGHTS_HEAVY = 4, 3  # near sights in a row after which a program is compiled
HEAVY_WORK = 2e7  # units of work (see costs.work) per run above which a program is heavy
BESIDE = 0.02  # of a heavy program's work, from which on another counts that runs in between
LARGE_WORK = 1e5  # from which a program's arrays are worth keeping their memory pages for the next
LASTS = 3  # a loop is expected to go on for so many times as long as it has run; see benchmarks/compile_when.py
MOST_NOTES = 64  # files of one process that say what programs lost
MOST_RETIRED = 256  # operations that nobody can record any more until their programs are let go
LENT = 8  # runs of an executable with copies of what it takes over, before another is compiled that does not
ASKED = 8  # programs after which it is looked at again whether memory has grown
SETTLED = 4  # programs after a compilation until then
COUNTED = 2000  # operations compiled until the process's memory mappings are counted: each takes about two
MAPPED = 3  # an executable takes as many besides as so many operations


class _Options:
    tier = None  # None: by the rule above; 'numpy' or 'compiled': forced
    large = 0  # large programs that ran and are not compiled
    works: deque[float] = deque(maxlen=1024)  # of the last programs
    looks = 0  # when it is next looked at whether memory has grown
    patience = SETTLED  # programs until it is looked at once more where it had
    roomy = False  # whether there are large executables
    tidies = False  # once the next compiled program has begun
    loaded = 0  # operations in executables since mappings were counted
    dropped = 0  # operations in executables that were let go since the last collection


options = _Options()


@contextlib.contextmanager
def tier(name: str | None) -> Iterator[None]:
    """Force 'numpy' or 'compiled' execution of programs that end inside the block, in all threads; None restores the rule."""
    if name not in (None, "numpy", "compiled"):
        raise ValueError(f"tier must be 'numpy', 'compiled' or None, got {name!r}")
    from .program import flush
    flush("tier change")
    before, options.tier = options.tier, name
    try:
        yield
    finally:
        try:
            flush("tier change")
        finally:
            options.tier = before


def _count_alone() -> tuple[int, int]:
    """sys.getrefcount, through map over a list, of an object that only that list holds; and of an attribute's value."""
    v = Value(FLOAT)
    v.array = np.zeros(1)
    box = [v]
    del v
    return next(map(sys.getrefcount, box)), sys.getrefcount(box[0].array)


_ALONE, _ARRAY_ALONE = _count_alone()
_ARRAY, _AVAL = attrgetter("array"), attrgetter("aval")
_NOT_ON_DEVICE = (np.ndarray, jax.core.Tracer, type(None))


@atexit.register
def _note_sights() -> None:
    """What programs lost in NumPy counts in later processes, where it is worth a file."""
    if disk_cache.enabled() and options.tier is None and not host.options.numpy_only:
        lost = [info for info in infos if not (info.executables or info.refusal or info.lost_little())]
        for info in sorted(lost, key=lambda info: info.seen * info.gain)[-MOST_NOTES:]:
            disk_cache.note(info, info.earlier + info.seen)


def _distance(info: ProgramInfo, programs: int) -> int:
    """How many of the last programs count beside this large one: a trainer may run a hundred small ones at each step."""
    if programs > len(options.works):
        return FAR + 1
    return sum(work >= BESIDE * info.work for work in itertools.islice(options.works, len(options.works) - programs, None))


def _tick(info: ProgramInfo) -> None:
    clock.now += 1
    if len(_retired) > MOST_RETIRED:
        _forget_retired(info)
    options.works.append(info.work)
    if clock.now >= options.looks and info.executables and info.executables[0].roomy == options.roomy:
        if not options.roomy or allocator.has_grown():  # its buffers found no place where they had been; small ones' do not show
            options.tidies, options.patience = True, 2 * options.patience
        options.looks = clock.now + max(ASKED, options.patience)


def run(prog, reason: str, divisible: bool = True) -> None:
    """Execute a program and give its live results their arrays; in parts, where that is better and allowed."""
    node = prog.node
    info = node.program_info
    if info is None:
        info = first_sight(node, prog.device)
    info.seen += 1
    if divisible:
        runs.ran(info.first, info.short)
    _tick(info)
    distance = clock.now - info.last_seen
    if distance > NEAR and info.work >= HEAVY_WORK:
        distance = _distance(info, distance)
    info.near = info.near + min(1, NEAR / distance) if distance <= FAR else 1
    info.last_seen = clock.now
    results, inputs = prog.results, prog.inputs
    live = tuple([i for i, c in enumerate(map(sys.getrefcount, results)) if c > _ALONE and results[i] is not None])
    if not live:
        _finish(prog, ())
        return
    dead = tuple([i for i, c in enumerate(map(sys.getrefcount, inputs)) if c == _ALONE and _donatable(inputs[i])])
    exe = info.chosen.get((live, dead))
    if exe is None:
        if divisible and (info.eager or info.work >= HEAVY_WORK) and (divided := _divided(info)):
            del results, inputs  # what nobody else holds is dead
            with Uninterrupted():
                parts.run(prog, divided, lambda piece: run(piece, reason, False))
            return
        exe = _choose(prog, info, live, dead, reason)
        if exe is None:
            if info.work >= LARGE_WORK:
                allocator.keep()
            bound = host.bind(info, live)
            if bound.overwrites:  # as below
                with Uninterrupted():
                    _run_numpy(prog, bound, live, dead)
            else:
                _run_numpy(prog, bound, live)
            _finish(prog, live)
            return
    else:
        history.add(info, reason, "compiled", 0.0)
    if exe.donated:  # once it runs, what it was given is gone: Ctrl-C must not take what it made as well
        with Uninterrupted():
            _take_over(prog, exe, live)
    else:
        _take_over(prog, exe, live)


def _divided(info: ProgramInfo) -> list[list[int]] | None:
    """The steps of a program by parts of which some return, where it does not."""
    _look_on_disk(info)
    if info.executables or options.tier is not None or host.options.numpy_only:
        return None
    if info.eager and (calls := parts.calls(info)) is not None:
        saved = costs.DISPATCH * len(calls)
        returns = info.near >= SIGHTS_LIGHT and not info.compiles_longer_than((info.near + info.earlier) * saved * LASTS)
        return None if returns else calls
    if info.work < HEAVY_WORK:
        return None
    options.large += 1
    return parts.divided(info, options.large)


def _take_over(prog, exe: Executable, live: tuple) -> None:
    start = perf_counter() if observers.watching else 0.0
    arrays = exe.run(prog.inputs, prog.floats, prog.ints)
    if observers.watching:
        observers.program(history.entries[-1], arrays, start)
    _tidy_beside()
    results, position = prog.results, exe.position
    for i in live:
        results[i].array = arrays[position[i]]
    _finish(prog, live)


def known(info: ProgramInfo, values: list[Value], replaced: frozenset[int]) -> tuple[Executable, list] | None:
    """The executable of a program for these inputs and all its results, and the inputs' arrays; None where the program must be recorded.

    It may donate the inputs that the caller is going to replace, where nothing but one tensor and the list holds them.
    """
    arrays = list(map(_ARRAY, values))
    kinds = set(map(type, arrays))
    if len(kinds) != 1 or issubclass(*kinds, _NOT_ON_DEVICE) or list(map(_AVAL, values)) != info.input_avals:
        return None
    holders, users = list(map(sys.getrefcount, values)), list(map(sys.getrefcount, arrays))
    for exe in info.executables:
        if len(exe.live) == info.n_results and exe.gone <= replaced:
            for i in exe.donated:
                if not (holders[i] == users[i] == _ALONE + 1) or values[i].shared:
                    break
            else:
                return exe, arrays
    return None


def run_alone(info: ProgramInfo, exe: Executable, arrays: list, floats: Sequence[float], ints: Sequence[int],
              results: list[Value], reason: str) -> None:
    """Run what `known` found, without a program."""
    _tick(info)
    info.last_seen = clock.now
    history.add(info, reason, "compiled", 0.0)
    start = perf_counter() if observers.watching else 0.0
    try:
        made = exe.start(arrays, floats, ints)
    except Exception as error:
        for v in results:
            v.array, v.ref = None, error
        raise
    if observers.watching:
        observers.program(history.entries[-1], made, start)
    _tidy_beside()
    for i, k in exe.position.items():
        results[i].array = made[k]


def _donatable(v: Value) -> bool:
    array = v.array
    # a host array is copied to the device before the run, so the copy may always be donated
    return array.__class__ is np.ndarray or (not v.shared and sys.getrefcount(array) <= _ARRAY_ALONE + 1)


def finished(prog) -> bool:
    """Whether a program that was interrupted had all its results; they are given free then."""
    if prog.node is not None:
        return False
    for v in filter(None, prog.results):
        v.epoch = None
    return True


def _finish(prog, live) -> None:
    results = prog.results
    prog.node = None
    for i in live:
        results[i].epoch = None
    for check in prog.checks:
        check.ok.epoch = None
    prog.results = []
    prog.inputs = []
    prog.floats = []
    prog.ints = []


def _choose(prog, info: ProgramInfo, live: tuple, dead: tuple, reason: str) -> Executable | None:
    """An executable that serves these outputs and donations, or None for the NumPy tier."""
    _look_on_disk(info)
    if info.executables and (exe := _serving(prog, info, live, dead)) is not None:
        history.add(info, reason, "compiled", 0.0)
        return exe
    info.lives.update(live)
    if (info.refusal and options.tier != "compiled") or not _wants_compilation(info, prog.inputs):
        history.add(info, reason, "numpy", 0.0)
        return None
    pairs = _matching(info, tuple(info.lives), dead)
    donated, taking = tuple(pairs), tuple(pairs.values())
    outs = taking + tuple(sorted(info.lives.difference(taking)))
    start = perf_counter()
    try:
        exe = build(info, outs, donated)
    except Exception as error:  # some operation cannot be traced: op by op, its error reaches only what depends on it
        if options.tier == "compiled":
            raise
        info.refusal = f"{type(error).__name__}: {error}"
        history.add(info, reason, "numpy", 0.0)
        return None
    seconds = perf_counter() - start
    _tidy()
    _add(info, exe)
    info.chosen[live, dead] = exe
    history.compilations.append((len(info.steps), seconds, "compiled now"))
    history.add(info, reason, "compiled now", seconds)
    return exe


def _serving(prog, info: ProgramInfo, live: tuple, dead: tuple) -> Executable | None:
    """A known executable that gives these outputs and takes over no more than these inputs; or more, for a few runs."""
    wanted, allowed = set(live), set(dead)
    serving = [exe for exe in info.executables if wanted <= exe.position.keys() and allowed.issuperset(exe.donated)]
    if serving:
        exe = info.chosen[live, dead] = max(serving, key=lambda exe: len(exe.donated))
        return exe
    lending = next((exe for exe in info.executables if wanted <= exe.position.keys() and exe.lent < LENT), None)
    if lending is not None:
        lending.lent += 1
        _lend(prog.inputs, lending.gone - allowed)
    return lending


def _lend(inputs: list[Value], taken: frozenset[int]) -> None:
    """Copies of inputs that an executable takes over, where somebody may still read them: for a few runs (others of the loop are not
    compiled yet) that costs less than an executable that leaves them."""
    with beside():
        for i in taken:
            inputs[i] = Value(inputs[i].aval, jax.numpy.copy(inputs[i].array))


_retired: list[Op] = []


def retire(ops: Sequence[Op]) -> None:
    """Nobody can record these any more: what is known of their programs is let go with the next compilation, or once they are many."""
    _retired.extend(ops)


def _forget_retired(but: ProgramInfo) -> None:
    gone = set()
    while _retired:  # a garbage collection may add some
        gone.add(_retired.pop())
    for op in gone:
        OPS.pop(op.name, None)
    old = [info for info in infos if info is not but and not gone.isdisjoint([plan.op for plan in info.operations()[0]])]
    for info in old:
        options.dropped += len(info.executables) * (MAPPED + len(info.steps))
        info.executables.clear()
        info.chosen.clear()
        info.hosts.clear()
        if info.node is not None:
            info.node.program_info = None
        infos.remove(info)
    if options.dropped >= COUNTED:
        options.dropped = 0
        gc.collect()  # JAX's executables are in cycles


def _add(info: ProgramInfo, exe: Executable) -> None:
    if _retired:
        _forget_retired(info)
    options.roomy |= exe.roomy
    options.loaded += MAPPED + len(info.steps)
    if options.loaded >= COUNTED:
        options.loaded = 0
        if mappings.are_half_used():
            _forget_older_half(info)
    info.executables.append(exe)
    info.short = False


def _forget_older_half(but: ProgramInfo) -> None:
    """Forget the executables that ran longest ago (the persistent cache has them): Linux ends a process that needs too many mappings."""
    holders = sorted((info for info in infos if info.executables and info is not but), key=lambda info: info.last_seen)
    for info in holders[:(len(holders) + 1) // 2]:
        info.executables.clear()
        info.chosen.clear()
        info.looked_on_disk = False
    for plan in plans():
        plan.forget_executable()
    gc.collect()  # JAX's executables are in cycles


def _tidy() -> None:
    """After a compilation: now, and once the arrays of some steps have found their places."""
    allocator.give_back()
    allocator.forget_size()
    options.looks, options.patience = clock.now + SETTLED, SETTLED


def _tidy_beside() -> None:
    """Give back what is free while XLA's threads run a program: not what it works in."""
    if options.tidies:
        options.tidies = False
        allocator.let_others_run()  # it may not have begun
        allocator.give_back()


def _look_on_disk(info: ProgramInfo) -> None:
    if not info.looked_on_disk:
        info.looked_on_disk = True
        if disk_cache.enabled() and options.tier != "numpy" and not host.options.numpy_only:
            _load_known(info)


def _load_known(info: ProgramInfo) -> None:
    start = perf_counter()
    for live, *variant in disk_cache.variants(info):
        _add(info, Executable(info, live, *variant))
        info.lives.update(live)
        history.compilations.append((len(info.steps), perf_counter() - start, "from disk"))
        _tidy()
        start = perf_counter()
    info.earlier = disk_cache.sights(info)


def _matching(info: ProgramInfo, live: tuple, dead: tuple) -> dict[int, int]:
    """Dead inputs whose buffer a result can take over: {input: result}.

    JAX pairs donated inputs with outputs of their shape in order, and XLA copies an input that is still read once its result is
    written. So an input goes to a result of the operation that reads it last (an optimizer's parameter to the new parameter,
    never to a gradient), in the order of both; else to one that a later operation makes.
    """
    reader: dict[int, tuple[int, int]] = {}  # input: (the last step that reads it, which of its arguments)
    for k, s in enumerate(info.steps):
        reader |= {~r: (k, a) for a, r in enumerate(s.refs) if r.__class__ is int and r < 0}
    wanted, pairs, later = set(live), {}, {}
    room: list[dict] = []  # for each step, its live results by aval
    for s in info.steps:
        made: dict = {}
        for r, a in enumerate(s.plan.outs, s.out):
            if r in wanted:
                made.setdefault(a, deque()).append(r)
        room.append(made)
    waiting = []
    for i in sorted(dead, key=lambda i: reader.get(i, (-1, i))):
        k = reader.get(i, (-1, 0))[0]
        own = room[k].get(info.input_avals[i]) if k >= 0 else None
        if own:
            pairs[i] = own.popleft()
        else:
            waiting.append((i, k))
    for k, made in enumerate(room):
        for a, results in made.items():
            later.setdefault(a, deque()).extend((r, k) for r in results)
    for i, k in reversed(waiting):
        left = later.get(info.input_avals[i])
        if left and left[-1][1] > k:
            pairs[i] = left.pop()[0]
    return pairs


def _wants_compilation(info: ProgramInfo, inputs: list[Value]) -> bool:
    if host.options.numpy_only or options.tier == "numpy":
        return False
    if options.tier == "compiled" or info.eager or info.executables:
        return True
    gain = info.gain - costs.PASSED * max(0, len(info.lives) - len(inputs))  # results beyond the inputs take time as well
    if info.device.type != "cpu":
        fetched = sum(v.aval.numel * v.aval.dtype.itemsize for v in inputs if v.array.__class__ is not np.ndarray)
        if not info.compiles_longer_than((info.seen + info.earlier) * (info.gain + fetched * costs.FETCHED_BYTE) * LASTS):
            return True
    elif gain <= 0:
        pass
    elif info.near >= (SIGHTS_HEAVY if info.work >= HEAVY_WORK else SIGHTS_LIGHT) and not info.compiles_longer_than((info.near + info.earlier) * gain * LASTS):
        return True
    elif not info.compiles_longer_than((info.seen + info.earlier) * gain / 2):
        return True
    # operations without a NumPy form are compiled one by one; when that costs more than the whole, take the whole
    if info.foreign is None:
        info.foreign = {plan for plan in info.operations()[0] if not plan._numpy and host.is_foreign(plan)}
    return bool(info.foreign) and not info.compiles_longer_than(sum([plan._xla is None for plan in info.foreign]) * costs.OP_COMPILE)


def _run_numpy(prog, bound: host.HostProgram, live: tuple, dead: tuple = ()) -> None:
    """The first tier: op by op in NumPy. Dead inputs may be overwritten."""
    results = prog.results
    arrays = [v.array if v.array.__class__ is np.ndarray else np.asarray(v.array) for v in prog.inputs]
    memories = [id(a) if a.base is None else id(host.memory(a)) for a in arrays]
    cells = bound.cells(arrays, prog.floats, prog.ints)
    del arrays  # an operation writes in place where only a cell holds the array
    for i in dead:
        prog.inputs[i].array = None
    seen = set()  # memories that results look into
    for i, made in zip(live, host.run(bound, live, cells)):
        if made.__class__ is host.Failure:
            # raised when somebody looks at it
            results[i].ref = made.error if made.instead is None else checks.NotWritten(made.error, Value(results[i].aval, made.instead))
            continue
        results[i].array = made
        if made.base is not None:
            seen.add(id(host.memory(made)))
    if seen:  # a result that looks into an input's buffer: that must then never be donated
        for v, where in zip(prog.inputs, memories):
            if where in seen:
                v.shared = True
