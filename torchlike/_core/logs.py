"""JAX's log records of what it traces and compiles, kept out of programs that log at INFO or DEBUG and do not know of JAX."""
from __future__ import annotations

import logging
import sys


def quieten() -> None:
    """Have JAX log warnings only, before it is imported: not where the program imported it itself or chose a level.

    JAX's own settings (JAX_LOGGING_LEVEL, jax_debug_log_modules) come later, so they hold.
    """
    jax = logging.getLogger("jax")
    if "jax" not in sys.modules and jax.level == logging.NOTSET:
        jax.setLevel(logging.WARNING)
