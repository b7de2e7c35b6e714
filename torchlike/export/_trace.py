"""A model's run as calls of torch.ops.aten: public functions as the operators that they are to PyTorch, operations inside of functions
that are seen through by the rules of `_leaves`. Each call goes to the operator that is written down, so a graph does what the run did."""
from __future__ import annotations

import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .. import _leaves, overrides
from .._aten_schemas import schema_of
from .._core import program
from .._core.history import outside
from .._core.value import Value
from .._custom_operator import CustomOpDef
from .._examples.watch import Unfollowed, watched
from .._ops import OpOverload, aten
from .._plainly import plain_function
from .._tensor import Tensor
from .._tracing import Capture
from ..fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from ..jit.trace import TracerWarning
from ..overrides import TorchFunctionMode
from ._functions import as_aten
from ._indexing import indexed, put
from ._module_stack import ModuleStack

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LAYERS = os.path.join(_PACKAGE, "nn", "modules") + os.sep


class Ref:
    """The tensor of this number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Call:
    """One call: `args` and `kwargs` hold Refs in the place of tensors; `outs` are the numbers of what it returned (None: no tensor);
    `where` is its user's lines and the modules that it is made in."""

    __slots__ = ("target", "args", "kwargs", "outs", "several", "data", "where")

    def __init__(self, target: Any, args: tuple, kwargs: dict, outs: list, several: bool, data: bool, where: tuple[tuple, tuple]) -> None:
        self.target, self.args, self.kwargs, self.outs, self.several, self.data, self.where = target, args, kwargs, outs, several, data, where


class _Known:
    """A tensor that has a number, and its value when that was last looked at."""

    __slots__ = ("tensor", "number", "value")

    def __init__(self, tensor: Tensor, number: int) -> None:
        self.tensor, self.number, self.value = tensor, number, tensor._current()


class Trace(TorchFunctionMode):
    """One run. `given`: the tensors that are the graph's inputs, in their order; they have the first numbers."""

    recorded = None
    leaf_rules: dict[str, Callable] = {}

    def __init__(self, given: Iterable[Tensor], modules: ModuleStack, traced: bool = False) -> None:
        self.modules = modules
        self.calls: list[Call] = []
        self.tensors: list[Any] = []  # by their numbers: (shape, dtype, device, strides, requires_grad)
        self.constants: list[tuple[int, Tensor]] = []
        self.traced, self.inside, self.data = traced, 0, False
        self._known: dict[int, _Known] = {}
        self._numbers: dict[int, tuple[Value, int]] = {}
        self._depends: set[int] = set()
        self.kept: list[Any] = []
        self._draws = Capture()  # its `draws` are the random numbers
        for t in given:
            self._depends.add(self._add(t))

    # -- which tensor is which -----------------------------------------------------------------------------------------------

    def _add(self, t: Tensor) -> int:
        number = len(self.tensors)
        self.tensors.append((tuple(t.shape), t.dtype, t.device, tuple(t.stride()), t.requires_grad))
        self._name(t, number)
        return number

    def _name(self, t: Tensor, number: int) -> None:
        known = self._known[id(t)] = _Known(t, number)
        self._numbers[id(known.value)] = known.value, number

    def number(self, t: Tensor) -> int:
        """A tensor's; one that nobody made is a constant."""
        known, value = self._known.get(id(t)), t._current()
        if known is not None and known.value is value:
            return known.number
        found = self._numbers.get(id(value))
        if found is not None:
            return found[1]
        if known is not None or value.array is None:
            raise Unfollowed("torch.export cannot follow how a tensor was changed in place: " + "".join(self._line(_stack())))
        if any(v is value for v, _ in self._draws.draws):
            raise Unfollowed("torch.export cannot follow numbers that a function has drawn at random for itself: " + "".join(self._line(_stack())))
        constant = self._add(t.detach().clone() if t._storage is not None else t)
        self.constants.append((constant, t))
        return self._write(aten.lift_fresh_copy.default, (Ref(constant),), {}, t, _stack())

    def _changed(self) -> None:
        """A call wrote: tensors that share memory have other values now."""
        for known in self._known.values():
            value = known.tensor._current()
            if value is not known.value:
                if self._numbers.get(id(known.value), (None, None))[1] == known.number:
                    del self._numbers[id(known.value)]
                self.kept.append(known.value)
                known.value = value
                self._numbers[id(value)] = value, known.number

    def refs(self, x: Any) -> Any:
        """Arguments with Refs in the place of tensors."""
        if isinstance(x, Tensor):
            return Ref(self.number(x))
        if isinstance(x, (tuple, list)):
            return type(x)([self.refs(y) for y in x]) if type(x) in (tuple, list) else [self.refs(y) for y in x]
        if isinstance(x, dict):
            return {k: self.refs(y) for k, y in x.items()}
        return x

    # -- calls -----------------------------------------------------------------------------------------------------------------

    def call(self, target: Any, args: tuple, kwargs: dict, run: Callable | None = None) -> Any:
        """Run an operator, and write that down."""
        refs, named, stack = self.refs(args), self.refs(kwargs), _stack()
        before = [(t, t._current()) for t in held(Tensor, (args, kwargs))]
        self.inside += 1
        looked, self.data = self.data, False
        stacked, _leaves.state.stack = _leaves.state.stack, ()
        try:
            made = target(*args, **kwargs) if run is None else run()
        finally:
            self.inside -= 1
            data, self.data = self.data, looked
            _leaves.state.stack = stacked
        self._write(target, refs, named, made, stack, data)
        if any(t._current() is not v for t, v in before):
            self._changed()
        return made

    def _write(self, target: Any, refs: tuple, named: dict, made: Any, stack: tuple, data: bool = False) -> int | None:
        several = isinstance(made, (tuple, list))
        depends = any(r.number in self._depends for r in held(Ref, (refs, named)))
        outs = []
        for t in made if several else (made,):
            if not isinstance(t, Tensor):
                outs.append(None)
                continue
            outs.append(self._add(t))
            if depends:
                self._depends.add(outs[-1])
        self.calls.append(Call(target, refs, named, outs, several, data and depends, (stack, self.modules.entries)))
        return outs[0] if outs else None

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        plain = plain_function(func)
        if self.inside:
            return plain(*args, **kwargs)
        if getattr(func, "__name__", "") == "__getitem__":
            found = indexed(self, *args)
        elif getattr(func, "__name__", "") == "__setitem__":
            found = put(self, *args)
        else:
            found = as_aten(func, args, kwargs) if hasattr(func, "__name__") else None
            found = None if found is None else self.call(found[0].operator(), found[1], found[2])
        if found is not None:
            return found
        modes, overrides._state.modes = overrides._state.modes, (*overrides._state.modes, self)
        try:
            return plain(*args, **kwargs)
        finally:
            overrides._state.modes = modes

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        found = schema_of(func)
        bound = None if found is None else found.bound(args, kwargs or {})
        return self.call(func, args, kwargs or {}) if bound is None else self.call(func, *bound)

    # -- what cannot be followed -----------------------------------------------------------------------------------------------

    def looked_at(self, t: Tensor) -> None:
        """The model asks for a tensor's data."""
        found = self._numbers.get(id(t._current()))
        if self.inside:
            self.data = True
        elif found is None or found[1] not in self._depends:
            return
        elif self.traced:
            warnings.warn("Converting a tensor to a Python value might cause the trace to be incorrect: it will be treated as a constant, so the trace might "
                          "not generalize to other inputs!", TracerWarning, stacklevel=outside())
        else:
            raise GuardOnDataDependentSymNode(None, "Could not guard on data-dependent expression: the model looks at a value that depends on its inputs "
                                                    "(`if tensor`, `tensor.item()`, ...), which no graph of fixed operators can follow. Use torch.where, "
                                                    "or torch.cond's two branches computed both.\n\nThe following call raised this error:\n"
                                                    + "".join(self._line(_stack())))

    def custom(self, op: CustomOpDef, run: Callable, args: tuple, kwargs: dict) -> Any:
        """An operator that the program registered."""
        return run(op, *args, **kwargs) if self.inside else self.call(op._opoverload, args, kwargs, lambda: run(op, *args, **kwargs))

    def _line(self, stack: tuple) -> list[str]:
        return [f'  File "{name}", line {line}, in {function}\n    {linecache.getline(name, line).strip()}\n' for name, line, function in stack[-1:]]

    def run(self, call: Callable[[], Any], state: Iterable[Tensor]) -> Any:
        """The model's result; its calls are in `calls`."""
        with watched(self, state, self.traced), self, self.modules:
            before, program.state.capture = program.state.capture, self._draws
            _leaves.push(self)
            try:
                return call()
            finally:
                _leaves.pop()
                program.state.capture = before


