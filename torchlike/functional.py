"""torch.functional: where PyTorch keeps those functions of `torch` that it writes in Python."""
from ._public import FUNCTIONS as _F
from .nn import functional as F  # noqa: F401

_NAMES = ["atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "block_diag", "cdist", "chain_matmul", "einsum",
          "istft", "lu", "norm", "meshgrid", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique", "unique_consecutive", "unravel_index"]
__all__ = list(_NAMES)
globals().update({name: _F[name] for name in __all__})
