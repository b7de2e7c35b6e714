"""torch.backends.cusparselt: kernels for semi-structured sparse matrices on GPUs, not used."""

__all__ = ["get_max_alg_id", "is_available", "version"]


def is_available() -> bool:
    """False: XLA does not call it."""
    return False


def version() -> int | None:
    """None, as it is not there."""
    return None


def get_max_alg_id() -> int | None:
    """None, as it is not there."""
    return None
