"""Products of matrices of float8, each with the scales that its rows, or all of it, were divided by."""
from __future__ import annotations

from ..._core import dtype as dt
from ..._public import FUNCTIONS, called
from ..._tensor import Tensor

_FLOAT8 = (dt.float8_e4m3fn, dt.float8_e5m2, dt.float8_e4m3fnuz, dt.float8_e5m2fnuz)


def _scaled_mm(input: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None, scale_result: Tensor | None = None,
               out_dtype: dt.dtype | None = None, use_fast_accum: bool = False) -> Tensor:
    """(M, K) x (K, N) of float8 -> (M, N) of `out_dtype` (input's where None): (scale_a * input) @ (scale_b * mat2) + bias, summed in float32. Scales of one
    element, or (M, 1) and (1, N). ValueError for others. `scale_result` is for float8 results of GPUs, and changes nothing, as in torch on the CPU."""
    m, n = input.shape[0], mat2.shape[1]
    whole = scale_a.numel() == scale_b.numel() == 1
    by_rows = scale_a.shape == (m, 1) and scale_b.shape == (1, n) and scale_a.is_contiguous() and scale_b.is_contiguous()
    if not (input.dtype in _FLOAT8 and mat2.dtype in _FLOAT8 and scale_a.dtype is scale_b.dtype is dt.float32 and (whole or by_rows)):
        raise ValueError("Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
                         f"- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ({m}, 1) and scale_b should be (1, {n}), "
                         f"and both should be contiguous.\nGot mat_a.dtype()={input.dtype}, scale_a.dtype()={scale_a.dtype}, scale_a.size()={list(scale_a.shape)}, "
                         f"scale_a.stride()={list(scale_a.stride())}, mat_b.dtype()={mat2.dtype}, scale_b.dtype()={scale_b.dtype}, "
                         f"scale_b.size()={list(scale_b.shape)}, scale_b.stride()={list(scale_b.stride())}")
    if whole:
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    made = (input.to(dt.float32) * scale_a) @ (mat2.to(dt.float32) * scale_b)  # XLA's GPU backend knows this form as a product of float8
    if bias is not None:
        made = made + bias
    return made.to(input.dtype if out_dtype is None else out_dtype)


FUNCTIONS["_scaled_mm"] = called(_scaled_mm)
