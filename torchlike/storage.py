"""torch.storage."""
from .ops.storages import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
