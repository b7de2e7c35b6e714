"""torch.library: operations of a user's own, called as functions and as torch.ops.<namespace>.<name>."""
from __future__ import annotations

import functools
import inspect
import os
import re
import threading
import types
import typing
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _torchaudio, _torchvision
from ._core.device import device as _device
from ._core.dtype import dtype as _dtype
from ._custom_operator import DEFINED, CustomOpDef, found_operator, implement, is_device, named
from ._dispatch_keys import _AutoDispatchBelowAutograd
from ._kernels import SafeKernelFunction, fallthrough_kernel, known_key, pending
from ._ops import loaded_libraries, lookup_op
from ._plainly import rules
from ._schema_parser import canonical
from ._tensor import Tensor

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl", "impl_abstract", "infer_schema", "opcheck", "register_autocast",
           "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap"]

_TYPES = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", complex: "Scalar", _device: "Device", _dtype: "ScalarType"}


class _Unsupported(Exception):
    """A type that schemas have no name for."""


def _scalar(kinds: tuple, annotation: Any) -> str:
    """The type of torch.types.Number."""
    if set(kinds) != {int, float, bool}:
        raise _Unsupported(annotation)
    return "Scalar"


def _schema_type(annotation: Any) -> str:
    """A parameter's type as schemas name it."""
    if annotation in _TYPES:
        return _TYPES[annotation]
    arguments = typing.get_args(annotation)
    if type(None) in arguments:
        kinds = tuple(a for a in arguments if a is not type(None))
        return (_schema_type(kinds[0]) if len(kinds) == 1 else _scalar(kinds, annotation)) + "?"
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return _scalar(arguments, annotation)
    if typing.get_origin(annotation) in (list, Sequence) and len(arguments) == 1:
        return _schema_type(arguments[0]) + "[]"
    raise _Unsupported(annotation)


def _default_text(x) -> str:
    """A parameter's default as a schema says it."""
    return f'"{x}"' if isinstance(x, (str, _device)) else str(x).removeprefix("torch.") if isinstance(x, _dtype) else str(x)


def infer_schema(prototype_function: Callable, /, *, mutates_args: str | Iterable[str], op_name: str | None = None) -> str:
    """`(Tensor x, float scale=2.0) -> Tensor` of an annotated function; written arguments are marked."""
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError("mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. ")
    hints = typing.get_type_hints(prototype_function)
    signature, written = inspect.signature(prototype_function), set(() if isinstance(mutates_args, str) else mutates_args)
    def wrong(text: str) -> ValueError:
        return ValueError(f"infer_schema(func): {text} Got func with signature {signature})")

    unknown = written - set(signature.parameters)
    if unknown:
        raise ValueError(f"infer_schema(func): {unknown} in mutates_args were not found in the function's signature.")
    parts, only_named = [], False
    for name, p in signature.parameters.items():
        if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise wrong("We do not support positional-only args, varargs, or varkwargs.")
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation.")
        if p.kind is p.KEYWORD_ONLY and not only_named:
            parts.append("*")
            only_named = True
        try:
            kind = _schema_type(hints[name])
        except _Unsupported:
            raise wrong(f"Parameter {name} has unsupported type {hints[name]}.") from None
        if p.default is not p.empty and not isinstance(p.default, (int, float, bool, str, type(None), _dtype, _device)):
            raise wrong(f"Parameter {name} has an unsupported default value type {type(p.default)}. Please file an issue on GitHub so we can prioritize "
                        "this.")
        if name in written or mutates_args == "unknown" and kind.startswith("Tensor"):
            kind = kind.replace("Tensor", f"Tensor(a{len(parts) - only_named}!)")
        parts.append(f"{kind} {name}" + ("" if p.default is p.empty else f"={_default_text(p.default)}"))
    if "return" not in hints:
        raise wrong("No return type annotation was provided. Please add one.")
    result = hints["return"]
    parted = typing.get_args(result) if typing.get_origin(result) is tuple else () if result is type(None) else (result,)
    try:
        kinds = [_schema_type(r) for r in parted]
    except _Unsupported:
        raise wrong(f"Return has unsupported type {result}.") from None
    if not {k.rstrip("[]") for k in kinds} <= {"Tensor", "SymInt", "float", "bool", "Scalar"}:
        raise wrong(f"Return has unsupported type {result}.")
    out = kinds[0] if len(kinds) == 1 and parted == (result,) else "(" + ", ".join(kinds) + ")"
    return f"{op_name or ''}({', '.join(parts)}) -> {out}"


