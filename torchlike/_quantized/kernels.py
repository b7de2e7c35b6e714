"""Numbers to integers and back, rounded where PyTorch's kernels round: results are theirs to the bit.

All is computed in doubles and narrowed at the places where single precision rounds, so that no compiler can fuse a product and a sum that
PyTorch rounds twice, or part those that it rounds once.
"""
from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._core.registry import Op

STORED = {d.name: d.integers for d in (dt.qint8, dt.quint8, dt.qint32)}
LIMITS = {name: (int(np.iinfo(kind).min), int(np.iinfo(kind).max)) for name, kind in STORED.items()}
_OF_NAN = {"qint8": 127, "quint8": 255, "qint32": -(1 << 31)}


def single(xp, x):
    """A double rounded to single precision, as a double."""
    return x.astype(np.float32).astype(np.float64)


def places(xp, x, scale, zero_point, once: bool):
    """Where among the integers values lie: `x / scale + zero_point`, whose product and sum are rounded at once or one after the other."""
    inverse = (np.float32(1) / xp.asarray(scale, np.float32)).astype(np.float64)
    product = x.astype(np.float64) * inverse
    if not once:
        product = single(xp, product)
    return xp.rint(single(xp, product + xp.asarray(zero_point, np.float64)))


def _quantize(xp, x, scale, zero_point, name):
    at = places(xp, x, scale, zero_point, name != "qint32")
    low, high = LIMITS[name]
    return xp.where(xp.isnan(at), float(_OF_NAN[name]), xp.clip(at, low, high)).astype(STORED[name])


def _along(xp, per_channel, ndim, axis):
    return xp.reshape(per_channel, [-1 if d == axis else 1 for d in range(ndim)])


def _quantize_channels(xp, x, scales, zero_points, axis, name):
    at = places(xp, x, _along(xp, scales, x.ndim, axis), _along(xp, zero_points, x.ndim, axis), False)
    low, high = LIMITS[name]
    return xp.where(xp.isnan(at), float(low if name == "qint32" else 0), xp.clip(at, low, high)).astype(STORED[name])


def _dequantize(xp, n, scale, zero_point):
    return (n.astype(np.int32) - xp.asarray(zero_point, np.int32)).astype(np.float32) * xp.asarray(scale, np.float32)


def _dequantize_channels(xp, n, scales, zero_points, axis):
    """A difference in single precision times scales in theirs, doubles where zero points are integers."""
    scales, zero_points = _along(xp, scales, n.ndim, axis), _along(xp, zero_points, n.ndim, axis)
    return ((n.astype(np.float32) - zero_points.astype(np.float32)).astype(scales.dtype) * scales).astype(np.float32)


def _as_integers(x, *others):
    return x.shape, dt.from_numpy_dtype(STORED[others[-1]])


def _as_singles(n, *others):
    return n.shape, dt.float32


QUANTIZE = Op("quantize_per_tensor", _quantize, shape=_as_integers, vjp=False)
QUANTIZE_CHANNELS = Op("quantize_per_channel", _quantize_channels, shape=_as_integers, vjp=False)
DEQUANTIZE = Op("dequantize", _dequantize, shape=_as_singles, vjp=False)
DEQUANTIZE_CHANNELS = Op("dequantize_per_channel", _dequantize_channels, shape=_as_singles, vjp=False)
