"""torch.backends.cudnn: XLA calls cuDNN itself on a GPU; of the settings, kept all, those of TF32 change results."""

import sys
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from ..cuda import is_available as _cuda_available
from . import _fp32_precision
from ._settings import Settings

# settings, which `_Cudnn` keeps
enabled: bool
benchmark: bool
benchmark_limit: int
deterministic: bool
allow_tf32: bool
fp32_precision: str
conv, rnn = _fp32_precision.Operation("cuda", "conv"), _fp32_precision.Operation("cuda", "rnn")


def is_available() -> bool:
    """Whether this process has a GPU for cuDNN to run on."""
    return _cuda_available()


def version() -> int | None:
    """None: which cuDNN it is, is XLA's business."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether `tensor` lies on a GPU."""
    return tensor.is_cuda


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> AbstractContextManager[None]:
    """Sets the settings for the length of a `with` block."""
    return sys.modules[__name__].temporarily(
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )


def _allow_tf32(on: bool) -> None:
    if not isinstance(on, bool):
        raise RuntimeError(f"set_allow_tf32_cudnn expects a bool, but got {type(on).__name__}")
    _fp32_precision.allow_tf32_in_cudnn(on)


class _Cudnn(Settings):
    defaults = {  # noqa: RUF012
        "enabled": True,
        "benchmark": False,
        "benchmark_limit": 10,
        "deterministic": False,
    }
    computed = {  # noqa: RUF012
        "allow_tf32": (_fp32_precision.cudnn_allows_tf32, _allow_tf32),
        "fp32_precision": (partial(_fp32_precision.get, "cuda"), partial(_fp32_precision.put, "cuda", "all")),
    }


sys.modules[__name__].__class__ = _Cudnn
