"""Branches and loops: torch.cond, and map over the first dimension."""
from ...._higher_order_ops.cond import cond  # noqa: F401
from ...._higher_order_ops.map import map  # noqa: F401
