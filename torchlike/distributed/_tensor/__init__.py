"""The place of torch.distributed.tensor in older programs."""
from ..tensor import *  # noqa: F403
from . import experimental  # noqa: F401
