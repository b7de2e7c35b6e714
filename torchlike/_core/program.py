"""Programs: operations are recorded into a trie, and run when a value is observed.

Recording walks a trie whose edges are (op, statics, references): when a program ends, the node it stands on *is* its
identity, so looking up its executable costs nothing. Python numbers are not in the edges; they travel in two vectors.
A program seen for the first time runs in NumPy, op by op, without any compilation; one that returns often enough is compiled
whole (`executor.py` decides). Results that nobody holds any more are not outputs; arrays that nobody holds any more are donated.
"""
from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator

import numpy as np
from jax import lax
from jax.numpy import asarray

from . import device as _device
from . import dtype as dtypes
from . import executor, history, host, observers, precision, program_info, runs
from .aval import BOOL, COMPLEX, FLOAT, INT, NUMBERS, Aval
from .checks import Check, check_later, raise_failed, raise_failed_checks
from .derived import derived
from .dtype import Default, dtype
from .grad_mode import mode
from .jax_settings import engine_settings
from .loops import Loop
from .registry import Op, View, any_precise_plan, clear_plans, two_devices
from .silence import silently
from .traces import beside
from .trie import Node, take_out, trie
from .value import Tracer, Unread, Value, is_tracer

MOST_NODES = 400_000  # records kept in the trie; 300 bytes each, and four times as many with what is kept of programs that return
LONGEST = int(os.environ.get("TORCHLIKE_PROGRAM_LENGTH", "4000"))  # results: a step of a network of 100 to 200 layers


class Program:
    """The operations recorded since the last run."""

    __slots__ = ("node", "fresh", "inputs", "floats", "ints", "results", "device", "checks")

    def __init__(self):
        self.node = trie.root
        self.fresh = 0  # nodes that it added to the trie
        self.inputs: list[Value] = []
        self.floats: list[float] = []
        self.ints: list[int] = []
        self.results: list[Value | None] = []  # None: inside a sequence that record_all appended, and not kept
        self.device = None
        self.checks: list[Check] = []

    def add_input(self, v: Value) -> int:
        """The reference of a concrete value in this program."""
        array = v.array
        if array is None:
            if v.epoch is SEALED:
                return self.enter(v)
            if v.epoch.__class__ is Unread:
                v.epoch.read(v)
                return self.enter(v)
            run_waiting()
            array = v.array
            if array is None:
                raise Ended(v)
        if isinstance(array, Tracer) or v.aval.device is _device.META:
            raise RunsNow
        if v.shared and array.__class__ is not np.ndarray and array.is_deleted():
            raise RuntimeError("this tensor's memory was given away to a function of JAX's (donate_argnums): Array has been deleted")
        return self.enter(v)

    def enter(self, v: Value) -> int:
        """v as the next input, whatever it holds."""
        if v.aval.device is not self.device:
            if self.device is not None:
                raise OtherDevice
            self.device = v.aval.device
        before, inputs = self.node, self.inputs
        node = before.child
        if node is None or node.key is not v.aval:
            node = before.find(v.aval)
            if node is None:
                self.fresh += 1
                node = before.add(v.aval, None, before.n_results)
        self.node = node
        inputs.append(v)
        v.epoch, v.ref = self, -len(inputs)
        return v.ref

    def extend(self, key: tuple) -> Node:
        """A new node for a record (op, statics, *references) seen for the first time after this prefix."""
        op, statics = key[:2]
        results, inputs = self.results, self.inputs
        avals = tuple([(results[r].aval if r >= 0 else inputs[~r].aval) if r.__class__ is int else r for r in key[2:]])
        plan = op.plans.get((avals, statics, Default.float)) or op.plan(avals, statics)
        if plan.device is not self.device:
            if self.device is not None:
                raise OtherDevice if plan.device is not _device.META else RunsNow
            if plan.device is _device.META:
                raise RunsNow
            self.device = plan.device
        self.fresh += 1
        return self.node.add(key, plan, self.node.n_results + len(plan.outs))

    def add_numbers(self, values: list) -> None:
        """The Python numbers among a record's values."""
        for v in values:
            cls = v.__class__
            if cls is float:
                self.floats.append(v)
            elif cls is int or cls is bool:
                self.ints.append(v)
            elif cls is complex:
                self.floats.append(v.real)
                self.floats.append(v.imag)

    def forget_unfinished(self) -> None:
        """Drop what a record added before it was interrupted: the node says what belongs to the program."""
        inputs = floats = ints = 0
        node = self.node
        while node.parent is not None:
            inputs += node.plan is None
            for ref in node.refs:
                floats += 1 if ref is FLOAT else 2 if ref is COMPLEX else 0
                ints += ref is INT or ref is BOOL
            node = node.parent
        del self.inputs[inputs:], self.floats[floats:], self.ints[ints:], self.results[self.node.n_results:]


