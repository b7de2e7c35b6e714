"""cross_entropy and nll_loss."""
from __future__ import annotations

import functools

import numpy as np

from ..._arguments import as_int, real
from ..._core import dtype as dt
from ..._core.arrays import cast
from ..._core.aval import Aval
from ..._core.program import META_ARRAY, guarded
from ..._core.registry import Op
from ..._core.value import is_tracer
from ..._public import named
from ..._tensor import Tensor, apply
from ...ops.choosing import choose
from ...ops.index_ranges import bounds, check_range
from ...ops.underivable import refuse_gradient
from .common import floating, need, reduction_of, wide


def _picked(xp, x, target, ignore):
    """(x at the target class, which targets count); classes are dimension 1 (0 for a vector)."""
    axis = 1 if x.ndim > 1 else 0
    kept = target != ignore
    safe = xp.expand_dims(xp.where(kept, target, xp.zeros((), target.dtype)), axis)
    return xp.squeeze(xp.take_along_axis(x, safe, axis), axis), kept, safe, axis


def _total_weight(xp, weight, kept, safe, axis, dtype):
    if weight is None:
        return kept.astype(dtype)
    return xp.where(kept, xp.squeeze(weight[safe], axis), xp.zeros((), dtype))


def _rows(xp, x, target, weight, ignore):
    """The numbers of x's rows in NumPy where each row has one target of no weight that counts: the usual case, in a third of the time."""
    if xp is np and x.ndim == 2 and weight is None and target.ndim == 1 and len(x) and not (target == ignore).any():
        return np.arange(len(x))
    return None


def _of_rows(loss, reduction):
    if reduction == "none":
        return loss
    total = np.add.reduce(loss)
    return total / loss.dtype.type(len(loss)) if reduction == "mean" else total


def _nll(xp, x, target, weight, ignore, reduction):
    rows = _rows(xp, x, target, weight, ignore)
    if rows is not None:
        return _of_rows(-x[rows, target], reduction)
    value, kept, safe, axis = _picked(xp, x, target, ignore)
    w = _total_weight(xp, weight, kept, safe, axis, x.dtype)
    loss = choose(xp, kept, -value * w, xp.zeros((), x.dtype))
    if reduction == "none":
        return loss
    total = xp.sum(loss)
    return total / xp.sum(w) if reduction == "mean" else total


def _nll_vjp(xp, g, x, target, weight, ignore, reduction):
    return _nll_grad(xp, g, x, target, weight, ignore, reduction), None, None


def _hot(xp, x, target, ignore, axis):
    classes = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return (xp.expand_dims(target, axis) == classes) & (xp.expand_dims(target, axis) != ignore)


def _nll_grad(xp, g, x, target, weight, ignore, reduction):
    rows = _rows(xp, x, target, weight, ignore)
    if rows is not None:
        out = np.zeros(x.shape, x.dtype)
        out[rows, target] = -(g / x.dtype.type(len(x)) if reduction == "mean" else g)
        return out
    _, kept, safe, axis = _picked(xp, x, target, ignore)
    w = _total_weight(xp, weight, kept, safe, axis, x.dtype)
    scale = -w * (g / xp.sum(w) if reduction == "mean" else g)
    return choose(xp, _hot(xp, x, target, ignore, axis), xp.expand_dims(scale, axis), xp.zeros((), x.dtype))


def _nll_shape(x, target, weight, ignore, reduction):
    return (target.shape if reduction == "none" else ()), x.dtype


def _node(plan) -> str:
    """The name of the node: torch flattens what has another rank than 1, 2 or 4, and adds a smoothed part."""
    (_, reduction, *smoothing), ndim = plan.statics, plan.avals[0].ndim
    if any(smoothing):
        return "AddBackward0"
    if ndim < 3:
        return "NllLossBackward0"
    return "ViewBackward0" if ndim != 4 and reduction == "none" else "NllLoss2DBackward0"


NLL = Op("nll_loss", _nll, shape=_nll_shape, vjp=_nll_vjp, torch_name=_node)
NLL.edge_order = (0,)
NLL.asks = "nll_loss_forward", ("self", 0), ("target", 1), ("weight", 2)


