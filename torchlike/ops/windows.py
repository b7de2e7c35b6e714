"""Window functions, and the short-time Fourier transform and its inverse."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core import device as dev
from .._core import dtype as dt
from .._public import FUNCTIONS as F
from .._public import as_int, public
from .._tensor import Tensor
from . import fourier
from .creation import _check_dtype, _finish, place


def _window(name: str, n, periodic: bool, dtype, device, requires_grad, values) -> Tensor:
    n = as_int(n, "window_length", f"{name}(): ", " (position 1)")
    d = dt.get_default_dtype() if dtype is None else _check_dtype(dtype)
    if d.category != dt.FLOAT:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {d}")
    if n < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={n}")
    if n < 2:
        made = np.ones(n)
    else:
        made = values(np.arange(n, dtype=np.float64), n if periodic else n - 1)
    return _finish(place(made.astype(d.np), dev.resolve(device)), requires_grad)


def _cosines(*weights):
    """sum_k (-1)^k w_k cos(2 pi k i / n)."""
    def values(i, n):
        return sum((-1) ** k * w * np.cos(2 * math.pi * k * i / n) for k, w in enumerate(weights))
    return values


@public(method=False)
def hann_window(window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """The Hann window: sin^2(pi i / n)."""
    return _window("hann_window", window_length, periodic, dtype, device, requires_grad, _cosines(0.5, 0.5))


@public(method=False)
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype=None, layout=None, device=None,
                   pin_memory=False, requires_grad=False) -> Tensor:
    """The Hamming window: alpha - beta cos(2 pi i / n)."""
    return _window("hamming_window", window_length, periodic, dtype, device, requires_grad, _cosines(alpha, beta))


@public(method=False)
def blackman_window(window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """The Blackman window."""
    return _window("blackman_window", window_length, periodic, dtype, device, requires_grad, lambda i, n: np.abs(_cosines(0.42, 0.5, 0.08)(i, n)))


@public(method=False)
def bartlett_window(window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """The triangular window: 1 - |2 i / n - 1|."""
    return _window("bartlett_window", window_length, periodic, dtype, device, requires_grad, lambda i, n: 1 - np.abs(2 * i / n - 1))


@public(method=False)
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype=None, layout=None, device=None, pin_memory=False,
                  requires_grad=False) -> Tensor:
    """The Kaiser window of shape beta."""
    def values(i, n):
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * i / n - 1) ** 2, 0))) / np.i0(beta)
    return _window("kaiser_window", window_length, periodic, dtype, device, requires_grad, values)


def _centred_window(window, win_length: int, n_fft: int, like: Tensor) -> Tensor:
    """A window of n_fft values with `window` (or ones) in its middle."""
    w = F["ones"](win_length, dtype=like.dtype, device=like.device) if window is None else window
    left = (n_fft - win_length) // 2
    if win_length == n_fft:
        return w
    zeros = w.new_zeros(left), w.new_zeros(n_fft - win_length - left)
    return F["cat"]([zeros[0], w, zeros[1]])


def _checked(name: str, n_fft: int, hop: int, win: int, window) -> None:
    if n_fft <= 0:
        raise RuntimeError(f"{name}: expected n_fft > 0, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win}")
    if window is not None and (window.ndim != 1 or window.shape[0] != win):
        raise RuntimeError(f"{name}: expected a 1D window tensor of size equal to win_length={win}, but got window with size {list(window.shape)}")


@public()
def stft(input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window=None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
    """Spectra of windowed frames every hop_length samples: (..., frequencies, frames)."""
    complex_input = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not complex_input:
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further require that "
                               "return_complex=True in a future PyTorch release.")
        return_complex = True
    n_fft = as_int(n_fft, "n_fft")
    hop, win = n_fft // 4 if hop_length is None else as_int(hop_length, "hop_length"), n_fft if win_length is None else as_int(win_length, "win_length")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"stft(input, n_fft={n_fft}, hop_length={hop}, win_length={win}): expected a 1D or 2D tensor")
    _checked("stft", n_fft, hop, win, window)
    if onesided is None:
        onesided = not complex_input
    if onesided and complex_input:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        from ..nn.functional import pad
        x = pad(x.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(1)
    if x.shape[-1] < n_fft:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {x.shape[-1]}, but got n_fft={n_fft}")
    frames = x.unfold(-1, n_fft, hop)
    if window is not None or win != n_fft:
        frames = frames * _centred_window(window, win, n_fft, x)
    norm = "ortho" if normalized else None
    out = (fourier.rfft if onesided else fourier.fft)(frames, norm=norm).transpose(-1, -2)
    out = out if input.ndim == 2 else out.squeeze(0)
    return out if return_complex else F["view_as_real"](out.resolve_conj())


@public()
def istft(input, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window=None, center: bool = True,
          normalized: bool = False, onesided: bool | None = None, length: int | None = None, return_complex: bool = False) -> Tensor:
    """The least-squares inverse of stft: overlapping windowed frames, divided by the windows' sum of squares."""
    if not input.is_complex():
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    n_fft = as_int(n_fft, "n_fft")
    hop, win = n_fft // 4 if hop_length is None else as_int(hop_length, "hop_length"), n_fft if win_length is None else as_int(win_length, "win_length")
    _checked("istft", n_fft, hop, win, window)
    if input.ndim not in (2, 3):
        raise RuntimeError(f"istft expected a tensor with 2 or 3 dimensions, but got {input.ndim}")
    x = input if input.ndim == 3 else input.unsqueeze(0)
    if onesided is None:
        onesided = x.shape[1] != n_fft
    if onesided and x.shape[1] != n_fft // 2 + 1:
        raise RuntimeError("istft expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when "
                           f"onesided=True, but got {x.shape[1]}")
    if onesided and return_complex:
        raise RuntimeError("cannot have onesided output if window or input is complex")
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
    if bool((weight.abs().min() < 1e-11).item()):
        raise RuntimeError("window overlap add min: 1")
    out = signal / weight
    if length is not None and out.shape[1] < length:
        out = F["cat"]([out, out.new_zeros(out.shape[0], length - out.shape[1])], 1)
    return out if input.ndim == 3 else out.squeeze(0)
