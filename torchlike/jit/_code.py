"""The functions and classes of a TorchScript archive, from its text; modules and objects that are made of them."""
from __future__ import annotations

import ast
import collections
import enum
import sys
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ._machine import Function, _Run
from ._saves import Saves
from .script import ScriptModule


class RecursiveScriptModule(Saves, ScriptModule):
    """A module of an archive."""

    __module__ = "torch.jit._script"
    _code: Code
    _methods: dict[str, Function] = {}
    _parameter_names: tuple = ()
    _buffer_names: tuple = ()
    original_name = ""

    def __setstate__(self, state: dict[str, Any]) -> None:
        Module.__init__(self)
        for name, x in state.items():
            if isinstance(x, Tensor):
                x = self._code.tensors.setdefault(id(x), (x, self._shared(name, x)))[1]
                if name in self._parameter_names:
                    self.register_parameter(name, x)
                    continue
                if name in self._buffer_names:
                    self.register_buffer(name, x)
                    continue
            if name in self._parameter_names:  # None: a bias that is not there
                self.register_parameter(name, x)
            elif isinstance(x, Module):
                self.add_module(name, x)
            else:
                self.__dict__[name] = x

    def _shared(self, name: str, x: Tensor) -> Tensor:
        return Parameter(x.detach(), x.requires_grad) if name in self._parameter_names else x

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the archive's text says."""
        method = self._methods.get("forward") or self._methods.get("forward__0")
        if method is None:
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')
        return method(self, *args, **kwargs)

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    @property
    def code(self) -> str:
        """forward's text."""
        return ast.unparse(self._methods["forward"].node) + "\n"


class ScriptObject:
    """An instance of one of an archive's classes that are no modules."""

    _code: Code
    _methods: dict[str, Function] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class Code:
    """An archive's text by its files, parsed as it is needed; `version`: of the operators that it speaks of."""

    def __init__(self, texts: dict[str, str], version: int) -> None:
        self.texts, self.version, self._files, self._found = texts, version, {}, {}
        self.constants: tuple = ()
        self.tensors: dict[int, tuple[Tensor, Tensor]] = {}  # tensors of the file, and what modules hold in their place

    def _file(self, module: str) -> dict[str, ast.stmt]:
        if module not in self._files:
            text = self.texts.get("code/" + module.replace(".", "/") + ".py")
            body = [] if text is None else ast.parse(text).body
            self._files[module] = {x.name: x for x in body if isinstance(x, (ast.FunctionDef, ast.ClassDef))}
        return self._files[module]

    def definition(self, name: str) -> ast.stmt:
        """The definition of a class."""
        module, _, last = name.rpartition(".")
        return self._file(module)[last]

    def find(self, name: str) -> Any:
        """The function or class of a qualified name."""
        if name not in self._found:
            module, _, last = name.rpartition(".")
            node = self._file(module).get(last)
            if node is None:
                outer = self.find(module) if "." in module else None
                if isinstance(outer, type) and issubclass(outer, enum.Enum):
                    return outer[last]
                if isinstance(outer, type) and issubclass(outer, ScriptObject) and last == "__new__":
                    return object.__new__
                raise RuntimeError(f"Unknown type name '{name}' in a TorchScript archive")
            self._found[name] = Function(node, self) if isinstance(node, ast.FunctionDef) else self._class(name, node)
        return self._found[name]

    def _class(self, name: str, node: ast.ClassDef) -> type:
        base = node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else ""
        fields = [x.target.id for x in node.body if isinstance(x, ast.AnnAssign) and isinstance(x.target, ast.Name) and x.value is None]
        run = _Run(self, {})
        if base == "NamedTuple":
            return collections.namedtuple(node.name, fields)
        if base == "Enum":
            return enum.Enum(node.name, {x.targets[0].id: run.value(x.value) for x in node.body if isinstance(x, ast.Assign)})
        methods = {x.name: Function(x, self) for x in node.body if isinstance(x, ast.FunctionDef)}
        constants = {x.target.id: run.value(x.value) for x in node.body if isinstance(x, ast.AnnAssign) and x.value is not None and isinstance(x.target, ast.Name)}
        own = {"_code": self, "_methods": methods, "__module__": name.rpartition(".")[0]} | constants
        if base != "Module":
            return type(node.name, (ScriptObject,), own | {k: v for k, v in methods.items() if k not in ("__setstate__", "__getstate__", "__init__")})
        if "__setstate__" in methods:
            raise RuntimeError(f"{name} has a __setstate__ of its own: torchlike reads modules whose state is their attributes")
        lists = {x.targets[0].id: tuple(run.value(x.value)) for x in node.body if isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Name)}
        own |= {"_parameter_names": lists.get("__parameters__", ()), "_buffer_names": lists.get("__buffers__", ()), "original_name": node.name}
        own |= {k: v for k, v in methods.items() if k != "forward" and not k.startswith("__") or k == "__len__"}
        return type("RecursiveScriptModule", (RecursiveScriptModule,), own)

    def member(self, x: Any, name: str) -> Any:
        """x.name, where x is an object of the archive."""
        if isinstance(x, (RecursiveScriptModule, ScriptObject)):
            method = x._methods.get(name)
            if method is not None:
                return method.__get__(x, type(x))
            own = type(x).__dict__
            held = x.__dict__
            if not name.startswith("__") and (name in held or name in own or any(name in held.get(d, ()) for d in ("_parameters", "_buffers", "_modules"))):
                return getattr(x, name)
        elif isinstance(x, tuple) and name in getattr(x, "_fields", ()):
            return getattr(x, name)
        elif isinstance(x, enum.Enum) and name in ("name", "value"):
            return getattr(x, name)
        raise RuntimeError(f"'{getattr(x, 'original_name', type(x).__name__)}' object in a TorchScript archive has no attribute or method '{name}'.")

    def set_member(self, x: Any, name: str, value: Any) -> None:
        """x.name = value, where x is an object of the archive."""
        if not isinstance(x, (RecursiveScriptModule, ScriptObject)) or name.startswith("__") or name in x._methods:
            raise RuntimeError(f"TorchScript's text does not assign to '{name}' of '{type(x).__name__}'")
        setattr(x, name, value)

    def library(self, namespace: str, name: str) -> Callable:
        """An operator that a program registered (`torch.library`), as `ops.namespace.name`."""
        custom = sys.modules.get("torchlike._custom_operator")
        found = None if custom is None else custom.namespace(namespace)
        if not hasattr(found, name):
            raise RuntimeError(f"Unknown builtin op: {namespace}::{name}.")
        return getattr(found, name)

    def finish(self) -> None:
        """All is read, so tensors have their modules."""
        self.tensors.clear()
