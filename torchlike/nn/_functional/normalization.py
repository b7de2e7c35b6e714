"""Normalisation: layer, RMS and batch norms, and normalize."""
from __future__ import annotations

import functools
import math

import numpy as np

from ..._arguments import as_int, real
from ..._core import dtype as dt
from ..._core.arrays import cast, fits
from ..._core.registry import Op
from ..._tensor import Tensor, apply
from ...ops.reductions import average, summed
from ...ops.underivable import refuse_gradient
from . import batch_norm_host, small_norms
from .common import keep_format, need, not_implemented, wide


def moments(xp, x, axes):
    if xp is np:  # equal numbers leave exactly zero so, though their mean is rounded; compiled it would be another pass over the data
        x = x - x[_first(axes, x.ndim)]
    centered = into(xp, "subtract", x, average(xp, x, axes))
    return centered, average(xp, centered * centered, axes)


@functools.lru_cache(256)
def _first(axes: tuple, ndim: int) -> tuple:
    """The index of what is first along axes, of size one there."""
    return tuple(slice(1) if d in axes else slice(None) for d in range(ndim))


def into(xp, f, x, y):
    """f of x and y, written over x in NumPy where its shape and dtype are the result's: large arrays of their own cost more than the arithmetic."""
    if xp is np and x.dtype == y.dtype and x.ndim and (y.shape == x.shape or fits(y.shape, x.shape)):
        return getattr(np, f)(x, y, out=x)
    return getattr(xp, f)(x, y)


def _layer_norm(xp, x, weight, bias, k, eps):
    """Normalised over the last k axes."""
    axes = tuple(range(x.ndim - k, x.ndim))
    centered, var = moments(xp, wide(x), axes)
    y = into(xp, "multiply", centered, 1 / xp.sqrt(var + np.asarray(eps, var.dtype)))
    if weight is not None:
        y = into(xp, "multiply", y, weight)
    if bias is not None:
        y = into(xp, "add", y, bias)
    return cast(xp, y, x.dtype)


def _layer_norm_vjp(xp, g, x, weight, k, eps, needs):
    axes, lead = tuple(range(x.ndim - k, x.ndim)), tuple(range(x.ndim - k))
    centered, var = moments(xp, wide(x), axes)
    rstd = 1 / xp.sqrt(var + np.asarray(eps, var.dtype))
    y = into(xp, "multiply", centered, rstd)
    g = wide(g)
    gx = gw = gb = None
    if needs[1]:
        gw = summed(xp, g * y, lead)
    if needs[2]:
        gb = summed(xp, g, lead)
    if needs[0]:
        h = g if weight is None else g * weight
        part = into(xp, "multiply", y, average(xp, h * y, axes))
        gx = h - average(xp, h, axes)
        gx = into(xp, "multiply", into(xp, "subtract", gx, part), rstd)
    return gx, gw, gb


LAYER_NORM = Op("native_layer_norm", _layer_norm, shape=lambda x, w, b, k, eps: (x.shape, x.dtype), vjp=_layer_norm_vjp)
LAYER_NORM.bound, LAYER_NORM.backward.bound = small_norms.layer_norm, small_norms.layer_norm_gradients
LAYER_NORM.cheap = (1,)  # the moments, which take the time, are kept


def _as_shape(normalized_shape) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


def refuse_mixed(input: Tensor, *params) -> None:
    """torch's error for parameters of another type: on the CPU norms of half precision take single precision, and no other mixture."""
    kinds = [p.dtype for p in params if p is not None and p.dtype is not input.dtype]
    if kinds and input.device.type == "cpu" and input.numel():
        if any(kind is not dt.float32 for kind in kinds):
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        if input.dtype not in (dt.float16, dt.bfloat16):
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def layer_norm(input: Tensor, normalized_shape, weight=None, bias=None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(var + eps) over the last dimensions, then weight and bias (Ba et al. 2016)."""
    if isinstance(normalized_shape, int):
        raise TypeError("layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    shape = _as_shape(normalized_shape)
    try:
        have = input._value.aval.shape
    except AttributeError:
        need(input, "layer_norm")
        raise
    for t, name in ((weight, "weight"), (bias, "bias")):
        if t is not None and tuple(t.shape) != shape:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(t.shape)} and "
                               f"normalized_shape = {list(shape)}")
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                           "normalized_shape = []")
    if have[-len(shape):] != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input of "
                           f"size{list(have)}")
    refuse_mixed(input, weight, bias)
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("LayerNormKernelImpl", input.dtype)
    return apply(LAYER_NORM, (input, weight, bias), (len(shape), real(eps, "layer_norm", "eps", 5)))


def _rms_norm(xp, x, weight, k, eps):
    axes = tuple(range(x.ndim - k, x.ndim))
    w = wide(x)
    y = w / xp.sqrt(average(xp, w * w, axes) + np.asarray(eps, w.dtype))
    return cast(xp, y if weight is None else y * weight, x.dtype)


def _rms_norm_vjp(xp, g, x, weight, k, eps, needs):
    axes, lead = tuple(range(x.ndim - k, x.ndim)), tuple(range(x.ndim - k))
    w, g = wide(x), wide(g)
    rstd = 1 / xp.sqrt(average(xp, w * w, axes) + np.asarray(eps, w.dtype))
    y = w * rstd
    gx = gw = None
    if needs[0]:
        h = g if weight is None else g * weight
        gx = rstd * (h - y * average(xp, h * y, axes))
    if needs[1]:
        gw = summed(xp, g * y, lead)
    return gx, gw


RMS_NORM = Op("rms_norm", _rms_norm, shape=lambda x, w, k, eps: (x.shape, x.dtype), vjp=_rms_norm_vjp,
              torch_name=lambda plan: "ToCopyBackward0" if plan.outs[0].dtype.itemsize == 2 else "MulBackward0")
RMS_NORM.cheap = (1,)
RMS_NORM.pointwise = True  # of strides


def rms_norm(input: Tensor, normalized_shape, weight=None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x^2) + eps) over the last dimensions (Zhang & Sennrich 2019); eps defaults to the type's epsilon."""
    shape = _as_shape(normalized_shape)
    have = input._value.aval.shape
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []")
    if have[-len(shape):] != shape:
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*{', '.join(map(str, shape))}], but got input of "
                           f"size{list(have)}")
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} and "
                           f"normalized_shape = {list(shape)}")
    if input.dtype.category < dt.FLOAT:
        raise not_implemented("rms_norm", input.dtype)
    if eps is None:
        import ml_dtypes
        eps = float(ml_dtypes.finfo(np.float32 if input.dtype.itemsize == 2 else input.dtype.np).eps)
    return apply(RMS_NORM, (input, weight), (len(shape), real(eps, "rms_norm", "eps", 4)))


