"""Resampling, which is linear and separable: along each dimension every output is a weighted sum of a few inputs. A table holds
the inputs' positions and weights, (outputs, taps); the derivative uses the table of the transposed map. Adaptive average pools are such maps, too.
"""
from __future__ import annotations

import functools
import math

import numpy as np
from jax import lax

from ..._core.registry import Op
from .common import wide

_MANY = 12  # taps from which a matrix product is quicker
_BAND = 16  # outputs that one small matrix product makes
_SHORT = 192  # elements up to which XLA's gathers along the last axis lose to a matrix product


@functools.lru_cache(maxsize=256)
def _taps(n: int, out: int, mode: str, align: bool, scale: float | None, antialias: bool, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(positions, weights), (outputs, taps), of the map along one dimension; `kind` is the float type torch computes positions in."""
    real = np.dtype("float32" if mode.startswith("nearest") else kind).type
    if mode == "area":
        return _windows(n, out, real)
    step = _step(n, out, align, scale, real)
    i = np.arange(out, dtype=real)
    if mode.startswith("nearest"):
        at = i * step if mode == "nearest" else (i + real(0.5)) * step
        return np.minimum(np.floor(at).astype(np.int64), n - 1)[:, None], np.ones((out, 1), real)
    if antialias:
        columns, f = _antialiased(n, out, step, mode)
        return np.where(f == 0, columns[:, :1], columns), f
    if mode == "bicubic":
        at = i * step if align else _middles(step, i)
        floor = np.floor(at)
        return np.clip(floor.astype(np.int64)[:, None] + np.arange(-1, 3), 0, n - 1), np.stack(_cubic_weights(at - floor), 1)
    at = i * step if align else np.maximum(_middles(step, i), real(0))
    low = np.minimum(at.astype(np.int64), n - 1)
    part = np.clip(at - low.astype(real), real(0), real(1))
    return np.stack([low, np.minimum(low + 1, n - 1)], 1), np.stack([1 - part, part], 1)


def edges(n: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    """Where an adaptive pool's windows begin and end."""
    k = np.arange(out)
    return k * n // max(out, 1), -(-(k + 1) * n // max(out, 1))


def _windows(n: int, out: int, real: type) -> tuple[np.ndarray, np.ndarray]:
    """Means of windows whose lengths may differ by one: the shorter ones' first place stands twice, with half its weight."""
    first, last = edges(n, out)
    at = first[:, None] + np.arange((last - first).max())
    beyond = at >= last[:, None]
    weights = np.repeat(1 / (last - first)[:, None], at.shape[1], 1)
    weights /= np.where(beyond | (at == first[:, None]), 1 + beyond.sum(1, keepdims=True), 1)
    return np.where(beyond, first[:, None], at), weights.astype(real)


def matrix(*spec) -> np.ndarray:
    """The (outputs, inputs) matrix of the map along one dimension."""
    at, weights = _taps(*spec)
    m = np.zeros((len(at), spec[0]), weights.dtype)
    for k in range(at.shape[1]):
        np.add.at(m, (np.arange(len(at)), at[:, k]), weights[:, k])
    return m


def _step(n: int, out: int, align: bool, scale: float | None, real: type) -> np.floating:
    """The distance of two outputs, in inputs."""
    if align:
        return real((n - 1) / (out - 1)) if out > 1 else real(0)
    return real(1.0 / scale) if scale is not None and scale > 0 else real(n) / real(out)


def _middles(step: np.floating, i: np.ndarray) -> np.ndarray:
    """Where the outputs' middles lie among the inputs': rounded once, as torch's compiler has it."""
    return (np.float64(step) * (i + 0.5) - 0.5).astype(i.dtype)


def _cubic_weights(t, a=-0.75):
    """Keys' cubic convolution at distances t+1, t, 1-t, 2-t (Keys 1981)."""
    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _cubic_slopes(t, a=-0.75):
    """Derivatives of _cubic_weights by t."""
    def near(x):
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far(x):
        return (3 * a * x - 10 * a) * x + 8 * a
    return far(t + 1), near(t), -near(1 - t), -far(2 - t)


def _antialiased(n: int, out: int, step: np.floating, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """(positions, weights), a row per output: triangle, cubic (a = -0.5) or Lanczos filters widened by the step, as PIL's; every step in its type, as
    torch's."""
    real = type(step)
    half, filter = _FILTERS[mode]
    widen = max(step, real(1))
    centers, support = step * (np.arange(out, dtype=real) + real(0.5)), real(half) * widen
    first = np.maximum((centers - support + real(0.5)).astype(np.int64), 0)
    last = np.minimum((centers + support + real(0.5)).astype(np.int64), n)
    taps = np.arange(int((last - first).max()))
    distances = (taps.astype(real) + (first.astype(real) - centers)[:, None] + real(0.5)) * (real(1) / widen)
    columns = first[:, None] + taps
    f = np.where(columns < last[:, None], filter(np.abs(distances)), real(0))
    return np.minimum(columns, n - 1), f / np.add.accumulate(f, 1)[:, -1:]


def _cubic_filter(x, a=-0.5):
    return np.where(x < 1, ((a + 2) * x - (a + 3)) * x * x + 1, np.where(x < 2, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, 0))


_FILTERS = {"bilinear": (1.0, lambda x: np.maximum(1 - x, 0)), "bicubic": (2.0, _cubic_filter),
            "lanczos": (3.0, lambda x: np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0))}


@functools.lru_cache(maxsize=256)
def _weights(spec: tuple, transposed: bool) -> np.ndarray:
    m = matrix(*spec) if spec[-1] != "uint8" else _bytes(spec)[0].toarray()
    return m.T if transposed else m


@functools.lru_cache(maxsize=256)
def _bytes(spec: tuple):
    """torch's weights of bytes, as SciPy's sparse matrix: integers, so large that they just fit into 16 bits; and the shift that divides by their
    unit."""
    from scipy.sparse import csr_array
    n, out, mode, align, scale, antialias, _ = spec
    if antialias:
        columns, weights = _antialiased(n, out, _step(n, out, align, scale, np.float64), mode)
        starts = np.arange(0, columns.size + 1, columns.shape[1])
    else:
        m = matrix(*spec[:-1], "float64")
        rows, columns = np.nonzero(m)
        weights, starts = m[rows, columns], np.searchsorted(rows, np.arange(out + 1))
    shift = min(22, int(math.log2((2**15 - 0.5) / weights.max())))
    whole = np.trunc(weights * 2**shift + np.copysign(0.5, weights)).astype(np.int32)
    return csr_array((whole.ravel(), columns.ravel().astype(np.int32), starts.astype(np.int32)), (out, n)), shift


@functools.lru_cache(maxsize=256)
def _table(spec: tuple, transposed: bool):
    """(positions, weights) with one column per tap, or the matrix itself where there are many taps."""
    m = _weights(spec, transposed)
    taps = int((m != 0).sum(1).max())
    if taps > _MANY and taps * 4 > m.shape[1]:
        return None, np.ascontiguousarray(m)
    if not transposed and spec[-1] != "uint8":
        return _taps(*spec)
    order = np.argsort(m == 0, axis=1, kind="stable")[:, :taps]
    weights = np.take_along_axis(m, order, 1)
    return np.where(weights == 0, order[:, :1], order), weights  # no others than its own: what is infinite there would be NaN here


@functools.lru_cache(maxsize=256)
def _bands(spec: tuple, transposed: bool, kind: np.dtype) -> list[tuple[slice, slice, np.ndarray]]:
    """(outputs, inputs, weights): blocks that hold everything but zeros."""
    m, found = _weights(spec, transposed), []
    for start in range(0, len(m), _BAND):
        rows = slice(start, min(start + _BAND, len(m)))
        used = np.flatnonzero(m[rows].any(0))
        columns = slice(int(used[0]), int(used[-1]) + 1) if used.size else slice(0, 1)
        found.append((rows, columns, np.ascontiguousarray(m[rows, columns], kind)))
    return found


def _along_numpy(x: np.ndarray, axis: int, spec: tuple, transposed: bool) -> np.ndarray:
    """A small matrix product per band: NumPy would take a pass over memory for every tap."""
    bands = _bands(spec, transposed, x.dtype)
    out = bands[-1][0].stop
    shape = (*x.shape[:axis], out, *x.shape[axis + 1:])
    if axis == x.ndim - 1:
        x, y = x.reshape(math.prod(x.shape[:-1]), x.shape[axis]), np.empty((math.prod(shape[:-1]), out), x.dtype)
        for rows, columns, m in bands:
            np.matmul(x[:, columns], m.T, out=y[:, rows])
    else:
        before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1:])
        x, y = x.reshape(before, x.shape[axis], after), np.empty((before, out, after), x.dtype)
        for rows, columns, m in bands:
            np.matmul(m, x[:, columns], out=y[:, rows])
    return y.reshape(shape)


