"""Recursive filters: y[n] = x[n] - a[1] y[n - 1] - ... - a[k] y[n - k], for torchaudio.functional.lfilter and overdrive."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.registry import Op
from .._custom_operator import kernel
from .._tensor import Tensor, apply
from ..library import define
from ..ops.joining import cat


def _recursive(xp, x, flipped, first):
    """x (batch, channel, time), flipped (channel, order + 1), the last coefficient being 1, first (batch, channel, order): (batch, channel, time)."""
    if xp is np:
        return _on_host(x, flipped, first)
    order = flipped.shape[1] - 1

    def step(before, now):
        y = now - (before * flipped[:, :order]).sum(-1)
        return jnp.concatenate([before[..., 1:], y[..., None]], -1), y
    if order == 0:
        return x
    return jnp.moveaxis(lax.scan(step, first, jnp.moveaxis(x, 2, 0))[1], 0, 2)


def _on_host(x, flipped, first):
    from scipy import signal  # loading it takes a second, and only this needs it
    made = np.empty_like(x)
    for channel, a in enumerate(flipped[:, ::-1]):
        a = np.concatenate([np.ones(1, a.dtype), a[1:]])
        start = np.stack([signal.lfiltic([1.0], a, y[::-1]) for y in first[:, channel]]).astype(x.dtype)
        made[:, channel] = signal.lfilter(np.ones(1, x.dtype), a, x[:, channel], zi=start)[0] if len(a) > 1 else x[:, channel]
    return made


_RECURSIVE = Op("recursive_filter", _recursive, shape=lambda x, flipped, first: (x.shape, x.dtype))

define("torchaudio::_lfilter_core_loop", "(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) padded_output_waveform) -> ()")
define("torchaudio::_overdrive_core_loop", "(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, Tensor(c!) output_waveform) -> ()")


@kernel("torchaudio::_lfilter_core_loop", "default")
def lfilter_core_loop(input_signal_windows: Tensor, a_coeff_flipped: Tensor, padded_output_waveform: Tensor) -> None:
    """Fills padded_output_waveform (batch, channel, order + time) after its first `order` samples, which are those before."""
    x, flipped, order = input_signal_windows, a_coeff_flipped, a_coeff_flipped.size(1) - 1
    if x.dtype is not flipped.dtype or x.dtype is not padded_output_waveform.dtype:
        raise RuntimeError("lfilter_core_loop: waveform, coefficients and output must have one dtype")
    if padded_output_waveform.size(2) != x.size(2) + order or x.size(1) != flipped.size(0):
        raise RuntimeError(f"lfilter_core_loop: a filter of {flipped.size(0)} channels and order {order} takes {list(x.shape)} to another shape than "
                           f"{list(padded_output_waveform.shape)}")
    padded_output_waveform[:, :, order:] = apply(_RECURSIVE, (x, flipped, padded_output_waveform[:, :, :order].clone()))


@kernel("torchaudio::_overdrive_core_loop", "default")
def overdrive_core_loop(waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor) -> None:
    """Fills output_waveform (channel, time): half of waveform and three quarters of what a filter without offset leaves of temp."""
    change = temp - cat([last_in[:, None], temp[:, :-1]], 1)
    made = apply(_RECURSIVE, (change[:, None], temp.new_tensor([[-0.995, 1.0]]), last_out[:, None, None].clone()))[:, 0]
    output_waveform.copy_(waveform * 0.5 + made * 0.75)
