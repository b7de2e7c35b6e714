"""A module and what it holds as classes of TorchScript: attributes, constants, and the methods and functions that are reached from its own."""
from __future__ import annotations

import copy
import inspect
import re
import typing
from types import FunctionType
from typing import Any

from ..._torch_names import public
from ...nn.modules.container import ModuleDict, ModuleList, ParameterDict, Sequential
from ...nn.modules.module import Module
from ..script import EXPORTED, IGNORED, UNUSED, overloads
from ..script_function import ScriptFunction
from .function import Function
from .origin import is_library, is_own
from .signature import Signature, bound
from .statements import NO_GRAD
from .types import BOOL, NONE, TENSOR, Type, Unknown, fits, named_types, of_annotation, of_value
from .values import Held, Method, Outside, Special, Value, literal, quoted

_FUNCTIONS = (FunctionType, ScriptFunction)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_INTERNAL = frozenset(vars(Module())) | {"_is_hf_initialized"}


def mark(f: Any) -> str:
    """How a function was marked: by @ignore, @unused, @export or not."""
    return getattr(getattr(f, "fget", f), "_torchscript_modifier", "")


def of_module(m: Module) -> Program:
    """A module, compiled."""
    program = Program(_prepared(m, {}) if any(hasattr(x, "__prepare_scriptable__") for x in m.modules()) else m)
    program.compile()
    return program


def _prepared(m: Module, made: dict[int, Module]) -> Module:
    """A module with what its parts' `__prepare_scriptable__` give in their place."""
    if id(m) not in made:
        new = m.__prepare_scriptable__() if hasattr(m, "__prepare_scriptable__") else m
        new = copy.copy(new)
        made[id(m)] = new
        new.__dict__["_modules"] = {k: None if x is None else _prepared(x, made) for k, x in new._modules.items()}
    return made[id(m)]


def of_function(f: FunctionType) -> Program:
    """A function, compiled."""
    program = Program(None)
    program.compiled_function(f)
    return program


class Attributes:
    """What one module holds: `kept` has types, and are written; `constants` are part of the text; `refused` says why what else there is cannot be used."""

    def __init__(self, m: Module) -> None:
        self.kept: dict[str, tuple[Type, Any]] = {}
        self.constants: dict[str, Any] = {}
        self.refused: dict[str, str] = {}
        hints = {} if is_own(type(m)) else _hints(type(m))
        final = {k for k, hint in hints.items() if hint is typing.Final or typing.get_origin(hint) is typing.Final}
        for name in [*getattr(type(m), "__constants__", ()), *final]:
            if name in m._parameters or name in m._buffers or name in m._modules or not hasattr(m, name):
                continue
            value = _frozen(getattr(m, name))
            if literal(value) is None:
                kinds = "float, int, bool, str, NoneType, dtype, device, layout"
                raise TypeError(f"'{type(getattr(m, name)).__name__}' object in attribute '{type(m).__name__}.{name}' is not a valid constant.\n"
                                f"Valid constants are:\n1. a nn.ModuleList\n2. a value of type {{{kinds}}}\n3. a list or tuple of (2)\n")
            self.constants[name] = value
        for name, value in m.__dict__.items():
            if name in _INTERNAL or name.startswith("__") or name in self.constants or isinstance(value, _FUNCTIONS):
                continue
            if name in getattr(m, "__jit_ignored_attributes__", ()) or name in getattr(m, "__jit_unused_properties__", ()):
                continue
            try:
                self.kept[name] = self._typed(name, value, hints)
            except Unknown as reason:
                self.refused[name] = (f"(This attribute exists on the Python module, but we failed to convert Python type: '{type(value).__name__}' to a TorchScript type. "
                                      f"{reason}. Its type was inferred; try adding a type annotation for the attribute.)")
        for tensors in (m._parameters, m._buffers):
            for name, t in tensors.items():
                self.kept[name] = (of_annotation(hints[name]) if name in hints and not _is_tensor(hints[name]) else NONE if t is None else TENSOR, t)
        self.kept |= {name: (NONE, None) for name, child in m._modules.items() if child is None}

    def _typed(self, name: str, value: Any, hints: dict[str, Any]) -> tuple[Type, Any]:
        if name in hints:
            declared = of_annotation(hints[name])
            if not holds(value, declared):
                raise Unknown(f"the attribute is annotated as {declared}, which its value is not")
            return declared, value
        return of_value(value), value


def _hints(cls: type) -> dict[str, Any]:
    """A class's own annotations, or those of the first base that has some."""
    for base in cls.__mro__:
        if base is Module:
            break
        own = base.__dict__.get("__annotations__")
        if own:
            try:
                return inspect.get_annotations(base, eval_str=True)
            except Exception:  # a name that is there for type checkers only
                return {k: v for k, v in own.items() if not isinstance(v, str)}
    return {}


