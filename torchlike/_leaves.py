"""What PyTorch's dispatcher would see of a leaf operation: which operators of torch.ops.aten, with which arguments.

While a TorchDispatchMode is on, or once there is a class with `__torch_dispatch__`, `_tensor.apply` records through `record` of this file. The
rules are in `_leaf_rules.py`. An operation without a rule, and without statics, is the operator of its name; any other is an operator of its
own, in torch.ops.torchlike's place.
"""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from . import _tensor
from ._core import device as dev
from ._core import program
from ._core.aval import NUMBERS, aval
from ._core.grad_mode import mode
from ._core.registry import OPS, Plan
from ._core.value import Value, is_tracer
from ._dispatch.held import Held, Nothing, data_of, shown, twin  # noqa: F401
from ._dispatch.tape import taped
from ._dispatch.writes import count
from ._leaf_rules import RULES, SAME
from ._ops import OpOverload, OpOverloadPacket, aten
from ._plainly import dispatching, keeps_tangents, rules
from ._tensor import Tensor, apply


class _State(threading.local):
    stack: tuple = ()  # the modes of this thread, the innermost last


state = _State()
_modes = 0  # of all threads
_lock = threading.Lock()


def push(one: Any) -> None:
    """Hand leaf operations to `one.__torch_dispatch__` from now on."""
    from ._dispatch import backward
    backward.install()
    stay(1)
    state.stack = (*state.stack, one)


def pop() -> Any:
    """The innermost mode, which is off from now on."""
    global _modes
    *rest, last = state.stack
    state.stack = tuple(rest)
    with _lock:
        _modes -= 1
        if not _modes:
            _tensor.record = program.record
    return last


def stay(n: int = 1 << 40) -> None:
    """Ask before each operation, while n modes are on; without n, for good."""
    global _modes
    with _lock:
        _modes += n
        _tensor.record = record


def record(op: Any, values: list, statics: tuple) -> tuple:
    """program.record, which asks this thread's modes first, and the classes of tensors. Inside a mode those outside of it are on, and
    nothing is differentiated."""
    stack = () if dispatching.disabled else state.stack
    held = [v for v in values if v.__class__ is Held]
    if not held and (not stack or any(v.__class__ is Value and (v.aval.device is dev.META or is_tracer(v.array)) for v in values) or dev.META in statics):
        return program.record(op, values, statics)
    if held and dispatching.disabled:
        values[:] = [data_of(v.tensor)._current() if v.__class__ is Held else v for v in values]
        return record(op, values, statics)
    plan = op.plan(tuple([v.aval if isinstance(v, Value) else NUMBERS.get(v.__class__) for v in values]), statics)
    before, mode.enabled = mode.enabled, False
    call = Call(stack[-1] if stack else None, op)
    try:
        tensors = [_tensor_of(v) if isinstance(v, Value) else v for v in values]
        if stack:
            state.stack = stack[:-1]
        rule = stack[-1].leaf_rules.get(op.name) if stack and hasattr(stack[-1], "leaf_rules") else None
        made = NotImplemented if rule is None else rule(call, *tensors, *statics)
        if made is NotImplemented:
            made = _rule(op)(call, tensors, statics)
    finally:
        mode.enabled, state.stack = before, stack
    if not plan.single and not isinstance(made, (tuple, list)):
        raise RuntimeError(f"Object of type '{type(made).__name__}' is not an instance of 'sequence'")
    outs = (made,) if plan.single else tuple(made)
    if len(outs) + op.private == len(plan.outs):  # without what the derivative alone reads: there will be none
        outs += (None,) * op.private
    if held:
        if call.kept:
            values += [None] * (len(plan.avals) - len(values)) + [t._current() for t in call.kept]
        plan = taped(plan, len(call.kept))
    for i, (out, wanted) in enumerate(zip(outs, plan.outs, strict=True)):
        if out is None and (held or i >= len(outs) - op.private):
            continue
        if not isinstance(out, Tensor):
            raise RuntimeError(f"Unable to cast {out} to Tensor")
        if not held and not out._dispatches and out._current().aval is not wanted:
            raise RuntimeError(f"{type(stack[-1]).__name__}.__torch_dispatch__ returned {list(out.shape)} {out.dtype} on {out.device} for {op.name}, not "
                               f"{list(wanted.shape)} {wanted.dtype} on {wanted.device}")
    return plan, tuple([Nothing(wanted, program.META_ARRAY) if out is None else out._current() for out, wanted in zip(outs, plan.outs)])


