"""Work that is recorded once and repeated on the same tensors: what a CUDA graph is.

Inside a capture operations are recorded into one program, which does not run. What it reads from tensors that were there before
is read anew at each replay, and every tensor that then holds one of its results gets the replay's: the same objects, written in
place. Numbers of Python are part of the capture; only what an optimizer of ours counts goes on, since on a GPU PyTorch counts in tensors.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ._core import program, program_info
from ._core.value import Value
from ._fields import fields
from ._replay import Segment, _aval, _reads, _reference
from ._storage import Storage
from ._tensor import Tensor
from ._tracing import CallCapture, TracedStep, all_tensors, holder_of, is_ours, look_again, tell_apart
from .ops.creation import constant
from .optim._rules import collected
from .optim.optimizer import Optimizer


def _tensors() -> Iterator[Tensor]:
    """All that have data in one piece: not sparse ones, nor such without any."""
    return (t for t in all_tensors() if fields(t).get("_value").__class__ is Value and t._value.aval.device.type != "meta")


def _holders() -> list[Tensor | Storage]:
    return list({id(h): h for h in map(holder_of, _tensors())}.values())


def _read(holder: Tensor | Storage) -> Value:
    return holder.value if isinstance(holder, Storage) else holder._value


def _write(holder: Tensor | Storage, v: Value) -> None:
    if isinstance(holder, Tensor):
        holder = holder_of(holder)  # somebody may have made a view of it
    if isinstance(holder, Storage):
        holder.value = v
        holder.version += 1
    else:
        holder._value = v
        holder._writes += 1


class _Recording(CallCapture):
    """What a capture reads besides tensors; what these hold is sealed until it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: list[tuple[dict, dict]] = []  # optimizers' states as they were: dictionaries and their former entries

    def interrupted(self, reason: str) -> None:
        raise RuntimeError(f"operation not permitted while work is captured: {reason}")

    def begin_step(self, optimizer: Optimizer, closure: Any) -> None:
        if closure is not None:
            raise RuntimeError("operation not permitted while work is captured: an optimizer's step with a closure")
        self.counts += [(d, dict(d)) for d in (optimizer.__dict__, *optimizer.state.values())]
        super().begin_step(optimizer, closure)

    def end_step(self, optimizer: Optimizer) -> None:
        if is_ours(optimizer):
            self.steps.append(TracedStep(optimizer, self.start, len(program.state.program.floats)))

    def undo_counts(self) -> None:
        """Optimizers' own numbers as they were before: nothing has run yet."""
        for d, before in reversed(self.counts):
            d |= {k: v for k, v in before.items() if not isinstance(v, Tensor)}


class _Counted:
    """An optimizer's step in a capture, whose options stay those of the capture."""

    def __init__(self, step: TracedStep) -> None:
        self.step = step
        self.options = [{k: v for k, v in group.items() if k != "params"} for group in step.optimizer.param_groups]

    def tensors(self) -> Iterator[Tensor]:
        """The optimizer's states."""
        return (v for state in self.step.optimizer.state.values() for v in state.values() if isinstance(v, Tensor))

    def numbers(self) -> list[float]:
        """Those of one more step, which is counted."""
        groups = self.step.optimizer.param_groups
        now = [{k: group[k] for k in options} for group, options in zip(groups, self.options)]
        try:
            for group, options in zip(groups, self.options):
                group |= options
            with collected() as numbers:
                self.step.optimizer.step()
        finally:
            for group, options in zip(groups, now):
                group |= options
        return numbers


