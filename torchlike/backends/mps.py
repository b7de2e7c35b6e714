"""torch.backends.mps: Apple's GPUs, which XLA does not drive."""


def is_available() -> bool:
    return False


def is_built() -> bool:
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """RuntimeError: only Apple's back end knows."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")
