"""Leaf operations as operators of torch.ops.aten, with arguments in the places where PyTorch has them.

A rule gets `call`, which hands an operator on, the operation's Tensors and numbers, and its statics; it returns what the operation results
in. What the derivative will read besides (`native_layer_norm`'s statistics), it leaves in `call.kept`.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._core import dtype as dt
from ._core.aval import broadcast_shapes
from ._core.layout import view_strides
from ._dispatch.derivatives import slice_end
from ._dispatch.writes import count
from ._ops import aten
from ._ops_layers import REDUCTIONS
from ._plainly import dispatching
from ._tensor import Tensor
from .ops.memory_formats import contiguous_format

Call = Callable[..., Any]
RULES: dict[str, Callable] = {}
SAME = frozenset("mm bmm mv dot t alias clone conj where clamp softplus hardtanh threshold".split())  # the operator of that name has these arguments


def _seen_as(*names: str) -> Callable:
    def register(rule: Callable) -> Callable:
        RULES.update(dict.fromkeys(names, rule))
        return rule
    return register


# -- products ------------------------------------------------------------------------------------------------------------


def _rows(x: Tensor) -> int:
    return math.prod(x.shape[:-1])


def _seen_flat(call: Call, x: Tensor, shape: list) -> Tensor:
    """x in another shape: a view where its strides allow one, as PyTorch's reshape."""
    if x._layout is not None and view_strides(x._layout, tuple(shape)) is None:
        return call(aten._unsafe_view.default, call(aten.clone.default, x, memory_format=contiguous_format), shape)
    return call(aten.view.default, x, shape)