record.idle = lambda: not state.stack  # a single element of a plain tensor may be written past it: see element_writes.py


def _tensor_of(v: Value) -> Tensor:
    """What a handler gets for a value: the tensor itself, where it is known."""
    if v.__class__ is Held:
        return v.tensor
    target = dispatching.target
    if target is not None and not target.tensor._dispatches and target.tensor._value is v:
        return target.tensor
    return Tensor._of(v)


class Call:
    """What a rule calls with an operator and its arguments: hands them to the mode, else to the arguments' classes.

    `kept` are results that the derivative reads besides the operation's own.
    """

    __slots__ = ("mode", "op", "kept")

    def __init__(self, one: Any, op: Any) -> None:
        self.mode, self.op, self.kept = one, op, []

    def __call__(self, func: OpOverload, /, *args: Any, **kwargs: Any) -> Any:
        bound = _bound(func)
        if bound is not None:
            args, kwargs = bound(args, kwargs) or (args, kwargs)
        target = dispatching.target
        form = None if target is None else target.form(func, args)
        if form is None:
            return _hand_on(self.mode, func, args, kwargs)
        target.done = True
        _hand_on(self.mode, form, args, kwargs)
        count(target.tensor)
        return target.tensor


@functools.cache
def _bound(func: OpOverload) -> Callable | None:
    """What puts arguments into the form that PyTorch gives them: without those that are the default."""
    from ._aten_schemas import schema_of
    schema = schema_of(func)
    return None if schema is None else schema.bound


def _classes(args: Any, found: list) -> list:
    """The tensors among arguments whose classes dispatch, one of each class, subclasses before their bases."""
    for x in args:
        if isinstance(x, Tensor):
            if x._dispatches and not any(type(x) is type(y) for y in found):
                found.insert(next((i for i, y in enumerate(found) if issubclass(type(x), type(y))), len(found)), x)
        elif x.__class__ is list or x.__class__ is tuple:
            _classes(x, found)
    return found


def _rule_of(cls: type, func: OpOverload) -> Callable | None:
    """What a class does with an operator in the place of its `__torch_dispatch__`, where a program registered that."""
    return rules.get(func.name(), {}).get(cls) if rules else None


def _hand_on(one: Any, func: OpOverload, args: tuple, kwargs: dict) -> Any:
    dispatching.asked += 1
    found = _classes((*args, *kwargs.values()), [])
    types = tuple([type(x) for x in found])
    stack = state.stack
    if one is not None:
        handler = one.__torch_dispatch__
        if isinstance(getattr(handler, "__self__", None), type):
            raise RuntimeError("Defining your mode's `__torch_dispatch__` as a classmethod is not supported, please make it a plain method")
        rule = _rule_of(type(one), func)
        made = handler(func, types, args, kwargs) if rule is None else rule(one, func, types, args, kwargs)
        if made is not NotImplemented:
            return made
        state.stack = (*stack, one)  # it is on for what the classes call
    before, dispatching.target = dispatching.target, None
    try:
        if not found and one is None:
            return func(*args, **kwargs)
        for x in found:
            rule = _rule_of(type(x), func)
            made = type(x).__torch_dispatch__(func, types, args, kwargs) if rule is None else rule(type(x), func, types, args, kwargs)
            if made is not NotImplemented:
                if keeps_tangents:
                    keeps_tangents[0](func, (*args, *kwargs.values()), made)
                return made
    finally:
        dispatching.target, state.stack = before, stack
    handlers = "".join(f"\n\n  - tensor subclass {t}" for t in types)
    if one is not None:
        handlers = f"\n\n  - mode object {one}{handlers}"
    raise TypeError(f"Multiple dispatch failed for 'torch.ops.{str(func).removesuffix('.default')}'; all __torch_dispatch__ handlers returned NotImplemented:{handlers}\n\n"
                    "For more information, try re-running with TORCH_LOGS=not_implemented")


