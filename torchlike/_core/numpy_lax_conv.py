"""NumPy rule for convolution: windows are laid out as a matrix, and BLAS multiplies."""
from __future__ import annotations

import itertools
import math

import numpy as np

from .numpy_lax_dot import compute_dtypes
from .numpy_lax_rules import out_shape, rule, shape_of
from .numpy_lax_shape import pad_array

ROOM = 1 << 23  # elements of the window matrix made at a time
CACHED = 1 << 16  # elements that stay in a core's cache


@rule("conv_general_dilated")
def _conv(eqn):
    p = eqn.params
    numbers = p["dimension_numbers"]
    groups, batch_groups = p["feature_group_count"], p["batch_group_count"]
    strides, dilation = tuple(p["window_strides"]), tuple(p["rhs_dilation"])
    base = tuple(p["lhs_dilation"])
    config = ((0, 0, 0), (0, 0, 0)) + tuple((lo, hi, d - 1) for (lo, hi), d in zip(p["padding"], base))
    pads = any(any(c) for c in config)
    out_order = np.argsort(numbers.out_spec)
    compute, out = compute_dtypes(eqn)
    rhs = [shape_of(eqn, 1)[d] for d in numbers.rhs_spec]
    kernel = tuple(rhs[2:])
    zero = np.zeros((), compute or out)
    padding = tuple(p["padding"])
    dense = set(strides) == {1}
    scatters = dense and _prefers_scattering(eqn, numbers, rhs, groups * batch_groups)
    size = [shape_of(eqn)[d] for d in numbers.lhs_spec[2:]]
    exchanged = dense and set(dilation) == {1} and groups * batch_groups == 1 and math.prod(size) < math.prod(kernel) and any(b > 1 for b in base)
    reach = [out_shape(eqn)[d] - 1 for d in numbers.out_spec[2:]]

    def conv(x, w):
        x, w = x.transpose(numbers.lhs_spec), w.transpose(numbers.rhs_spec)
        if compute is not None:
            x, w = x.astype(compute), w.astype(compute)
        if batch_groups > 1:  # groups of the batch are groups of features
            x = x.reshape(batch_groups, -1, *x.shape[1:]).swapaxes(0, 1)
            x = x.reshape(x.shape[0], -1, *x.shape[3:])
        if scatters:
            y = _transposed(x, w, base, dilation, kernel, padding, groups * batch_groups, zero)
        elif exchanged:
            y = _exchanged(x, w, base, padding, reach, zero)
        else:
            if pads:
                x = pad_array(x, zero, config)
            y = convolve(x, w, strides, dilation, kernel, groups * batch_groups)
        return y.transpose(out_order).astype(out, copy=False)
    return conv


def _prefers_scattering(eqn, numbers, rhs, groups) -> bool:
    """Whether the products of every input point with every tap are fewer than the windows of the outputs, as in the
    gradient of a strided convolution. (Depthwise kernels are better off without.)"""
    lhs, out = ([shape[d] for d in spec] for shape, spec in (
        (shape_of(eqn), numbers.lhs_spec), (out_shape(eqn), numbers.out_spec)))
    depthwise = groups > 1 and rhs[1] == 1
    small_kernel = math.prod(rhs[2:]) <= math.prod(lhs[2:])
    return small_kernel and not depthwise and out[1] * math.prod(lhs[2:]) < rhs[1] * groups * math.prod(out[2:])


