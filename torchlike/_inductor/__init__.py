"""The names of torch._inductor that programs use. XLA compiles, so there are only settings."""
from . import config  # noqa: F401
