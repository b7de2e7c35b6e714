"""torch.fx.experimental."""
from ..._alias import at_first_use as _at_first_use

__getattr__ = _at_first_use(__name__, "proxy_tensor")