def _product(xp, x, m):
    return x @ m if xp is np else xp.matmul(x, m, precision=lax.Precision.HIGHEST)


def _kept_apart(xp, x, y, axis: int, spec: tuple, transposed: bool):
    """`y`, a product of x with a matrix that is mostly zeros; where x has infinities or NaN, which it spreads to all, sums of each output's own inputs."""
    fewer = x if x.size < y.size else y
    if xp is np:
        return y if np.isfinite(np.add.reduce(fewer, axis=None)) else _by_taps(np, x, axis, spec, transposed)
    return lax.cond(xp.isfinite(xp.sum(fewer)), lambda x, y: y, lambda x, y: _by_taps(xp, x, axis, spec, transposed), x, y)


def _by_taps(xp, x, axis: int, spec: tuple, transposed: bool):
    at, weights = _taps(*spec)
    shape, weights = (-1,) + (1,) * (x.ndim - axis - 1), weights.astype(x.dtype)
    sums = xp.zeros((*x.shape[:axis], spec[0] if transposed else spec[1], *x.shape[axis + 1:]), x.dtype)

    def add(k, sums):
        places, w = (at[:, k], weights[:, k]) if xp is np else (xp.asarray(at)[:, k], xp.asarray(weights)[:, k])
        if not transposed:
            return sums + xp.take(x, places, axis=axis) * w.reshape(shape)
        target = (slice(None),) * axis + (places,)
        if xp is not np:
            return sums.at[target].add(x * w.reshape(shape))
        np.add.at(sums, target, x * w.reshape(shape))
        return sums

    if xp is not np:
        return lax.fori_loop(0, at.shape[1], add, sums)
    for k in range(at.shape[1]):
        sums = add(k, sums)
    return sums