def _is_tensor(hint: Any) -> bool:
    try:
        return of_annotation(hint) == TENSOR
    except Unknown:
        return True


def _frozen(x: Any) -> Any:
    return tuple(map(_frozen, x)) if isinstance(x, (list, tuple)) else x


def holds(x: Any, t: Type) -> bool:
    """Whether a Python value is one of type t."""
    if t.name in ("Optional", "Union"):
        return x is None or any(holds(x, a) for a in t.args)
    if t.name == "List":
        return isinstance(x, list) and all(holds(y, t.args[0]) for y in x)
    if t.name == "Dict":
        return isinstance(x, dict) and all(holds(k, t.args[0]) and holds(v, t.args[1]) for k, v in x.items())
    if t.name == "Tuple":
        return isinstance(x, tuple) and len(x) == len(t.args) and all(map(holds, x, t.args))
    try:
        return fits(of_value(x), t)
    except Unknown:
        return False


_NO_GRAD_CLASS = f"""class no_grad:
  prev : bool
  def __init__(self: {NO_GRAD}) -> NoneType:
    self.prev = False
    return None
  def __enter__(self: {NO_GRAD}) -> NoneType:
    self.prev = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    return None
  def __exit__(self: {NO_GRAD}, exc_type: Any, exc_value: Any, traceback: Any) -> NoneType:
    torch.set_grad_enabled(self.prev)
    return None
"""


class Recursive(Exception):
    """A function calls itself."""