class RunsNow(Exception):
    """An operation on tracers or meta tensors: it is not recorded but done at once."""


class Ended(Exception):
    """An operation on a value whose program is over."""


class OtherDevice(Exception):
    """An operation on another device than the current program's."""


def raise_lost(v: Value):
    failure = v.ref if isinstance(v.ref, BaseException) else RuntimeError("this tensor's value was lost: the program that computes it did not finish")
    raise failure.with_traceback(None)


class _State:
    __slots__ = ("program", "waiting", "limit", "capture", "loop", "whole", "elements", "samples")


state = _State()
state.program = Program()
state.waiting = None  # a finished program that has not run yet: see cut()
state.limit = LONGEST
state.loop = None  # the Loop that the last programs may be of, as long as they end by their length
state.whole = False  # while record_all notes where a sequence leads, all of which is recorded then
state.elements = None  # a program that has nothing in it yet while a loop over parts of tensors runs: views and what it does with few numbers are done at once
state.samples = False  # while a dataset makes samples: small operations are done at once, so that a batch is an input and not an operation for each sample
state.capture = None  # what torch.compile collects while it traces a call: see _compile.py
lock = threading.RLock()
_new = object.__new__
BY_LENGTH = "program length"  # why a program ended
SEALED = "sealed"  # epoch of a Value that has an array, which a traced call must not look at: see _tracing.py


def record(op: Op, values: list, statics: tuple):
    """Append `op` on Values, Python numbers and None; a tuple (node, results).

    The lock makes recording safe from several threads. Nothing of the program changes before the shapes are known,
    so an error (or Ctrl-C) leaves it as it was.
    """
    with lock:
        prog = state.program
        if not prog.results and (found := _at_once(op, values, statics, prog)) is not None:
            return found
        refs = []
        numbers = None
        try:
            for v in values:
                cls = v.__class__
                if cls is Value:
                    refs.append(v.ref if v.epoch is prog else prog.add_input(v))
                elif v is None:
                    refs.append(None)
                else:
                    refs.append(FLOAT if cls is float else _number_kind(v, cls))
                    numbers = True
            key = op, statics, *refs
            node = prog.node.child
            if node is None or node.key != key:  # find() where a call would cost every operation
                others = prog.node.others
                node = None if others is None else others.get(key)
            if node is None:
                node = prog.extend(key)
            elif prog.device is None:
                prog.device = node.plan.device
        except RunsNow:
            return _run_now(op, values, statics)
        except OtherDevice:
            flush("device change")
            return record(op, _moved(op, values), statics)
        except Ended as error:
            recall(*error.args)
            return record(op, values, statics)
        except OverflowError:
            return record(op, _signed(op, values), statics)
        try:
            if numbers:
                prog.add_numbers(values)
            results = prog.results
            n = len(results)
            outs = node.outs
            if len(outs) == 1:
                v = _new(Value)  # Value(outs[0], None, prog, n) at half its cost: this is the hottest line of all
                v.aval, v.array, v.epoch, v.ref, v.shared, v.bounds = outs[0], None, prog, n, False, None
                made = (v,)
                results.append(v)
            else:
                made = tuple([Value(a, None, prog, n + i) for i, a in enumerate(outs)])
                results.extend(made)
            prog.node = node
        except BaseException:  # Ctrl-C
            prog.forget_unfinished()
            raise
        if n >= state.limit and (state.limit or not isinstance(op, View)):  # a view alone computes nothing, immediate or not
            plan, node = node.plan, None
            _end_by_length()
            return plan, made
        return node.plan, made


