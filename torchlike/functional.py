"""torch.functional: where PyTorch keeps those functions of `torch` that it writes in Python."""
import sys as _sys
from typing import Any as _Any

from ._tensor import Tensor  # noqa: F401  (mmpretrain)
from .nn import functional as F  # noqa: F401

_NAMES = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "block_diag", "cdist", "chain_matmul", "einsum",
          "istft", "lu", "norm", "meshgrid", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index"]
__all__ = list(_NAMES)


def __getattr__(name: str) -> _Any:
    if name in _NAMES:
        return getattr(_sys.modules[__package__], name)  # at each call: torch's functions may begin to dispatch
    raise AttributeError(f"module 'torch.functional' has no attribute {name!r}")
