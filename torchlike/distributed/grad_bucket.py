"""GradBucket: what a communication hook of DistributedDataParallel gets."""
from __future__ import annotations

from .._tensor import Tensor
from .._utils import _unflatten_dense_tensors

__all__ = ["GradBucket"]


class GradBucket:
    """Some gradients, one after the other in `buffer()`, on their way to the other processes."""

    def __init__(self, index: int, parameters: list[Tensor], last: bool) -> None:
        self._index, self._parameters, self._last = index, parameters, last
        self._buffer: Tensor | None = None

    def index(self) -> int:
        return self._index

    def is_last(self) -> bool:
        return self._last

    def parameters(self) -> list[Tensor]:
        return self._parameters

    def buffer(self) -> Tensor:
        return self._buffer

    def set_buffer(self, tensor: Tensor) -> None:
        self._buffer = tensor

    def gradients(self) -> list[Tensor]:
        """The buffer's parts, in their parameters' shapes."""
        return list(_unflatten_dense_tensors(self._buffer, self._parameters))
