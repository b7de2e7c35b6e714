"""torch.sparse: functions of sparse tensors, and their legacy types."""
from __future__ import annotations

from typing import Any

from .._alias import missing
from .._core import dtype as dt
from .._public import FUNCTIONS
from ..ops.tensor_types import tensortype
from . import forms  # noqa: F401  (publishes the sparse forms; first)
from .checking import as_sparse_gradcheck  # noqa: F401
from .coo import Coo
from .factories import check_sparse_tensor_invariants, from_file, legacy, spdiags  # noqa: F401
from .products import sampled_addmm, sparse_addmm, sparse_mm  # noqa: F401
from .reductions import log_softmax, softmax, sparse_sum

mm, addmm, sum = sparse_mm, sparse_addmm, sparse_sum
for _name, _f in (("mm", mm), ("addmm", addmm), ("sum", sum)):
    _f.__name__ = _f.__qualname__ = _name
__all__ = ["addmm", "check_sparse_tensor_invariants", "mm", "sum", "softmax", "solve", "log_softmax", "SparseSemiStructuredTensor",
           "SparseSemiStructuredTensorCUTLASS", "SparseSemiStructuredTensorCUSPARSELT", "to_sparse_semi_structured", "as_sparse_gradcheck"]
__all__ = [n for n in __all__ if n in globals()]


class _SparseType(tensortype):
    """The legacy types: an instance is any sparse_coo tensor of their dtype and kind of device."""

    layout, is_sparse, is_cuda = FUNCTIONS["sparse_coo"], True, False

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Coo) and instance.dtype is cls.dtype and instance.device.type == "cpu"

    def __call__(cls, *args: Any, device: Any = None) -> Coo:
        return legacy(cls.dtype, "cpu" if device is None else device, args)


_KINDS = (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.float16, dt.bfloat16, dt.float32, dt.float64)
globals().update({f"{d.short}Tensor": _SparseType(f"{d.short}Tensor", (), {"__module__": "torch.sparse", "dtype": d, "kind": "sparse"}) for d in _KINDS})

_SEMI_STRUCTURED = ("SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUTLASS", "SparseSemiStructuredTensorCUSPARSELT", "to_sparse_semi_structured")


def __getattr__(name: str) -> Any:
    """Loaded when a program asks for it: with the first class that dispatches, every operation is looked at before it is recorded."""
    if name in _SEMI_STRUCTURED:
        from . import semi_structured
        return getattr(semi_structured, name)
    raise missing(name, __name__)
