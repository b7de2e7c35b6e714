"""torch.nested._internal.nested_tensor: libraries ask whether something is a jagged tensor; pickles make one."""
from ..._serialization.tensors import _rebuild_njt  # noqa: F401
from .._tensor import NestedTensor

__all__ = ["NestedTensor"]
