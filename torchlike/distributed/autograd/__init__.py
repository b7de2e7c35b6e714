"""torch.distributed.autograd: gradients that flow through calls between workers (torch.distributed.rpc)."""

from __future__ import annotations

from . import _context
from ._context import DistAutogradContext
from ._context import current as _current_context  # noqa: F401
from ._context import new as _new_context
from ._context import release as _release_context
from ._context import retrieve as _retrieve_context
from ._pass import backward, get_gradients

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]

_is_valid_context = _retrieve_context


def is_available() -> bool:
    """Whether there is this package: always."""
    return True


class context:  # noqa: N801  (torch's name)
    """`with context() as context_id:` the calls that this thread makes, and what they call, belong to one context; at the end its graph
    and gradients are forgotten by all workers."""

    def __enter__(self) -> int:
        self.autograd_context = _new_context()
        return self.autograd_context.number

    def __exit__(self, type: object, value: object, traceback: object) -> None:
        _release_context(self.autograd_context.number)


def _get_max_id() -> int:
    """The last number that a context of this worker may have."""
    _context.ready()
    return ((_context.here.worker + 1) << _context._BITS) - 1


def _get_debug_info() -> dict[str, int]:
    _context.ready()
    contexts = list(_context.here.contexts.values())
    return {"num_autograd_contexts": len(contexts), "num_current_backward_passes": sum(bool(c.passes) for c in contexts)}
