"""Exchange of tensors with other libraries through DLPack."""
from __future__ import annotations

from typing import Any

import torchlike as torch

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: torch.Tensor) -> Any:
    """A DLPack capsule of `tensor`; it can be consumed once."""
    return tensor.__dlpack__()


def from_dlpack(ext_tensor: Any) -> torch.Tensor:
    """A tensor of any object with `__dlpack__`, or of a DLPack capsule."""
    return torch.from_dlpack(ext_tensor)