def _along(xp, x, axis: int, spec: tuple, transposed: bool):
    n, out, mode = spec[:3]
    if mode.startswith("nearest") and out % n == 0 and (spec[4] is None or spec[4] * n == out):
        k = out // n  # whole repetition
        if not transposed:
            return xp.repeat(x, k, axis=axis) if k > 1 else x
        copies = x.reshape(*x.shape[:axis], n, k, *x.shape[axis + 1:])
        if xp is np and k < 8:  # NumPy adds few numbers one by one
            return functools.reduce(np.add, [copies[(slice(None),) * (axis + 1) + (i,)] for i in range(k)])
        return xp.sum(copies, axis=axis + 1)
    if xp is np and not mode.startswith("nearest"):
        return _kept_apart(np, x, _along_numpy(x, axis, spec, transposed), axis, spec, transposed)
    taken = mode.startswith("nearest") and not transposed  # as it is: in a product, infinities would spread
    if xp is not np and not taken and axis == x.ndim - 1 and x.shape[axis] <= _SHORT and spec[-1] != "uint8":
        return _kept_apart(xp, x, _product(xp, x, _weights(spec, not transposed).astype(x.dtype)), axis, spec, transposed)
    at, weights = _table(spec, transposed)
    if at is None:
        y = xp.moveaxis(_product(xp, xp.moveaxis(x, axis, -1), weights.T.astype(x.dtype)), -1, axis)
        return y if spec[-1] == "uint8" else _kept_apart(xp, x, y, axis, spec, transposed)
    shape = (-1,) + (1,) * (x.ndim - axis - 1)
    total = None
    for k in range(at.shape[1]):
        part = xp.take(x, at[:, k], axis=axis)
        w = weights[:, k]
        if not (w == 1).all():
            part = part * w.astype(x.dtype).reshape(shape)
        total = part if total is None else total + part
    return total


def _resample(xp, x, specs):
    """specs: one per spatial dimension, (inputs, outputs, mode, align_corners, scale, antialias, type). As torch: the last dimension first."""
    y = wide(x) if specs[0][-1] != "uint8" else x
    for k in range(len(specs) - 1, -1, -1):
        if _changes(specs[k]):
            y = (_along if specs[k][-1] != "uint8" else _along_bytes)(xp, y, x.ndim - len(specs) + k, specs[k], False)
    return y.astype(x.dtype)


def _along_bytes(xp, x, axis: int, spec: tuple, _transposed: bool):
    """Sums of bytes by whole weights, rounded to bytes."""
    weights, shift = _bytes(spec)
    if xp is not np:
        sums = _along(xp, x.astype(np.int32), axis, spec, False)
        return xp.clip((sums + (1 << shift - 1)) >> shift, 0, 255).astype(np.uint8)
    front = np.moveaxis(x, axis, 0)
    sums = weights @ front.astype(np.int32, order="C").reshape(len(front), math.prod(front.shape[1:]))
    sums += 1 << shift - 1
    sums >>= shift
    if spec[2] != "bilinear":  # its weights are positive
        np.clip(sums, 0, 255, out=sums)
    return np.moveaxis(sums.astype(np.uint8).reshape(len(sums), *front.shape[1:]), 0, axis)


def _changes(spec) -> bool:
    """Whether the map is more than the identity: with a scale of its own the same size may still move things."""
    n, out, mode, _, scale, antialias, _ = spec
    return n != out or (scale not in (None, 1.0) and (mode == "bicubic" or mode.startswith("nearest")) and not antialias)


def _resample_vjp(xp, g, specs):
    y = wide(g)
    for k in range(len(specs)):
        if _changes(specs[k]):
            y = _along(xp, y, g.ndim - len(specs) + k, specs[k], True)
    return y


def _shape(x, specs):
    return (*x.shape[:x.ndim - len(specs)], *(s[1] for s in specs)), x.dtype


NAMES = {"nearest": "Nearest", "nearest-exact": "NearestExact", "linear": "Linear", "bilinear": "Bilinear", "trilinear": "Trilinear",
          "bicubic": "Bicubic", "lanczos": "Lanczos"}
OPS = {(mode, n): Op(f"upsample_{mode.replace('-', '_')}{n}d", _resample, shape=_shape, vjp=_resample_vjp,
                      torch_name=f"Upsample{name}{n}DBackward0") for mode, name in NAMES.items() for n in (1, 2, 3)}
OPS.update({("area", n): Op(f"window_means{n}d", _resample, shape=_shape, vjp=_resample_vjp, torch_name=f"AdaptiveAvgPool{n}DBackward0")
            for n in (1, 2, 3)})
