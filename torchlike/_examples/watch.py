"""A model's run, watched: who looks at data, which operators of a program's own are called, what is recorded."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Protocol

from .. import _resize, _storage, _tensor
from .._compile import running
from .._core import program
from .._custom_operator import CustomOpDef
from .._exporting import state as exporting
from .._tensor import Tensor
from ..autograd.grad_mode import no_grad
from ..random import fork_rng
from ..utils._pytree import tree_leaves

_RECORDERS = (_tensor, _storage, _resize)  # modules with a name for program.record


class Unfollowed(RuntimeError):
    """What a model does cannot be followed."""


class Watcher(Protocol):
    """Who is told. `recorded` may be None, for one who sees operations in another way."""

    recorded: Callable[[Any, tuple, tuple, Any, tuple], None] | None

    def looked_at(self, t: Tensor) -> None:
        """Somebody asks for a tensor's data."""

    def custom(self, op: CustomOpDef, run: Callable, args: tuple, kwargs: dict) -> Any:
        """An operator that a program registered is called: its result."""


@contextmanager
def watched(who: Watcher, state: Iterable[Tensor], traced: bool) -> Iterator[None]:
    """Inside the block `who` is told what happens. `state`: tensors that are afterwards what they were; `traced`: the model is told that
    torch.jit.trace runs it, else that torch.export does."""
    program.flush("a model is watched")  # what was recorded earlier is known to it, also where the model holds it in a dictionary
    before, state = exporting.graph, list(state)
    traced_before, values = exporting.traced, [t._current() for t in state]
    exporting.graph, exporting.traced = not traced, traced
    running.depth += exporting.graph  # compiled functions run as they are written
    recorders, host_array, numpy, run_custom = [m.record for m in _RECORDERS], Tensor._host_array, Tensor.numpy, CustomOpDef._run
    thread, tell = get_ident(), who.recorded

    def record(op: Any, values: list, statics: tuple) -> tuple:
        plan, outs = program.record(op, values, statics)
        if get_ident() == thread:
            tell(op, tuple(values), statics, plan, tuple(outs))
        return plan, outs

    def looked(self: Tensor) -> Any:
        who.looked_at(self)
        return host_array(self)

    def as_numpy(self: Tensor, *, force: bool = False) -> Any:
        who.looked_at(self)
        return numpy(self, force=force)
    try:
        if tell is not None:
            for m in _RECORDERS:
                m.record = record
        Tensor._host_array, Tensor.numpy = looked, as_numpy
        CustomOpDef._run = lambda self, *args, **kwargs: who.custom(self, run_custom, args, kwargs)
        with no_grad(), fork_rng(devices=[]):
            yield
    finally:
        running.depth -= exporting.graph
        exporting.graph, exporting.traced = before, traced_before
        Tensor._host_array, Tensor.numpy, CustomOpDef._run = host_array, numpy, run_custom
        if tell is not None:
            for m, f in zip(_RECORDERS, recorders):
                m.record = f
        with no_grad():
            for t, v in zip(state, values):
                if t._current() is not v:
                    t.copy_(Tensor._of(v))


def results(x: Any) -> Iterator[Any]:
    """The tensors, and other leaves, of what a model returned."""
    if isinstance(x, Mapping):  # also classes that pytrees do not know
        for y in x.values():
            yield from results(y)
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from results(y)
    elif x is None or isinstance(x, (Tensor, int, float, bool, str)):
        yield x
    else:
        leaves = tree_leaves(x)
        if len(leaves) == 1 and leaves[0] is x:
            raise Unfollowed(f"Failed to export the model: it returns a {type(x).__name__}, which is no tensor, nor a tuple, list or dict of such")
        for y in leaves:
            yield from results(y)
