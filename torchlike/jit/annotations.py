"""The types that TorchScript code imports from here."""

from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union  # noqa: F401, UP035


class Attribute(NamedTuple):
    """A value that a module of TorchScript holds, and its type."""

    value: Any
    type: Any


class _BroadcastingList:
    """A list of a known length that TorchScript also makes from a single number; Python asks nothing of an annotation."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
