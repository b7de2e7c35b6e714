"""torch.distributed: the processes of a program, their groups, and the collectives between them, over sockets."""

from typing import Any as _Any

from . import constants  # noqa: F401
from .device_mesh import DeviceMesh, init_device_mesh  # noqa: F401
from .distributed_c10d import *  # noqa: F403
from .distributed_c10d import _all_gather_base, _reduce_scatter_base  # noqa: F401
from .grad_bucket import GradBucket  # noqa: F401
from .process_group import is_available  # noqa: F401
from .store import DistError, DistNetworkError, DistStoreError, FileStore, HashStore, QueueEmptyError  # noqa: F401
from .tcp_store import TCPStore  # noqa: F401


def __getattr__(name: str) -> _Any:
    if name in ("autograd", "pipelining", "rpc"):  # loaded when a program asks for them
        import importlib
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
