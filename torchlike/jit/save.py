"""torch.jit.save: what a traced or scripted module or a scripted function does, as an archive of TorchScript that PyTorch runs."""
from __future__ import annotations

import io
import os
import weakref
from collections.abc import Mapping
from types import MethodType
from typing import IO, Any

from ..nn.modules import module
from ..nn.modules.module import Module
from ._deprecated import deprecated
from ._saves import Saves
from .script_function import ScriptFunction

Examples = dict[str, tuple[tuple, dict]]  # by method: what it was traced with
_EXAMPLES: weakref.WeakKeyDictionary[Module, Examples] = weakref.WeakKeyDictionary()  # of traced modules
_SCRIPTED: weakref.WeakSet[Module] = weakref.WeakSet()


def remember(mod: Module, examples: Examples) -> None:
    """A module has been traced: it can be saved now."""
    _EXAMPLES[mod] = examples


def remember_scripted(mod: Module) -> None:
    """A module has been scripted: what is saved is compiled from its source, unless it was traced before."""
    _SCRIPTED.add(mod)


def compiled(mod: Any) -> bool:
    """Whether a module is what PyTorch calls a ScriptModule: traced or scripted."""
    return mod in _EXAMPLES or mod in _SCRIPTED


def save(m: Any, f: str | os.PathLike[str] | IO[bytes], _extra_files: Mapping[str, Any] | None = None) -> None:
    """Write a traced or scripted module, or a scripted function, for `torch.jit.load`, with `_extra_files`' contents beside it.

    Of a traced module the file has the operations that its methods run for their example inputs. Sizes of theirs that the module takes
    other values of are left open, as in PyTorch's traces; what else depends on the inputs' data is constant there. What was scripted is
    compiled from its source: the errors of PyTorch's compiler, which name the line, are raised here.
    """
    deprecated("save", "`torch.export`")
    write_to(m, f, _extra_files)


def write_to(m: Any, f: str | os.PathLike[str] | IO[bytes], extra: Mapping[str, Any] | None) -> None:
    """`save`; as torch.save's, a file is the old one or whole, and nothing is written of what cannot be compiled."""
    from ..serialization import _writable
    with _writable(f) as (stream, name):
        whole = io.BytesIO()
        _write(m, whole, name, extra or {})
        stream.write(whole.getvalue())


def _write(m: Any, stream: IO[bytes], name: str, extra: Mapping[str, Any]) -> None:
    if isinstance(m, Module) and m in _EXAMPLES:
        from ._write import write
        write(m, _EXAMPLES[m], stream, name, extra)
    elif isinstance(m, ScriptFunction) or isinstance(m, Module) and m in _SCRIPTED:
        from ._scripting.archive import write as write_scripted
        write_scripted(m, stream, name, extra)
    elif _is_loaded(m):
        from ._again import write as write_again
        write_again(m, stream, name, extra)
    else:
        what = f"a {type(m).__name__}" if not isinstance(m, Module) else f"{type(m).__name__}, which was neither traced nor scripted"
        raise RuntimeError(f"torch.jit.save got {what}: it writes what torch.jit.trace, script or load made")


def _is_loaded(m: Any) -> bool:
    from ._code import RecursiveScriptModule
    return isinstance(m, RecursiveScriptModule)


def _code(m: Module) -> str | None:
    """The text of a scripted module's forward."""
    if m not in _SCRIPTED or m in _EXAMPLES:
        return None
    from ._scripting.modules import of_module
    program = of_module(m)
    return "".join(text for name, (_, text) in program.methods[id(program.root)].items() if name.partition("__")[0] == "forward")


module.LATE["save"] = lambda m: MethodType(Saves.save, m) if compiled(m) else None
module.LATE["save_to_buffer"] = lambda m: MethodType(Saves.save_to_buffer, m) if compiled(m) else None
module.LATE["original_name"] = lambda m: type(m).__name__ if compiled(m) else None
module.LATE["code"] = _code
