"""torch.backends.cudnn: XLA calls cuDNN itself on a GPU; of the settings, kept all, those of TF32 change results."""

import sys
from contextlib import AbstractContextManager
from typing import Any

from .._core.program import permit_tf32
from ..cuda import is_available as _cuda_available
from ._settings import Settings


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


class _Cudnn(Settings):
    defaults = {  # noqa: RUF012
        "enabled": True,
        "benchmark": False,
        "benchmark_limit": 10,
        "deterministic": False,
        "allow_tf32": True,
        "fp32_precision": "none",
    }

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("allow_tf32", "fp32_precision"):
            permit_tf32("cudnn", self.allow_tf32 if self.fp32_precision == "none" else self.fp32_precision == "tf32")


sys.modules[__name__].__class__ = _Cudnn
