"""interpolate and its older names: nearest, linear, cubic and area resampling."""
from __future__ import annotations

import math

from ..._arguments import converts
from ..._core import dtype as dt
from ..._core.history import warn
from ..._kinds import combination
from ..._tensor import Tensor, apply
from .common import ints, keep_format, not_implemented
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .resampling_maps import NAMES, OPS

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
    size, factors = _sizes(input, size, scale_factor, n)
    if recompute_scale_factor and size is not None and factors is None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    _need_numbers(input, size, factors, mode, align_corners, recompute_scale_factor, antialias, n)
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
    if mode not in NAMES or _RANKS.get(mode, n) != n or n not in (1, 2, 3):
        raise NotImplementedError(f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | "
                                  f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})")
    return _resampled(input, tuple(size), factors, mode, bool(align_corners), antialias, n)


def _need_numbers(input: Tensor, size, factors, mode: str, align, again, antialias: bool, n: int) -> None:
    """torch's errors for sizes and factors that are no numbers: those of the operator that it calls, or of what it counts sizes with before."""
    if size is not None:
        if all(map(_countable, size)):
            size[:] = [s.__index__() for s in size]
            return
        if mode == "area" and n in (1, 2, 3):
            ints(size, n, f"adaptive_avg_pool{n}d", "output_size", 2)
    elif again or mode == "area" or mode not in NAMES:
        factors[:] = [float(f) for f in factors]
        return
    elif not any(isinstance(f, Tensor) for f in factors) and all(converts(float, f) and not isinstance(f, str) for f in factors):
        factors[:] = map(float, factors)
        return
    name = f"_upsample_{mode}{n}d_aa" if antialias else f"_upsample_nearest_exact{n}d" if mode == "nearest-exact" else f"upsample_{mode}{n}d"
    raise combination(name, (input, size, *([] if mode.startswith("nearest") else [align]), factors), {})


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
        if size is not None and not all(map(_countable, given)):
            raise TypeError(f"expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with types "
                            f"{[type(s) for s in given]}")
        given = list(given)
    else:
        given = [given] * n
    if size is None:
        return None, given
    return given, None


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
        raise not_implemented("compute_index_ranges_weights" if antialias else "compute_indices_weights_" + kernel, input.dtype)
    kind = "float64" if input.dtype is dt.float64 else "uint8" if input.dtype is dt.uint8 and not mode.startswith("nearest") else "float32"
    specs = tuple((int(s), int(o), mode, align, None if factors is None else factors[i], bool(antialias), kind)
                  for i, (s, o) in enumerate(zip(spatial, size)))
    return keep_format(apply(OPS[mode, n], (input,), (specs,)), input)


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
