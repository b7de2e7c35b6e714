"""torch.backends.miopen: AMD's library for convolutions, which XLA calls as it finds best; the setting is kept."""
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ._settings import Settings


def set_flags(immediate: bool | None = None) -> tuple[bool]:
    """Set the setting, unless it is None; what it was, in a tuple."""
    module = sys.modules[__name__]
    before = (module.immediate,)
    if immediate is not None:
        module.immediate = immediate
    return before


@contextmanager
def flags(immediate: bool = False) -> Iterator[None]:
    """Sets the setting for the length of a `with` block."""
    with sys.modules[__name__].temporarily(immediate=immediate):
        yield


immediate: bool  # which `_Miopen` keeps


class _Miopen(Settings):
    defaults = {"immediate": False}  # noqa: RUF012


sys.modules[__name__].__class__ = _Miopen
