"""How precise float32 matrix products have to be; the same setting as `backends.cuda.matmul.allow_tf32`."""

import warnings

from .cuda import matmul


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
    matmul.allow_tf32 = precision != "highest"
    matmul.__dict__["_float32"] = precision


def get_float32_matmul_precision() -> str:
    """'highest', 'high' or 'medium'."""
    return matmul._float32