@_seen_as("linear", "linear_alone")
def _linear(call: Call, x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    flat = x.ndim != 2
    if b is None:
        turned = call(aten.t.default, w)
        rows = _seen_flat(call, x, [_rows(x), x.shape[-1]]) if flat else x
        y = call(aten.mm.default, rows, turned)
        return call(aten._unsafe_view.default, y, [*x.shape[:-1], w.shape[0]]) if flat else y
    rows = _seen_flat(call, x, [_rows(x), x.shape[-1]]) if flat else x
    y = call(aten.addmm.default, b, rows, call(aten.t.default, w))
    return call(aten.view.default, y, [*x.shape[:-1], w.shape[0]]) if flat else y


@_seen_as("matmul")
def _matmul(call: Call, x: Tensor, y: Tensor) -> Tensor:
    if y.ndim == 2 and x.ndim > 2:
        out = call(aten.mm.default, _seen_flat(call, x, [_rows(x), x.shape[-1]]), y)
        return call(aten._unsafe_view.default, out, [*x.shape[:-1], y.shape[-1]])
    if x.ndim < 2 or y.ndim < 2:
        return NotImplemented
    batch = broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    flat = [math.prod(batch)]
    a, b = (_seen_flat(call, call(aten.expand.default, t, [*batch, *t.shape[-2:]]), [*flat, *t.shape[-2:]]) for t in (x, y))
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


@_seen_as("tiled_attention")
def _tiled_attention(call: Call, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, causal: bool) -> Any:
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or q.ndim != 4:
        return NotImplemented
    out, logsumexp = call(aten._scaled_dot_product_flash_attention_for_cpu.default, q, k, v, 0.0, causal, attn_mask=mask, scale=scale)
    # the derivative reads each row's greatest score, and the sum of what exceeds it by: exp(score - logsumexp) / 1 is the same share
    return out, logsumexp, logsumexp.new_ones(logsumexp.shape)


# -- statics in the places where PyTorch's operators have them ------------------------------------------------------------------


def _straight(name: str, overload: str = "default", order: Callable | None = None) -> Callable:
    """A rule that calls one operator; `order` makes its arguments of the operation's: a list, and a dict after it where some go by name."""
    def rule(call: Call, *args: Any) -> Any:
        given = list(args) if order is None else order(*args)
        by_name = given.pop() if given and isinstance(given[-1], dict) else {}
        return call(getattr(getattr(aten, name), overload), *given, **by_name)
    return rule


def _in_dtype(x: Tensor, dtype: Any) -> list[dict]:
    """The dtype of a sum, where it is not that which the operator chooses."""
    return [] if dtype is (x.dtype if x.dtype.category >= dt.FLOAT else dt.int64) else [{"dtype": dtype}]


def _reduction(x: Tensor, dims: Any, keepdim: bool, dtype: Any) -> list:
    return [x, list(dims), keepdim, *_in_dtype(x, dtype)]


def _total(x: Tensor, dims: Any, keepdim: bool, dtype: Any) -> list:
    return [x, *_in_dtype(x, dtype)]


for _name, _op, *_how in (
    ("softmax", "_softmax", "default", lambda x, dim: [x, dim or 0, False]),
    ("log_softmax", "_log_softmax", "default", lambda x, dim: [x, dim or 0, False]),
    ("gelu", "gelu", "default", lambda x, tanh: [x, {"approximate": "tanh"}] if tanh else [x]),
    ("lerp_by_number", "lerp", "Scalar"), ("lerp", "lerp", "Tensor"), ("diagonal", "diagonal"), ("glu", "glu"), ("cummax", "cummax"), ("cummin", "cummin"),
    ("unfold", "unfold"), ("median", "median"), ("median_dim", "median", "dim"), ("kthvalue", "kthvalue"), ("mode", "mode"), ("nan_to_num", "nan_to_num"),
    ("logcumsumexp", "logcumsumexp"), ("linalg_cross", "linalg_cross", "default", lambda x, y, dim: [x, y, {"dim": dim}]),
    ("cumprod", "cumprod", "default", lambda x, dim, dtype: [x, dim, *_in_dtype(x, dtype)]),
    ("conv_transpose", "convolution", "default", lambda x, w, b, stride, padding, more, dilation, groups: [
        x, w, b, list(stride), list(padding), list(dilation), True, list(more), groups]),
    ("tril", "tril"), ("triu", "triu"), ("topk", "topk"), ("sort", "sort"), ("argmax", "argmax"), ("argmin", "argmin"), ("flip", "flip"),
    ("embedding", "embedding", "default", lambda w, i, padding: [w, i, *([] if padding is None else [padding])]),
    ("gather", "gather", "default", lambda x, index, dim: [x, dim, index]),
    ("native_dropout", "mul", "Tensor", lambda x, mask, scale: [x, mask * scale]),
    ("pow_scalar", "pow", "Tensor_Scalar"), ("floor_divide_by_number", "floor_divide"),
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
    ("cumsum", "cumsum", "default", lambda x, dim, dtype: [x, dim, *_in_dtype(x, dtype)]),
    ("to_copy", "_to_copy", "default", lambda x, dtype: [x, {"dtype": dtype}]),
    *((name, name, "default", lambda *args: [list(args[:-1]), args[-1]]) for name in ("cat", "stack")),
    ("constant", "full", "default", lambda value, shape, dtype, device: [list(shape), value, {"dtype": dtype, "device": device}]),
    ("full", "full", "default", lambda value, shape, dtype, device: [list(shape), value, {"dtype": dtype, "device": device}]),
    # views
    ("view", "view", "default", lambda x, shape: [x, list(shape)]), ("reshape", "_unsafe_view", "default", lambda x, shape: [x, list(shape)]),
    ("permute", "permute", "default", lambda x, dims: [x, list(dims)]), ("transpose", "transpose", "int"), ("unsqueeze", "unsqueeze"),
    ("squeeze_dims", "squeeze", "dims", lambda x, dims: [x, list(dims)]),
    ("squeeze", "squeeze", "default", lambda x, dims: [x]),
    ("expand", "expand", "default", lambda x, shape: [x, list(shape)]),
    ("select", "select", "int"), ("select_at", "select", "int", lambda x, i, dim: [x, dim, i]), ("unbind", "select", "int"),
    ("slice", "slice", "Tensor", lambda x, dim, start, n, step: [x, dim, start, slice_end(x.shape[dim], start, n, step, dispatching.open_ended), step]),
    ("searchsorted", "searchsorted", "Tensor", lambda order, x, sorter, right, dtype, found: [order, x, {
        **({"out_int32": True} if found is dt.int32 else {}), **({"right": True} if right else {}), **({} if sorter is None else {"sorter": sorter})}]),
    ("alias", "alias"), ("roll", "roll", "default", lambda x, shifts, dims: [x, list(shifts), list(dims)]),
    ("split", "slice", "Tensor", lambda x, dim, start, n, step: [x, dim, start, slice_end(x.shape[dim], start, n, step, False), step]),
    ("slice_at", "slice", "Tensor", lambda x, start, dim, n: [x, dim, start, slice_end(x.shape[dim], start, n, 1, dispatching.open_ended)]),
    ("repeat", "repeat", "default", lambda x, reps: [x, list(reps)]),
):
    RULES.setdefault(_name, _straight(_op, *_how))


@_seen_as("index_write")
def _index_write(call: Call, x: Tensor, index: Tensor, source: Tensor, scale: Any, dim: int, mode: str) -> Tensor:
    if mode == "add":
        return call(aten.index_add.default, x, dim, index, source, **({} if scale is None else {"alpha": scale}))
    if not isinstance(source, Tensor) or source.ndim != x.ndim:
        return call(aten.index_fill.int_Tensor if isinstance(source, Tensor) else aten.index_fill.int_Scalar, x, dim, index, source)
    return call(aten.index_copy.default, x, dim, index, source)


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
            x = call(aten.slice.Tensor, x, dim - dropped, start, slice_end(x.shape[dim - dropped], start, n, 1, dispatching.open_ended))
    return x


@_seen_as("squeeze_dim")
def _squeeze(call: Call, x: Tensor, dims: tuple) -> Tensor:
    return call(aten.squeeze.dim, x, *dims) if len(dims) == 1 else call(aten.squeeze.dims, x, list(dims))


@_seen_as("convolution")
def _convolution(call: Call, x: Tensor, w: Tensor, b: Tensor | None, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> Tensor:
    if any(low != high for low, high in padding):
        return NotImplemented
    return call(aten.convolution.default, x, w, b, list(stride), [low for low, _ in padding], list(dilation), False, [0] * len(stride), groups)


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


@_seen_as("index", "index_wide")
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


@_seen_as("affine_grid_generator")
def _affine_grid(call: Call, theta: Tensor, size: tuple[int, ...], align_corners: bool) -> Tensor:
    return call(aten.affine_grid_generator.default, theta, list(size), align_corners)
