"""Window functions, and the short-time Fourier transform and its inverse."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arguments import as_int
from .._core import device as dev
from .._core import dtype as dt
from .._core.history import warn
from .._core.value import is_tracer
from .._public import FUNCTIONS as F
from .._public import public
from .._tensor import Tensor
from . import fourier
from .creation import _check_dtype, _finish
from .from_data import place


def _window(name: str, n, periodic: bool, dtype, layout, device, requires_grad, values, narrow: bool = False) -> Tensor:
    """`values(positions, n)`; `narrow`: positions are float32 but for windows of float64."""
    if layout is not None and layout.name.startswith("sparse"):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
    n = as_int(n, "window_length", f"{name}(): ", " (position 1)")
    d = dt.get_default_dtype() if dtype is None else _check_dtype(dtype)
    if d.category != dt.FLOAT:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {d}")
    if n < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
    if n < 2:
        made = np.ones(n)
    else:
        made = values(np.arange(n, dtype=np.float32 if narrow and d is not dt.float64 else np.float64), n if periodic else n - 1)
    return _finish(place(made.astype(d.np), dev.resolve(device)), requires_grad)


def _cosines(*weights):
    """sum_k (-1)^k w_k cos(2 pi k i / n)."""
    def values(i, n):
        return sum((-1) ** k * w * np.cos(2 * math.pi * k * i / n) for k, w in enumerate(weights))
    return values


def _blackman(i, n):
    """Its ends are rounding errors: the sum is torch's, in torch's precision."""
    i = i * i.dtype.type(math.pi / n)
    return np.cos(4 * i) * i.dtype.type(0.08) - np.cos(2 * i) * i.dtype.type(0.5) + i.dtype.type(0.42)


@public(method=False)
def hann_window(window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """The Hann window: sin^2(pi i / n)."""
    return _window("hann_window", window_length, periodic, dtype, layout, device, requires_grad, _cosines(0.5, 0.5))


@public(method=False)
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype=None, layout=None, device=None,
                   pin_memory=False, requires_grad=False) -> Tensor:
    """The Hamming window: alpha - beta cos(2 pi i / n)."""
    return _window("hamming_window", window_length, periodic, dtype, layout, device, requires_grad, _cosines(alpha, beta))


@public(method=False)
def blackman_window(window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """The Blackman window."""
    return _window("blackman_window", window_length, periodic, dtype, layout, device, requires_grad, _blackman, narrow=True)


@public(method=False)
def bartlett_window(window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """The triangular window: 1 - |2 i / n - 1|."""
    return _window("bartlett_window", window_length, periodic, dtype, layout, device, requires_grad, lambda i, n: 1 - np.abs(2 * i / n - 1))


@public(method=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype=None, layout=None, device=None, pin_memory=False,
                  requires_grad=False) -> Tensor:
    """The Kaiser window of shape beta."""
    def values(i, n):
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * i / n - 1) ** 2, 0))) / np.i0(beta)
    return _window("kaiser_window", window_length, periodic, dtype, layout, device, requires_grad, values)


def _centred_window(window, win_length: int, n_fft: int, like: Tensor) -> Tensor:
    """A window of n_fft values with `window` (or ones) in its middle."""
    w = F["ones"](win_length, dtype=like.dtype, device=like.device) if window is None else window
    left = (n_fft - win_length) // 2
    if win_length == n_fft:
        return w
    zeros = w.new_zeros(left), w.new_zeros(n_fft - win_length - left)
    return F["cat"]([zeros[0], w, zeros[1]])


def _told(name: str, x: Tensor, **given) -> str:
    """A call as torch's errors of stft and istft begin with it."""
    def word(value) -> str:
        if not isinstance(value, Tensor):
            return str(int(value) if isinstance(value, bool) else value)
        old = value.dtype.category != dt.COMPLEX and value.dtype is not dt.bfloat16
        return f"torch.{value.dtype.short}Tensor" if old else f"CPU{value.dtype.short}Type"

    if (window := given.get("window")) is not None:
        given["window"] = f"{word(window)}{{{list(window.shape)}}}"
    return f"{name}({word(x)}{list(x.shape)}, {', '.join(f'{key}={word(value)}' for key, value in given.items())})"


_RECTANGULAR = "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."


def _same_device(name: str, x: Tensor, window) -> None:
    if window is not None and window.device != x.device:
        raise RuntimeError(f"{name} input and window must be on the same device but got self on {x.device} and window on {window.device}")


