"""Group and instance normalisation: moments by sample and group of channels, scale and shift by channel."""
from __future__ import annotations

import math

import numpy as np

from ..._arguments import as_int, real
from ..._core import dtype as dt
from ..._core.arrays import cast, spread
from ..._core.registry import Op
from ..._tensor import Tensor, apply
from ...ops.reductions import average, summed
from . import small_norms
from .common import keep_format, not_implemented, wide
from .normalization import batch_norm_moments, into, moments, refuse_mixed

# Arrays are seen as (samples, channels, points): what is said by channel is then one number for a row of points.


def _by_channel(xp, numbers, shape: tuple):
    """A number per sample and group, (samples * groups, 1), as (samples, channels, 1)."""
    n, channels, _ = shape
    groups = numbers.size // n if n else 1
    return spread(xp, numbers.reshape(n, groups, 1), (n, groups, channels // groups)).reshape(n, channels, 1)


def _parts(xp, x, groups: int, eps: float) -> tuple:
    """x without the means of its groups, and by channel 1 / the standard deviation."""
    shape = n, channels, points = x.shape[0], x.shape[1], math.prod(x.shape[2:])
    x, rows = wide(x), (n * groups, channels // groups * points)
    if xp is np:
        centered, var = moments(xp, x.reshape(rows), (1,))
        centered = centered.reshape(shape)
    else:  # XLA computes what both read twice in any case, and quicker by rows of points
        whole = x.reshape(rows)
        mean = average(xp, whole, (1,))
        var = average(xp, (whole - mean) ** 2, (1,))
        centered = x.reshape(shape) - _by_channel(xp, mean, shape)
    return centered, _by_channel(xp, 1 / xp.sqrt(var + np.asarray(eps, var.dtype)), shape)


def _group_norm(xp, x, weight, bias, groups, eps):
    y, scale = _parts(xp, x, groups, eps)
    y = into(xp, "multiply", y, scale if weight is None else scale * weight.reshape(-1, 1))
    if bias is not None:
        y = into(xp, "add", y, bias.reshape(-1, 1))
    return cast(xp, y.reshape(x.shape), x.dtype)


def _group_norm_vjp(xp, g, x, weight, groups, eps, needs):
    centered, rstd = _parts(xp, x, groups, eps)
    n, channels, points = shape = centered.shape
    g = wide(g).reshape(shape)
    sums, products = summed(xp, g, 2, True), summed(xp, g * centered, 2, True)
    gx = gw = gb = None
    if needs[1]:
        gw = summed(xp, products * rstd, (0, 2))
    if needs[2]:
        gb = summed(xp, sums, (0, 2))
    if needs[0]:
        scale = rstd
        if weight is not None:
            by = weight.reshape(-1, 1)
            scale, sums, products = rstd * by, sums * by, products * by
        count = np.asarray(channels // groups * points, g.dtype)
        mean_of = lambda part: _by_channel(xp, summed(xp, part.reshape(n, groups, channels // groups), 2).reshape(-1, 1) / count, shape)  # noqa: E731
        gx = g * scale - mean_of(sums) * rstd
        gx = into(xp, "subtract", gx, into(xp, "multiply", centered, mean_of(products) * (rstd * rstd * rstd)))
        gx = gx.reshape(x.shape)
    return gx, gw, gb


GROUP_NORM = Op("native_group_norm", _group_norm, shape=lambda x, w, b, groups, eps: (x.shape, x.dtype), vjp=_group_norm_vjp)
GROUP_NORM.bound, GROUP_NORM.backward.bound = small_norms.group_norm, small_norms.group_norm_gradients
GROUP_NORM.cheap = (1,)  # the moments, which take the time, are kept
GROUP_NORM.normalizes = True


def group_norm(input: Tensor, num_groups: int, weight=None, bias=None, eps: float = 1e-5) -> Tensor:
    """Normalisation per sample and group of channels (Wu & He 2018)."""
    shape = input._value.aval.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    num_groups = as_int(num_groups, "num_groups", "group_norm(): ", " (position 2)")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(shape)} and "
                           f"num_groups={num_groups}")
    if shape[0] * shape[1] // num_groups * math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {[1, num_groups, *shape[2:]]}")
    for t, name in ((weight, "weight"), (bias, "bias")):
        if t is not None and (t.ndim != 1 or t.shape[0] != shape[1]):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                               f"{list(t.shape)} and input of shape {list(shape)}")
    refuse_mixed(input, weight, bias)
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("GroupNormKernelImpl", input.dtype)
    return keep_format(apply(GROUP_NORM, (input, weight, bias), (num_groups, real(eps, "group_norm", "eps", 5))), input)


def instance_norm(input: Tensor, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalisation per sample and channel (Ulyanov et al. 2016)."""
    momentum, eps = real(momentum, "instance_norm", "momentum", 7), real(eps, "instance_norm", "eps", 8)
    n, c, *rest = input.shape
    if use_input_stats and math.prod(rest) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if input.dtype.category != dt.FLOAT:
        raise not_implemented("batch_norm", input.dtype)
    refuse_mixed(input, weight, bias)
    if not c:
        return input.clone()
    if running_mean is None and running_var is None:
        return apply(GROUP_NORM, (input, weight, bias), (c, eps)).view(input.shape)
    running = [None if t is None else t.to(input.dtype).repeat(n) for t in (running_mean, running_var)]
    by = [None if t is None else t.repeat(n) for t in (weight, bias)]
    y = batch_norm_moments(input.reshape(1, n * c, *rest), *running, *by, use_input_stats, momentum, eps)[0].view(input.shape)
    if use_input_stats:
        from ...autograd.grad_mode import no_grad
        with no_grad():
            for own, moved in zip((running_mean, running_var), running):
                if own is not None:
                    own.copy_(moved.reshape(n, c).mean(0))
    return y
