"""torch.backends.opt_einsum: einsum's order of products comes from opt_einsum, which JAX depends on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ._settings import Settings


def is_available() -> bool:
    return True


enabled: bool  # which `_OptEinsum` keeps, as
strategy: str


class _OptEinsum(Settings):
    defaults = {"enabled": True, "strategy": "auto"}  # noqa: RUF012


@contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Settings for the length of a `with` block."""
    with sys.modules[__name__].temporarily(enabled=enabled, strategy=strategy):
        yield


sys.modules[__name__].__class__ = _OptEinsum