def _at_once(op: Op, values: list, statics: tuple, prog: Program) -> tuple | None:
    """(plan, results) of an operation on what the host has, computed instead of recorded as the first one of a program (see runs.py); None where it
    must be recorded."""
    if not _may_compute(prog):
        return None
    avals, args = [], []
    for v in values:
        cls = v.__class__
        if cls is Value:
            array = v.array
            if array.__class__ is not np.ndarray:
                return None
            avals.append(v.aval)
            args.append(array)
        elif v is None or cls in NUMBERS and (cls is not int or -0x8000000000000000 <= v <= 0x7FFFFFFFFFFFFFFF):
            avals.append(v if v is None else NUMBERS[cls])
            args.append(v)
        else:
            return None
    key = tuple(avals), statics, Default.float
    try:
        plan = op.plans.get(key) or op.plan(*key[:2])
    except Exception:  # raised where it is recorded
        return None
    if state.limit:
        if not (runs.is_small(plan) if state.samples else state.elements is prog and (op.free or runs.is_tiny(plan))) and not runs.goes_on(plan):
            return None
    elif not runs.is_small(plan):  # op by op, there is no program to be part of
        return None
    try:
        kernel = plan._numpy or plan.numpy
        made = kernel(*args) if op.free else silently(kernel, *args)  # views compute nothing
    except Exception:  # raised, as any other, where somebody looks at the result
        return None
    history.at_once += 1
    if plan.single:
        if made.base is not None:
            if op.free:
                values[0].shared = True
            else:
                _share(made, values)
        v = _new(Value)  # as in record
        v.aval, v.array, v.epoch, v.ref, v.shared, v.bounds = plan.outs[0], made, None, None, False, None
        return plan, (v,)
    for array in made:
        if array.base is not None:
            _share(array, values)
    return plan, tuple(map(Value, plan.outs, made))


def _may_compute(prog: Program) -> bool:
    """Whether no one needs all operations of a program recorded."""
    return not (state.whole or state.capture is not None or prog.__class__ is not Program or executor.options.tier == "compiled" or observers.watching)


def computes_at_once() -> bool:
    """Whether a small operation on what the host has would be computed at once, whatever it is."""
    return not state.program.results and (state.samples or runs.are_expected() or not state.limit) and _may_compute(state.program)


def _share(array: np.ndarray, values: list) -> None:
    """A result may look into an input's buffer, which must then never be donated."""
    owner = host.memory(array)
    for v in values:
        if v.__class__ is Value and host.memory(v.array) is owner:
            v.shared = True


def _end_by_length() -> None:
    """Run the program, which is as long as it may be; the next one ends where a loop's body does."""
    limit, loop, node, fresh = state.limit, state.loop, state.program.node, state.program.fresh
    before = node.program_info.loop if node.program_info is not None else None
    flush(BY_LENGTH)
    if 0 < limit <= LONGEST:
        state.loop = loop = loop or Loop(LONGEST)
        node.program_info.loop = loop.add(node, before)
        state.limit = max(loop.next_length() - 1, 1)
    if fresh:
        box = [node]
        del node
        take_out(box, fresh)


def _forget_loop() -> None:
    if 0 < state.limit <= LONGEST:
        state.limit, state.loop = LONGEST, None