def _log_softmax(xp, x, axis):
    if not x.size:
        return x
    if xp is np:
        shifted = x - np.maximum.reduce(x, axis, keepdims=True)
        shifted -= np.log(np.add.reduce(np.exp(shifted), axis, keepdims=True))
        return shifted
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def _cross_entropy(xp, x, target, weight, ignore, reduction, smoothing):
    axis = 1 if x.ndim > 1 else 0
    rows = None if smoothing or not x.size else _rows(xp, x, target, weight, ignore)
    if rows is not None:
        shifted = wide(x)
        shifted = shifted - np.maximum.reduce(shifted, 1, keepdims=True)
        return _of_rows(np.log(np.add.reduce(np.exp(shifted), 1)) - shifted[rows, target], reduction).astype(x.dtype)
    logp = _log_softmax(xp, wide(x), axis)
    loss = _nll(xp, logp, target, weight, ignore, reduction)
    if smoothing:
        loss = loss * (1 - smoothing) + smoothing / x.shape[axis] * _smooth(xp, logp, target, weight, ignore, reduction, axis)
    return loss.astype(x.dtype)


def _smooth(xp, logp, target, weight, ignore, reduction, axis):
    view = [-1 if i == axis else 1 for i in range(logp.ndim)]
    every = -xp.sum(logp if weight is None else logp * weight.reshape(view), axis=axis)
    kept = target != ignore
    every = xp.where(kept, every, xp.zeros((), logp.dtype))
    if reduction == "none":
        return every
    total = xp.sum(every)
    if reduction == "sum":
        return total
    _, kept, safe, _ = _picked(xp, logp, target, ignore)
    return total / xp.sum(_total_weight(xp, weight, kept, safe, axis, logp.dtype))


def _cross_entropy_vjp(xp, g, x, target, weight, ignore, reduction, smoothing):
    axis = 1 if x.ndim > 1 else 0
    w = wide(x)
    logp = _log_softmax(xp, w, axis)
    g = g.astype(w.dtype)
    rows = None if smoothing else _rows(xp, x, target, weight, ignore)
    if rows is not None:
        scale = g / w.dtype.type(len(x)) if reduction == "mean" else g
        d = np.exp(logp, out=logp)
        d *= scale[:, None] if scale.ndim else scale
        d[rows, target] -= scale
        return cast(xp, d, x.dtype), None, None
    d = _nll_grad(xp, g * (1 - smoothing), logp, target, weight, ignore, reduction)
    if smoothing:
        _, kept, safe, _ = _picked(xp, logp, target, ignore)
        scale = g * (smoothing / x.shape[axis])
        if reduction == "mean":
            scale = scale / xp.sum(_total_weight(xp, weight, kept, safe, axis, logp.dtype))
        per = -xp.where(kept, scale, xp.zeros((), w.dtype))
        every = xp.expand_dims(per, axis)
        if weight is not None:
            every = every * weight.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
        d = d + every
    return cast(xp, d - xp.exp(logp) * xp.sum(d, axis=axis, keepdims=True), x.dtype), None, None


CROSS_ENTROPY = Op("cross_entropy", _cross_entropy, vjp=_cross_entropy_vjp, torch_name=_node,
                   shape=lambda x, target, weight, ignore, reduction, smoothing: _nll_shape(x, target, weight, ignore, reduction))
CROSS_ENTROPY.edge_order, CROSS_ENTROPY.asks = NLL.edge_order, NLL.asks


def _checked_target(input: Tensor, target: Tensor, weight, ignore: int) -> Tensor:
    """target as int64 class indices in range and of the right shape; torch's errors."""
    classes = _check_shapes(input._value.aval, target._value.aval, None if weight is None else weight._value.aval)
    if target._value.aval.dtype is dt.uint8:
        target = target.to(dt.int64)
    _check_range(target, classes, ignore)
    return target


@functools.lru_cache(maxsize=4096)
def _check_shapes(x: Aval, target: Aval, weight: Aval | None) -> int:
    """The number of classes."""
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    if x.ndim == 1:
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.ndim and target.numel != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.numel}")
    elif x.shape[0] != (target.shape[0] if target.ndim else 0):
        raise ValueError(f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({target.shape[0] if target.ndim else 0}).")
    elif target.shape != (x.shape[0], *x.shape[2:]):
        if x.ndim == 2:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if x.ndim == 4:  # images go to a kernel with words of its own, which looks at the weights first
            if target.ndim != 3:
                raise RuntimeError(f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.ndim}")
            if weight is None or weight.numel == classes:
                raise RuntimeError(f"size mismatch (got input: {list(x.shape)} , target: {list(target.shape)}")
            raise RuntimeError("weight tensor should be defined either for all or no classes")
        raise RuntimeError(f"Expected target size {[x.shape[0], *x.shape[2:]]}, got {list(target.shape)}")
    if target.dtype not in (dt.uint8, dt.int64):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.short}")
    if weight is not None:
        if weight.numel != classes and x.ndim > 2:
            raise RuntimeError("weight tensor should be defined either for all or no classes")
        if weight.ndim != 1 and x.ndim < 3 or weight.numel != classes:
            raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
                               f"{list(weight.shape)}")
        if weight.dtype is not x.dtype:
            raise RuntimeError(f"expected scalar type {x.dtype.short} but found {weight.dtype.short}")
    return classes


