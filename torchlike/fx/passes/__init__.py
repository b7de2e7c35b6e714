"""torch.fx.passes: what works on whole graphs."""
from ..._alias import at_first_use as _at_first_use
from . import shape_prop, split_module  # noqa: F401

__getattr__ = _at_first_use(__name__, "infra", "utils")
