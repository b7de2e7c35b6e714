"""torch.distributed.tensor.debug: which collectives a program of DTensors makes."""
from ._comm_mode import CommDebugMode

__all__ = ["CommDebugMode"]
