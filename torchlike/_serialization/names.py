"""Which names of a pickle stand for what: torch's names for torchlike's objects, both ways, and rules for all others.

No rule imports a module, and none answers a function of the standard library. ``weights_only`` loading knows the table
below and what the user registered; otherwise see :func:`resolve_class`.
"""

import argparse
import collections
import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import pickle
import sys
import threading
import types
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor import Tensor
from ..nn.modules.lazy import LazyModuleMixin
from . import annotations
from .records import STORAGE_TYPES, UNTYPED
from .unpickler import Resolved

PACKAGE = __package__.split(".")[0]  # "torchlike": what the name "torch" means here

TABLE: dict[str, Resolved] = {}  # "module.name" -> meaning, under weights_only and without
TABLE_UNLESS_WEIGHTS_ONLY: dict[str, Resolved] = {}  # further names, only without
_names: dict[int, tuple[str, str]] = {}  # id of a value -> the name it is written under


def register(module: str, name: str, resolved: Resolved, weights_only: bool = True) -> None:
    """Make ``module.name`` stand for ``resolved.value``, which is written under its first name."""
    (TABLE if weights_only else TABLE_UNLESS_WEIGHTS_ONLY)[f"{module}.{name}"] = resolved
    _names.setdefault(id(resolved.value), (module, name))


def name_of(value: Any) -> tuple[str, str] | None:
    """torch's (module, name) for an object of torchlike, or None where the object's own name is the right one."""
    found = _names.get(id(value))
    if found is not None:
        return found
    if not isinstance(value, (type, types.FunctionType)):
        return None
    parts = value.__module__.split(".")
    if parts[0] not in (PACKAGE, "torch"):
        return None
    if isinstance(value, types.FunctionType):
        return _function_name(value)
    # torch's files are laid out like ours only in the large: the shortest module that shows the class is public.
    for count in range(1, len(parts) + 1):
        module = sys.modules.get(".".join([PACKAGE, *parts[1:count]]))
        if module is not None and _attribute(module, value.__qualname__) is value:
            return ".".join(["torch", *parts[1:count]]), value.__qualname__
    raise pickle.PicklingError(f"Can't pickle {value!r}: it has no public name in torch")


def _function_name(function: types.FunctionType) -> tuple[str, str]:
    for public in _FUNCTIONS:
        for name, value in _torch_functions(public).items():
            if value is function:
                return public, name
    raise pickle.PicklingError(f"Can't pickle {function!r}: it has no public name in torch")


def _attribute(holder: Any, path: str) -> Any:
    """``holder.path`` through classes only, so that a name never wanders into another module; None if there is none."""
    for index, part in enumerate(path.split(".")):
        if index and not isinstance(holder, type):
            return None
        holder = vars(holder).get(part) if isinstance(holder, (types.ModuleType, type)) else None
    return holder


# -- what the user allows ---------------------------------------------------------------------------------------------

_safe_lock = threading.Lock()
_safe: list[Any] = []


def add_safe_globals(values: list[Callable | tuple[Callable, str]]) -> None:
    """Let ``load`` call these classes and functions where a file names them; ``(value, "module.name")`` renames one.

    A registered class may be constructed and takes state through its ``__setstate__``: register only what you trust.
    """
    values = list(values)
    with _safe_lock:
        _safe.extend(value for value in values if value not in _safe)


def get_safe_globals() -> list[Callable | tuple[Callable, str]]:
    """What :func:`add_safe_globals` and :class:`safe_globals` have registered."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Forget everything :func:`add_safe_globals` registered."""
    with _safe_lock:
        _safe.clear()


class safe_globals:
    """Context manager: :func:`add_safe_globals` inside the block only."""

    def __init__(self, values: list[Callable | tuple[Callable, str]]) -> None:
        self._values = list(values)

    def __enter__(self) -> None:
        self._former = get_safe_globals()
        add_safe_globals(self._values)

    def __exit__(self, *exc: object) -> None:
        with _safe_lock:
            _safe[:] = self._former