def _check_range(target: Tensor, classes: int, ignore: int) -> None:
    value = target._current()
    message = "Target {} is out of bounds.".format
    if guarded(value, lambda v: _check_range(Tensor._of(v), classes, ignore)):
        return
    if value.array is META_ARRAY or is_tracer(value.array):
        return
    if value.array is None:
        check_range(target.masked_fill(target == ignore, 0), classes, message, negative=False)
        return
    low, high = bounds(value)
    if low < 0 or high >= classes:
        array = np.asarray(value.array)
        bad = array[((array < 0) | (array >= classes)) & (array != ignore)]
        if bad.size:
            raise IndexError(message(int(bad.flat[0])))


def nll_loss(input: Tensor, target: Tensor, weight=None, size_average=None, ignore_index: int = -100, reduce=None,
             reduction: str = "mean") -> Tensor:
    """-input at the target class, averaged by class weight; targets equal to ignore_index do not count."""
    reduction = reduction_of(size_average, reduce, reduction)
    if input.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    floating(input, "nll_loss_out_frame", "nll_loss_nd")
    target = _checked_target(input, need(target, "nll_loss_nd", "target", 2), weight, ignore_index)
    return _classified(NLL, input, target, weight, (as_int(ignore_index, "ignore_index", symbolic=True), reduction))


def _classified(op, input: Tensor, target: Tensor, weight, statics) -> Tensor:
    refuse_gradient(weight, "nll_loss_forward" if input.ndim < 3 else "nll_loss2d_forward", "weight")
    if weight is not None and weight.ndim != 1:  # the kernel for images only counts them
        weight = weight.reshape(-1)
    if input.ndim == 1 and target.ndim:  # one sample whose target is a vector of one element
        loss = apply(op, (input.unsqueeze(0), target, weight), statics)
        return loss.squeeze(0) if loss.ndim else loss
    return apply(op, (input, target, weight), statics)


def cross_entropy(input: Tensor, target: Tensor, weight=None, size_average=None, ignore_index: int = -100, reduce=None,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """nll_loss of log_softmax; targets are class indices, or probabilities of input's shape."""
    reduction = reduction_of(size_average, reduce, reduction)
    need(input, "cross_entropy_loss")
    need(target, "cross_entropy_loss", "target", 2)
    x, y = input._value.aval, target._value.aval
    ignore_index = as_int(ignore_index, "ignore_index", "cross_entropy_loss(): ", " (position 5)", symbolic=True)
    label_smoothing = real(label_smoothing, "cross_entropy_loss", "label_smoothing", 6)
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    label_smoothing = max(0.0, label_smoothing)  # torch takes less than nothing for nothing
    if x.shape == y.shape and y.dtype.category >= dt.FLOAT:
        return _probability_loss(input, target, weight, ignore_index, reduction, label_smoothing)
    if x.shape == y.shape and x.ndim != 1:
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {y.dtype.short}")
    floating(input, "log_softmax_lastdim_kernel_impl", "cross_entropy_loss")
    target = _checked_target(input, target, weight, ignore_index)
    return _classified(CROSS_ENTROPY, input, target, weight, (ignore_index, reduction, label_smoothing))


def _probability_loss(input, target, weight, ignore, reduction, smoothing):
    axis = 1 if input.ndim > 1 else 0
    if not input.ndim:
        raise IndexError("Dimension specified as 1 but tensor has no dimensions")
    classes = input.shape[axis]
    if ignore >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
                           f"{list(weight.shape)}")
    if smoothing:
        target = target * (1 - smoothing) + smoothing / max(classes, 1)
    logp = input.log_softmax(axis)
    if weight is not None:
        logp = logp * weight.reshape([-1 if i == axis else 1 for i in range(input.ndim)])
    product = logp * target
    if reduction == "none":
        return -product.sum(axis)
    if reduction == "mean" and not input.numel():
        return -(product.sum() / 0)
    loss = -product.sum()  # the sign last, as in torch: a loss of nothing is -0.0
    return loss if reduction == "sum" else named(loss / max(input.numel() // classes, 1), "DivBackward1")
