"""torch.backends.cuda: the settings of matrix products and attention on a GPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..cuda import is_available as _cuda_available


def is_built() -> bool:
    """Whether JAX has a GPU back end here."""
    return _cuda_available()


class _Matmul:
    """What matrix products may use. Permissions: full precision is used where nothing faster is chosen."""

    _bools = ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction",
              "allow_fp16_accumulation")  # fmt: skip

    def __init__(self) -> None:
        values = dict.fromkeys(self._bools, False)
        values["allow_fp16_reduced_precision_reduction"] = values["allow_bf16_reduced_precision_reduction"] = True
        self.__dict__.update(values, _precision="none", _float32="highest")

    def __getattr__(self, name: str) -> Any:
        if name == "fp32_precision":
            return self._precision
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "fp32_precision":
            if value not in ("none", "ieee", "tf32", "bf16"):
                raise RuntimeError(f"Invalid precision: {value}")
            fast = value in ("tf32", "bf16")
            self.__dict__.update(_precision=value, allow_tf32=fast, _float32="high" if fast else "highest")
        elif name not in self._bools:
            raise AttributeError(f"Unknown attribute {name}")
        elif not isinstance(value, bool):
            raise RuntimeError(f"set_{name}_cublas expects a bool, but got {type(value).__name__}")
        else:
            self.__dict__[name] = value
            if name == "allow_tf32":
                self.__dict__.update(
                    _precision="tf32" if value else "ieee", _float32="high" if value else "highest"
                )


matmul = _Matmul()

_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled() -> bool:
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    _attention["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    _attention["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    _attention["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    _attention["cudnn"] = bool(enabled)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Permits kinds of attention kernels for the length of a `with` block."""
    before = dict(_attention)
    _attention.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _attention.update(before)