def _user_allowed() -> dict[str, Any]:
    allowed = {}
    for entry in get_safe_globals():
        if isinstance(entry, tuple):
            value, name = entry
            allowed[name] = value
            continue
        for module, name in [(entry.__module__, entry.__qualname__), name_of(entry) or ("", "")]:
            allowed[f"{module}.{name}"] = entry
    return allowed


# -- resolvers --------------------------------------------------------------------------------------------------------


def resolve_weights_only(module: str, name: str) -> Resolved:
    """torch's ``weights_only=True``: the table and what the user registered."""
    full = f"{module}.{name}"
    if full in TABLE:
        return TABLE[full]
    allowed = _user_allowed()
    if full in allowed:
        return _free(allowed[full])
    raise pickle.UnpicklingError(
        f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{full}])` or the `torch.serialization.safe_globals([{full}])` context "
        "manager to allowlist this global if you trust this class/function."
    )


def resolve_class(module: str, name: str) -> Resolved:
    """``weights_only=False``: also plain data of the standard library and NumPy, annotations, and classes already imported.

    - A class of torchlike, or a subclass of one, is created without its constructor and gets its state by its own
      ``__setstate__``.
    - Any other class outside of the standard library is created by the built-in ``__new__`` of its base and gets its
      state as attributes: no method of it runs. With a ``__new__`` or ``__setstate__`` of its own it is refused.
    - Functions of torchlike may be referred to (a layer's ``activation``), never called. All others are refused.
    """
    full = f"{module}.{name}"
    if full in TABLE:
        return TABLE[full]
    if full in TABLE_UNLESS_WEIGHTS_ONLY:
        return TABLE_UNLESS_WEIGHTS_ONLY[full]
    allowed = _user_allowed()
    if full in allowed:
        return _free(allowed[full])
    value = _torch_object(module, name) if module.split(".")[0] in ("torch", PACKAGE) else _imported_class(module, name)
    resolved = None if value is None else _restricted(value)
    if resolved is None:
        raise pickle.UnpicklingError(
            f"GLOBAL {full} is not allowed: loading runs no code that a file asks for, only classes already imported "
            f"are looked up, and they must not construct themselves. If you trust this class/function, import it and "
            f"use `torch.serialization.add_safe_globals([{full}])`."
        )
    return resolved


def _torch_object(module: str, name: str) -> Any:
    """A class or function of torchlike under torch's name; torch may keep a class in a deeper module than we do."""
    if module in _FUNCTIONS and name in (found := _torch_functions(module)):
        return found[name]
    parts = [PACKAGE, *module.split(".")[1:]]
    while parts:
        holder = sys.modules.get(".".join(parts))
        value = _attribute(holder, name) if holder is not None else None
        ours = getattr(value, "__module__", "").split(".")[0] in (PACKAGE, "torch")
        if ours and isinstance(value, type):
            return value
        parts.pop()
    return None


def _torch_functions(module: str) -> dict[str, types.FunctionType]:
    """Our functions that torch keeps in ``module``, by their names there, but none that opens files."""
    ours = sys.modules.get(_FUNCTIONS[module])
    prefix = f"{module.rpartition('_')[2]}_" if module in _FAMILIES else ""
    return {
        prefix + name: value
        for name, value in ({} if ours is None else vars(ours)).items()
        if isinstance(value, types.FunctionType)
        and value.__module__.split(".")[0] in (PACKAGE, "torch")
        and value.__module__ != f"{PACKAGE}.serialization"
    }


def _imported_class(module: str, name: str) -> type | None:
    holder = sys.modules.get(module)
    value = _attribute(holder, name) if holder is not None else None
    if not isinstance(value, type) or value.__module__.split(".")[0] in sys.stdlib_module_names and not _is_marker(value):
        return None
    return value


# the last two from Python 3.13 on
_OF_EVERY_CLASS = {"__module__", "__doc__", "__dict__", "__weakref__", "__static_attributes__", "__firstlineno__"}


def _is_marker(cls: type) -> bool:
    """Whether a class stands for itself (`inspect.Parameter.empty`): it has nothing that could run."""
    return type(cls) is type and cls.__mro__ == (cls, object) and vars(cls).keys() <= _OF_EVERY_CLASS


def _free(value: Any) -> Resolved:
    """What the user registered may do everything."""
    if isinstance(value, type):
        new = functools.partial(value.__new__, value)
        return Resolved(value, call=value, new=new, state="method")
    return Resolved(value, call=value)


def _restricted(value: Any) -> Resolved | None:
    if not isinstance(value, type):
        return Resolved(value)
    if issubclass(value, enum.Enum):
        return Resolved(value, call=lambda member: enum.EnumType.__call__(value, member))
    if _is_ours(value):
        return Resolved(value, new=_bare(value), state="method")
    maker = next(vars(base)["__new__"] for base in value.__mro__ if "__new__" in vars(base))
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        return Resolved(value, new=lambda *items: tuple.__new__(value, items))
    if isinstance(maker, types.BuiltinFunctionType) and maker.__self__ in _DATA_BASES and not _sets_state(value):
        bare = functools.partial(maker, value)
        # a namespace is pickled as a call without arguments
        return Resolved(value, call=(lambda: bare()) if maker.__self__ is types.SimpleNamespace else None, new=bare, state="dict")
    return None


def _bare(cls: type) -> Callable[..., Any]:
    """Takes no arguments, so that a file cannot choose the class; object's own `__new__` would leave them aside."""
    if cls.__new__ is object.__new__ and cls.__init__ is not object.__init__:
        return lambda *aside: cls.__new__(cls)
    return lambda: cls.__new__(cls)


def _is_ours(cls: type) -> bool:
    return any(base.__module__.split(".")[0] in (PACKAGE, "torch") for base in cls.__mro__)


def _sets_state(cls: type) -> bool:
    return any("__setstate__" in vars(base) for base in cls.__mro__)


_DATA_BASES = (object, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, types.SimpleNamespace)
_FAMILIES = {f"torch._C._{name}": f"{PACKAGE}.{name}" for name in ("fft", "linalg", "special")}  # torch calls its functions `fft_rfft`
_FUNCTIONS = {  # {torch's module: ours}
    "torch.nn.functional": f"{PACKAGE}.nn.functional",
    "torch": PACKAGE,
    "torch._C._nn": f"{PACKAGE}.nn.functional",
    **_FAMILIES,
    "torch.functional": PACKAGE,
    **{f"torch.nn.{name}": f"{PACKAGE}.nn.{name}" for name in ("init", "utils.clip_grad", "utils.convert_parameters")},
}


# -- Python's and NumPy's own data ------------------------------------------------------------------------------------


def _latin1(text: str, encoding: str = "latin1") -> bytes:
    """``codecs.encode`` as pickle uses it for bytes under protocol 2."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"_codecs.encode is allowed for latin1 only, not for {encoding}")
    return text.encode("latin-1")


_VARIABLE_FUNCTIONS = object()  # the class that torch's own functions are pickled as attributes of
_TENSOR_METHODS = object()  # the class that its methods of tensors are


def _getattr(holder: Any, name: str) -> Any:
    """``getattr`` as torch pickles ``torch.tanh`` and ``torch.Tensor.relu``, and the hooks of a lazy module, and for nothing else."""
    if isinstance(holder, LazyModuleMixin) and name in ("_infer_parameters", "_lazy_load_hook"):
        return getattr(holder, name)
    function = _torch_functions("torch").get(name) if holder is _VARIABLE_FUNCTIONS else getattr(Tensor, name, None) if holder is _TENSOR_METHODS else None
    if not isinstance(function, types.FunctionType):
        raise pickle.UnpicklingError(f"GLOBAL builtins.getattr is not allowed for {name!r} of {type(holder).__name__}")
    return function


def _reconstruct(cls: type, base: type, state: Any) -> Any:
    """``copyreg._reconstructor`` (protocols 0 and 1), for instances without a built-in value."""
    resolved = _restricted(cls)
    if base is not object or state is not None or resolved is None or resolved.new is None:
        raise pickle.UnpicklingError(f"copyreg._reconstructor is not allowed for {cls}")
    return resolved.new()


def _numpy_reconstruct(cls: type, shape: tuple, code: bytes) -> np.ndarray:
    if cls is not np.ndarray:
        raise pickle.UnpicklingError(f"numpy's _reconstruct is allowed for arrays only, not for {cls}")
    return np.empty(0, dtype=np.uint8)


def _numpy_scalar(kind: np.dtype, data: bytes) -> Any:
    if not isinstance(kind, np.dtype) or kind.hasobject:
        raise pickle.UnpicklingError(f"numpy scalars of {kind!r} are not allowed")
    return np.frombuffer(data, dtype=kind, count=1)[0]


def _register_python() -> None:
    for cls in (set, bytearray, complex):
        TABLE[f"builtins.{cls.__name__}"] = Resolved(cls, call=cls)
    for cls in (collections.OrderedDict, collections.Counter):
        TABLE[f"collections.{cls.__name__}"] = Resolved(cls, call=cls, new=_bare(cls), state="dict")
    TABLE["_codecs.encode"] = Resolved(_latin1, call=_latin1)

    def data(cls: Any, module: str | None = None, state: str | None = None, name: str | None = None) -> None:
        new = _bare(cls) if isinstance(cls, type) else None
        resolved = Resolved(cls, call=cls, new=new, state=state)
        TABLE_UNLESS_WEIGHTS_ONLY[f"{module or cls.__module__}.{name or cls.__name__}"] = resolved

    for cls in (list, dict, tuple, frozenset, int, float, bool, str, bytes, slice, range):
        data(cls)
    for cls in (collections.defaultdict, collections.deque, decimal.Decimal, fractions.Fraction):
        data(cls)
    for cls in (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone):
        data(cls)
    for cls in (pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path())):
        for module in ("pathlib", "pathlib._local"):  # where files that Python 3.13 wrote have them
            data(cls, module)
    for cls in (argparse.Namespace, types.SimpleNamespace):
        data(cls, state="dict")
    data(uuid.UUID, state="method")
    TABLE_UNLESS_WEIGHTS_ONLY.update(annotations.names())
    TABLE_UNLESS_WEIGHTS_ONLY["builtins.object"] = Resolved(object)
    TABLE_UNLESS_WEIGHTS_ONLY["torch._C._VariableFunctionsClass"] = Resolved(_VARIABLE_FUNCTIONS)
    TABLE_UNLESS_WEIGHTS_ONLY["torch._C.TensorBase"] = Resolved(_TENSOR_METHODS)
    data(_getattr, "builtins", name="getattr")
    data(_reconstruct, "copyreg", name="_reconstructor")
    for package in ("numpy.core", "numpy._core"):
        data(_numpy_reconstruct, f"{package}.multiarray", name="_reconstruct")
        data(_numpy_scalar, f"{package}.multiarray", name="scalar")
    TABLE_UNLESS_WEIGHTS_ONLY["numpy.ndarray"] = Resolved(np.ndarray, state="method")
    TABLE_UNLESS_WEIGHTS_ONLY["numpy.dtype"] = Resolved(np.dtype, call=np.dtype, state="method")


def _register_storage_types() -> None:
    for module in ("torch.storage", "torch"):
        register(module, UNTYPED.name, Resolved(UNTYPED))
    for module in ("torch", "torch.cuda"):
        for name, kind in STORAGE_TYPES.items():
            register(module, name, Resolved(kind))


_register_python()
_register_storage_types()