class Sequence:
    """Operations that are recorded together: `steps` (op, statics, sources), where a source k >= 0 is result k of the sequence, ~k
    is given value k, and None is None; `kept`, the results that somebody gets; `n_results`, how many there are."""

    __slots__ = ("steps", "kept", "n_results")


def record_all(sequence: Sequence, values: list) -> list[Value] | None:
    """Append a sequence, given its values: the kept results, or None where it must be recorded one by one: where the program would end in it, too,
    as that has what nobody needs any more among its results.

    A sequence on the same references leads from a node to the same node, so it is looked up as one record. Only the kept results
    become Values then; nobody can ask for the others, which leave None in their places.
    """
    with lock:
        prog = state.program
        if len(prog.results) + sequence.n_results >= state.limit:
            return None
        refs: list = [sequence]
        numbers = False  # the loop is that of record, where a call would cost every operation
        try:
            for v in values:
                cls = v.__class__
                if cls is Value:
                    refs.append(v.ref if v.epoch is prog else prog.add_input(v))
                elif v is None:
                    refs.append(None)
                else:
                    refs.append(_number_kind(v, cls))
                    numbers = True
        except (RunsNow, OtherDevice, Ended, OverflowError):
            return None
        start, n, key = prog.node, len(prog.results), tuple(refs)
        known = None if start.others is None else start.others.get(key)
        if known is None or known[0].parent is None:  # never recorded here, or let go since
            made: list = []
            before, state.whole = state.whole, True
            try:
                for op, statics, sources in sequence.steps:
                    made += record(op, [None if k is None else made[k] if k >= 0 else values[~k] for k in sources], statics)[1]
            finally:
                state.whole = before
            if prog is state.program:
                start.note(key, (prog.node, [made[k].aval for k in sequence.kept], len(made)))
                trie.size += known is None
            return [made[k] for k in sequence.kept]
        end, avals, n_results = known
        try:
            if numbers:
                prog.add_numbers(values)
            results = prog.results
            results += [None] * n_results
            made = []
            for k, a in zip(sequence.kept, avals):
                v = results[n + k] = Value(a, None, prog, n + k)
                made.append(v)
            if prog.device is None:
                prog.device = end.plan.device
            prog.node = end
        except BaseException:  # Ctrl-C
            prog.forget_unfinished()
            raise
        return made


def _signed(op: Op, values: list) -> list:
    """values, their integers of 64 bits without a sign as torch takes them: floats among floats, else the signed ones of the same bits."""
    floats = getattr(op, "promote", None) == "float" or any(v.__class__ is Value and v.aval.dtype.category >= FLOAT.dtype.category for v in values)
    if any(v.__class__ is int and not -0x8000000000000000 <= v <= 0xFFFFFFFFFFFFFFFF for v in values):
        raise OverflowError("int too big to convert")
    return [(float(v) if floats else v - (1 << 64)) if v.__class__ is int and v > 0x7FFFFFFFFFFFFFFF else v for v in values]


def _number_kind(v, cls) -> Aval:
    if cls is float:
        return FLOAT
    if cls is int:
        if not -0x8000000000000000 <= v <= 0x7FFFFFFFFFFFFFFF:
            raise OverflowError("int too big to convert")
        return INT
    if cls is bool:
        return BOOL
    if cls is complex:
        return COMPLEX
    raise TypeError(f"operation on an unsupported value of type {cls.__name__}")


