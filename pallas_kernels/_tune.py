"""Block sizes: a table per device kind, heuristics where it has no row. Nothing is tuned at run time."""

import contextlib
import contextvars
import functools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pallas_kernels import _dispatch

_DIRECTORY = Path(__file__).parent / "tuned"
_forced: contextvars.ContextVar[dict | None] = contextvars.ContextVar("pallas_kernels_tuning", default=None)
_picked: contextvars.ContextVar[list | None] = contextvars.ContextVar("pallas_kernels_picked", default=None)
C = TypeVar("C")


def bucket(n: int) -> int:
    """Sizes share a row when they round up to the same power of two."""
    return 1 << max(0, n - 1).bit_length()


def key(op: str, dtype, sizes: dict[str, int], flags: tuple[str, ...] = ()) -> str:
    dims = ",".join(f"{name}{bucket(n)}" for name, n in sizes.items())
    return "|".join((op, str(dtype), dims, "+".join(sorted(flags)) or "plain"))


def table_path(kind: str, directory: Path = _DIRECTORY) -> Path:
    return directory / (re.sub(r"[^a-z0-9]+", "_", kind.lower()).strip("_") + ".json")


@functools.cache
def table(kind: str, directory: Path = _DIRECTORY) -> dict[str, dict]:
    """Rows of one device kind: key -> {"config": {...}, "us": ..., "jax": ..., "date": ...}; empty without a file."""
    path = table_path(kind, directory)
    return json.loads(path.read_text())["rows"] if path.exists() else {}


@contextlib.contextmanager
def forced(**configs) -> Iterator[None]:
    """Use these configurations while tracing, by operation: `forced(attention_forward=Config(...))`."""
    token = _forced.set({**(_forced.get() or {}), **configs})
    try:
        yield
    finally:
        _forced.reset(token)


@contextlib.contextmanager
def recorded() -> Iterator[list[tuple[str, str]]]:
    """The (operation, table row) of every configuration picked while tracing."""
    rows: list[tuple[str, str]] = []
    token = _picked.set(rows)
    try:
        yield rows
    finally:
        _picked.reset(token)


def pick(op: str, row: str, make: Callable[..., C], heuristic: Callable[[], C], directory: Path = _DIRECTORY) -> C:
    """The configuration for table row `row` of operation `op` on the device in use."""
    if (picked := _picked.get()) is not None:
        picked.append((op, row))
    if op in (forced_now := _forced.get() or {}):
        return forced_now[op]
    found = table(_dispatch.device().kind, directory).get(row)
    return make(**found["config"]) if found else heuristic()
