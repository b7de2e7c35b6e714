"""How what can be saved says so: the methods of traced, scripted and loaded modules and of scripted functions."""
from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import IO, Any


class Saves:
    """What `torch.jit.save` writes, as methods."""

    def save(self, f: str | os.PathLike[str] | IO[bytes], _extra_files: Mapping[str, Any] | None = None) -> None:
        """torch.jit.save of this."""
        from .save import write_to  # it knows what there is to save
        write_to(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: Mapping[str, Any] | None = None) -> bytes:
        """What `save` writes."""
        stream = io.BytesIO()
        Saves.save(self, stream, _extra_files)  # not a method of the user's
        return stream.getvalue()
