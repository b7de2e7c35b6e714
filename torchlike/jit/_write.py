"""A traced module as TorchScript: a class with its parameters for each module, and the text of the methods that were traced."""
from __future__ import annotations

import json
import keyword
import math
import operator
import struct
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from .._aten_schemas import schema_of
from .._core.device import device
from .._core.dtype import dtype
from .._core.layout import contiguous_strides
from .._custom_operator import CustomOverload
from .._ops import OpOverload
from .._serialization.archive import ArchiveWriter
from .._serialization.records import UNTYPED, storage_type
from .._symbolic import SymInt
from .._tensor import Tensor
from ..export import Dim, ExportedProgram
from ..export._export import Export
from ..export.graph_signature import InputKind
from ..fx import Node
from ..nn.modules.module import Module
from ..utils import _pytree as pytree
from ._operators import _FORMATS, _number
from .trace import TracerWarning

_VERSION = 10  # of the operators: before 4 integers were divided to integers, before 5 full made floats, before 10 gelu had no approximation
_TAKEN = frozenset({"torch", "ops", "CONSTANTS", "annotate", "self", "inf", "nan", "print", "uninitialized", "unchecked_cast", "Tensor", "List", "Dict", "Tuple", "Optional"})


def write(m: Module, examples: Mapping[str, tuple[tuple, dict]], stream: IO[bytes], name: str, extra: Mapping[str, Any]) -> None:
    """The archive; `examples`: each method's arguments."""
    programs = {method: traced(m, method, *given) for method, given in examples.items()}
    writer = ArchiveWriter(stream, name)
    classes = _Classes(m)
    tensors: list[Tensor] = []
    pickler = _Pickler(writer, "data", classes)
    writer.write("data.pkl", pickler.pickled(m))
    for method, program in programs.items():
        classes.bodies[id(m)] += _Text(program, classes, tensors).method(method)
    for path, body in classes.files():
        writer.write(f"code/{path}", body.encode())
    constants = _Pickler(writer, "constants", classes)
    finish(writer, constants.tuple_of(tensors), extra)


def finish(writer: ArchiveWriter, constants: bytes, extra: Mapping[str, Any], version: int = _VERSION) -> None:
    """What every archive ends with; `version`: of the operators that its text speaks of."""
    writer.write("constants.pkl", constants)
    for key, value in extra.items():
        writer.write(f"extra/{key}", value.encode() if isinstance(value, str) else bytes(value))
    writer.write("byteorder", sys.byteorder.encode())
    writer.close(version)


def traced(m: Module, method: str, args: tuple, kwargs: dict) -> ExportedProgram:
    """The operations of a module's method, with as many sizes of its inputs left open as it takes."""
    export = Export(m, args, kwargs, traced=True, method=method)
    export.takes([])  # warns where data become constants
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        return _program(export)


def _program(export: Export) -> ExportedProgram:
    free = []
    for i, t in enumerate(export.example.tensors):
        free += [(i, d) for d in range(t.ndim) if t.shape[d] > 0 and export.takes([(i, d)])]
    leading = [(i, 0) for i, t in enumerate(export.example.tensors) if t.ndim]
    together = [(i, d) for i, d in leading if export.example.tensors[i].shape[0] == export.example.tensors[leading[0][0]].shape[0]]
    if together and not set(together) & set(free) and export.takes(together):
        free += together
    for places in (free, [p for p in free if p[1] == 0], []):
        export.labels = [{d: Dim.AUTO for i, d in places if i == k} for k in range(len(export.labels))]
        try:
            return export.program()
        except Exception:
            if not places:
                raise
    raise AssertionError


class _Classes:
    """A class for each module, and where it stands."""

    def __init__(self, root: Module) -> None:
        self.names: dict[int, str] = {}
        self.bodies: dict[int, str] = {}
        self.root = root
        for k, m in enumerate(root.modules()):
            self.names[id(m)] = f"__torch__.module_{k}.{_identifier(type(m).__name__)}"
        for m in root.modules():
            self.bodies[id(m)] = self._body(m)

    def _body(self, m: Module) -> str:
        parameters, buffers = list(_present(m._parameters)), list(_present(m._buffers))
        lines = [f"class {self.names[id(m)].rpartition('.')[2]}(Module):", f"  __parameters__ = {_names(parameters)}", f"  __buffers__ = {_names(buffers)}"]
        lines += [f"  {name} : Tensor" for name in [*parameters, *buffers]]
        lines += ["  training : bool", "  _is_full_backward_hook : Optional[bool]"]
        for name, child in _present(m._modules).items():
            lines.append(f"  {name} : {self.names[id(child)]}" if name.isidentifier() else f"  __annotations__[\"{name}\"] = {self.names[id(child)]}")
        return "\n".join(lines) + "\n"

    def files(self) -> list[tuple[str, str]]:
        """The text of each class's file."""
        return [(self.names[i].rpartition(".")[0].replace(".", "/") + ".py", body) for i, body in self.bodies.items()]


def _present(members: dict) -> dict:
    return {k: x for k, x in members.items() if x is not None}


