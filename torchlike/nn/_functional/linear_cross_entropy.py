"""linear_cross_entropy: the cross-entropy of a linear layer's output, in pieces where that output is large."""
from __future__ import annotations

import dataclasses
import math

import jax

from ..._core import dtype as dt
from ..._core.aval import aval
from ..._core.grad_mode import mode
from ..._core.history import warn
from ..._core.registry import Op
from ..._core.value import Value
from ..._tensor import Tensor, apply
from ...ops.matmul import linear
from .common import reduction_of
from .cross_entropy import _checked_target, cross_entropy

_HELD = 1 << 22  # logits up to this number are made at once
_POLICIES = ("auto", "accurate", "balanced", "compact")
_ACCUMULATORS = (None, dt.float16, dt.bfloat16, dt.float32, dt.float64)


@dataclasses.dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How many rows of logits linear_cross_entropy makes at a time. Sums are float32 or wider whatever `acc_policy` and
    `acc_dtype` say, and every call may be differentiated again whatever `allow_retain_graph` says."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dt.dtype | None = None

    def __post_init__(self):
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and not self._divisor():
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in _ACCUMULATORS:
            raise ValueError("acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                             f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically.")

    def _divisor(self) -> int:
        """N of "aspect_ratio:N", 1 without N, 0 for another method."""
        name, _, factor = str(self.chunking_method).partition(":")
        factor = factor if ":" in str(self.chunking_method) else "1"
        return int(factor) if name == "aspect_ratio" and factor.isdigit() else 0

    def rows(self, batch: int, features: int, classes: int, narrow: bool) -> int:
        """Rows at a time; `narrow`: 16-bit numbers, for which "auto" takes larger pieces."""
        asked, method = self.batch_chunk_size, self.chunking_method
        if method is None or (method == "auto" and asked is not None):
            return max(1, min(asked or batch, batch))
        divisor = (1 if narrow else 2) if method == "auto" else self._divisor()
        target = -(-batch // -(-classes // max(features, 1)))
        size = min((1 << max(target - 1, 0).bit_length()) // divisor, batch)
        if asked is not None and asked != size:
            raise ValueError(f"batch_chunk_size (={asked}) and chunking_method ('{method}') give different chunk sizes ({asked} vs {size}); "
                             "pass only one.")
        return max(1, size)


def _in_pieces(xp, x, w, b, target, weight, ignore, reduction, smoothing, chunk):
    from pallas_kernels import linear_cross_entropy as kernel
    return kernel(x, w, target, bias=b, class_weight=weight, ignore_index=ignore, label_smoothing=smoothing, reduction=reduction, chunk=chunk)


def _loss(target, weight, statics):
    """The loss as a function of what has a gradient: x, w and, where there is one, b."""
    return lambda x, w, b=None: _in_pieces(None, x, w, b, target, weight, *statics)


def _with_gradients(xp, x, w, b, target, weight, ignore, reduction, smoothing, chunk):
    """(loss, its gradients in x, w and b): all in one pass over the pieces."""
    wanted = (x, w) if b is None else (x, w, b)
    loss, gradients = jax.value_and_grad(_loss(target, weight, (ignore, reduction, smoothing, chunk)), tuple(range(len(wanted))))(*wanted)
    return [loss, *gradients, *(() if b is not None else (xp.zeros(0, x.dtype),))]


def _gradients_vjp(xp, x, w, b, target, weight, out1, out2, out3, ignore, reduction, smoothing, chunk, g0=None, g1=None, g2=None, g3=None):
    wanted = (x, w) if b is None else (x, w, b)
    made = [xp.zeros_like(d) if g0 is None else g0 * out for d, out in zip(wanted, (out1, out2, out3))]
    if not (g1 is g2 is g3 is None):  # a derivative of the gradients
        first = jax.grad(_loss(target, weight, (ignore, reduction, smoothing, chunk)), tuple(range(len(wanted))))
        _, pull = jax.vjp(first, *wanted)
        made = [a + more for a, more in zip(made, pull(tuple(xp.zeros_like(d) if g is None else g for d, g in zip(wanted, (g1, g2, g3)))))]
    return (*made, *((None,) if b is None else ()), None, None)


def _shape(x, w, b, target, weight, ignore, reduction, smoothing, chunk):
    return (target.shape if reduction == "none" else ()), x.dtype


PIECES = Op("linear_cross_entropy", _in_pieces, shape=_shape, numpy=None)
PIECES_TRAINING = Op(
    "linear_cross_entropy_training", _with_gradients, numpy=None, vjp=_gradients_vjp, torch_name="LinearCrossEntropyBackward0",
    shape=lambda x, w, b, *rest: [((), x.dtype), (x.shape, x.dtype), (w.shape, w.dtype), ((0,) if b is None else b.shape, x.dtype)])


def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None,
                         reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
                         options: LinearCrossEntropyOptions | None = None) -> Tensor:
    """cross_entropy of linear(input, linear_weight, linear_bias): input (N, in) or (in,), linear_weight (C, *K, in), target (N, *K).

    Logits that are large, and all where `options` is given, are made a piece at a time and never held; the gradients
    are then made in the forward pass.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    classes, *more, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError(f"expected equal input and linear_weight last dimensions (in_features), got {input.shape[-1]} and {features}, respectively")
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *more):
        raise RuntimeError(f"expected linear_bias shape {(classes, *more)}, got {tuple(linear_bias.shape)}")
    if more and input.ndim == 1:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, (N, {features}), "
                           f"got unbatched input with shape {tuple(input.shape)}")
    shape = (*input.shape[:-1], classes, *more)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore = -100 if ignore_index is None else ignore_index
    plain = bool(more) or reduction not in ("mean", "sum", "none") or target.dtype is not dt.int64
    if options is not None and (plain or label_smoothing != 0.0):
        warn("linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, label_smoothing == 0, "
             f"target.dtype == int64, out_features == (). Got reduction={reduction!r}, label_smoothing={label_smoothing}, "
             f"target.dtype={target.dtype}, out_features={tuple(more)}.")
        options = None
    batch = input.shape[0] if input.ndim == 2 else 1
    if not plain and input.dtype.category == dt.FLOAT and batch * features and (options is not None or batch * classes > _HELD):
        return _pieces(input, linear_weight, target, linear_bias, weight, reduction_of(None, None, reduction), ignore, float(label_smoothing), options)
    flat = (linear_weight, linear_bias) if not more else (
        linear_weight.reshape(-1, features), None if linear_bias is None else linear_bias.reshape(math.prod((classes, *more))))
    logits = linear(input, *flat)
    return cross_entropy(logits.reshape(shape) if more else logits, target, weight, ignore_index=ignore, reduction=reduction,
                         label_smoothing=label_smoothing)


def _pieces(x, w, target, b, weight, reduction, ignore, smoothing, options):
    for t, name in ((w, "weight"), (b, "bias")):
        if t is not None and t.dtype is not x.dtype:
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {x.dtype} != {t.dtype} ({name})")
    single = x.ndim == 1
    if single:
        x, target = x.unsqueeze(0), target.unsqueeze(0)
    classes, features = w.shape
    outline = Tensor._of(Value(aval((x.shape[0], classes), x.dtype, x.device)))  # of the logits, which nobody makes
    target = _checked_target(outline, target, weight, ignore)
    chunk = None if options is None else options.rows(x.shape[0], features, classes, x.dtype.itemsize == 2)
    args = (x, w, b, target, None if weight is None else weight.detach())
    statics = (int(ignore), reduction, smoothing, chunk)
    if reduction != "none" and mode.enabled and any(t is not None and t.requires_grad for t in args):
        return apply(PIECES_TRAINING, args, statics)[0]
    made = apply(PIECES, args, statics)
    return made.squeeze(0) if single and reduction == "none" else made
