"""QuantType: when numbers are quantized."""
import enum

__all__ = ["QuantType"]


class QuantType(enum.IntEnum):
    """As they come, by scales that were observed before, in training, or weights alone."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3