def _names(names: list[str]) -> str:
    return "[" + "".join(f'"{n}", ' for n in names) + "]"


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)


class _Text:
    """A program's graph as a method; `constants`: those of the archive so far."""

    def __init__(self, program: ExportedProgram, classes: _Classes, constants: list[Tensor]) -> None:
        self.program, self.classes, self.constants = program, classes, constants
        self.lines: list[str] = []
        self.words: dict[Node, str] = {}
        self.given: set[str] = set(_TAKEN)

    def name(self, wanted: str) -> str:
        """A variable's name."""
        wanted = _identifier(wanted)
        while wanted in self.given or keyword.iskeyword(wanted):
            wanted += "_"
        self.given.add(wanted)
        return wanted

    def method(self, name: str) -> str:
        """The method of this name, in the class's body."""
        program, signature = self.program, self.program.module_call_graph[0].signature
        specs = {s.arg.name: s for s in program.graph_signature.input_specs}
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        inputs = iter([n for n in placeholders if specs[n.name].kind is InputKind.USER_INPUT])
        parameters = []
        for argument, spec in zip(signature.forward_arg_names, [*signature.in_spec.children()[0].children(), *signature.in_spec.children()[1].children()]):
            word = self.name(argument)
            parameters.append(f"    {word}: {self._type(spec)}")
            self._take_apart(word, spec, inputs)
        for node in placeholders:
            spec = specs[node.name]
            if spec.kind is InputKind.USER_INPUT or not node.users:
                continue
            self.words[node] = word = self.name(node.name)
            if spec.target in program.constants and spec.kind is InputKind.CONSTANT_TENSOR:
                self.lines.append(f"{word} = CONSTANTS.c{len(self.constants)}")
                self.constants.append(program.constants[spec.target])
            else:
                self.lines.append(f"{word} = {self._member(spec.target)}")
        for node in program.graph.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                self._call(node)
        results = next(n for n in reversed(program.graph.nodes) if n.op == "output").args[0]
        value, kind = self._result(iter(results), signature.out_spec)
        self.lines.append(f"return {value}")
        head = ",\n".join([f"  def {name}(self: {self.classes.names[id(self.classes.root)]}", *parameters]) + f") -> {kind}:\n"
        return head + "".join(f"    {line}\n" for line in self.lines)

    def _member(self, target: str) -> str:
        text = "self"
        for part in target.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
        return text

    # -- arguments and results ----------------------------------------------------------------------------------------------------

    def _type(self, spec: pytree.TreeSpec) -> str:
        if spec.is_leaf():
            return "Tensor"
        kinds = [self._type(c) for c in spec.children()]
        if spec.type is tuple:
            return f"Tuple[{', '.join(kinds)}]"
        if spec.type in (list, dict) and kinds and len(set(kinds)) == 1:
            return f"List[{kinds[0]}]" if spec.type is list else f"Dict[str, {kinds[0]}]"
        raise RuntimeError(f"torch.jit.save: TorchScript has no type for a {getattr(spec.type, '__name__', spec.type)} of {', '.join(kinds) or 'nothing'}")

    def _take_apart(self, word: str, spec: pytree.TreeSpec, inputs: Any) -> None:
        if spec.is_leaf():
            node = next(inputs)
            if not hasattr(node.meta["val"], "dtype"):
                raise RuntimeError(f"torch.jit.save: the argument {word} is no tensor, which a trace cannot have")
            self.words[node] = word
            return
        children = spec.children()
        words = [self.name(f"{word}_{k}") for k in range(len(children))]
        if spec.type is tuple:
            self.lines.append("".join(f"{w}, " for w in words) + f"= {word}")
        else:
            keys = spec.context if spec.type is dict else range(len(words))
            self.lines += [f"{w} = {word}[{json.dumps(k)}]" for w, k in zip(words, keys)]
        for w, child in zip(words, children):
            self._take_apart(w, child, inputs)

    def _result(self, leaves: Any, spec: pytree.TreeSpec) -> tuple[str, str]:
        if spec.is_leaf():
            x = next(leaves)
            if not isinstance(x, Node) or isinstance(x.meta.get("val"), SymInt):
                raise RuntimeError("torch.jit.save: a traced module returns tensors only, alone or in tuples, lists and dictionaries")
            return self.value(x), "Tensor"
        kind = self._type(spec)
        parts = [self._result(leaves, c)[0] for c in spec.children()]
        if spec.type is tuple:
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})", kind
        if spec.type is list:
            return f"[{', '.join(parts)}]", kind
        return "{" + ", ".join(f"{json.dumps(k)}: {p}" for k, p in zip(spec.context, parts)) + "}", kind

    # -- operators ----------------------------------------------------------------------------------------------------------------

    def _call(self, node: Node) -> None:
        target = node.target
        kinds: dict[str, str] = {}
        if isinstance(target, CustomOverload):
            kinds = {a.name: a.kind for a in target.definition._parameters.arguments}
            function = f"ops.{target.overloadpacket}"
        elif isinstance(target, OpOverload):
            schema = schema_of(target)
            if schema is None:
                raise RuntimeError(f"torch.jit.save: {target} is an operator of torchlike's own, which TorchScript does not have")
            kinds, function = {a.name: a.kind for a in schema.arguments}, f"torch.{target.overloadpacket.__name__}"
            function = "torch.size" if function == "torch.sym_size" else function
        else:
            function = f"torch.{target.__name__}"
        args = [self.value(x, kinds[name] if name else "") for x, name in zip(node.args, [*kinds, *[""] * len(node.args)])]
        args += [f"{k}={self.value(x, kinds.get(k, ''))}" for k, x in node.kwargs.items()]
        call = f"{function}({', '.join(args)})"
        val = node.meta.get("val")
        if isinstance(val, list):
            parts = [u for u in node.users if u.target is operator.getitem]
            for part in parts:
                self.words[part] = self.name(part.name)
            self.lines.append("".join(f"{self.words[p]}, " for p in parts) + f"= {call}")
        else:
            self.words[node] = self.name(node.name)
            self.lines.append(f"{self.words[node]} = {call}")

    def value(self, x: Any, kind: str = "") -> str:
        """An argument in TorchScript."""
        if isinstance(x, Node):
            return self.words[x]
        if isinstance(x, dtype):
            return str(_number(x))
        if isinstance(x, device):
            return f'torch.device("{x}")'
        if isinstance(x, (list, tuple)):
            listed = f"[{', '.join(self.value(y) for y in x)}]"
            if kind.startswith("Tensor?["):
                return f"annotate(List[Optional[Tensor]], {listed})"
            return listed if x else f"annotate(List[{'float' if kind.startswith('float') else 'Tensor' if kind.startswith('Tensor') else 'int'}], [])"
        if type(x).__name__ == "memory_format":
            return str(_FORMATS.index(x.name))
        if type(x).__name__ == "layout":
            return "0"
        if isinstance(x, str):
            return json.dumps(x)
        if isinstance(x, float) and not math.isfinite(x):
            return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
        if kind.startswith("float") and isinstance(x, int) and not isinstance(x, bool):
            x = float(x)
        if x is None or isinstance(x, (bool, int, float)):
            return repr(x)
        raise RuntimeError(f"torch.jit.save: TorchScript has no form for {x!r}")


