"""torch.backends.cuda: the settings of matrix products and attention on a GPU."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .._tensor import Tensor
from ..cuda import is_available as _cuda_available
from ..nn._functional.attention import can_fuse
from ..nn._functional.sdp_backends import SDPBackend, is_allowed, sdpa_kernel, set_allowed
from . import _fp32_precision
from ._libraries import preferred_blas_library, preferred_linalg_library  # noqa: F401


def is_built() -> bool:
    """Whether JAX has a GPU back end here."""
    return _cuda_available()


class _Matmul(_fp32_precision.Operation):
    """What matrix products may use: TF32 where allowed; the other permissions change nothing."""

    _bools = ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction", "allow_fp16_accumulation")

    def __init__(self) -> None:
        super().__init__("cuda", "matmul")
        self.__dict__.update(dict.fromkeys(self._bools, True), allow_fp16_accumulation=False)

    def __getattr__(self, name: str) -> Any:
        return _fp32_precision.matmul_allows_tf32() if name == "allow_tf32" else super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "allow_tf32" and name not in self._bools:
            super().__setattr__(name, value)
        elif not isinstance(value, bool):
            raise RuntimeError(f"set_{name}_cublas expects a bool, but got {type(value).__name__}")
        elif name == "allow_tf32":
            _fp32_precision.allow_tf32_in_matmul(value)
        else:
            self.__dict__[name] = value


matmul = _Matmul()


class SDPAParams(NamedTuple):
    """A call of `scaled_dot_product_attention`, of which is asked what may do it."""

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None
    dropout: float
    is_causal: bool
    enable_gqa: bool


def _can_use(backend: SDPBackend, params: SDPAParams, debug: bool) -> bool:
    why = "the tensors are not on a GPU" if params.query.device.type != "cuda" else "it is switched off" if not is_allowed(backend) else \
        "dropout is not fused" if params.dropout else "" if can_fuse(params.query, params.key, params.value, params.attn_mask) else "their dtypes or shapes do not fit"
    if why and debug:
        warnings.warn(f"{backend.name.lower()} cannot do this call: {why}", stacklevel=3)
    return not why


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether a fused kernel may do this call; `debug` warns of why not. The kernel is one for all three names."""
    return _can_use(SDPBackend.FLASH_ATTENTION, params, debug)


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """As `can_use_flash_attention`, by its other switch."""
    return _can_use(SDPBackend.EFFICIENT_ATTENTION, params, debug)


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """As `can_use_flash_attention`, by its other switch."""
    return _can_use(SDPBackend.CUDNN_ATTENTION, params, debug)


def is_flash_attention_available() -> bool:
    """Whether there is a fused kernel: on GPUs."""
    return _cuda_available()


def flash_sdp_enabled() -> bool:
    return is_allowed(SDPBackend.FLASH_ATTENTION)


def enable_flash_sdp(enabled: bool) -> None:
    set_allowed(SDPBackend.FLASH_ATTENTION, enabled)


def mem_efficient_sdp_enabled() -> bool:
    return is_allowed(SDPBackend.EFFICIENT_ATTENTION)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    set_allowed(SDPBackend.EFFICIENT_ATTENTION, enabled)


def math_sdp_enabled() -> bool:
    return is_allowed(SDPBackend.MATH)


def enable_math_sdp(enabled: bool) -> None:
    set_allowed(SDPBackend.MATH, enabled)


def cudnn_sdp_enabled() -> bool:
    return is_allowed(SDPBackend.CUDNN_ATTENTION)


def enable_cudnn_sdp(enabled: bool) -> None:
    set_allowed(SDPBackend.CUDNN_ATTENTION, enabled)


_reduced = [False]


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What was allowed last."""
    return _reduced[0]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Kept and read back: attention's sums are of 32 bits."""
    _reduced[0] = bool(enabled)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[dict]:
    """Permits kinds of attention kernels for the length of a `with` block."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. "
        "Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=3,
    )
    chosen = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.MATH: enable_math,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    with sdpa_kernel([backend for backend, enabled in chosen.items() if enabled]) as context:
        yield context
