"""The place of `torch.library.infer_schema` in programs that name the file it is in."""
from ..library import infer_schema  # noqa: F401
