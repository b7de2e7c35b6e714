"""Branches and loops as operations: torch.cond, torch.while_loop, and (by its module, as in PyTorch) associative_scan."""

from .cond import cond  # noqa: F401
from .while_loop import while_loop  # noqa: F401
