"""torch.signal.windows: weights of M samples. `sym`: symmetric, as filters want; else a period, as spectra want.

One dimension of points k, evenly spaced, is made for each window, and the window is a function of them.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from .._core import dtype as dt
from .._public import FUNCTIONS as F
from .._tensor import Tensor
from ..ops.layouts import LAYOUTS

strided = LAYOUTS["strided"]

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall"]


def _window(name: str, m: int, points: Callable[[int], tuple[float, float]], weights: Callable[[Tensor], Tensor], dtype, layout, device, requires_grad) -> Tensor:
    """`weights` of m points from the first to the last of `points(m)`; a window of one sample is 1."""
    if isinstance(m, Tensor) and m.ndim == 0:
        m = m.item()
    dtype = dt.get_default_dtype() if dtype is None else dtype
    if m < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={m}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (dt.float32, dt.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if m in (0, 1):
        return F["ones"](int(m), dtype=dtype, device=device, requires_grad=requires_grad)
    first, last = points(m)
    made = weights(F["linspace"](first, last, m, dtype=dtype, device=device))
    return made.requires_grad_(requires_grad)


def _spread(start: float, m: int, step: float) -> tuple[float, float]:
    return start * step, (start + (m - 1)) * step


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype=None, layout=strided, device: Any = None,
                requires_grad: bool = False) -> Tensor:
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return _window("exponential", M, lambda m: _spread(-(m - sym) / 2 if center is None else -center, m, 1 / tau), lambda k: (-k.abs()).exp(), dtype, layout, device, requires_grad)


def cosine(M: int, *, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Half a period of the sine."""
    return _window("cosine", M, lambda m: _spread(0.5, m, math.pi / (m + (not sym))), lambda k: k.sin(), dtype, layout, device, requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """exp(-(n - centre)^2 / (2 std^2))."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", M, lambda m: _spread((sym - m) / 2, m, 1 / (std * math.sqrt(2))), lambda k: (-k ** 2).exp(), dtype, layout, device, requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The zeroth modified Bessel function of sqrt(beta^2 - k^2), k from -beta to beta, over its largest value."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, lambda m: (-beta, min(beta, -beta + (m - 1) * (2.0 * beta / (m - sym)))),
                   lambda k: (beta * beta - k ** 2).sqrt().i0() / F["tensor"](beta, dtype=k.dtype, device=device).i0(), dtype, layout, device, requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A triangle."""
    return _window("bartlett", M, lambda m: (-1, -1 + (m - 1) * (2 / (m - sym))), lambda k: 1 - k.abs(), dtype, layout, device, requires_grad)


def general_cosine(M: int, *, a: Iterable, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The sum of (-1)^i a[i] cos(i k), k over one period."""
    return _cosines("general_cosine", M, a, sym, dtype, layout, device, requires_grad)


def _cosines(name: str, m: int, a: Iterable, sym: bool, dtype, layout, device, requires_grad) -> Tensor:
    def weights(k: Tensor) -> Tensor:
        heights = F["tensor"]([(-1) ** i * height for i, height in enumerate(a)], dtype=k.dtype, device=device, requires_grad=requires_grad)
        order = F["arange"](heights.shape[0], dtype=k.dtype, device=device)
        return (heights[:, None] * (order[:, None] * k).cos()).sum(0)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    a = list(a)
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _window(name, m, lambda m: (0, (m - 1) * (2 * math.pi / (m - sym))), weights, dtype, layout, device, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """alpha - (1 - alpha) cos(k)."""
    return _cosines("general_hamming", M, (alpha, 1 - alpha), sym, dtype, layout, device, requires_grad)


def hamming(M: int, *, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """0.54 - 0.46 cos(k)."""
    return _cosines("hamming", M, (0.54, 1 - 0.54), sym, dtype, layout, device, requires_grad)


def hann(M: int, *, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """0.5 - 0.5 cos(k)."""
    return _cosines("hann", M, (0.5, 0.5), sym, dtype, layout, device, requires_grad)


def blackman(M: int, *, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Three cosine terms."""
    return _cosines("blackman", M, (0.42, 0.5, 0.08), sym, dtype, layout, device, requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype=None, layout=strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Four cosine terms (Nuttall's minimum)."""
    return _cosines("nuttall", M, (0.3635819, 0.4891775, 0.1365995, 0.0106411), sym, dtype, layout, device, requires_grad)
