"""How precise float32 matrix products have to be; an older form of `backends.cuda.matmul.fp32_precision`."""

import warnings

from . import _fp32_precision


def set_float32_matmul_precision(precision: str) -> None:
    """'highest': all of float32; 'high' and 'medium' permit TF32 and less. Another word warns and changes nothing."""
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision call has "
            "no effect.",
            stacklevel=2,
        )
        return
    _fp32_precision.set_matmul_precision(precision)


def get_float32_matmul_precision() -> str:
    """'highest', 'high' or 'medium'. RuntimeError where `fp32_precision` says otherwise."""
    return _fp32_precision.matmul_precision()
