"""What PyTorch's dispatcher would see of a leaf operation: which operators of torch.ops.aten, with which arguments.

While a TorchDispatchMode is on, `_tensor.apply` records through `record` of this file. A rule gets `call`, which hands an operator to
the mode, the operation's Tensors and numbers, and its statics; it returns what the operation results in. An operation without a
rule, and without statics, is the operator of its name; any other is an operator of its own, in torch.ops.torchlike's place.
"""
from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

from . import _tensor
from ._core import device as dev
from ._core import program
from ._core.aval import NUMBERS, broadcast_shapes
from ._core.grad_mode import mode
from ._core.registry import OPS
from ._core.value import Value, is_tracer
from ._dispatch.held import Held, Nothing, data_of, shown, twin  # noqa: F401
from ._dispatch.tape import taped
from ._dispatch.writes import count
from ._ops import OpOverload, OpOverloadPacket, aten
from ._ops_layers import REDUCTIONS
from ._plainly import dispatching
from ._tensor import Tensor, apply

_RULES: dict[str, Callable] = {}
_SAME = frozenset("mm bmm mv dot t alias clone conj where clamp softplus hardtanh threshold".split())  # the operator of that name has these arguments


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
    outs = (made,) if plan.single else tuple(made)
    if held:
        if call.kept:
            values += [None] * (len(plan.avals) - len(values)) + [t._current() for t in call.kept]
        plan = taped(plan, len(call.kept))
    for out, wanted in zip(outs, plan.outs, strict=True):
        if held and out is None:
            continue
        if not isinstance(out, Tensor):
            raise TypeError(f"Unable to cast Python instance of type {type(out)} to C++ type 'at::Tensor': __torch_dispatch__ returned it for {op.name}")
        if not held and not out._dispatches and out._current().aval is not wanted:
            raise RuntimeError(f"{type(stack[-1]).__name__}.__torch_dispatch__ returned {list(out.shape)} {out.dtype} on {out.device} for {op.name}, not "
                               f"{list(wanted.shape)} {wanted.dtype} on {wanted.device}")
    return plan, tuple([Nothing(wanted, program.META_ARRAY) if out is None else out._current() for out, wanted in zip(outs, plan.outs)])


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