# -- batch norm ------------------------------------------------------------------------------------------------------------


def _channel_shape(x):
    return (1, -1) + (1,) * (x.ndim - 2)


def _batch_norm_train(xp, x, weight, bias, eps):
    """(y, batch mean, batch variance without correction)."""
    if xp is np and batch_norm_host.serves(x):
        return batch_norm_host.train(x, weight, bias, eps)
    axes = (0, *range(2, x.ndim))
    w = wide(x)
    centered, var = moments(xp, w, axes)
    y = into(xp, "divide", centered, xp.sqrt(var + np.asarray(eps, var.dtype)))
    shape = _channel_shape(x)
    if weight is not None:
        y = into(xp, "multiply", y, weight.reshape(shape))
    if bias is not None:
        y = into(xp, "add", y, bias.reshape(shape))
    return [cast(xp, y, x.dtype), average(xp, w, axes, False), var.reshape(-1)]


def _batch_norm_vjp(xp, g0, x, weight, eps, needs):
    # the statistics are computed again rather than saved, so that this may be differentiated
    if xp is np and batch_norm_host.serves(x):
        return batch_norm_host.gradients(g0, x, weight, eps, needs)
    axes, shape = (0, *range(2, x.ndim)), _channel_shape(x)
    centered, var = moments(xp, wide(x), axes)
    rstd = 1 / xp.sqrt(var + np.asarray(eps, var.dtype))
    y, g = into(xp, "multiply", centered, rstd), wide(g0)
    sum_g, sum_gy = g.sum(axis=axes), (g * y).sum(axis=axes)
    gx = None
    if needs[0]:
        n = np.asarray(x.size // x.shape[1], g.dtype)
        gx = g - (sum_g / n).reshape(shape)
        gx = into(xp, "subtract", gx, into(xp, "multiply", y, (sum_gy / n).reshape(shape)))
        gx = into(xp, "multiply", gx, rstd)
        if weight is not None:
            gx = into(xp, "multiply", gx, weight.reshape(shape))
    return gx, sum_gy if needs[1] else None, sum_g if needs[2] else None


def _statistics_type(x):
    return dt.float32 if x.dtype.itemsize == 2 else x.dtype


BATCH_NORM = Op("native_batch_norm", _batch_norm_train, vjp=_batch_norm_vjp, shape=lambda x, w, b, eps: [
    (x.shape, x.dtype), (x.shape[1:2], _statistics_type(x)), (x.shape[1:2], _statistics_type(x))])
BATCH_NORM.bound, BATCH_NORM.backward.bound = small_norms.batch_norm, small_norms.batch_norm_gradients
BATCH_NORM.private = 2
LAYER_NORM.normalizes = RMS_NORM.normalizes = BATCH_NORM.normalizes = True


def _scale(xp, mean, var, weight, eps):
    """(what an element is multiplied with, 1 / the standard deviation) per channel."""
    rstd = 1 / xp.sqrt(wide(var) + np.asarray(eps, wide(var).dtype))
    return rstd if weight is None else rstd * weight, rstd


def _batch_norm_eval(xp, x, weight, bias, mean, var, eps):
    scale, _ = _scale(xp, mean, var, weight, eps)
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    shape = _channel_shape(x)
    return cast(xp, into(xp, "add", x * scale.reshape(shape), shift.reshape(shape)), x.dtype)


def _batch_norm_eval_vjp(xp, g, x, weight, mean, var, eps, needs):
    axes, shape, wide_g = (0, *range(2, x.ndim)), _channel_shape(x), wide(g)
    scale, rstd = _scale(xp, mean, var, weight, eps)
    gx = gw = gb = None
    if needs[0]:
        gx = wide_g * scale.reshape(shape)
    if needs[1]:
        gw = xp.sum(wide_g * (wide(x) - mean.reshape(shape)) * rstd.reshape(shape), axis=axes)
    if needs[2]:
        gb = xp.sum(wide_g, axis=axes)
    return gx, gw, gb, None, None


BATCH_NORM_EVAL = Op("native_batch_norm_eval", _batch_norm_eval, vjp=_batch_norm_eval_vjp, shape=lambda x, *_: (x.shape, x.dtype),
                     torch_name="NativeBatchNormBackward0")


def _running(xp, mean, var, new_mean, new_var, momentum, correction):
    """Running statistics moved towards a batch's."""
    return [old * cast(xp, 1 - momentum, old.dtype) + cast(xp, new, old.dtype) * cast(xp, momentum, old.dtype)
            for old, new in ((mean, new_mean), (var, new_var * cast(xp, correction, new_var.dtype)))]


_RUNNING = Op("batch_norm_running", _running, vjp=False, shape=lambda mean, var, *_: [(mean.shape, mean.dtype), (var.shape, var.dtype)])


def _refuse_tangents(input: Tensor, *running) -> None:
    """torch's error for running statistics with forward gradients, which nothing derives by."""
    from ...autograd._tangents import tangents_of
    if any(t is not None and tangents_of(t) for t in running) and tangents_of(input):
        raise RuntimeError("batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward grad defined")


def batch_norm_moments(input: Tensor, running_mean, running_var, weight, bias, training: bool, momentum: float, eps: float) -> tuple:
    """batch_norm, and in training the batch's means and variances (which gradients do not reach)."""
    momentum, eps = real(momentum, "batch_norm", "momentum", 7), real(eps, "batch_norm", "eps", 8)
    shape = input._value.aval.shape
    channels = shape[1] if len(shape) > 1 else 0
    for t, name in ((running_mean, "running_mean"), (running_var, "running_var"), (weight, "weight"), (bias, "bias")):
        if t is not None and t.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {t.numel()}")
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("batch_norm", input.dtype)
    refuse_mixed(input, running_mean, running_var, weight, bias)
    for t, name in ((running_mean, "running_mean"), (running_var, "running_var")):
        refuse_gradient(t, "native_batch_norm", name)
    if len(shape) < 2:  # without channels there is nothing to normalise
        return input.clone(), None, None
    if not training:
        for t, name in ((running_mean, "running_mean"), (running_var, "running_var")):
            if t is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        _refuse_tangents(input, running_mean, running_var)
        return keep_format(apply(BATCH_NORM_EVAL, (input, weight, bias, running_mean, running_var), (eps,)), input, by_elements=True), None, None
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    y, mean, var = apply(BATCH_NORM, (input, weight, bias), (eps,))
    if running_mean is not None and math.prod(shape):
        from ...autograd.grad_mode import no_grad
        n = math.prod(shape) // max(channels, 1)
        with no_grad():
            moved = apply(_RUNNING, (running_mean, running_var, mean, var, momentum, n / max(n - 1, 1)))
            running_mean._assign(moved[0])
            running_var._assign(moved[1])
    return keep_format(y, input, by_elements=True), mean, var


def batch_norm(input: Tensor, running_mean, running_var, weight=None, bias=None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5) -> Tensor:
    """Normalisation per channel (dimension 1) by batch statistics, or by running ones (Ioffe & Szegedy 2015)."""
    try:
        size = input._value.aval.shape
    except AttributeError:
        need(input, "batch_norm")
        raise
    if training and len(size) > 1 and size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if training and eps <= 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return batch_norm_moments(input, running_mean, running_var, weight, bias, training, momentum, eps)[0]


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of squares over `size` neighbouring channels) ** beta (Krizhevsky et al. 2012)."""
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.ndim} dimensions)")
    if not input.numel():
        return input
    if input.dtype.category != dt.FLOAT and input.dtype is not dt.int64:
        raise not_implemented("avg_pool2d" if input.ndim == 3 else "avg_pool3d_out_frame", input.dtype)
    square, size = input * input, as_int(size, "size", symbolic=True)
    from ...ops.creation import zeros_like
    from ...ops.joining import cat
    zeros = zeros_like(square[:, :1])
    padded = cat([zeros] * (size // 2) + [square] + [zeros] * ((size - 1) // 2), 1)
    total = padded.unfold(1, size, 1).sum(-1)
    mean = total / size if total.is_floating_point() else total // size  # torch's average pools of integers are integers
    return input / (mean * alpha + k) ** beta


def normalize(input: Tensor, p: float = 2.0, dim=1, eps: float = 1e-12, out=None) -> Tensor:
    """input / max(norm, eps) along dim."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    made = input / norm
    if out is not None:
        from ..._writing import fill_out
        return fill_out(out, made)
    return made
