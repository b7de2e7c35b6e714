"""torch.distributed: the processes of a program, their groups, and the collectives between them, over sockets."""

from . import constants, rpc  # noqa: F401
from .device_mesh import DeviceMesh, init_device_mesh  # noqa: F401
from .distributed_c10d import *  # noqa: F403
from .process_group import is_available  # noqa: F401
from .store import DistError, DistNetworkError, DistStoreError, FileStore, HashStore, TCPStore  # noqa: F401
