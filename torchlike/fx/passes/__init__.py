"""torch.fx.passes: what works on whole graphs."""
from . import shape_prop  # noqa: F401
