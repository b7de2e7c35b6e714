"""What a model does, seen once: the engine's operations in their order, and which values they read and make.

Nothing is computed here unless the model looks at a value: recording gives the shapes, and what was recorded is dropped.
"""
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .. import overrides
from .._core.history import outside
from .._core.value import Value
from .._custom_operator import CustomOpDef
from .._examples.watch import Unfollowed, results, watched
from .._exporting import state as exporting
from .._plainly import plain_function
from .._public import first_name
from .._tensor import Tensor
from ..jit.trace import TracerWarning
from ..overrides import TorchFunctionMode
from ._errors import TorchExportError


class Step:
    """An operation: the engine's (`plan` and its `values`), or a public function taken as one, with what it did inside."""

    __slots__ = ("op", "args", "outs", "inner", "plan", "values", "data")

    def __init__(self, op: str, args: tuple, outs: tuple, inner: list[Step] | None = None, plan: Any = None, values: tuple = ()) -> None:
        self.op, self.args, self.outs, self.inner, self.plan, self.values = op, args, outs, inner, plan, values
        self.data = False  # sizes of its results depend on data


# Operations of which the engine chooses one by size, or by what it costs, in one form
_SAME = {"reshape": "view", "full": "constant", "mm": "matmul", "bmm": "matmul", "scaled_dot_product_attention": "attention"}
_MOVED: dict[str, tuple[str, Callable]] = {
    "slice_at": ("slice", lambda x, start, dim, n: (x, dim, start, n, 1)),
    "select_at": ("select", lambda x, i, dim: (x, dim, i)),
    "slice_at_put": ("slice_put", lambda x, new, start, dim, n: (x, new, dim, start, n, 1)),
    "select_at_put": ("select_put", lambda x, new, i, dim: (x, new, dim, i)),
    **dict.fromkeys(("fused_attention", "tiled_attention"), ("attention", lambda q, k, v, mask, scale, causal: (q, k, v, mask, None, None, scale, causal))),
}


def _usual(name: str, values: tuple, statics: tuple) -> tuple[str, tuple]:
    """An operation's name and arguments, in the form that translations know."""
    args = (*values, *statics)
    if name in _MOVED and not (name.endswith("_at") and args[1].__class__ is Value):
        name, order = _MOVED[name]
        return name, order(*args)
    return _SAME.get(name, name), args


class Run:
    """One run of the model. A Value stands in a Step's arguments wherever a tensor was."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.outputs: list = []
        self.inputs: list[Value] = []
        self.depends: set[int] = set()  # ids of the values that depend on the inputs
        self.kept: list[Value] = []  # so that no id is used twice
        self.counts_data = False  # sizes depend on the inputs' data

    def made(self, values: tuple, outs: tuple) -> None:
        self.kept += outs
        if any(v.__class__ is Value and id(v) in self.depends for v in values):
            self.depends.update(map(id, outs))


class _Functions(TorchFunctionMode):
    """Public functions that are taken as one operation."""

    def __init__(self, run: Run, whole: dict[str, Callable], traced: bool) -> None:
        self.run, self.whole, self.traced, self.reads = run, whole, traced, 0

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        plain = plain_function(func)
        name = first_name(func) if hasattr(func, "__name__") else ""
        wanted = self.whole.get(name)
        taken = None if wanted is None or self.reads else wanted(*args, **kwargs)
        if not taken:
            modes, overrides._state.modes = overrides._state.modes, (*overrides._state.modes, self)
            try:
                return plain(*args, **kwargs)
            finally:
                overrides._state.modes = modes
        return self.take(name, lambda: plain(*args, **kwargs), _bound(plain, args, kwargs), taken == "data")

    def recorded(self, op: Any, values: tuple, statics: tuple, plan: Any, outs: tuple) -> None:
        """The engine records an operation."""
        self.run.steps.append(Step(*_usual(op.name, values, statics), outs, None, plan, values))
        self.run.kept += [v for v in values if v.__class__ is Value]
        self.run.made(values, outs)

    def looked_at(self, t: Tensor) -> None:
        """The model asks for a tensor's data."""
        if self.reads or id(t._current()) not in self.run.depends:
            return
        if not self.traced:
            raise TorchExportError("Failed to export the model: it looks at a value that depends on its inputs (`if tensor`, `tensor.item()`, ...), which a "
                                   "file of fixed operations cannot follow. Write it with torch.where, or export with dynamo=False, which takes the value for "
                                   "a constant.")
        warnings.warn("Converting a tensor to a Python value might cause the trace to be incorrect: it will be treated as a constant, so the trace might not "
                      "generalize to other inputs!", TracerWarning, stacklevel=outside())

    def custom(self, op: CustomOpDef, run: Callable, args: tuple, kwargs: dict) -> Any:
        """An operator that the program registered, as one Step."""
        if self.reads:
            return run(op, *args, **kwargs)
        inputs, named = op._parameters.completed(args, kwargs)
        return self.take(op._qualname, lambda: run(op, *args, **kwargs), (*inputs, *named.values()))

    def take(self, name: str, call: Callable[[], Any], args: tuple, data: bool = False) -> Any:
        """Call it, as one Step. `data`: the results' sizes depend on the arguments' data."""
        before, self.run.steps = self.run.steps, []
        self.reads += 1
        try:
            made = call()
        finally:
            self.reads -= 1
            inner, self.run.steps = self.run.steps, before
        several = made if isinstance(made, (tuple, list)) else (made,)
        outs = tuple([t._current() for t in several])
        step = Step(name, _values(args), outs, inner)
        step.data = data
        inputs = [v for v in _leaves(step.args) if v.__class__ is Value]
        if data or (any(id(v) in self.run.depends for v in inputs) and not all(id(v) in self.run.depends for v in outs)):
            self.run.counts_data = True  # or the results come from outside of torch
        self.run.kept += inputs
        self.run.made(tuple(inputs), outs)
        self.run.steps.append(step)
        return made


def _bound(f: Callable, args: tuple, kwargs: dict) -> tuple:
    """The arguments in their parameters' order, defaults included."""
    given = inspect.signature(f).bind(*args, **kwargs)
    given.apply_defaults()
    return (*given.args, *given.kwargs.values())


def _values(x: Any) -> Any:
    """A nest of arguments with Values in the place of tensors."""
    if isinstance(x, Tensor):
        return x._current()
    if isinstance(x, (tuple, list)):
        return tuple([_values(y) for y in x])
    return x


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, (tuple, list)):
        for y in x:
            yield from _leaves(y)
    else:
        yield x


def capture(call: Callable[[], Any], inputs: list[Tensor], state: list[Tensor], whole: dict[str, Callable], traced: bool) -> Run:
    """Call the model. `state`: tensors that shall afterwards be what they were; `traced`: data that it looks at are constants."""
    run = Run()
    run.inputs = [t._current() for t in inputs]
    run.depends = set(map(id, run.inputs))
    run.kept += run.inputs
    mode = _Functions(run, whole, traced)
    before, exporting.onnx = exporting.onnx, True
    try:
        with watched(mode, state, traced), mode:
            made = call()
            try:
                run.outputs = [_values(x) for x in results(made)]
            except Unfollowed as e:
                raise TorchExportError(str(e)) from None
    finally:
        exporting.onnx = before
    return run
