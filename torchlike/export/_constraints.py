"""Between which limits a size is."""
from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ValueRanges:
    """From lower to upper, both included."""

    lower: float
    upper: float

    def __repr__(self) -> str:
        return f"VR[{_limit(self.lower)}, {_limit(self.upper)}]"


def _limit(n: float) -> str:
    return "int_oo" if n == math.inf else "-int_oo" if n == -math.inf else str(int(n))
