"""torch.jit.save: what a module traced by `torch.jit.trace` does, as an archive of TorchScript that PyTorch runs."""
from __future__ import annotations

import io
import os
import weakref
from collections.abc import Mapping
from typing import IO, Any

from ..nn.modules import module
from ..nn.modules.module import Module

Examples = dict[str, tuple[tuple, dict]]  # by method: what it was traced with
_EXAMPLES: weakref.WeakKeyDictionary[Module, Examples] = weakref.WeakKeyDictionary()  # of traced modules


def remember(mod: Module, examples: Examples) -> None:
    """A module has been traced: it can be saved now."""
    _EXAMPLES[mod] = examples


def save(m: Any, f: str | os.PathLike[str] | IO[bytes], _extra_files: Mapping[str, Any] | None = None) -> None:
    """Write a traced module for `torch.jit.load`, with `_extra_files`' contents beside it.

    The file has the operations that the traced methods run for their example inputs. Sizes of theirs that the module takes other values of
    are left open, as in PyTorch's traces; what else depends on the inputs' data is constant there.
    """
    stream = io.BytesIO()
    _write(m, stream, "archive" if not isinstance(f, (str, os.PathLike)) else os.path.splitext(os.path.basename(f))[0], _extra_files or {})
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            file.write(stream.getvalue())
    else:
        f.write(stream.getvalue())


def _write(m: Any, stream: IO[bytes], name: str, extra: Mapping[str, Any]) -> None:
    if not isinstance(m, Module) or m not in _EXAMPLES:
        what = f"a {type(m).__name__}" if not isinstance(m, Module) else f"{type(m).__name__}, which was not traced"
        raise RuntimeError(f"torch.jit.save got {what}: torchlike writes the modules that torch.jit.trace ran (a scripted one stays Python here)")
    from ._write import write
    write(m, _EXAMPLES[m], stream, name, extra)


class _Saves:
    """The methods of a traced module."""

    def __init__(self, mod: Module) -> None:
        self.mod = mod

    def save(self, f: str | os.PathLike[str], _extra_files: Mapping[str, Any] | None = None) -> None:
        """torch.jit.save of the module."""
        save(self.mod, f, _extra_files)

    def save_to_buffer(self, _extra_files: Mapping[str, Any] | None = None) -> bytes:
        """What `save` writes."""
        stream = io.BytesIO()
        _write(self.mod, stream, "archive", _extra_files or {})
        return stream.getvalue()


module.LATE["save"] = lambda m: _Saves(m).save if m in _EXAMPLES else None
module.LATE["save_to_buffer"] = lambda m: _Saves(m).save_to_buffer if m in _EXAMPLES else None
