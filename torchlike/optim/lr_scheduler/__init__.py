"""Schedules of learning rates."""
from .base import EPOCH_DEPRECATION_WARNING, LRScheduler  # noqa: F401
from .chainable import (  # noqa: F401
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