def _run_now(op: Op, values, statics):
    """One operation at once: shapes alone on the meta device, or inside a foreign JAX trace."""
    avals = tuple(None if v is None else v.aval if v.__class__ is Value else NUMBERS[v.__class__] for v in values)
    if any(a is not None and a.device is _device.META for a in avals) or _device.META in statics:
        plan = op.plan(tuple(_to_meta(a) for a in avals), statics)
        if state.capture is not None:
            state.capture.passed(plan)
        return plan, tuple(Value(a, META_ARRAY) for a in plan.outs)
    plan = op.plan(avals, statics)
    args = [concrete(v) if v.__class__ is Value else v for v in values]
    with engine_settings():  # else JAX would narrow float64 and int64, in silence where its own settings say so
        arrays = derived(plan, *[asarray(x) if x.__class__ is np.ndarray else x for x in args])
        if not mode.enabled and mode.walk is None:  # jax.grad, too, shall see nothing of what autograd does not see
            arrays = [lax.stop_gradient(x) for x in arrays]
    return plan, tuple(Value(a, x) for a, x in zip(plan.outs, arrays))


def _to_meta(a: Aval | None):
    from .aval import aval
    return a if a is None or a.number or a.ndim else aval(a.shape, a.dtype, _device.META)


class _MetaArray:
    """Stands where a meta tensor's data would be."""

    def __repr__(self):
        return "<meta>"


META_ARRAY = _MetaArray()


def _moved(op, values):
    """0-dim CPU values follow the device of the others, as in torch; any other value elsewhere is an error."""
    target = next((v.aval.device for v in values if v.__class__ is Value and v.aval.device.type not in ("cpu", "meta")), None)
    if target is None:
        return values
    moved = []
    for v in values:
        if v.__class__ is Value and v.aval.device is not target:
            if v.aval.ndim or v.aval.device.type != "cpu":
                raise RuntimeError(two_devices(op, [x.aval if x.__class__ is Value else None for x in values], target, v.aval.device))
            v = move(v, target)
        moved.append(v)
    return moved


def move(v: Value, device) -> Value:
    """v's data on another device."""
    import jax

    from .aval import aval
    array = concrete(v)
    with engine_settings() if is_tracer(array) else beside():
        moved = jax.device_put(array, _device.jax_device(device))
    made = Value(aval(v.aval.shape, v.aval.dtype, device), moved)
    made.bounds = v.bounds
    return made


def concrete(v: Value):
    """The array of a value; runs the pending program when it is part of it."""
    array = v.array
    if array is None:
        if v.epoch.__class__ is Unread:
            v.epoch.read(v)
            return v.array
        flush("value observed")
        array = v.array
        if array is None:
            raise_failed_checks()
            return recall(v)
    return array


def recall(v: Value):
    """The array of a value whose program is over; its error, where it cannot be computed again."""
    again = getattr(v.ref, "again", None)
    if again is None:
        raise_lost(v)
    v.array, v.epoch, v.ref = concrete(again()), None, None
    return v.array


def check(ok: Value, error: Callable[..., Exception], found: Value | None = None) -> None:
    """Raise `error()`, or `error(found's array)`, at the next observation unless the pending bool `ok` is true; now, when it is known."""
    if ok.array is None:
        state.program.checks.append(Check(ok, error, found))
    elif ok.array is not META_ARRAY and not is_tracer(ok.array):
        raise_failed(Check(ok, error, found))


def guarded(v: Value, again: Callable[[Value], None]) -> bool:
    """Whether a traced call got v from outside: then `again(value)` checks it now, and what takes its place at each replay."""
    sealed = getattr(state.capture, "sealed", None)
    if not sealed or id(v) not in sealed:
        return False
    _, array, bounds = sealed[id(v)]
    shown = Value(v.aval, array)
    shown.bounds = bounds
    again(shown)
    state.capture.guards.append((v, again))
    return True


def flush(reason: str = "") -> None:
    """Run what is pending."""
    with lock:
        run_waiting()
        _forget_loop()
        prog = state.program
        if state.capture is not None:
            state.capture.interrupted(reason)
        if not prog.results:
            if prog.inputs:
                state.program = Program()
            return
        try:
            state.program = Program()
            _execute(prog, reason)
        except BaseException as stop:
            if not isinstance(stop, Exception) and not executor.finished(prog):  # Ctrl-C: nothing is lost, the program is still pending
                state.program = prog
            raise