def hand_on(func: OpOverload, /, *args: Any, **kwargs: Any) -> Any:
    """An operator that no operation is recorded for: to the mode, else to the arguments' classes. Nothing is differentiated."""
    stack, before, mode.enabled = state.stack, mode.enabled, False
    state.stack = () if dispatching.disabled else stack[:-1]
    try:
        return _hand_on(None if dispatching.disabled else stack[-1] if stack else None, func, args, kwargs)
    finally:
        mode.enabled, state.stack = before, stack


def detached(t: Tensor) -> Tensor:
    """What t's class makes of `detach`."""
    made = hand_on(aten.detach.default, t)
    if not isinstance(made, Tensor):
        raise RuntimeError(f"Unable to cast {made} to Tensor")
    return twin(made) if made is t else made


class _Own:
    """torch.ops.torchlike: leaf operations that are no operators of PyTorch's, by their names."""

    def _add(self, op: Any) -> OpOverloadPacket:
        made = OpOverloadPacket(op.name, lambda *given, statics=(): apply(op, given, _remembered(statics)), ["default"], "torchlike")
        return self.__dict__.setdefault(op.name, made)

    def __getattr__(self, name: str) -> OpOverloadPacket:
        forward = name.removesuffix("_backward")
        if name not in OPS and forward not in OPS:
            raise AttributeError(f"'_OpNamespace' 'torchlike' object has no attribute '{name}'")
        return self._add(OPS[name] if name in OPS else OPS[forward].backward)


_PLAN = "a call of"  # how a plan begins, written down


def written_down(statics: tuple) -> tuple:
    """An operation's statics as values that a graph's code can have: a plan (of a backward) as the call that it is of."""
    numbers = {a: kind.__name__ for kind, a in NUMBERS.items()}

    def one(x: Any) -> Any:
        if not isinstance(x, Plan):
            return x
        plan = x.of if hasattr(x, "of") else x
        avals = tuple([numbers[a] if a in numbers else None if a is None else (tuple(a.shape), a.dtype, a.device) for a in plan.avals])
        return _PLAN, plan.op.name, avals, written_down(plan.statics)
    return tuple([one(x) for x in statics])


def _remembered(statics: tuple) -> tuple:
    """`written_down`, undone."""
    kinds = {kind.__name__: a for kind, a in NUMBERS.items()}

    def one(x: Any) -> Any:
        if x.__class__ is not tuple or not x or x[0].__class__ is not str or x[0] != _PLAN:
            return x
        _, name, avals, rest = x
        op = OPS[name] if name in OPS else OPS[name.removesuffix("_backward")].backward
        return op.plan(tuple([kinds[a] if a.__class__ is str else None if a is None else aval(*a) for a in avals]), _remembered(rest))
    return tuple([one(x) for x in statics])


own = _Own()


@functools.cache
def _rule(op: Any) -> Callable:
    """How an operation is handed on: a function of `call`, its Tensors and numbers, and its statics."""
    special, packet = RULES.get(op.name), getattr(aten, op.name, None) if op.name in SAME or (op.pointwise and "loss" not in op.name and op.name != "prelu") else None
    alone = own._add(op).default

    def run(call: Call, given: list, statics: tuple) -> Any:
        made = NotImplemented if special is None else special(call, *given, *statics)
        if made is not NotImplemented:
            return made
        if statics:
            return call(alone, *given, statics=statics)
        if packet is None or (len(given) > 2 and op.name not in SAME):
            return call(alone, *given)
        return call(getattr(packet, _overload(packet, given)), *given)
    return run


def _overload(packet: OpOverloadPacket, given: list) -> str:
    """Which overload takes these tensors and numbers."""
    names = packet.overloads()
    numbers = tuple(not (x is None or isinstance(x, Tensor)) for x in given)
    if packet.__name__ == "where":
        wanted = ("ScalarSelf" if numbers[1] else "ScalarOther" if numbers[2] else "self",)
    elif numbers == (True, False):
        wanted = ("Scalar_Tensor", "Scalar", "Tensor")
    elif any(numbers) and packet.__name__ not in ("add", "sub", "mul", "div"):
        wanted = ("Tensor_Scalar", "Scalar", "default", "Tensor")
    else:
        wanted = ("Tensor_Tensor", "Tensor", "self", "default")
    if "Scalar" not in names and "Tensor_Scalar" not in names and "Tensor_Tensor" not in names and "default" in names:
        return "default"
    return next((w for w in wanted if w in names), names[0])
