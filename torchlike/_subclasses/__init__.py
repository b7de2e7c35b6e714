"""PyTorch's own subclasses of Tensor."""
from . import fake_tensor  # noqa: F401
from ._exceptions import DynamicOutputShapeException, UnsupportedFakeTensorException
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]
