"""Where torch keeps the module that torch.compile returns for a module."""
from .._compile import OptimizedModule  # noqa: F401