class Program:
    """All that is reached from a module's methods, or from a function."""

    def __init__(self, root: Module | None) -> None:
        self.root = root
        self.names: dict[int, str] = {}
        self.attributes: dict[int, Attributes] = {}
        self.methods: dict[int, dict[str, tuple[Signature, str]]] = {}
        self.functions: dict[FunctionType, tuple[Signature, str]] = {}
        self.under_way: set[Any] = set()
        self.taken: set[str] = set()
        self.no_grad = False  # whether the class of `with torch.no_grad()` is needed
        for m in root.modules() if root is not None else ():
            self.hold(m, self._name(public(type(m).__module__), type(m).__name__))

    def hold(self, m: Module, name: str) -> None:
        """A module, as the class of this name."""
        self.names[id(m)], self.attributes[id(m)], self.methods[id(m)] = name, Attributes(m), {}

    def _name(self, module: str, name: str) -> str:
        """The archive's name of a class or function, as PyTorch makes it."""
        place = ["__torch__", *(module.split(".") if module != "__main__" else ())]
        name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
        made, k = ".".join([*place, name]), 0
        while made in self.taken:
            made, k = ".".join([*place, f"___torch_mangle_{k}", name]), k + 1
        self.taken.add(made)
        return made

    def compile(self) -> None:
        """The entry points of the root: forward, and what is exported, of every module of it."""
        for m in self.root.modules():
            held = Held("self", m)
            for name in dict.fromkeys(n for cls in type(m).__mro__ for n in cls.__dict__):
                if not is_own(type(m)) and mark(inspect.getattr_static(type(m), name, None)) == EXPORTED:
                    self._signature(held, name)
        if type(self.root).forward is not Module.forward or "forward" in self.root.__dict__:
            if mark(type(self.root).forward) != IGNORED:
                several = overloads(type(self.root).forward)
                for k, declared in enumerate(several):
                    self._compile_overload(Held("self", self.root), "forward", k, declared)
                if not several:
                    self._signature(Held("self", self.root), "forward")

    # -- attributes -----------------------------------------------------------------------------------------------------------

    def attribute(self, at: Any, node: Any, owner: Held, name: str) -> Any:
        """What `owner.name` stands for."""
        from .expressions import member
        m, held = owner.module, self.attributes[id(owner.module)]
        if m._modules.get(name) is not None:
            return Held(member(owner.text, name), m._modules[name])
        if name == "training":
            return Value(f"{owner.text}.training", BOOL)
        if name in held.constants:
            return literal(held.constants[name], is_own(type(m)))
        if name in held.kept and name not in m._parameters and name not in m._buffers and at.own:
            made = literal(held.kept[name][1], True)
            if made is not None:
                return made
            if isinstance(held.kept[name][1], list) and literal(tuple(held.kept[name][1])) is not None:
                return at.list_of([literal(x, True) for x in held.kept[name][1]], node)
        if name in held.kept:
            t, _ = held.kept[name]
            return Value("None", NONE, None) if t == NONE else Value(member(owner.text, name), t)
        if isinstance(m.__dict__.get(name), _FUNCTIONS):
            return Outside(m.__dict__[name])
        if name in held.refused:
            raise at.source.error(node, f"Module '{type(m).__name__}' has no attribute '{name}' {held.refused[name]}")
        static = inspect.getattr_static(type(m), name, None)
        if isinstance(static, FunctionType):
            return self._of_container(owner, name) or Method(owner, name)
        if isinstance(static, ScriptFunction):
            return Outside(static)
        if isinstance(static, staticmethod):
            return Outside(static.__func__)
        if static is not None and at.own and isinstance(static, property) and isinstance(getattr(m, name), list):
            return at.list_of([Value(member(owner.text, k), TENSOR) for x in getattr(m, name) for k, p in m._parameters.items() if p is x], node)
        if isinstance(static, property):
            return self.call_method(at, node, Method(owner, name), [], {})
        if static is not None and (at.own or is_own(type(m))):
            return Outside(getattr(m, name))
        raise at.source.error(node, f"Module '{type(m).__name__}' has no attribute '{name}'")

    def _of_container(self, owner: Held, name: str) -> Special | None:
        """A method of torchlike's own that gives the parts of a module."""
        m = owner.module
        if name in ("children", "named_children", "modules", "named_modules", "named_buffers") or \
                name in ("items", "keys", "values") and isinstance(m, (ModuleDict, ParameterDict)):
            return Special(name, owner) if is_own(getattr(type(m), name)) else None
        return None

    # -- methods and functions ------------------------------------------------------------------------------------------------

    def _signature(self, owner: Held, name: str) -> Signature:
        """A method's, compiled when it is first asked for."""
        m, done = owner.module, self.methods[id(owner.module)]
        if name not in done:
            for kind in _HOOKS:
                if getattr(m, kind) and name == "forward":
                    raise RuntimeError(f"torch.jit.save: {type(m).__name__} has hooks, which torchlike does not write")
            if name in m.__dict__:
                raise RuntimeError(f"torch.jit.save: {name} of {type(m).__name__} is an attribute of the instance, no method of its class")
            static = inspect.getattr_static(type(m), name)
            f = static.fget if isinstance(static, property) else static
            if name == "forward" and f is Module.forward:
                raise RuntimeError(f"Module '{type(m).__name__}' has no forward")
            done[name] = self._made((id(m), name), f, Held("self", m), f"{self.names[id(m)]}.{name}")
        return done[name][0]

    def _overload(self, at: Any, node: Any, f: Method, several: list[Any], args: list[Any], named: dict[str, Any]) -> str:
        """The name of the first of a method's signatures that takes these arguments."""
        for k, declared in enumerate(several):
            arguments = Function(declared, self, f.owner, False).arguments
            try:
                bound(at, node, Signature(f.name, arguments, NONE), [*args], dict(named))
            except RuntimeError as error:
                reason = error
                continue
            return self._compile_overload(f.owner, f.name, k, declared)
        raise reason

    def _compile_overload(self, owner: Held, name: str, k: int, declared: Any) -> str:
        m, made = owner.module, f"{name}__{k}"
        if made not in self.methods[id(m)]:
            held = Held("self", m)
            f = inspect.getattr_static(type(m), name)
            self.methods[id(m)][made] = self._made((id(m), made), f, held, f"{self.names[id(m)]}.{made}", Function(declared, self, held, False))
        return made

    def _made(self, key: Any, f: Any, owner: Held | None, name: str, declared: Function | None = None) -> tuple[Signature, str]:
        if key in self.under_way:
            raise Recursive(f"function '{f.__name__}' is called recursively. Recursive calls are not supported")
        kind = mark(f)
        if kind == IGNORED:
            raise RuntimeError(f"Could not export Python function call '{f.__name__}'. Remove calls to Python functions before export. Did you forget to add @script "
                               "or @script_method annotation? If this is a nn.ModuleList, add it to __constants__")
        f = inspect.unwrap(f)
        self.under_way.add(key)
        try:
            f = self.replaced(f, owner)
            own = is_own(f)
            function = Function(f, self, owner, own, declared)
            text, returns = function.compiled(name.rpartition(".")[2], "Cannot call @unused methods" if kind == UNUSED else "")
        finally:
            self.under_way.discard(key)
        return Signature(name, function.arguments, returns), text

    def replaced(self, f: FunctionType, owner: Held | None = None) -> FunctionType:
        """What is compiled in a function's place."""
        from .library import replacement
        return replacement(f, None if owner is None else owner.module) if is_own(f) else f

    def call_module(self, at: Any, node: Any, held: Held, args: list[Any], named: dict[str, Any]) -> Value:
        return self.call_method(at, node, Method(held, "forward"), args, named)

    def call_method(self, at: Any, node: Any, f: Method, args: list[Any], named: dict[str, Any]) -> Value:
        from .expressions import member
        if f.name == "forward" and args and isinstance(args[0], Value) and args[0].type.named and hasattr(f.owner.module, "_forward_packed"):
            f = Method(f.owner, "_forward_packed")
        several = overloads(getattr(type(f.owner.module), f.name, None))
        if several:
            f = Method(f.owner, self._overload(at, node, f, several, args, named))
        try:
            signature = self._signature(f.owner, f.name)
        except Recursive as error:
            raise at.source.error(node, str(error)) from None
        return Value(f"{member(f.owner.text, f.name)}({bound(at, node, signature, args, named)})", signature.returns)

    def call_function(self, at: Any, node: Any, f: FunctionType, args: list[Any], named: dict[str, Any]) -> Value:
        try:
            signature = self.compiled_function(f)
        except Recursive as error:
            raise at.source.error(node, str(error)) from None
        return Value(f"{signature.name}({bound(at, node, signature, args, named)})", signature.returns)

    def compiled_function(self, f: FunctionType) -> Signature:
        """A function's signature, compiled when it is first asked for."""
        if f not in self.functions:
            name = self._name("torch.nn.functional" if is_library(f) else public(f.__module__), f.__name__)
            self.functions[f] = self._made(f, f, None, name)
        return self.functions[f][0]

    # -- text -----------------------------------------------------------------------------------------------------------------

    def body(self, m: Module) -> str:
        """A module's class."""
        held = self.attributes[id(m)]
        parameters, buffers = ("[" + "".join(f"{quoted(n)}, " for n in x) + "]" for x in (m._parameters, m._buffers))
        lines = [f"class {self.names[id(m)].rpartition('.')[2]}(Module):", f"  __parameters__ = {parameters}", f"  __buffers__ = {buffers}"]
        lines += [_declared(name, str(t)) for name, (t, _) in held.kept.items()]
        lines += ["  training : bool", "  _is_full_backward_hook : Optional[bool]"]
        lines += [_declared(name, self.names[id(child)]) for name, child in m._modules.items() if child is not None]
        for name, value in held.constants.items():
            made = literal(value)
            if name.isidentifier() and made.type != NONE:
                lines.append(f"  {name} : Final[{made.type}] = {made.text}")
        if isinstance(m, (ModuleList, Sequential, ModuleDict)) and "__len__" not in self.methods[id(m)]:
            lines += [f"  def __len__(self: {self.names[id(m)]}) -> int:", f"    return {len(m._modules)}"]
        methods = "".join("".join(f"  {line}\n" for line in text.splitlines()) for _, text in self.methods[id(m)].values())
        return "\n".join(lines) + "\n" + methods

    def _classes(self) -> dict[str, str]:
        """The text of each class; modules whose classes say the same have one."""
        first: dict[tuple[type, str], str] = {}
        found: dict[str, str] = {}
        for m in [*self.root.modules()][::-1] if self.root is not None else ():  # parts before what they are parts of
            text, name = self.body(m), self.names[id(m)]
            said = re.sub(re.escape(name) + r"(?![\w.])", "self", text)
            self.names[id(m)] = first.setdefault((type(m), said), name)
            found.setdefault(self.names[id(m)], text)
        return found

    def files(self) -> list[tuple[str, str]]:
        """The text of each file."""
        found: dict[str, str] = {}
        texts = [*self._classes().items()]
        texts += [(signature.name, text) for signature, text in self.functions.values()]
        if self.no_grad:
            texts.append((NO_GRAD, _NO_GRAD_CLASS))
        for cls, t in named_types():  # those that the text speaks of
            if any(t.named in text for _, text in texts):
                name = t.named.rpartition(".")[2]
                members = [f"{k} = {literal(x.value).text}" for k, x in cls.__members__.items()] if t.name == "Enum" else map("{} : {}".format, t.fields, t.args)
                texts.append((t.named, f"class {name}({'Enum' if t.name == 'Enum' else 'NamedTuple'}):\n" + "".join(f"  {x}\n" for x in members)))
        for name, text in texts:
            path = name.rpartition(".")[0].replace(".", "/") + ".py"
            found[path] = found.get(path, "") + text
        return list(found.items())


def _declared(name: str, kind: str) -> str:
    return f"  {name} : {kind}" if name.isidentifier() and name.isascii() else f"  __annotations__[{quoted(name)}] = {kind}"


