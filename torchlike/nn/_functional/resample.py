"""interpolate and its older names: nearest, linear, cubic and area resampling."""
from __future__ import annotations

import functools
import math

import numpy as np
from jax import lax

from ..._arguments import real
from ..._core import dtype as dt
from ..._core.history import warn
from ..._core.registry import Op
from ..._tensor import Tensor, apply
from .common import keep_format, not_implemented, wide
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

# Resampling is linear and separable: along each dimension every output is a weighted sum of a few inputs. A table holds
# the inputs' positions and weights, (outputs, taps); the derivative uses the table of the transposed map.

_MANY = 12  # taps from which a matrix product is quicker
_BAND = 16  # outputs that one small matrix product makes
_SHORT = 192  # elements up to which XLA's gathers along the last axis lose to a matrix product


@functools.lru_cache(maxsize=256)
def _taps(n: int, out: int, mode: str, align: bool, scale: float | None, antialias: bool, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(positions, weights), (outputs, taps), of the map along one dimension; `kind` is the float type torch computes positions in."""
    real = np.dtype("float32" if mode.startswith("nearest") else kind).type
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


def _matrix(*spec) -> np.ndarray:
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
    m = _matrix(*spec) if spec[-1] != "uint8" else _bytes(spec)[0].toarray()
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
        m = _matrix(*spec[:-1], "float64")
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


_NAMES = {"nearest": "Nearest", "nearest-exact": "NearestExact", "linear": "Linear", "bilinear": "Bilinear", "trilinear": "Trilinear",
          "bicubic": "Bicubic", "lanczos": "Lanczos"}
_OPS = {(mode, n): Op(f"upsample_{mode.replace('-', '_')}{n}d", _resample, shape=_shape, vjp=_resample_vjp,
                      torch_name=f"Upsample{name}{n}DBackward0") for mode, name in _NAMES.items() for n in (1, 2, 3)}
_RANKS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}


def interpolate(input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """(N, C, *spatial) resampled to `size` or by `scale_factor`.

    mode: 'nearest', 'nearest-exact', 'area', 'linear' (3-D input), 'bilinear', 'bicubic', 'lanczos' (4-D), 'trilinear' (5-D).
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    elif align_corners is None:
        align_corners = False
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    n = input.dim() - 2
    if size is None and _holds_tensors(scale_factor) and mode in _NAMES and not recompute_scale_factor:
        raise _refused(mode, n, antialias, "NoneType", "list")
    if isinstance(size, Tensor) and size.numel() != 1 and size.dtype.category < dt.FLOAT and scale_factor is None and mode in _NAMES:
        raise _refused(mode, n, antialias, "list", "NoneType")
    size, factors = _sizes(input, size, scale_factor, n)
    if recompute_scale_factor and size is not None and factors is None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if size is None:
        size = [int(math.floor(float(s) * f)) for s, f in zip(input.shape[2:], factors)]
        if recompute_scale_factor or mode == "area":
            factors = None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "area" and n in (1, 2, 3):
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](input, size)
    if mode in ("linear", "bilinear", "trilinear") and n in (1, 2, 3) and _RANKS[mode] != n:
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_RANKS[mode] + 2}D input")
    if mode not in _NAMES or _RANKS.get(mode, n) != n or n not in (1, 2, 3):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | "
                                  f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    return _resampled(input, tuple(size), factors, mode, bool(align_corners), antialias, n)


def _holds_tensors(numbers) -> bool:
    return any(isinstance(x, Tensor) for x in (numbers if isinstance(numbers, (list, tuple)) else (numbers,)))


def _refused(mode: str, n: int, antialias: bool, size: str, factors: str) -> TypeError:
    """torch's error where one of its operators gets tensors for numbers."""
    name = f"_upsample_{mode}{n}d_aa" if antialias else f"_upsample_nearest_exact{n}d" if mode == "nearest-exact" else f"upsample_{mode}{n}d"
    given = ", ".join(["Tensor", size, *([] if mode.startswith("nearest") else ["bool"]), factors])
    return TypeError(f"{name}() received an invalid combination of arguments - got ({given}), but expected one of:")


def _countable(size) -> bool:
    """Whether a number stands for a size: an integer, or a tensor of one."""
    if isinstance(size, Tensor):
        return size.numel() == 1 and size.dtype.category < dt.FLOAT
    return hasattr(size, "__index__") and not isinstance(size, bool)


def _sizes(input: Tensor, size, scale_factor, n: int):
    """(size, scale factors): one of them a list, the other None."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    given, name = (size, "size") if size is not None else (scale_factor, "scale_factor")
    if given is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(given, (list, tuple)):
        if len(given) != n:
            if size is None:
                raise ValueError(f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
                                 f"{list(input.shape[2:])} and scale_factor of shape {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format "
                                 "and scale_factor in (s1, s2, ...,sK) format.")
            raise ValueError(f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                             f"{list(input.shape[2:])} and output size of {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                             "output size in (o1, o2, ...,oK) format.")
        given = list(given)
    else:
        given = [given] * n
    if size is None:
        return None, [real(f, "interpolate", "scale_factor", 3) for f in given]
    if not all(map(_countable, given)):
        raise TypeError(f"expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with types "
                        f"{[type(s) for s in given]}")
    return [s.__index__() for s in given], None


def _resampled(input: Tensor, size, factors, mode, align, antialias, n) -> Tensor:
    spatial = input.shape[2:]
    if not all(spatial) or not all(s > 0 for s in size):
        if n == 1:
            raise RuntimeError(f"Input and output sizes should be greater than 0, but got input (W: {spatial[0]}) and output (W: {size[0]})")
        letters = "HW" if n == 2 else "DHW"
        say = lambda v: ", ".join(f"{a}: {s}" for a, s in zip(letters, v))  # noqa: E731
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({say(spatial)}) output ({say(size)})")
    if not input.shape[1]:
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(input.shape)}")
    if input.dtype.category != dt.FLOAT and input.dtype is not dt.uint8:
        kernel = "nearest" if mode.startswith("nearest") else "cubic" if mode == "bicubic" else "linear"
        raise not_implemented("compute_indices_weights_" + kernel, input.dtype)
    kind = "float64" if input.dtype is dt.float64 else "uint8" if input.dtype is dt.uint8 and not mode.startswith("nearest") else "float32"
    specs = tuple((int(s), int(o), mode, align, None if factors is None else factors[i], bool(antialias), kind)
                  for i, (s, o) in enumerate(zip(spatial, size)))
    return keep_format(apply(_OPS[mode, n], (input,), (specs,)), input)


def upsample(input: Tensor, size=None, scale_factor=None, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """interpolate, under its deprecated name."""
    warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """interpolate with mode 'nearest', under its deprecated name."""
    warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """interpolate with mode 'bilinear' and aligned corners, under its deprecated name."""
    warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
