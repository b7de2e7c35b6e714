"""torch.distributed.checkpoint.stateful."""
from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object that saves and loads itself: a module, an optimizer, a scheduler, a loader."""

    def state_dict(self) -> dict[str, Any]:
        """What to save."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what was saved."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