def cut(reason: str) -> None:
    """A natural end of a program (the end of an optimizer's step). It runs as soon as somebody needs one of its results;
    until then more of its results may die (gradients that `zero_grad` drops) and need not be written."""
    with lock:
        if state.capture is not None:
            return
        run_waiting()
        _forget_loop()
        if state.program.results:
            following = Program()
            state.waiting, state.program = (state.program, reason), following
            if state.limit == 0:
                run_waiting()


def run_waiting() -> None:
    """Run the program that `cut` left."""
    with lock:
        if state.waiting is not None:
            waiting = state.waiting
            try:
                state.waiting = None
                _execute(*waiting)
            except BaseException as stop:
                if not isinstance(stop, Exception) and not executor.finished(waiting[0]):
                    state.waiting = waiting
                raise


def _execute(prog: Program, reason: str) -> None:
    fresh, box = prog.fresh, [prog.node]
    collects = fresh > 0 and gc.isenabled()  # what is made here for a new program is gone soon, and a collection would take it for lasting
    try:
        if collects:
            gc.disable()
        executor.run(prog, reason)
        if fresh and reason != BY_LENGTH:
            take_out(box, fresh)
    except Exception as error:
        for v in filter(None, prog.results):
            v.epoch, v.ref = None, error
        raise
    finally:
        if collects:
            gc.enable()
    if prog.checks:
        check_later(prog.checks)
    if trie.size > MOST_NODES:
        forget_programs()
    elif program_info.clock.now - program_info.clock.swept > program_info.UNSEEN:
        program_info.forget_unseen()


def is_idle() -> bool:
    """Whether nothing is pending where operations are recorded; runs what `cut` left."""
    if state.waiting is not None:
        run_waiting()
    return not state.program.results and state.limit > 0


def forget_programs() -> None:
    """Drop every known program (compiled ones stay in the persistent cache)."""
    with lock:
        if state.program.results or state.waiting:
            return
        trie.__init__()
        program_info.infos.clear()
        state.program = Program()


def set_default_dtype(d: dtype) -> None:
    """Programs of one default dtype are kept while there is another one: Lightning changes it and back around every step in float64."""
    before = Default.float
    with lock:
        if d is not before:
            flush("default dtype changed")
        dtypes.set_default_dtype(d)
        if d is not before:
            trie.change(before, d)
            state.program = Program()


def reset(reason: str) -> None:
    """Forget programs and plans, after a change of a setting that they depend on."""
    with lock:
        flush(reason)
        forget_programs()
        clear_plans()


def permit_tf32(what: str, on: bool) -> None:
    """Allow TF32 for `matmul`, `conv` or `rnn`, or forbid it: what is recorded from now on is computed so."""
    if precision.set_permitted(what, on) and any_precise_plan():
        reset("TF32 allowed or forbidden")


@contextlib.contextmanager
def immediate(mode: bool = True) -> Iterator[None]:
    """Run each operation at once instead of recording programs; results are the same."""
    flush("mode change")
    runs.forget()
    state.elements = None
    before, state.limit = state.limit, 0 if mode else LONGEST
    try:
        yield
    finally:
        try:
            flush("mode change")
        finally:
            state.limit = before


def is_immediate() -> bool:
    return state.limit == 0


if os.environ.get("TORCHLIKE_IMMEDIATE", "0") not in ("", "0"):
    state.limit = 0

tier = executor.tier
numpy_only = host.numpy_only
_of_the_parent: list = []  # programs of the process that this one is a fork of: their executables must not be ended here


def leave_jax() -> None:
    """In a fork of a process that uses JAX: compute with NumPy, and know none of the parent's programs. One that it compiled would be run by XLA, whose
    threads are not here: forever."""
    numpy_only()
    _of_the_parent.append(trie.root)
    forget_programs()
