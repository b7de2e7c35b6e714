"""PyTorch's own subclasses of Tensor."""
from . import fake_tensor  # noqa: F401
