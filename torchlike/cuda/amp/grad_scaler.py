"""The gradient scaler under its older name."""
from ...amp import _older_names
from ...amp.grad_scaler import OptState  # noqa: F401  (allennlp)

__all__ = ["GradScaler"]


class GradScaler(_older_names.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`; deprecated, as in torch."""

    device_type = "cuda"
