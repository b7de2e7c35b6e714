"""Implementations of attention by name, which a program registers and makes the one in use."""
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

_log = logging.getLogger(__name__)
_known: dict[str, Callable[..., Any]] = {}
_active: list[tuple[str, Any]] = []  # the name of the one in use, and what its function returned


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """`register_fn()` puts the implementation in place, and returns something with `remove()`, or None."""
    _known[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """The names that are registered."""
    return sorted(_known)


def current_flash_attention_impl() -> str | None:
    """The name of the implementation in use; None for that of the library."""
    return _active[-1][0] if _active else None


def activate_flash_attention_impl(impl: str) -> None:
    """Use a registered implementation; ValueError for a name that is not."""
    if impl not in _known:
        raise ValueError(f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}")
    made = _known[impl]()
    if _active:
        restore_flash_attention_impl()
    _active.append((impl, made))


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Use the library's own again."""
    if not _active:
        if _raise_warn:
            _log.warning("Trying to restore default FA2 impl when no custom impl was activated")
        return
    _, made = _active.pop()
    if made is not None:
        made.remove()