@public()
def stft(input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
    """Spectra of windowed frames every hop_length samples: (..., frequencies, frames). The frames are n_fft samples long, with the window in
    their middle; where they are aligned to the window they are as long as it, and lie in the middle of zeros."""
    _same_device("stft", input, window)
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    n_fft = as_int(n_fft, "n_fft")
    hop, win = n_fft // 4 if hop_length is None else as_int(hop_length, "hop_length"), n_fft if win_length is None else as_int(win_length, "win_length")
    x = input
    if center:
        from ..nn.functional import pad
        lead = (1,) * (3 - x.ndim) + tuple(x.shape)
        x = pad(x.view(lead), (n_fft // 2, n_fft // 2), mode=pad_mode)
        x = x.view(x.shape[-input.ndim:])
    told = _told("stft", x, n_fft=n_fft, hop_length=hop, win_length=win, window=window, normalized=normalized, onesided=onesided,
                 return_complex=return_complex, align_to_window=align_to_window)
    if window is None:
        warn("A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other windows such as "
             f"torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.{_RECTANGULAR}", once=True)
    complex_input = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex_input:
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require that "
                               "return_complex=True in a future PyTorch release.")
        return_complex = True
    if not return_complex:
        warn("stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all inputs, and "
             "return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the complex output to recover the old return "
             "format.", once=True)
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(f"{told} : expected a tensor of floating point or complex values")
    if x.ndim not in (1, 2):
        raise RuntimeError(f"{told} : expected a 1D or 2D tensor")
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(f"{told} : expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{told} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{told} : expected 0 < win_length <= n_fft, but got win_length={win}")
    if window is not None and tuple(window.shape) != (win,):
        raise RuntimeError(f"{told} : expected a 1D window tensor of size equal to win_length={win}, but got window with size {list(window.shape)}")
    if onesided is None:
        onesided = not complex_input
    if onesided and complex_input:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    rows = x if x.ndim == 2 else x.unsqueeze(0)
    if align_to_window:
        from ..nn.functional import pad
        frames = rows.unfold(-1, win, hop)
        frames = pad(frames if window is None else frames * window, ((n_fft - win) // 2, n_fft - win - (n_fft - win) // 2))
    else:
        frames = rows.unfold(-1, n_fft, hop)
        if window is not None or win != n_fft:
            frames = frames * _centred_window(window, win, n_fft, x)
    norm = "ortho" if normalized else None
    out = (fourier.rfft if onesided else fourier.fft)(frames, norm=norm).transpose(-1, -2)
    out = out if x.ndim == 2 else out.squeeze(0)
    return out if return_complex else F["view_as_real"](out.resolve_conj())


@public()
def istft(input, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None, center: bool = True,
          normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False) -> Tensor:
    """The least-squares inverse of stft: overlapping windowed frames, divided by the windows' sum of squares."""
    _same_device("istft", input, window)
    n_fft = as_int(n_fft, "n_fft")
    hop, win = n_fft // 4 if hop_length is None else as_int(hop_length, "hop_length"), n_fft if win_length is None else as_int(win_length, "win_length")
    if window is None:
        warn("A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to make the inversion "
             f"lossless.{_RECTANGULAR}", once=True)
    if not input.is_complex():
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    told = _told("istft", input, n_fft=n_fft, hop_length=hop, win_length=win, window=window, center=center, normalized=normalized, onesided=onesided,
                 length=length, return_complex=return_complex)
    if not input.numel():
        raise RuntimeError(f"{told} : input tensor cannot be empty.")
    if input.ndim not in (2, 3):
        raise RuntimeError(f"{told} : expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}")  # a pair of numbers was a dimension once
    x = input if input.ndim == 3 else input.unsqueeze(0)
    if onesided is None:
        onesided = x.shape[1] != n_fft
    if x.shape[1] != (n_fft // 2 + 1 if onesided else n_fft):
        size = "n_fft / 2 + 1 when onesided=True" if onesided else "n_fft when onesided=False"
        raise RuntimeError(f"{told} : expected the frequency dimension (3rd to the last) of the input tensor to match {size}, but got {x.shape[1]}")
    if not 0 < hop <= win:
        raise RuntimeError(f"{told} : expected 0 < hop_length <= win_length")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{told} : expected 0 < win_length <= n_fft")
    if window is not None and tuple(window.shape) != (win,):
        raise RuntimeError(f"{told} : Invalid window shape. window has to be 1D and length of `win_length`")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if onesided and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    norm, spectra = "ortho" if normalized else None, x.transpose(1, 2)
    if return_complex:
        frames = fourier.ifft(spectra, norm=norm)
    else:
        frames = fourier.irfft(spectra if onesided else spectra[..., :n_fft // 2 + 1], n=n_fft, norm=norm)
    real = frames.real if frames.is_complex() else frames
    w = _centred_window(window, win, n_fft, real)
    count = frames.shape[1]
    total = n_fft + hop * (count - 1)
    where = (F["arange"](count, device=x.device).unsqueeze(1) * hop + F["arange"](n_fft, device=x.device)).reshape(-1)
    signal = frames.new_zeros(frames.shape[0], total).index_add(1, where, (frames * w).reshape(frames.shape[0], -1))
    weight = w.new_zeros(total).index_add(0, where, (w * w).expand(count, n_fft).reshape(-1))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    signal, weight = signal[:, start:end], weight[start:end]
    if not is_tracer(weight._current().array) and bool((weight.abs().min() < 1e-11).item()):
        raise RuntimeError(f"{told} window overlap add min: 1")
    out = signal / weight
    if length is not None and out.shape[1] < length:
        warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check your center and "
             "hop_length settings.", once=True)
        out = F["cat"]([out, out.new_zeros(out.shape[0], length - out.shape[1])], 1)
    return out if input.ndim == 3 else out.squeeze(0)