def _split(name: str) -> tuple[str, str]:
    namespace, found, rest = name.partition("::")
    if not found or "::" in rest:
        raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name!r}")
    return namespace, rest


def custom_op(name: str, fn: Callable | None = None, /, *, mutates_args: str | Iterable[str], device_types: str | Sequence[str] | None = None,
              schema: str | None = None, tags: Any = None) -> Any:
    """Decorator: a function of tensors as an operation `namespace::name`. Its derivative is what register_autograd says."""
    if fn is None:
        return functools.partial(custom_op, name, mutates_args=mutates_args, device_types=device_types, schema=schema, tags=tags)
    kinds = (device_types,) if isinstance(device_types, str) else device_types
    op = CustomOpDef(*_split(name), canonical(infer_schema(fn, mutates_args=mutates_args) if schema is None else schema), fn, kinds, tags)
    try:
        op._refuse_named_tensors("custom_op")
        if not isinstance(mutates_args, str) and set(mutates_args) != op._parameters.written:
            raise ValueError(f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema suggests that the op mutates "
                             f"{set(op._parameters.written)}which is different from what was provided to us in `mutates_args`. Please make these consistent.")
    except BaseException:
        op._forget()
        raise
    return functools.update_wrapper(op, fn)


def triton_op(name: str, fn: Callable | None = None, /, *, mutates_args: str | Iterable[str], schema: str | None = None) -> Callable:
    """custom_op of a function that starts Triton kernels: to the compiler here one function is as good as another."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Callable, /) -> Any:
    """The kernel itself: there is no tracer that it has to be shown to."""
    return triton_kernel


def register_fake(op: Any, func: Callable | None = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = True) -> Callable:
    """CustomOpDef.register_fake, by name; a decorator without func."""
    return functools.partial(register_fake, op, lib=lib) if func is None else found_operator(op).register_fake(func)


def impl_abstract(qualname: Any, func: Callable | None = None, *, lib: Any = None, _stacklevel: int = 1) -> Callable:
    """register_fake's older name."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None) -> None:
    """CustomOpDef.register_autograd, by name."""
    found_operator(op).register_autograd(backward, setup_context=setup_context)


def register_autocast(op: Any, device_type: str, cast_inputs: _dtype, /, *, lib: Any = None) -> None:
    """CustomOpDef.register_autocast, by name."""
    found_operator(op).register_autocast(device_type, cast_inputs)


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Any = None) -> Callable:
    """CustomOpDef.register_vmap, by name; a decorator without func."""
    return functools.partial(register_vmap, op, lib=lib) if func is None else found_operator(op).register_vmap(func)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, *, lib: Any = None) -> Callable:
    """What tensors of a class, or a mode of a class, do with an operation in the place of their `__torch_dispatch__`; a decorator without func.

    `func(cls or mode, operator, types, args, kwargs)` returns the result. `op` is an operation of a program's own or one of PyTorch's, by name
    (`"aten::sin"`) or as torch.ops has it.
    """
    if func is None:
        return functools.partial(register_torch_dispatch, op, torch_dispatch_class, lib=lib)
    name = op if isinstance(op, str) else op._qualname if isinstance(op, CustomOpDef) else op.name()
    named(name)
    rules.setdefault(name, {})[torch_dispatch_class] = func
    if lib is not None:
        lib.m.undone_by.append(lambda: rules[name].get(torch_dispatch_class) is func and rules[name].pop(torch_dispatch_class))
    return func


def get_kernel(op: Any, dispatch_key: Any) -> SafeKernelFunction:
    """An operation's kernel for a dispatch key ("CPU"), to be called below another one that is registered in its place: `.call_boxed(keys, x)`.

    RuntimeError for an operation that does not exist or has no kernel for the key, ValueError for what is no key.
    """
    key = getattr(dispatch_key, "value", dispatch_key)
    try:
        kept = known_key(key)
    except RuntimeError:
        raise ValueError(f"Invalid dispatch key: {key}") from None
    if (op if isinstance(op, str) else op._qualname if isinstance(op, CustomOpDef) else op.name()).startswith("aten::"):
        return _own_kernel(op)
    definition = found_operator(op)
    if kept == "meta" and definition._fake is not None:
        return SafeKernelFunction(definition._fake, definition._qualname)
    for name in (kept, "default", "composite"):
        if name in definition._kernels:
            return SafeKernelFunction(definition._kernels[name], definition._qualname)
    raise RuntimeError(f"no kernel of {definition._qualname} for {key}")


