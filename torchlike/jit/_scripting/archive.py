"""The archive of a compiled module."""
from __future__ import annotations

import enum
import struct
from collections.abc import Mapping
from typing import IO, Any

from ..._core.device import device
from ..._core.dtype import dtype
from ..._serialization.archive import ArchiveWriter
from ..._tensor import Tensor
from ...nn.modules.module import Module
from .._write import _int, _Pickler, _text, finish
from ..script_function import ScriptFunction
from .modules import Program, of_function, of_module
from .signature import Signature
from .types import Type, without_none
from .values import literal

_PLACEHOLDER = "__torch__.torch.jit.PlaceholderModule"


def write(m: Module | ScriptFunction, stream: IO[bytes], name: str, extra: Mapping[str, Any]) -> None:
    """Compiles a module or a function and writes it as TorchScript. Raises what PyTorch's compiler raises where it does not take something."""
    program = of_module(m) if isinstance(m, Module) else of_function(m.__wrapped__)
    files = program.files()
    if isinstance(m, Module):
        m = program.root
    if not isinstance(m, Module):
        m, placeholder = Module(), _placeholder(*program.functions[m.__wrapped__])
        files.append(placeholder)
        program.hold(m, _PLACEHOLDER)
    writer = ArchiveWriter(stream, name)
    pickler = ModulePickler(writer, "data", program)
    writer.write("data.pkl", pickler.pickled(m))
    for path, text in files:
        writer.write(f"code/{path}", text.encode())
    finish(writer, pickler.tuple_of([]), extra)


def _placeholder(signature: Signature, text: str) -> tuple[str, str]:
    """The file of the module that a function is saved as: its forward calls the function."""
    head = text.partition("\n")[0].replace(f"def {signature.name.rpartition('.')[2]}(", f"def forward(self: {_PLACEHOLDER}" + ", " * bool(signature.parameters), 1)
    given = ", ".join(f"{p.name}={p.name}" if p.only_named else p.name for p in signature.parameters)
    module, _, name = _PLACEHOLDER.rpartition(".")
    lines = [f"class {name}(Module):", "  __parameters__ = []", "  __buffers__ = []", "  training : bool", "  _is_full_backward_hook : Optional[bool]", f"  {head}",
             f"    return {signature.name}({given})"]
    return module.replace(".", "/") + ".py", "\n".join(lines) + "\n"


class ModulePickler(_Pickler):
    """Modules with all that they hold."""

    classes: Program

    def _module(self, m: Module) -> bytes:
        module, _, name = self.classes.names[id(m)].rpartition(".")
        held = [(k, self._value(x, t)) for k, (t, x) in self.classes.attributes[id(m)].kept.items()]
        held += [("training", b"\x88" if m.training else b"\x89"), ("_is_full_backward_hook", b"N")]
        held += [(k, self._once(x, self._module)) for k, x in m._modules.items() if x is not None]
        return f"c{module}\n{name}\n".encode() + b")\x81}(" + b"".join(_text(k) + x for k, x in held) + b"ub"

    def _value(self, x: Any, t: Type) -> bytes:
        """An attribute, whose type stands beside what is a list or a dictionary."""
        if x is None:
            return b"N"
        if isinstance(x, Tensor):
            return self._once(x, self._tensor)
        t = without_none(t) if t.name == "Optional" else t
        if isinstance(x, enum.Enum):
            module, _, name = t.named.rpartition(".")
            return f"c{module}\n{name}\n".encode() + self._value(x.value, t.args[0]) + b"R"
        if t.name == "float":
            return b"G" + struct.pack(">d", x)
        if isinstance(x, bool):
            return b"\x88" if x else b"\x89"
        if isinstance(x, str):
            return _text(x)
        if isinstance(x, device):
            return b"ctorch\ndevice\n(" + _text(str(x)) + b"tR"
        if isinstance(x, tuple):
            return b"(" + b"".join(map(self._value, x, t.args)) + b"t"
        if isinstance(x, list):
            return self._tagged(b"](" + b"".join(self._value(y, t.args[0]) for y in x) + b"e", t)
        if isinstance(x, dict):
            return self._tagged(b"}(" + b"".join(self._value(k, t.args[0]) + self._value(v, t.args[1]) for k, v in x.items()) + b"u", t)
        if isinstance(x, dtype) or not isinstance(x, (int, float)):
            return _int(int(literal(x).text))
        return _int(x) if isinstance(x, int) else b"G" + struct.pack(">d", x)

    def _tagged(self, data: bytes, t: Type) -> bytes:
        return b"ctorch.jit._pickle\nrestore_type_tag\n(" + data + _text(str(t)) + b"tR"
