"""torch.backends.kleidiai: kernels of Arm's, not used."""


def is_available() -> bool:
    """False: XLA brings its own kernels."""
    return False
