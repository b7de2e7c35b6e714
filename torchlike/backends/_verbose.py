"""Contexts that ask a library to say what it does: none is called here, so they say that."""
from __future__ import annotations

from .._core.history import warn


class verbose:
    """A `with` block; a UserWarning where it is to say something."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose | None:
        if not self.enable:
            return None
        warn("torchlike: XLA computes, so there are no calls of MKL or oneDNN that could be shown. jax.profiler shows what runs.")
        return self

    def __exit__(self, *raised: object) -> None:
        pass
