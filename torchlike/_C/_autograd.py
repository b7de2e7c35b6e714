"""torch._C._autograd: what programs and libraries ask of it."""
from __future__ import annotations

from .._core.grad_mode import mode
from ..autograd.graph import SavedTensor  # noqa: F401


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether `saved_tensors_hooks` may be used here."""
    return mode.saved_hooks_disabled is None
