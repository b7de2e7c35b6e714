"""torch.storage."""
from typing import Any as _Any

from ._alias import missing as _missing
from .ops.storages import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


def __getattr__(name: str) -> _Any:
    if name == "_load_from_bytes":  # of a layer above this one
        from ._pickled import _load_from_bytes
        return _load_from_bytes
    raise _missing(name, __name__)
