"""torch.distributed.tensor: tensors that lie over the processes of a mesh, in pieces or whole."""
from functools import partial

from ..._serialization.names import register
from ..._serialization.unpickler import Resolved
from ..device_mesh import DeviceMesh, init_device_mesh  # noqa: F401
from . import _dispatch  # noqa: F401
from ._api import distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from ._dtensor import DTensor
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]

register("torch.distributed.tensor", "DTensor", Resolved(DTensor, call=DTensor, state="method"))
register("torch.distributed.device_mesh", "DeviceMesh", Resolved(DeviceMesh, new=partial(object.__new__, DeviceMesh), state="method"))
for _placement in (Shard, Replicate, Partial, _StridedShard):
    register("torch.distributed.tensor.placement_types", _placement.__name__, Resolved(_placement, new=partial(object.__new__, _placement), state="dict"))
