"""Operators of torch.ops.aten that resample, and those of windows: pads by their mode, pools that say where their maxima were. torch._C._nn has the same."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._tensor import Tensor
from .nn import functional

_UPSAMPLE = {"upsample_nearest": "nearest", "_upsample_nearest_exact": "nearest-exact", "upsample_linear": "linear", "upsample_bilinear": "bilinear",
             "upsample_bicubic": "bicubic", "upsample_trilinear": "trilinear"}


def upsampling(mode: str, dims: int, antialias: bool) -> str:
    """The operator that interpolates so."""
    name = next(name for name, m in _UPSAMPLE.items() if m == mode)
    return f"{'_' if antialias else ''}{name}{dims}d{'_aa' if antialias else ''}"


def _upsample(mode: str, n: int, antialias: bool) -> Callable:
    """`output_size`, or a list `scale_factors`; or the size, and the scale in each dimension by which positions are computed."""
    def run(input: Tensor, output_size: Any, align: bool | None, scales: tuple, scale_factors: Any, named: dict) -> Tensor:
        if scales and (scales[0] is None or isinstance(scales[0], (list, tuple))):
            scale_factors, scales = scales[0], scales[1:]
        scales = [s for s in (*scales, *named.values()) if s is not None]
        if (output_size is None) is (scale_factors is None):
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        if input.dim() != n + 2:
            raise RuntimeError(f"It is expected input_size equals to {n + 2}, but got size {input.dim()}")
        if output_size is None:
            return functional.interpolate(input, None, list(scale_factors), mode, align, antialias=antialias)
        sizes = list(repeated(output_size, n))
        if len(sizes) != n:
            raise RuntimeError(f"It is expected output_size equals to {n}, but got size {len(sizes)}")
        if len(scales) == n and "nearest" not in mode and sizes == [math.floor(m * s) for m, s in zip(input.shape[2:], scales)]:
            return functional.interpolate(input, None, scales, mode, align, antialias=antialias)
        return functional.interpolate(input, sizes, None, mode, align, antialias=antialias)

    if "nearest" in mode:
        def upsample(input: Tensor, output_size: Any, *scales: Any, scale_factors: Any = None, **named: Any) -> Tensor:
            return run(input, output_size, None, scales, scale_factors, named)
    else:
        def upsample(input: Tensor, output_size: Any, align_corners: bool, *scales: Any, scale_factors: Any = None, **named: Any) -> Tensor:
            return run(input, output_size, align_corners, scales, scale_factors, named)
    upsample.__name__ = upsample.__qualname__ = upsampling(mode, n, antialias)
    return upsample


def repeated(x: Any, n: int) -> tuple:
    """A number for each dimension."""
    return (x,) * n if isinstance(x, int) else tuple(x)


def _pad(kind: str, mode: str, n: int) -> Callable:
    def run(input: Tensor, padding: Any) -> Tensor:
        padding = repeated(padding, 2 * n)
        if len(padding) != 2 * n:
            raise RuntimeError(f"padding size is expected to be {2 * n}, but got: {len(padding)}")
        return functional.pad(input, list(padding), mode)
    run.__name__ = run.__qualname__ = f"{kind}_pad{n}d"
    return run


def _fractional(pool: Callable) -> Callable:
    def run(input: Tensor, kernel_size: Any, output_size: Any, random_samples: Tensor) -> tuple[Tensor, Tensor]:
        return pool(input, kernel_size, output_size, return_indices=True, _random_samples=random_samples)
    return run


def _with_positions(pool: Callable) -> Callable:
    def run(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return pool(input, *args, **kwargs, return_indices=True)
    return run


def _unpooled(input: Tensor, indices: Tensor, sizes: tuple) -> Tensor:
    if input.shape != indices.shape:
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices tensor with shape: "
                           f"{list(indices.shape)}")
    n = len(sizes)
    planes = input.new_zeros((*input.shape[:-n], math.prod(sizes)))
    return planes.scatter(-1, indices.flatten(-n), input.flatten(-n)).unflatten(-1, sizes)


def _max_unpool2d(input: Tensor, indices: Tensor, output_size: Any) -> Tensor:
    return _unpooled(input, indices, repeated(output_size, 2))


def _max_unpool3d(input: Tensor, indices: Tensor, output_size: Any, stride: Any, padding: Any) -> Tensor:
    """stride and padding are those of the pool, and change nothing."""
    return _unpooled(input, indices, repeated(output_size, 3))


def _im2col(input: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    return functional.unfold(input, kernel_size, dilation, padding, stride)


def _col2im(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    return functional.fold(input, output_size, kernel_size, dilation, padding, stride)


WINDOWS: dict[str, Callable] = {
    **{upsampling(mode, n, False): _upsample(mode, n, False) for mode, dims in (("nearest", (1, 2, 3)), ("nearest-exact", (1, 2, 3)), ("linear", (1,)),
                                                                               ("bilinear", (2,)), ("bicubic", (2,)), ("trilinear", (3,))) for n in dims},
    **{upsampling(mode, 2, True): _upsample(mode, 2, True) for mode in ("bilinear", "bicubic")},
    **{f"{kind}_pad{n}d": _pad(kind, mode, n) for kind, mode in (("reflection", "reflect"), ("replication", "replicate")) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _with_positions(getattr(functional, f"max_pool{n}d")) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _with_positions(getattr(functional, f"adaptive_max_pool{n}d")) for n in (2, 3)},
    **{f"fractional_max_pool{n}d": _fractional(getattr(functional, f"fractional_max_pool{n}d")) for n in (2, 3)},
    "max_unpool2d": _max_unpool2d, "max_unpool3d": _max_unpool3d, "im2col": _im2col, "col2im": _col2im,
}
