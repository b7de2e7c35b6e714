"""torch.backends.mps: Apple's GPUs, which XLA does not drive."""


def is_available() -> bool:
    return False


def is_built() -> bool:
    return False
