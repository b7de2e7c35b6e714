"""Where torch keeps the module that torch.compile returns for a module, and whether functions can be compiled."""
from .._compile import OptimizedModule  # noqa: F401


def is_dynamo_supported() -> bool:
    """Whether `torch.compile` traces functions here: it does on every Python that torchlike runs on."""
    return True


is_inductor_supported = is_dynamo_supported
