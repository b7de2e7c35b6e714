"""torch.distributed.algorithms: uneven inputs (`join`), and how gradients travel (`ddp_comm_hooks`)."""
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