def _hand_on(one: Any, func: OpOverload, args: tuple, kwargs: dict) -> Any:
    found = _classes((*args, *kwargs.values()), [])
    types = tuple([type(x) for x in found])
    stack = state.stack
    if one is not None:
        handler = one.__torch_dispatch__
        if isinstance(getattr(handler, "__self__", None), type):
            raise RuntimeError("Defining your mode's `__torch_dispatch__` as a classmethod is not supported, please make it a plain method")
        made = handler(func, types, args, kwargs)
        if made is not NotImplemented:
            return made
        state.stack = (*stack, one)  # it is on for what the classes call
    before, dispatching.target = dispatching.target, None
    try:
        if not found and one is None:
            return func(*args, **kwargs)
        for x in found:
            made = type(x).__torch_dispatch__(func, types, args, kwargs)
            if made is not NotImplemented:
                return made
    finally:
        dispatching.target, state.stack = before, stack
    handlers = "".join(f"\n\n  - tensor subclass {t}" for t in types)
    if one is not None:
        handlers = f"\n\n  - mode object {one}{handlers}"
    raise TypeError(f"Multiple dispatch failed for 'torch.ops.{func}'; all __torch_dispatch__ handlers returned NotImplemented:{handlers}\n\n"
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
    return twin(made) if made is t else made


class _Own:
    """torch.ops.torchlike: leaf operations that are no operators of PyTorch's, by their names."""

    def _add(self, op: Any) -> OpOverloadPacket:
        made = OpOverloadPacket(op.name, lambda *given, statics=(): apply(op, given, statics), ["default"], "torchlike")
        return self.__dict__.setdefault(op.name, made)

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name not in OPS:
            raise AttributeError(f"'_OpNamespace' 'torchlike' object has no attribute '{name}'")
        return self._add(OPS[name])


own = _Own()


@functools.cache
def _rule(op: Any) -> Callable:
    """How an operation is handed on: a function of `call`, its Tensors and numbers, and its statics."""
    special, packet = _RULES.get(op.name), getattr(aten, op.name, None) if op.name in _SAME or (op.pointwise and "loss" not in op.name and op.name != "prelu") else None
    alone = own._add(op).default

    def run(call: Call, given: list, statics: tuple) -> Any:
        made = NotImplemented if special is None else special(call, *given, *statics)
        if made is not NotImplemented:
            return made
        if statics:
            return call(alone, *given, statics=statics)
        if packet is None or (len(given) > 2 and op.name not in _SAME):
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


def _seen_as(*names: str) -> Callable:
    def register(rule: Callable) -> Callable:
        _RULES.update(dict.fromkeys(names, rule))
        return rule
    return register


# -- products ------------------------------------------------------------------------------------------------------------


def _rows(x: Tensor) -> int:
    return math.prod(x.shape[:-1])


@_seen_as("linear", "linear_alone")
def _linear(call: Call, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    flat = x.ndim != 2
    if b is None:
        turned = call(aten.t.default, w)
        rows = call(aten.view.default, x, [_rows(x), x.shape[-1]]) if flat else x
        y = call(aten.mm.default, rows, turned)
        return call(aten._unsafe_view.default, y, [*x.shape[:-1], w.shape[0]]) if flat else y
    rows = call(aten.view.default, x, [_rows(x), x.shape[-1]]) if flat else x
    y = call(aten.addmm.default, b, rows, call(aten.t.default, w))
    return call(aten.view.default, y, [*x.shape[:-1], w.shape[0]]) if flat else y


@_seen_as("matmul")
def _matmul(call: Call, x: Tensor, y: Tensor) -> Tensor:
    if y.ndim == 2 and x.ndim > 2:
        out = call(aten.mm.default, call(aten.view.default, x, [_rows(x), x.shape[-1]]), y)
        return call(aten._unsafe_view.default, out, [*x.shape[:-1], y.shape[-1]])
    if x.ndim < 2 or y.ndim < 2:
        return NotImplemented
    batch = broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    flat = [math.prod(batch)]
    a, b = (call(aten.view.default if tuple(t.shape[:-2]) == batch else aten._unsafe_view.default,
                 call(aten.expand.default, t, [*batch, *t.shape[-2:]]), [*flat, *t.shape[-2:]]) for t in (x, y))
    return call(aten._unsafe_view.default, call(aten.bmm.default, a, b), [*batch, x.shape[-2], y.shape[-1]])


@_seen_as("scaled_dot_product_attention", "attention", "fused_attention")
def _attention(call: Call, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *rest: Any) -> Tensor:
    *dropped, scale, causal = rest
    if (dropped and dropped[0] is not None) or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        return NotImplemented  # PyTorch's operators draw themselves which weights are dropped, and repeat heads before
    if q.device.type == "cpu":
        return call(aten._scaled_dot_product_flash_attention_for_cpu.default, q, k, v, 0.0, causal, attn_mask=mask, scale=scale)[0]
    if mask is None:
        return call(aten._scaled_dot_product_flash_attention.default, q, k, v, 0.0, causal, scale=scale)[0]
    return call(aten._scaled_dot_product_efficient_attention.default, q, k, v, mask, False, 0.0, causal, scale=scale)[0]


# -- statics in the places where PyTorch's operators have them ------------------------------------------------------------------


def _straight(name: str, overload: str = "default", order: Callable | None = None) -> Callable:
    """A rule that calls one operator; `order` makes its arguments of the operation's: a list, and a dict after it where some go by name."""
    def rule(call: Call, *args: Any) -> Any:
        given = list(args) if order is None else order(*args)
        by_name = given.pop() if given and isinstance(given[-1], dict) else {}
        return call(getattr(getattr(aten, name), overload), *given, **by_name)
    return rule


def _reduction(x: Tensor, dims: Any, keepdim: bool, dtype: Any) -> list:
    return [x, list(dims), keepdim, *([{"dtype": dtype}] if dtype is not x.dtype else [])]


def _total(x: Tensor, dims: Any, keepdim: bool, dtype: Any) -> list:
    return [x, *([{"dtype": dtype}] if dtype is not x.dtype else [])]


for _name, _op, *_how in (
    ("softmax", "_softmax", "default", lambda x, dim: [x, dim, False]),
    ("log_softmax", "_log_softmax", "default", lambda x, dim: [x, dim, False]),
    ("gelu", "gelu", "default", lambda x, tanh: [x, {"approximate": "tanh"}] if tanh else [x]),
    ("lerp_by_number", "lerp", "Scalar"), ("lerp", "lerp", "Tensor"), ("diagonal", "diagonal"), ("glu", "glu"), ("cummax", "cummax"), ("cummin", "cummin"),
    ("unfold", "unfold"), ("median", "median"), ("median_dim", "median", "dim"), ("kthvalue", "kthvalue"), ("mode", "mode"), ("nan_to_num", "nan_to_num"),
    ("logcumsumexp", "logcumsumexp"), ("linalg_cross", "linalg_cross", "default", lambda x, y, dim: [x, y, {"dim": dim}]),
    ("cumprod", "cumprod", "default", lambda x, dim, dtype: [x, dim, *([{"dtype": dtype}] if dtype is not x.dtype else [])]),
    ("conv_transpose", "convolution", "default", lambda x, w, stride, padding, more, dilation, groups: [
        x, w, None, list(stride), list(padding), list(dilation), True, list(more), groups]),
    ("tril", "tril"), ("triu", "triu"), ("topk", "topk"), ("sort", "sort"), ("argmax", "argmax"), ("argmin", "argmin"), ("flip", "flip"),
    ("embedding", "embedding", "default", lambda w, i, padding: [w, i, *([] if padding is None else [padding])]),
    ("gather", "gather", "default", lambda x, index, dim: [x, dim, index]),
    ("native_dropout", "mul", "Tensor", lambda x, mask, scale: [x, mask * scale]),
    ("pow_scalar", "pow", "Tensor_Scalar"),
    ("round", "round", "default", lambda x, decimals: [x]), ("round_decimals", "round", "decimals", lambda x, decimals: [x, {"decimals": decimals}]),
    ("add_scaled", "add", "Tensor", lambda x, y, a: [x, y, {"alpha": a}]),
    ("sub_scaled", "sub", "Tensor", lambda x, y, a: [x, y, {"alpha": a}]),
    *((name, "div", "Tensor_mode", lambda x, y: [x, y, {"rounding_mode": "trunc"}]) for name in ("div_trunc", "div_trunc_by_number")),
    ("sum_dim", "sum", "dim_IntList", _reduction), ("mean_dim", "mean", "dim", _reduction),
    ("sum", "sum", "default", _total), ("mean", "mean", "default", _total),
    ("max_dim", "max", "dim"), ("min_dim", "min", "dim"),
    ("max_of_all", "max", "default", lambda x, dims, keepdim: [x]), ("min_of_all", "min", "default", lambda x, dims, keepdim: [x]),
    ("amax", "amax", "default", lambda x, dims, keepdim: [x, list(dims), keepdim]),
    ("amin", "amin", "default", lambda x, dims, keepdim: [x, list(dims), keepdim]),
    ("logsumexp", "logsumexp", "default", lambda x, dims, keepdim: [x, list(dims) if x.ndim else 0, keepdim]),
    ("linalg_vector_norm", "linalg_vector_norm", "default", lambda x, p, dims, keepdim: [x, p, list(dims), keepdim]),
    ("var", "var", "correction", lambda x, dims, keepdim, correction: [x, list(dims), {"correction": correction, "keepdim": keepdim}]),
    ("std", "std", "correction", lambda x, dims, keepdim, correction: [x, list(dims), {"correction": correction, "keepdim": keepdim}]),
    ("cumsum", "cumsum", "default", lambda x, dim, dtype: [x, dim, *([{"dtype": dtype}] if dtype is not x.dtype else [])]),
    ("to_copy", "_to_copy", "default", lambda x, dtype: [x, {"dtype": dtype}]),
    ("cat", "cat", "default", lambda *args: [list(args[:-1]), args[-1]]),
    ("constant", "full", "default", lambda value, shape, dtype, device: [list(shape), value, {"dtype": dtype, "device": device}]),
    ("full", "full", "default", lambda value, shape, dtype, device: [list(shape), value, {"dtype": dtype, "device": device}]),
    # views
    ("view", "view", "default", lambda x, shape: [x, list(shape)]), ("reshape", "_unsafe_view", "default", lambda x, shape: [x, list(shape)]),
    ("permute", "permute", "default", lambda x, dims: [x, list(dims)]), ("transpose", "transpose", "int"), ("unsqueeze", "unsqueeze"),
    ("squeeze_dims", "squeeze", "dims", lambda x, dims: [x, list(dims)]),
    ("squeeze", "squeeze", "default", lambda x, dims: [x]),
    ("expand", "expand", "default", lambda x, shape: [x, list(shape)]),
    ("select", "select", "int"), ("select_at", "select", "int", lambda x, i, dim: [x, dim, i]), ("unbind", "select", "int"),
    ("slice", "slice", "Tensor", lambda x, dim, start, n, step: [x, dim, start, start + (n - 1) * step + 1 if n else start, step]),
    ("split", "slice", "Tensor", lambda x, dim, start, n, step: [x, dim, start, start + (n - 1) * step + 1 if n else start, step]),
    ("slice_at", "slice", "Tensor", lambda x, start, dim, n: [x, dim, start, start + n]),
    ("repeat", "repeat", "default", lambda x, reps: [x, list(reps)]),
):
    _RULES.setdefault(_name, _straight(_op, *_how))


@_seen_as("part_select", "part_slice")
def _part(call: Call, x: Tensor, *rest: Any) -> Tensor:
    *numbers, part = rest
    data, dropped = iter(numbers), 0
    for dim, start, n in part:
        start = next(data) if start is None else start
        if n < 0:
            x = call(aten.select.int, x, dim - dropped, start)
            dropped += 1
        else:
            x = call(aten.slice.Tensor, x, dim - dropped, start, start + n)
    return x


@_seen_as("squeeze_dim")
def _squeeze(call: Call, x: Tensor, dims: tuple) -> Tensor:
    return call(aten.squeeze.dim, x, *dims) if len(dims) == 1 else call(aten.squeeze.dims, x, list(dims))


@_seen_as("convolution")
def _convolution(call: Call, x: Tensor, w: Tensor, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> Tensor:
    if any(low != high for low, high in padding):
        return NotImplemented
    return call(aten.convolution.default, x, w, None, list(stride), [low for low, _ in padding], list(dilation), False, [0] * len(stride), groups)


@_seen_as("native_layer_norm")
def _layer_norm(call: Call, x: Tensor, w: Tensor | None, b: Tensor | None, k: int, eps: float) -> Tensor:
    made, *statistics = call(aten.native_layer_norm.default, x, list(x.shape[x.ndim - k:]), w, b, eps)
    call.kept = statistics
    return made


@_seen_as("elu")
def _elu(call: Call, x: Tensor, alpha: float, scale: float, steep: float) -> Tensor:
    return call(aten.elu.default, x, alpha, *([] if scale == steep == 1 else [scale, steep]))


@_seen_as("addcmul", "addcdiv")
def _addc(call: Call, x: Tensor, a: Tensor, b: Tensor, value: float) -> Tensor:
    return call(getattr(aten, call.op.name).default, x, a, b, value=value)


@_seen_as("prod", "prod_dim")
def _prod(call: Call, x: Tensor, dims: Any, keepdim: bool, dtype: Any) -> Tensor:
    named = {} if dtype is x.dtype else {"dtype": dtype}
    if call.op.name == "prod_dim":
        dim, = (dims,) if isinstance(dims, int) else dims
        return call(aten.prod.dim_int, x, dim, keepdim, **named)
    return call(aten.prod.default, x, **named)


@_seen_as("any", "all")
def _any(call: Call, x: Tensor, dims: Any, keepdim: bool) -> Tensor:
    packet = getattr(aten, call.op.name)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if dims == tuple(range(x.ndim)) and not keepdim:
        return call(packet.default, x)
    return call(packet.dim, x, *dims, keepdim) if len(dims) == 1 else call(packet.dims, x, list(dims), keepdim)


def _places(dims: tuple, index: tuple) -> list:
    """Index tensors of dimensions as PyTorch's operators list them: None where the whole dimension is taken."""
    found = dict(zip(dims, index))
    return [found.get(i) for i in range(max(dims) + 1)]


@_seen_as("index")
def _index(call: Call, x: Tensor, *rest: Any) -> Tensor:
    *index, dims = rest
    return call(aten.index.Tensor, x, _places(dims, index))


@_seen_as("index_put")
def _index_put(call: Call, x: Tensor, value: Tensor, *rest: Any) -> Tensor:
    *index, dims, accumulate = rest
    return call(aten.index_put.default, x, _places(dims, index), value, accumulate)


@_seen_as("scatter")
def _scatter(call: Call, x: Tensor, index: Tensor, source: Tensor | float, dim: int, how: str) -> Tensor:
    if how == "add":
        return call(aten.scatter_add.default, x, dim, index, source)
    if how != "set":
        return NotImplemented
    return call(aten.scatter.src if isinstance(source, Tensor) else aten.scatter.value, x, dim, index, source)


@_seen_as("constant_pad_nd")
def _pad(call: Call, x: Tensor, value: float, pads: tuple) -> Tensor:
    flat = [n for pair in reversed(pads) for n in pair]
    while len(flat) > 2 and flat[-2:] == [0, 0]:
        del flat[-2:]
    return call(aten.constant_pad_nd.default, x, flat, float(value))


@_seen_as("binary_cross_entropy", "binary_cross_entropy_with_logits")
def _bce(call: Call, x: Tensor, target: Tensor, weight: Tensor | None, *rest: Any) -> Tensor:
    *positive, reduction = rest
    return call(getattr(aten, call.op.name).default, x, target, weight, *positive, REDUCTIONS.index(reduction))


@_seen_as("overwrite")
def _overwrite(call: Call, old: Tensor, new: Tensor) -> Tensor:
    target = dispatching.target
    if target is None or target.done or target.tensor is not old:
        return NotImplemented
    call(aten.copy_.default, old, new)
    target.done = True
    count(old)
    return old


@_seen_as("cross_entropy")
def _cross_entropy(call: Call, x: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, smoothing: float) -> Tensor:
    if smoothing or x.ndim != 2:
        return NotImplemented
    logs = call(aten._log_softmax.default, x, 1, False)
    loss, total = call(aten.nll_loss_forward.default, logs, target, weight, REDUCTIONS.index(reduction), ignore)
    call.kept = [logs, total]
    return loss


@_seen_as("nll_loss")
def _nll_loss(call: Call, x: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str) -> Tensor:
    form = "nll_loss_forward" if x.ndim <= 2 else "nll_loss2d_forward"
    loss, total = call(getattr(aten, form).default, x, target, weight, REDUCTIONS.index(reduction), ignore)
    call.kept = [total]
    return loss


@_seen_as("mse_loss", "smooth_l1_loss", "huber_loss")
def _loss(call: Call, x: Tensor, y: Tensor, *rest: Any) -> Tensor:
    *numbers, reduction = rest
    number = REDUCTIONS.index(reduction)
    name = call.op.name
    return call(getattr(aten, name).default, x, y, *([number] if number != 1 or numbers else []), *numbers)
