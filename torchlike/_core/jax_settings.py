"""JAX's settings as the engine needs them, whatever the program's own are: they stay as they are, and what the engine does goes on under them."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax

_GUARDS = ("jax_transfer_guard_host_to_device", "jax_transfer_guard_device_to_device", "jax_transfer_guard_device_to_host")
_UNGUARDED = (None, "allow", "log")


def hinder() -> bool:
    """Whether the program's settings forbid what the engine does: arithmetic of two types, compiled calls, moving arrays unasked."""
    config = jax.config
    return (config.jax_numpy_dtype_promotion != "standard" or config.jax_numpy_rank_promotion == "raise" or config.jax_disable_jit
            or any(getattr(config, name) not in _UNGUARDED for name in _GUARDS))


def engine_settings() -> contextlib.AbstractContextManager:
    """A block in which numbers have 64 bits, and nothing is forbidden."""
    return _without_hindrance() if hinder() else jax.enable_x64(True)


@contextlib.contextmanager
def _without_hindrance() -> Iterator[None]:
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"), jax.disable_jit(False), jax.transfer_guard("allow"):
        yield