def held(kind: type, x: Any) -> Iterable[Any]:
    """What is of `kind` in nested tuples, lists and dictionaries."""
    if isinstance(x, kind):
        yield x
    elif isinstance(x, (tuple, list)):
        for y in x:
            yield from held(kind, y)
    elif isinstance(x, dict):
        yield from held(kind, list(x.values()))


def _stack() -> tuple:
    """The user's frames, and those of torch's layers, from the outermost: (file, line, function)."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if name == __file__ and code.co_name == "run":
            break
        if not name.startswith(_PACKAGE) or (name.startswith(_LAYERS) and code.co_name == "forward"):
            found.append((name, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(reversed(found))


def _leaf(*names: str) -> Callable:
    def register(rule: Callable) -> Callable:
        Trace.leaf_rules.update(dict.fromkeys(names, rule))
        return rule
    return register


# -- operations that stay one operator, which a dispatch mode would see taken apart ------------------------------------------------


@_leaf("linear", "linear_alone")
def _linear(call: Callable, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    return call(aten.linear.default, x, w, b)


@_leaf("matmul")
def _matmul(call: Callable, x: Tensor, y: Tensor) -> Tensor:
    return call(aten.matmul.default, x, y)


@_leaf("scaled_dot_product_attention", "attention", "fused_attention")
def _attention(call: Callable, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *rest: Any) -> Any:
    *dropped, scale, causal = rest
    if dropped and dropped[0] is not None:
        return NotImplemented
    return call(aten.scaled_dot_product_attention.default, q, k, v, mask, 0.0, causal, scale=scale)


@_leaf("tiled_attention")
def _tiled_attention(call: Callable, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, causal: bool) -> Any:
    return (call(aten.scaled_dot_product_attention.default, q, k, v, mask, 0.0, causal, scale=scale),)


@_leaf("softmax")
def _softmax(call: Callable, x: Tensor, dim: int) -> Tensor:
    return call(aten.softmax.int, x, dim)


@_leaf("log_softmax")
def _log_softmax(call: Callable, x: Tensor, dim: int) -> Tensor:
    return call(aten.log_softmax.int, x, dim)


@_leaf("reshape")
def _reshape(call: Callable, x: Tensor, shape: tuple) -> Tensor:
    return call(aten.reshape.default, x, list(shape))


@_leaf("real")
def _real(call: Callable, x: Tensor) -> Tensor:
    return call(aten.real.default, x)


@_leaf("imag")
def _imag(call: Callable, x: Tensor) -> Tensor:
    return call(aten.imag.default, x)
