"""What a program chooses for its checkpoints: checksums, and files without what tensors hold."""
from __future__ import annotations

import threading
from typing import Any


def settings() -> Any:
    """torch.utils.serialization.config, whose module is loaded with the first file."""
    from ..utils.serialization import config
    return config


def get_crc32_options() -> bool:
    """Whether `save` writes checksums."""
    return settings().save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set :func:`get_crc32_options`. Zeros stand in place of checksums that are not written, and are not compared."""
    settings().save.compute_crc32 = compute_crc32


class _Thread(threading.local):
    skip_data = False


_thread = _Thread()


def skips_data() -> bool:
    return _thread.skip_data


class skip_data:
    """Inside, `save` leaves room (zeros) for what tensors hold, and `load` gives tensors of zeros without reading the file's."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before, _thread.skip_data = _thread.skip_data, True

    def __exit__(self, *raised: Any) -> None:
        _thread.skip_data = self._before


class SourceChangeWarning(Warning):
    """For filters: torch warns so where a module's source is not that of its checkpoint. Checkpoints are loaded without their source here."""
