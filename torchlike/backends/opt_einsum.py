"""torch.backends.opt_einsum: einsum's order of products comes from opt_einsum, which JAX depends on."""

import sys

from ._settings import Settings


def is_available() -> bool:
    return True


class _OptEinsum(Settings):
    defaults = {"enabled": True, "strategy": "auto"}  # noqa: RUF012


sys.modules[__name__].__class__ = _OptEinsum
