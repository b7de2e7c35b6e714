"""Automatic mixed precision: which functions compute in 16 bits inside `torch.autocast`, and which never do.

The lists are torch's, per kind of device. A listed function looks at `active` alone while nobody uses autocast.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from ._core import dtype as dt
from ._tensor import Tensor

active = [0]  # enabled autocast blocks in all threads
DEFAULTS = dict.fromkeys(("cpu", "tpu", "xla", "hpu"), dt.bfloat16) | dict.fromkeys(("cuda", "mps", "xpu", "mtia", "ipu"), dt.float16)


class _State(threading.local):
    def __init__(self):
        self.enabled: dict[str, dt.dtype] = {}  # kind of device -> dtype
        self.dtypes = dict(DEFAULTS)
        self.cache = True


state = _State()

# computed in autocast's dtype
_LOWER = {
    "matmul",
    "mm",
    "bmm",
    "addmm",
    "baddbmm",
    "addbmm",
    "linear",
    "einsum",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "scaled_dot_product_attention",
    "prelu",
    "vecdot",
    "affine_grid_generator",  # a product, in torch
}
_LOWER_ACCELERATOR = {"mv", "addmv", "addr"}
# 16-bit inputs are computed in float32
_FULL = {
    "nll_loss",
    "cross_entropy",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "kl_div",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "poisson_nll_loss",
    "ctc_loss",
    "margin_ranking_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "prod",
    "quantile",
    "nanquantile",
    "cdist",
    "trace",
    "avg_pool3d",
    "grid_sample",
}
# the same, on the CPU alone
_FULL_CPU = {
    "polar", "stft", "view_as_complex", "fake_quantize_per_tensor_affine", "lobpcg",
    "cholesky", "cholesky_inverse", "cholesky_solve", "inverse", "pinverse", "lu", "lu_solve", "qr", "geqrf", "orgqr", "ormqr", "svd", "triangular_solve",
    "linalg_cholesky", "cholesky_ex", "inv", "inv_ex", "householder_product", "cond", "matrix_rank", "solve", "linalg_svd", "svdvals", "eig", "eigh",
    "eigvals", "eigvalsh", "linalg_qr", "lstsq", "tensorinv", "tensorsolve",
    *("fft_" + name for name in (
        "fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "rfft", "irfft", "rfft2", "irfft2", "rfftn", "irfftn", "hfft", "ihfft")),
    "max_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d", "max_unpool2d", "max_unpool3d", "fractional_max_pool2d", "fractional_max_pool3d",
}
# inputs of several types are computed in the widest
_WIDEST = {"index_copy"}
# made of listed functions, but not listed itself on the CPU
_UNLISTED = {"bilinear"}
_FULL_ACCELERATOR = {
    "acos",
    "asin",
    "cosh",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log2",
    "log1p",
    "reciprocal",
    "rsqrt",
    "sinh",
    "tan",
    "pow",
    "softplus",
    "layer_norm",
    "group_norm",
    "norm",
    "cosine_similarity",
    "dist",
    "pdist",
    "renorm",
    "logsumexp",
    "softmax",
    "log_softmax",
    "softmin",
    "cumprod",
    "cumsum",
    "sum",
}


def wrap(f: Callable) -> Callable:
    """f, which follows autocast if its name is in a list."""
    name = f.__name__
    everywhere = _LOWER if name in _LOWER else _FULL if name in _FULL else None
    accelerator = (
        _LOWER_ACCELERATOR if name in _LOWER_ACCELERATOR else _FULL_ACCELERATOR if name in _FULL_ACCELERATOR else None
    )
    unlisted, widest = name in _UNLISTED, name in _WIDEST
    on_cpu = widest or name in _FULL_CPU
    if (everywhere is None and accelerator is None and not unlisted and not on_cpu) or hasattr(f, "__autocast__"):
        return f
    lower = everywhere is _LOWER or accelerator is _LOWER_ACCELERATOR

    @functools.wraps(f)
    def run(*args, **kwargs):
        if not active[0]:
            return f(*args, **kwargs)
        kind = _device_type(args) or _device_type(kwargs.values())
        dtype = state.enabled.get(kind)
        if dtype is None:
            return f(*args, **kwargs)
        if unlisted:
            with disabled(kind):
                return f(*args, **kwargs)
        if everywhere is None and not (on_cpu if kind == "cpu" else accelerator is not None or widest):
            return f(*args, **kwargs)
        target = dtype if lower else _widest(args) if widest else dt.float32
        with disabled(kind):
            return f(
                *[cast(x, kind, target) for x in args],
                **{k: v if k == "out" else cast(v, kind, target) for k, v in kwargs.items()},
            )

    run.__autocast__ = True
    return run


def _device_type(args: Any) -> str | None:
    for x in args:
        if isinstance(x, Tensor):
            return x.device.type
        if x.__class__ in (list, tuple):
            found = _device_type(x)
            if found is not None:
                return found
    return None


def full_on_cpu(x: Tensor) -> Tensor:
    """x in float32, as the functions of _FULL_CPU have it, where only some forms of a function are listed."""
    return cast(x, "cpu", dt.float32) if active[0] and "cpu" in state.enabled else x


def _widest(args: Any) -> dt.dtype:
    return dt.float32 if any(isinstance(x, Tensor) and x.dtype is dt.float32 for x in args) else args[0].dtype


def cast(x: Any, kind: str, dtype: dt.dtype) -> Any:
    """Tensors of floating dtypes other than float64, on that kind of device, in `dtype`."""
    if isinstance(x, Tensor):
        d = x.dtype
        if d.category == dt.FLOAT and d is not dt.float64 and d is not dtype and x.device.type == kind:
            return x.to(dtype)
        return x
    if x.__class__ in (list, tuple):
        return x.__class__([cast(y, kind, dtype) for y in x])
    return x


class switched:
    """Inside, autocast for one kind of device is set to a dtype, or off (None)."""

    def __init__(self, kind: str, dtype: dt.dtype | None):
        self.kind, self.dtype = kind, dtype
        self.before: list = []

    def __enter__(self):
        self.before.append(state.enabled)
        enabled = {k: v for k, v in state.enabled.items() if k != self.kind}
        if self.dtype is not None:
            enabled[self.kind] = self.dtype
        set_enabled(enabled)
        return self

    def __exit__(self, *exc):
        set_enabled(self.before.pop())
        return False


def disabled(kind: str) -> switched:
    return switched(kind, None)


def set_enabled(enabled: dict[str, dt.dtype]) -> None:
    """This thread's kinds of device with autocast on."""
    active[0] += bool(enabled) - bool(state.enabled)
    state.enabled = enabled
