"""The place of torch.distributed.tensor in older programs."""
from ..device_mesh import DeviceMesh, init_device_mesh  # noqa: F401
from ..tensor import *  # noqa: F403
from . import api, device_mesh, experimental, placement_types  # noqa: F401
