"""torch.masked.maskedtensor: tensors that know which of their values count."""
from .core import MaskedTensor, is_masked_tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]
