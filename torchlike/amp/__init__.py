"""Training in half precision: `GradScaler` keeps small gradients from vanishing."""

from .grad_scaler import GradScaler, OptState  # noqa: F401
