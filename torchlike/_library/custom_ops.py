"""The place of `torch.library.custom_op` in programs that name the file it is in."""
from ..library import CustomOpDef, custom_op  # noqa: F401