def _transposed(x, w, base, dilation, kernel, padding, groups, zero):
    """A convolution of stride 1 over x spread out by `base`: each input point adds its product with every tap."""
    n, c, *size = x.shape
    o, points, taps = w.shape[0], math.prod(size), math.prod(kernel)
    w = w.reshape(groups, o // groups, c // groups, taps).transpose(0, 1, 3, 2).reshape(groups, o // groups * taps, c // groups)
    full = [(m - 1) * b + 1 + (k - 1) * d if m else 0 for m, b, k, d in zip(size, base, kernel, dilation)]
    out = np.zeros((n, o, *full), x.dtype)
    chunk = max(1, ROOM // max(1, w.shape[0] * w.shape[1] * points))
    for i in range(0, n, chunk):
        part = x[i:i + chunk]
        part = part.reshape(len(part), groups, c // groups, points)
        terms = np.matmul(w, part).reshape(len(part), o, *kernel, *size)
        for tap in itertools.product(*map(range, kernel)):
            start = [(k - 1 - t) for k, t in zip(kernel, tap)]
            out[i:i + chunk][_strided(start, dilation, base, size)] += terms[(slice(None), slice(None), *tap)]
    edge = [(lo - (k - 1) * d, hi - (k - 1) * d, 0) for (lo, hi), k, d in zip(padding, kernel, dilation)]
    return pad_array(out, zero, ((0, 0, 0), (0, 0, 0), *edge))


def _exchanged(x, w, base, padding, reach, zero):
    """A convolution over x spread out by `base` with a kernel that is larger than x, as in the gradient of a transposed convolution's
    weight: sum_q X[k + q] w[q] over all taps q, where X[lo + base p] = x[p] and 0 elsewhere, is sum_p x[p] w[lo + base p - k]."""
    points, taps = x.shape[2:], w.shape[2:]
    edge = [(r - lo, lo + b * (m - 1) - (k - 1), 0) for r, (lo, _), b, m, k in zip(reach, padding, base, points, taps)]
    y = convolve(pad_array(w, zero, ((0, 0, 0), (0, 0, 0), *edge)), x, (1,) * len(points), base, points, 1)
    return np.flip(y, tuple(range(2, y.ndim))).swapaxes(0, 1)


def convolve(x, w, strides, dilation, kernel, groups):
    """x (N, C, *spatial), already padded; w (O, C / groups, *kernel) -> (N, O, *out)."""
    n, c = x.shape[:2]
    o = w.shape[0]
    out = tuple(max((s - (k - 1) * d - 1) // t + 1, 0) for s, k, d, t in zip(x.shape[2:], kernel, dilation, strides))
    points, taps = math.prod(out), math.prod(kernel)
    if not n * o * points or not c * taps:
        return np.zeros((n, o, *out), x.dtype)
    if groups == c and o == c and c > 1 and taps <= points:
        return _depthwise(x, w, strides, dilation, kernel, out)
    w = w.reshape(groups, o // groups, -1)
    if taps == 1:
        x = x[(..., *[slice(0, (m - 1) * t + 1, t) for m, t in zip(out, strides)])]
        y = np.matmul(w, x.reshape(n, groups, c // groups, points))
        return y.reshape(n, o, *out)
    chunk = max(1, ROOM // (c * taps * points))
    parts = [_windows_times(x[i:i + chunk], w, strides, dilation, kernel, out, groups) for i in range(0, n, chunk)]
    y = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return y.reshape(n, o, *out)


def _windows_times(x, w, strides, dilation, kernel, out, groups):
    n, c = x.shape[:2]
    points, taps = math.prod(out), math.prod(kernel)
    if taps <= points:  # copy one tap of all windows at a time
        windows = np.empty((n, c, *kernel, *out), x.dtype)
        for tap in itertools.product(*map(range, kernel)):
            windows[(slice(None), slice(None), *tap)] = x[_strided(tap, dilation, strides, out)]
        windows = windows.reshape(n, groups, c // groups * taps, points)
        return np.matmul(w, windows) if groups > 1 else np.matmul(w[0], windows[:, 0])
    windows = np.empty((n, groups, *out, c // groups, *kernel), x.dtype)  # copy one whole window at a time
    split = (n, groups, c // groups, *kernel)
    lead = (slice(None), slice(None))
    for point in itertools.product(*map(range, out)):
        windows[(*lead, *point)] = x[_strided(point, strides, dilation, kernel)].reshape(split)
    windows = windows.reshape(n, groups, points, -1)
    if groups == 1:
        return np.matmul(windows.reshape(n * points, -1), w[0].T).reshape(n, points, -1).swapaxes(1, 2)
    return np.matmul(windows, w.swapaxes(1, 2)).swapaxes(2, 3)


def _strided(start, start_step, step, size):
    return (slice(None), slice(None), *[slice(i * a, i * a + (m - 1) * t + 1, t)
                                        for i, a, t, m in zip(start, start_step, step, size)])


def _depthwise(x, w, strides, dilation, kernel, out):
    n, c = x.shape[:2]
    y = np.empty((n, c, *out), x.dtype)
    ones = (1,) * len(out)
    taps = [(_strided(tap, dilation, strides, out), w[(slice(None), 0, *tap)].reshape(-1, *ones))
            for tap in itertools.product(*map(range, kernel))]
    chunk = max(1, CACHED // (c * math.prod(out)))
    for i in range(0, n, chunk):
        part, total = x[i:i + chunk], y[i:i + chunk]
        where, weight = taps[0]
        np.multiply(part[where], weight, out=total)
        for where, weight in taps[1:]:
            total += part[where] * weight
    return y
