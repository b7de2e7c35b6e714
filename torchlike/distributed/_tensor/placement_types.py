from ..tensor.placement_types import *  # noqa: F403
