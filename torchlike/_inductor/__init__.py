"""The names of torch._inductor that programs use. XLA compiles, so there are only settings."""
from ..compiler import cudagraph_mark_step_begin  # noqa: F401
from . import config  # noqa: F401
