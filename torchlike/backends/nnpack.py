"""torch.backends.nnpack: kernels of telephones, not used; whether they are enabled is kept."""
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["flags", "is_available", "set_flags"]

_enabled = True


def is_available() -> bool:
    """False: XLA brings its own kernels."""
    return False


def set_flags(enabled: bool) -> tuple[bool]:
    """Set whether it is enabled; what it was, in a tuple."""
    global _enabled
    before, _enabled = (_enabled,), enabled
    return before


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Sets it for the length of a `with` block."""
    before = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(*before)
