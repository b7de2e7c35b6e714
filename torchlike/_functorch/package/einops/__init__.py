"""functorch.einops: order and grouping of dimensions written as a pattern."""
from ...rearrange import rearrange

__all__ = ["rearrange"]
