"""`torch._custom_ops`: the older place of names that torch.library has."""
from .library import get_ctx  # noqa: F401