class Captured:
    """A captured region: `begin`, the work, `end`, then `replay` as often as wanted."""

    def __init__(self) -> None:
        self.done = False
        self.forward: Segment | None = None
        self.recording: _Recording | None = None

    @staticmethod
    def running() -> bool:
        """Whether work is captured now."""
        return isinstance(program.state.capture, _Recording)

    def begin(self) -> None:
        """From here on operations are recorded and not run."""
        if self.done or self.recording is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance.")
        if program.state.capture is not None:
            raise RuntimeError("operation not permitted while work is captured: another capture")
        program.flush("capture")
        look_again(_tensors())  # while that is not part of the capture
        program.flush("capture")
        tell_apart(_tensors())
        self.before = {id(holder): (holder, _read(holder)) for holder in _holders()}
        self.sources = {id(t._value): t for t in _tensors()}
        self.recording = program.state.capture = _Recording()
        self.recording.seal([*(v for _, v in self.before.values()), *(t._value for t in _tensors())])
        self.limit, program.state.limit = program.state.limit, 1 << 60
        self.program = program.state.program

    def end(self) -> None:
        """The capture is over: tensors that were there before are as they were, new ones hold zeros until the first replay."""
        recording, prog = self.recording, self.program
        if recording is None:
            raise RuntimeError("a capture ends that did not begin")
        self.recording, program.state.capture, program.state.limit = None, None, self.limit
        recording.unseal()
        draws: dict[int, Callable] = {id(v): draw for v, draw in recording.draws}
        self.steps = [(s.start, s.end, _Counted(s)) for s in recording.steps if not s.constant]
        counts = {id(holder_of(t)) for _, _, step in self.steps for t in step.tensors()}
        written = []
        for h in _holders():
            v, (_, was) = _read(h), self.before.get(id(h), (h, None))
            computed = (v.epoch is prog and v.array is None) or id(v) in draws or id(v) in self.sources
            if v is was:
                continue
            if computed or was is not None and id(h) not in counts:
                written.append((h, v, was))
            elif was is not None:  # a count: the step writes the next one itself
                _write(h, was)
        recording.undo_counts()
        self.guards = [(draws.get(id(v), self.sources.get(id(v))), again) for v, again in recording.guards]
        if written or prog.checks:
            self._keep(prog, [(h, _reference(v, prog)) for h, v, _ in written], draws)
        for holder, v, was in written:
            _write(holder, constant(v.aval.shape, 0, v.aval.dtype, v.aval.device)._value if was is None else was)
        self.done = True
        del self.before, self.program, self.sources
        program.flush("end of capture")

    def _keep(self, prog: Any, written: list[tuple[Tensor | Storage, int]], draws: dict[int, Callable]) -> None:
        checks = [(_reference(ok, prog), error, None if found is None else _reference(found, prog)) for ok, error, found in prog.checks]
        outs = list(dict.fromkeys([*(ref for _, ref in written), *(ref for ok, _, found in checks for ref in (ok, found) if ref is not None)]))
        self.checks = [(outs.index(ok), error, None if found is None else outs.index(found)) for ok, error, found in checks]
        steps = program_info.steps_to(prog.node)
        reads = _reads(steps, outs)
        self.inputs: list[tuple[str, Any]] = []
        for v in (prog.inputs[-1 - r] for r in reads):
            kind = "draw" if id(v) in draws else "tensor" if id(v) in self.sources else "constant"
            self.inputs.append((kind, draws.get(id(v), v) if kind != "tensor" else self.sources[id(v)]))
        self.targets = [(weakref.ref(holder), outs.index(ref)) for holder, ref in written]
        self.floats, self.ints = list(prog.floats), list(prog.ints)
        self.forward = Segment("captured", steps, reads, outs, [_aval(prog, r) for r in outs])

    def replay(self) -> None:
        """The captured work again, on what its tensors hold now."""
        if not self.done:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        for source, again in self.guards:
            again(source._current() if isinstance(source, Tensor) else source())
        if self.forward is None:  # nothing was captured
            return
        floats = list(self.floats)
        for start, end, step in self.steps:
            floats[start:end] = step.numbers()
        values = [x() if kind == "draw" else x._current() if kind == "tensor" else x for kind, x in self.inputs]
        _, made = program.record(self.forward, [*values, *floats, *self.ints], ())
        for target, k in self.targets:
            holder = target()
            if holder is not None:
                _write(holder, made[k])
        for ok, error, found in self.checks:
            program.check(made[ok], error, None if found is None else made[found])
        del values
        program.cut("end of replay")

    def reset(self) -> None:
        """Forget what was captured."""
        self.__init__()
