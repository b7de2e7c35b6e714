"""Where libraries import parts of `torch.library` from."""
from ..library import triton_op, wrap_triton  # noqa: F401
from . import custom_ops, infer_schema, utils  # noqa: F401