class _Pickler:
    """Modules and tensors in the pickles of TorchScript; the tensors' data are records beside."""

    def __init__(self, writer: ArchiveWriter, record: str, classes: _Classes) -> None:
        self.writer, self.record, self.classes = writer, record, classes
        self.keys: dict[int, int] = {}
        self.memo: dict[int, int] = {}

    def pickled(self, m: Module) -> bytes:
        """A module."""
        return b"\x80\x02" + self._once(m, self._module) + b"."

    def tuple_of(self, tensors: list[Tensor]) -> bytes:
        """A tuple of tensors."""
        return b"\x80\x02(" + b"".join(self._tensor(t) for t in tensors) + b"t."

    def _once(self, x: Any, write: Callable[[Any], bytes]) -> bytes:
        """What is held in several places is written once."""
        known = self.memo.get(id(x))
        if known is not None:
            return b"j" + struct.pack("<I", known)
        made = write(x)
        self.memo[id(x)] = len(self.memo)
        return made + b"r" + struct.pack("<I", self.memo[id(x)])

    def _module(self, m: Module) -> bytes:
        module, _, name = self.classes.names[id(m)].rpartition(".")
        held = [(k, self._once(x, self._tensor)) for k, x in [*_present(m._parameters).items(), *_present(m._buffers).items()]]
        held += [("training", b"\x88" if m.training else b"\x89"), ("_is_full_backward_hook", b"N")]
        held += [(k, self._once(x, self._module)) for k, x in _present(m._modules).items()]
        return f"c{module}\n{name}\n".encode() + b")\x81}(" + b"".join(_text(k) + x for k, x in held) + b"ub"

    def _tensor(self, t: Tensor) -> bytes:
        array = np.ascontiguousarray(t.detach()._host_array())
        key = self.keys.get(id(t))
        if key is None:
            key = self.keys[id(t)] = len(self.keys)
            self.writer.write(f"{self.record}/{key}", array.reshape(-1).view(np.uint8))
        strides = contiguous_strides(tuple(t.shape))
        kind = storage_type(str(t.dtype).removeprefix("torch."))
        if kind is UNTYPED:
            raise RuntimeError(f"torch.jit.save: TorchScript has no tensors of {t.dtype}")
        storage = b"(" + _text("storage") + f"ctorch\n{kind.name}\n".encode() + _text(str(key)) + _text(str(t.device.type)) + _int(array.size) + b"tQ"
        shape, steps = (b"(" + b"".join(map(_int, ns)) + b"t" for ns in (t.shape, strides))
        grad = b"\x88" if t.requires_grad else b"\x89"
        return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + _int(0) + shape + steps + grad + b"ccollections\nOrderedDict\n)RtR"


def _text(x: str) -> bytes:
    data = x.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _int(n: int) -> bytes:
    return b"J" + struct.pack("<i", n) if n < 1 << 31 else b"\x8a\x08" + struct.pack("<q", n)
