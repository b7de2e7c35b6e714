"""Products of matrices of float8, each with the scales that its rows, or all of it, were divided by."""
from __future__ import annotations

import enum
from collections.abc import Sequence

from ..._core import dtype as dt
from ..._public import FUNCTIONS, called
from ..._tensor import Tensor
from .grouped import grouped_mm

_FLOAT8 = (dt.float8_e4m3fn, dt.float8_e5m2, dt.float8_e4m3fnuz, dt.float8_e5m2fnuz)


class _Members(enum.IntEnum):
    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


# what torch.nn.functional calls ScalingType and SwizzleType
ScalingType = _Members("_ScalingType", ["TensorWise", "RowWise", "BlockWise1x16", "BlockWise1x32", "BlockWise1x128", "BlockWise128x128"], start=0)
SwizzleType = _Members("_SwizzleType", ["NO_SWIZZLE", "SWIZZLE_32_4_4"], start=0)


def _invalid(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor) -> ValueError:
    m, n = a.shape[0], b.shape[1]
    return ValueError("Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
                      f"- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ({m}, 1) and scale_b should be (1, {n}), "
                      f"and both should be contiguous.\nGot mat_a.dtype()={a.dtype}, scale_a.dtype()={scale_a.dtype}, scale_a.size()={list(scale_a.shape)}, "
                      f"scale_a.stride()={list(scale_a.stride())}, mat_b.dtype()={b.dtype}, scale_b.dtype()={scale_b.dtype}, "
                      f"scale_b.size()={list(scale_b.shape)}, scale_b.stride()={list(scale_b.stride())}")


def _scaled_mm(input: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None, scale_result: Tensor | None = None,
               out_dtype: dt.dtype | None = None, use_fast_accum: bool = False) -> Tensor:
    """(M, K) x (K, N) of float8 -> (M, N) of `out_dtype` (input's where None): (scale_a * input) @ (scale_b * mat2) + bias, summed in float32. Scales of one
    element, or (M, 1) and (1, N). ValueError for others. `scale_result` is for float8 results of GPUs, and changes nothing, as in torch on the CPU."""
    m, n = input.shape[0], mat2.shape[1]
    whole = scale_a.numel() == scale_b.numel() == 1
    by_rows = scale_a.shape == (m, 1) and scale_b.shape == (1, n) and scale_a.is_contiguous() and scale_b.is_contiguous()
    if not (input.dtype in _FLOAT8 and mat2.dtype in _FLOAT8 and scale_a.dtype is scale_b.dtype is dt.float32 and (whole or by_rows)):
        raise _invalid(input, mat2, scale_a, scale_b)
    if whole:
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    made = (input.to(dt.float32) * scale_a) @ (mat2.to(dt.float32) * scale_b)  # XLA's GPU backend knows this form as a product of float8
    if bias is not None:
        made = made + bias
    return made.to(input.dtype if out_dtype is None else out_dtype)


FUNCTIONS["_scaled_mm"] = called(_scaled_mm)


def _listed(x) -> list:
    return list(x) if isinstance(x, (list, tuple)) else [] if x is None else [x]


