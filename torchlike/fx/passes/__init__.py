"""torch.fx.passes: what works on whole graphs."""
from . import shape_prop, split_module  # noqa: F401
