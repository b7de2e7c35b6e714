"""Whether there is something to scale gradients for."""
from .._devices import is_available

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU."""
    return not is_available()