def _own_kernel(op: Any) -> SafeKernelFunction:
    """That of an operator of PyTorch's: one function for all devices, without derivatives."""
    if isinstance(op, str):
        try:
            op = lookup_op(op)
        except AttributeError:
            raise RuntimeError(f"operator {op} does not exist") from None

    def run(*args: Any, **kwargs: Any) -> Any:
        with _AutoDispatchBelowAutograd():
            return op(*args, **kwargs)
    return SafeKernelFunction(run, op.name())


def register_kernel(op: Any, device_types: str | Sequence[str] | None, func: Callable | None = None, /, *, lib: Any = None) -> Callable:
    """CustomOpDef.register_kernel, by name; a decorator without func. An operation of `define` takes what `impl` takes for kinds of device, too."""
    if func is None:
        return functools.partial(register_kernel, op, device_types, lib=lib)
    found = found_operator(op)
    if found._init_fn is not None or device_types is None:
        return found.register_kernel(device_types, func)
    implement(op if isinstance(op, str) else op._name, device_types, lib, func)
    return func


def define(qualname: Any, schema: str, alias_analysis: str = "", *, lib: Any = None, tags: Any = ()) -> Any:
    """An operation without kernels yet, `define("mylib::f", "(Tensor x) -> Tensor")`.

    `define(library, "f(Tensor x) -> Tensor")` is a decorator of the kernel for all kinds of device.
    """
    if not isinstance(qualname, Library):
        namespace, name = named(qualname)
        if not re.fullmatch(r"\(.*\) -> .*", schema):
            raise ValueError(f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"')
        if lib is None:
            CustomOpDef(namespace, name, canonical(name + schema).removeprefix(name), None, tags=tags)
        else:
            lib.define(name + schema, tags=tags)
        return None

    def defined(f: Callable) -> Callable:
        qualname.impl(qualname.define(schema, alias_analysis, tags=tags), f)
        return f
    return defined


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Its kernel for kinds of device ("cpu", "cuda", "default") or dispatch keys; a decorator without func.

    `impl(library, "f", "CPU")` is a decorator, too.
    """
    if isinstance(qualname, Library):
        def implemented(f: Callable) -> Callable:
            qualname.impl(types, f, func or "")
            return f
        return implemented
    for kind in (types,) if isinstance(types, str) else types:
        is_device(kind)  # refuses what is no kind, where the decorator is made
    if func is None:
        return functools.partial(implement, qualname, types, lib)
    implement(qualname, types, lib, func)
    return None


class _Made:
    """What a Library defined and implemented. Programs that end a Library `del library.m` first."""

    def __init__(self) -> None:
        self.undone_by: list[Callable[[], object]] = []


class Library:
    """A namespace under construction: define(schema), impl(name, function, dispatch_key). What it defined ends with it."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF":
            if ns == "aten" or ns in _WHOLE:
                raise RuntimeError(f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your definitions in a single "
                                   "TORCH_LIBRARY block.  If you were trying to specify implementations, consider using TORCH_LIBRARY_IMPL (which can be "
                                   "duplicated).  If you really intended to define operators for a single namespace in a distributed way, you can use "
                                   "TORCH_LIBRARY_FRAGMENT to explicitly indicate this")
            _WHOLE[ns] = self
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._implemented: set[tuple[str, str]] = set()
        self.m = _Made()
        weakref.finalize(self, _take_back, self.m.undone_by).atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def _destroy(self) -> None:
        _take_back(self.m.undone_by)
        if _WHOLE.get(self.ns) is self:
            del _WHOLE[self.ns]

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """An operation `name(arguments) -> results`; its name."""
        name, bracket, rest = schema.partition("(")
        name = name.strip()
        namespace, _, short = name.rpartition("::")
        if namespace not in ("", self.ns):
            raise RuntimeError(f"Explicitly provided namespace ({namespace}) in schema string does not match namespace of enclosing TORCH_LIBRARY_{self.kind} "
                               f"block ({self.ns}).  Move this definition to the (unique) TORCH_LIBRARY block corresponding to this namespace (and consider "
                               "deleting the namespace from your schema string.)")
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(f'def("{name}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All def()s should be placed in the (unique) '
                               "TORCH_LIBRARY block for their namespace.")
        text = canonical(name + bracket + rest).removeprefix(name)
        self.m.undone_by.append(CustomOpDef(self.ns, short, text, None, tags=tags)._forget)
        return name

    def impl(self, op_name: Any, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = True) -> None:
        """Its kernel for a dispatch key (CPU, CUDA, Meta, CompositeExplicitAutograd, CompositeImplicitAutograd)."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = op_name if isinstance(op_name, str) else op_name._name
        if dispatch_key and self.dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(f'impl("{name}", ...): Explicitly provided dispatch key ({dispatch_key}) is inconsistent with the dispatch key of the enclosing '
                               f"TORCH_LIBRARY_IMPL block ({self.dispatch_key}).  Please declare a separate TORCH_LIBRARY_IMPL block for this dispatch key and "
                               "move your impl() there.")
        key, qualname = known_key(dispatch_key or self.dispatch_key), f"{self.ns}::{name.removeprefix(self.ns + '::')}"
        if not allow_override and (qualname, key) in self._implemented:
            raise RuntimeError(f"This is not allowed since there's already a kernel registered from python overriding {name}'s behavior for "
                               f"{dispatch_key or self.dispatch_key} dispatch key and {self.ns} namespace.")
        self._implemented.add((qualname, key))
        if qualname not in DEFINED:
            if self.ns in ("aten", "prim", "prims", "torchvision"):
                raise RuntimeError(f"operator {qualname} does not exist: torchlike's own operators take no other kernels")
            pending.setdefault(qualname, {})[key] = fn
            self.m.undone_by.append(lambda: pending.get(qualname, {}).get(key) is fn and pending[qualname].pop(key))
            return
        op = found_operator(qualname)
        if key == "meta":
            op.register_fake(fn)
        else:
            op._kernels.put(key, fn, with_keyset)
            self.m.undone_by.append(lambda: op._kernels.get(key) is fn and op._kernels.pop(key))


_WHOLE: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # the Library that says it defines all of a namespace, by its name


def _take_back(made: list[Callable[[], object]]) -> None:
    for undo in reversed(made):
        undo()
    made.clear()


@contextmanager
def _scoped_library(ns: str, kind: str, dispatch_key: str = "") -> Iterator[Library]:
    """A Library whose operations are gone after the block."""
    lib = Library(ns, kind, dispatch_key)
    try:
        yield lib
    finally:
        lib._destroy()


def load_library(path: str | os.PathLike) -> None:
    """torch.ops.load_library: operations from a C++ library.

    torchvision's are those of `_torchvision`, torchaudio's of `_torchaudio`. OSError for any other: such libraries need PyTorch's own C++ part.
    """
    path = Path(os.path.realpath(path))
    name = path.name.partition(".")[0]
    if path.parent.name == "torchvision" and name in _torchvision.LIBRARIES:
        _torchvision.load(name)
    elif path.parent.parts[-2:] == ("torchaudio", "lib") and name in _torchaudio.LIBRARIES:
        _torchaudio.load(name)
    elif not path.exists():
        raise OSError(f"Could not load this library: {path}")
    else:
        raise OSError(f"Could not load this library: {path}. Libraries of operations in C++ are not supported by torchlike: they need PyTorch's own C++ part")
    loaded_libraries.add(str(path))


class _Context:
    """What a fake kernel may ask for sizes that depend on data: here it runs only where there are no data."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """Meta tensors have no data, so nothing can tell the size; where the kernel is only checked, a number that stands for it."""
        sizes = _unknown.sizes
        if sizes is not None:
            sizes.add(_UNLIKELY + len(sizes))
            return _UNLIKELY + len(sizes) - 1
        raise RuntimeError("new_dynamic_size: a size that depends on data is unknown for meta tensors")

    create_unbacked_symint = new_dynamic_size


_UNLIKELY = 10_007
class _Unknown(threading.local):
    sizes: set[int] | None = None  # while this thread checks a fake kernel: the sizes that it said depend on data


_unknown = _Unknown()


@contextmanager
def unknown_sizes() -> Iterator[set[int]]:
    """A block in which fake kernels get numbers for sizes that depend on data, and which."""
    before, _unknown.sizes = _unknown.sizes, set()
    try:
        yield _unknown.sizes
    finally:
        _unknown.sizes = before


def get_ctx() -> _Context:
    """The context of a fake kernel."""
    return _Context()


def opcheck(op: Any, args: tuple, kwargs: dict[str, Any] | None = None, *, test_utils: str | Sequence[str] = (
        "test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"), raise_exception: bool = True,
        atol: float | None = None, rtol: float | None = None) -> dict[str, Any]:
    """For each check of an operation "SUCCESS", or the error that it came upon; OpCheckError for that instead with `raise_exception`."""
    from ._opcheck import opcheck  # above this file
    return opcheck(op, args, kwargs, test_utils, raise_exception, rtol, atol)
