"""torch.distributed.tensor in a world of one: tensors that know their mesh and placements; every rank's piece is the whole."""
from ._dtensor import DTensor, distribute_tensor
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_tensor"]
