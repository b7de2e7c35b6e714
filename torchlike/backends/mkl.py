"""torch.backends.mkl: XLA brings its own kernels for the CPU."""


def is_available() -> bool:
    return False
