"""torch.sparse: the types of sparse tensors, which programs name in annotations and ask tensors for. There are no such tensors here."""
from __future__ import annotations

from typing import Any

from .._core import dtype as dt
from .._public import FUNCTIONS
from ..ops.tensor_types import tensortype


class _SparseType(tensortype):
    """No tensor is an instance: all are dense."""

    layout, is_sparse, is_cuda = FUNCTIONS["sparse_coo"], True, False

    def __instancecheck__(cls, instance: Any) -> bool:
        return False

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.sparse.{cls.__name__}: torchlike has no sparse tensors")


_KINDS = (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.float16, dt.bfloat16, dt.float32, dt.float64)
globals().update({f"{d.short}Tensor": _SparseType(f"{d.short}Tensor", (), {"__module__": "torch.sparse", "dtype": d, "kind": "sparse"}) for d in _KINDS})
