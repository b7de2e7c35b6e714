"""Branches and loops as operations: torch.cond and torch.while_loop."""

from .cond import cond  # noqa: F401
from .while_loop import while_loop  # noqa: F401
