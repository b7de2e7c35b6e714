"""Convolutions whose windows tile the input (patch embeddings, ConvNeXt's downsampling, a U-Net's transposed convolutions): one matrix product.

Each window is a row of a matrix, which is the input itself in another order. A loop that gathers windows offset by offset, as in conv_cpu.py, would take
as many instructions as a window has elements, 256 in a vision transformer, and XLA ten seconds to compile them.
"""
from __future__ import annotations

import math

import numpy as np
from jax import lax


def serves(geo) -> bool:
    """Whether a `conv_cpu.Geometry` is of this kind: what stride leaves of the input is not padding, and no element is in two windows."""
    return geo.groups == 1 and geo.taps > 1 and geo.kernel == geo.stride and set(geo.dilation) == {1} and max(map(max, geo.padding)) <= 0


def _axes(n: int) -> tuple[list[int], list[int]]:
    """Of (N, C, out, kernel, out, kernel, ...): the outs and the kernels."""
    return list(range(2, 2 + 2 * n, 2)), list(range(3, 2 + 2 * n, 2))


def _cut(x, geo, back: bool = False):
    """What the windows cover; or, back, the input's gradient from the gradient of that."""
    ends = [(lo, out * k - n - lo) for n, k, out, (lo, _) in zip(geo.sizes, geo.kernel, geo.outs, geo.padding)]
    if not any(map(any, ends)):
        return x
    sign = -1 if back else 1
    return lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0)] + [(sign * lo, sign * hi, 0) for lo, hi in ends])


def _rows(x, geo):
    """(N, C, *sizes) as a row per window, (N * positions, C * taps)."""
    outs, kernels = _axes(len(geo.sizes))
    parts = _cut(x, geo).reshape(geo.batch, geo.channels, *(n for pair in zip(geo.outs, geo.kernel) for n in pair))
    return parts.transpose(0, *outs, 1, *kernels).reshape(-1, geo.channels * geo.taps)


def _image(rows, geo):
    """The adjoint of `_rows`."""
    n = len(geo.sizes)
    parts = rows.reshape(geo.batch, *geo.outs, geo.channels, *geo.kernel)
    order = [0, n + 1] + [axis for i in range(n) for axis in (1 + i, n + 2 + i)]
    return _cut(parts.transpose(order).reshape(geo.batch, geo.channels, *(o * k for o, k in zip(geo.outs, geo.kernel))), geo, back=True)


def convolve(x, w, geo):
    """(N, O, *outs)."""
    y = (_rows(x, geo) @ w.reshape(geo.features, -1).T).reshape(geo.batch, math.prod(geo.outs), geo.features)
    return y.swapaxes(1, 2).reshape(geo.batch, geo.features, *geo.outs)


def gradients(x, w, g, geo, needs: tuple) -> list:
    """As conv_cpu.gradients."""
    made = []
    g = g.reshape(geo.batch, geo.features, -1)
    if needs[0]:
        made.append(_image(g.swapaxes(1, 2).reshape(-1, geo.features) @ w.reshape(geo.features, -1), geo))
    if needs[1]:
        made.append((g.swapaxes(0, 1).reshape(geo.features, -1) @ _rows(x, geo)).reshape(geo.features, geo.channels, *geo.kernel))
    return made
