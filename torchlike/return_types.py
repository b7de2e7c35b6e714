"""torch.return_types: the named tuples that functions of `torch` return."""
from .ops.named_results import RETURN_TYPES as _TYPES

globals().update(_TYPES)
all_return_types = [_TYPES[name] for name in sorted(_TYPES)]