def scaled_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Tensor | Sequence[Tensor], scale_recipe_a: ScalingType | Sequence[ScalingType],
              scale_b: Tensor | Sequence[Tensor], scale_recipe_b: ScalingType | Sequence[ScalingType], swizzle_a: SwizzleType | Sequence[SwizzleType] | None = None,
              swizzle_b: SwizzleType | Sequence[SwizzleType] | None = None, bias: Tensor | None = None, output_dtype: dt.dtype | None = dt.bfloat16,
              contraction_dim: Sequence[int] = (), use_fast_accum: bool = False) -> Tensor:
    """(M, K) x (K, N) of float8 -> (M, N) of `output_dtype` (mat_a's where None): (scale_a * mat_a) @ (scale_b * mat_b) + bias, summed in float32. Both
    recipes are TensorWise, with scales of one element, or RowWise, with scales (M, 1) and (1, N). ValueError for others, as in torch on the CPU."""
    k_a, k_b = contraction_dim or (1, 0)
    if mat_a.shape[k_a] != mat_b.shape[k_b]:
        raise ValueError(f"mat_a and mat_b shapes cannot be multiplied ({'x'.join(map(str, mat_a.shape))} and {'x'.join(map(str, mat_b.shape))})"
                         + (f" with contraction dims mat_a: {k_a}, mat_b: {k_b}" if contraction_dim else ""))
    if any(_listed(swizzle_a) + _listed(swizzle_b)):
        raise ValueError("CPU does not support swizzle.")
    scales_a, scales_b = _listed(scale_a), _listed(scale_b)
    recipes = _listed(scale_recipe_a), _listed(scale_recipe_b)
    by_rows = recipes == ([ScalingType.RowWise],) * 2
    a, b = scales_a[0], scales_b[0]
    if (len(scales_a) != 1 or len(scales_b) != 1 or not (by_rows or recipes == ([ScalingType.TensorWise],) * 2)
            or not all(x.dtype in _FLOAT8 for x in (mat_a, mat_b)) or not a.dtype is b.dtype is dt.float32):
        raise _invalid(mat_a, mat_b, a, b)
    for name, scale, shape in (("scale_a", a, (mat_a.shape[0], 1)), ("scale_b", b, (1, mat_b.shape[1]))):
        if by_rows and scale.shape != shape:
            raise ValueError(f"{name} must have shape {list(shape)}, got [{list(scale.shape)}]")
        if not by_rows and scale.numel() != 1:
            raise ValueError(f"{name} must have 1 Float element")
    return _scaled_mm(mat_a, mat_b, a.contiguous(), b.contiguous(), bias, None, output_dtype, use_fast_accum)


def scaled_grouped_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Tensor | Sequence[Tensor], scale_recipe_a: ScalingType | Sequence[ScalingType],
                      scale_b: Tensor | Sequence[Tensor], scale_recipe_b: ScalingType | Sequence[ScalingType],
                      swizzle_a: SwizzleType | Sequence[SwizzleType] | None = None, swizzle_b: SwizzleType | Sequence[SwizzleType] | None = None,
                      bias: Tensor | None = None, offs: Tensor | None = None, output_dtype: dt.dtype | None = dt.bfloat16,
                      contraction_dim: Sequence[int] = (), use_fast_accum: bool = False) -> Tensor:
    """`grouped_mm` of float8 matrices, each row of `mat_a` and each column of `mat_b` by a scale of its own, summed in float32. Both recipes are RowWise;
    of two matrices of two dimensions each, whose groups are of the summed dimension, scales are for the groups' rows one behind the other. ValueError for other
    recipes, NotImplementedError on the CPU, where PyTorch has no such kernel."""
    if mat_a.device.type == "cpu":
        raise NotImplementedError("Could not run 'aten::_scaled_grouped_mm_v2' with arguments from the 'CPU' backend.")
    a, b = _listed(scale_a), _listed(scale_b)
    if (_listed(scale_recipe_a), _listed(scale_recipe_b)) != ([ScalingType.RowWise],) * 2 or len(a) != 1 or len(b) != 1:
        raise ValueError("scaled_grouped_mm: both recipes have to be RowWise, with one tensor of scales each")
    if any(_listed(swizzle_a) + _listed(swizzle_b)) or contraction_dim:
        raise ValueError("scaled_grouped_mm: scales of rows take no swizzle and no contraction_dim")
    if not (mat_a.dtype in _FLOAT8 and mat_b.dtype in _FLOAT8 and a[0].dtype is b[0].dtype is dt.float32):
        raise ValueError(f"scaled_grouped_mm: matrices have to be of float8 and scales of float32, got {mat_a.dtype}, {mat_b.dtype}, {a[0].dtype} and {b[0].dtype}")
    made = _grouped_by_rows(mat_a, mat_b, a[0], b[0], offs)
    if bias is not None:
        made = made + bias
    return made.to(mat_a.dtype if output_dtype is None else output_dtype)


def _grouped_by_rows(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, offs: Tensor | None) -> Tensor:
    """The products, in float32."""
    a, b = a.to(dt.float32), b.to(dt.float32)
    if a.ndim == b.ndim == 2:  # groups of the summed dimension
        made = grouped_mm(a, b, offs=offs)
        return made * scale_a.reshape(made.shape[0], -1, 1) * scale_b.reshape(made.shape[0], 1, -1)
    return grouped_mm(a * scale_a.unsqueeze(-1), b * scale_b.unsqueeze(-2), offs=offs)
