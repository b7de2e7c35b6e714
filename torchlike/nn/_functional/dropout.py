"""Dropout and its kin. Masks come from torch's CPU generator, so they equal torch's under the same seed."""
from __future__ import annotations

import numpy as np

from ..._arguments import real
from ..._core import dtype as dt
from ..._core import rng
from ..._core.errors import class_name
from ..._core.history import warn
from ..._core.layout import like as layout_like
from ..._core.registry import Op
from ..._tensor import Tensor, apply
from ...ops.random import default_generator, drawn
from .common import finish, need


def _check(p: float, training: bool, name: str = "dropout") -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    real(p, name, "p", 2)
    if training.__class__ not in (bool, np.bool_):
        raise TypeError(f"{name}(): argument 'train' (position 3) must be bool, not {class_name(training)}")


def _floating(dtype: dt.dtype) -> dt.dtype:
    """dtype, or the error of torch, which divides a mask of that dtype by the keep probability."""
    if dtype.category < dt.FLOAT:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype.short}")
    return dtype


# torch multiplies by a mask that is already divided by the keep probability
_MASKED = Op("native_dropout", lambda xp, x, mask, scale: x * (mask * xp.asarray(scale, dtype=x.dtype)), torch_name="MulBackward0",
             shape=lambda x, mask, scale: (x.shape, _floating(x.dtype)), vjp=lambda xp, g, mask, scale: (g * (mask * xp.asarray(scale, dtype=g.dtype)), None, None))
_MASKED.edge_order = 0, 1


def _mask(shape, p: float, like: Tensor) -> Tensor:
    kind, device = like.dtype.np, like.device  # the closure must not keep a tensor alive
    order = _memory_order(like) if like._layout is not None and shape == like._value.aval.shape else None
    if order is None:
        return drawn(lambda: rng.bernoulli_scalar(default_generator, shape, 1 - p, kind), device, shape, kind)
    drawn_shape, back = tuple(shape[i] for i in order), np.argsort(order)
    return drawn(lambda: np.ascontiguousarray(rng.bernoulli_scalar(default_generator, drawn_shape, 1 - p, kind).transpose(back)), device, shape, kind)


def _memory_order(t: Tensor) -> list[int] | None:
    """The dimensions from the largest stride to the smallest, in which torch draws; None for contiguous tensors."""
    made = layout_like(t._layout)
    return None if made is None else sorted(range(t.ndim), key=lambda i: -made.strides[i])


def masked(input: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Dropout of a tensor with elements, and the mask: 1 where an element stays."""
    mask = _mask(tuple(input.shape), p, input)
    out = apply(_MASKED, (input, mask, 1 / (1 - p) if p < 1 else 0.0))
    if input._layout is not None:
        out._layout = layout_like(input._layout)
    return out, mask


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Elements become zero with probability p, the others grow by 1 / (1 - p) (Srivastava et al. 2014)."""
    _check(p, training)
    need(input, "dropout")
    if not training or p == 0.0 or not input.numel():
        return input
    if p == 1.0:
        return finish(input, input * False, inplace)
    return finish(input, masked(input, p)[0], inplace)


def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    _check(p, training, "feature_dropout")
    if not training or p == 0.0 or not input.numel():
        return input
    if p == 1.0:
        return finish(input, input * False, inplace)
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.shape[:2], *(1 for _ in input.shape[2:]))
    mask = _mask(shape, p, input)
    _floating(input.dtype)
    return finish(input, input * (mask / (1 - p)), inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, L) or (C, L) become zero."""
    _check(p, training, "feature_dropout")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to provide "
                           "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
                           "(i.e. 2D or 3D inputs).")
    return _batched(input, 2, p, training, inplace)


def _batched(input: Tensor, unbatched: int, p, training, inplace) -> Tensor:
    if input.ndim == unbatched:
        return _feature_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return _feature_dropout(input, p, training, inplace)


def _warn_rank(n: int, input: Tensor) -> None:
    if input.ndim not in (n + 1, n + 2):
        warn(f"dropout{n}d: Received a {input.ndim}-D input to dropout{n}d, which is deprecated and will result in an error in a future release. "
             f"To retain the behavior and silence this warning, please use dropout instead. Note that dropout{n}d exists to provide channel-wise "
             f"dropout on inputs with {n} spatial dimensions, a channel dimension, and an optional batch dimension (i.e. {n + 1}D or {n + 2}D "
             "inputs).")


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, H, W) become zero; (N, C, L) too."""
    _check(p, training, "feature_dropout")
    _warn_rank(2, input)
    if input.ndim == 3:
        warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is interpreted "
             "as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the input as one "
             "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using "
             "dropout1d instead.")
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) become zero."""
    _check(p, training, "feature_dropout")
    _warn_rank(3, input)
    if input.ndim != 5:
        return _feature_dropout(input.unsqueeze(0), p, training, inplace).squeeze(0)
    return _feature_dropout(input, p, training, inplace)


def _alpha(input: Tensor, p: float, training: bool, inplace: bool, shape, name: str) -> Tensor:
    _check(p, training, name)
    if not training or p == 0.0 or not input.numel():
        return input
    if p == 1.0:
        return finish(input, input * False, inplace)
    low = -1.7580993408473766  # SELU's saturation
    a = 1 / np.sqrt((low * low * p + 1) * (1 - p))
    mask = _mask(shape, p, input)
    _floating(input.dtype)
    shift = (1 - mask) * (low * a) - low * a * p
    return finish(input, input * (mask * a) + shift, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps SELU's mean and variance (Klambauer et al. 2017)."""
    return _alpha(need(input, "alpha_dropout"), p, training, inplace, tuple(input.shape), "alpha_dropout")


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels."""
    return _alpha(need(input, "feature_alpha_dropout"), p, training, inplace, (*input.shape[:2], *(1 for _ in input.shape[2:])), "feature_alpha_dropout")
