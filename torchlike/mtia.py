"""torch.mtia: no such devices."""


def is_available() -> bool:
    """False: JAX has no such devices."""
    return False


def device_count() -> int:
    """None are there."""
    return 0
