"""Modules of settings: only names that there are can be set, each thread sees its own values, and a block may change some."""
from __future__ import annotations

import builtins
import pickle
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping
from contextlib import ContextDecorator
from contextvars import ContextVar
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

_LIBRARY = __name__.partition(".")[0]
_IMMUTABLE = (int, float, bool, type(None), str, tuple)
_SETTINGS = (*_IMMUTABLE, list, set, dict)
_said: set[str] = set()


class Alias(str):
    """A setting's value that is another setting: its dotted name, from `torch.` on."""


class Text(str):
    """A setting's value as Python would write it, not read yet."""


def table(path: Path) -> dict[str, Any]:
    """The settings in a file with lines of `name value` or `name -> name of another setting`."""
    lines = (line.split(" ", 1) for line in path.read_text().splitlines())
    return {name: Alias(value[3:]) if value.startswith("-> ") else Text(value) for name, value in lines}


def install_config_module(module: ModuleType, more: Mapping[str, Any] | None = None, deprecated: Mapping[str, str] | None = None,
                          acting: Mapping[str, tuple[Callable[[], Any], Callable[[Any], None]]] | None = None) -> None:
    """Make the module one of settings: what it has assigned itself (also in classes of its own), and `more`, by dotted names.

    `deprecated`: what to warn of, once, when one is read or set. `acting`: settings that are read and set by functions.
    """
    defaults: dict[str, Any] = {}
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__ and not issubclass(value, str):
            defaults.update(_of_class(value, f"{name}."))
        elif not name.startswith("__") and isinstance(value, _SETTINGS):
            defaults[name] = value
        else:
            continue
        delattr(module, name)
    defaults.update(more or {})
    state = {"_defaults": defaults, "_set": ContextVar(f"{module.__name__} set", default=MappingProxyType({})), "_hidden": set(),
             "_deprecated": dict(deprecated or {}), "_acting": dict(acting or {})}
    for name, value in state.items():
        setattr(module, name, value)
    for name in sorted({full[:i] for full in defaults for i, letter in enumerate(full) if letter == "."}, key=len):
        owner, _, last = name.rpartition(".")
        (vars(getattr(module, owner)) if owner else vars(module))[last] = SubConfigProxy(module, f"{name}.")
    module.__class__ = ConfigModule


def _of_class(source: type, prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in vars(source).items():
        if isinstance(value, type):
            found.update(_of_class(value, f"{prefix}{name}."))
        elif not name.startswith("__") and isinstance(value, _SETTINGS):
            found[prefix + name] = value
    return found


class ConfigModule(ModuleType):
    """A module of settings."""

    def _says(self, name: str) -> str:
        return f"torch{self.__name__.removeprefix(_LIBRARY).removeprefix('torch')}.{name}"

    def _check(self, name: str) -> None:
        if name not in self._defaults:
            raise AttributeError(f"{self._says(name)} does not exist")
        said = self._deprecated.pop(name, None)
        if said is not None:
            warnings.warn(f"{self._says(name)} is deprecated and {said}. It will be removed in a future version of PyTorch.", FutureWarning, stacklevel=3)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "__annotations__":  # of documentation tools
            return super().__setattr__(name, value)
        self._check(name)
        if isinstance(self._defaults[name], Alias):
            setattr(*_place(self._defaults[name]), value)
        elif name in self._acting:
            self._acting[name][1](value)
        else:
            self._hidden.discard(name)
            self._set.set({**self._set.get(), name: value})

    def __getattr__(self, name: str) -> Any:
        if name not in vars(self).get("_defaults", ()) or name in self._hidden:
            raise AttributeError(f"{self._says(name)} does not exist")
        self._check(name)
        if isinstance(self._defaults[name], Alias):
            return getattr(*_place(self._defaults[name]))
        if name in self._acting:
            return self._acting[name][0]()
        given = self._set.get()
        if name in given:
            return given[name]
        value = self._default(name)
        if not isinstance(value, _IMMUTABLE):  # a program may write into it
            value = deepcopy(value)
            self._set.set({**given, name: value})
        return value

    def __delattr__(self, name: str) -> None:
        """Forget what was set, and hide the setting until it is set again: so does unittest.mock end a patch."""
        if name not in self._defaults:
            raise KeyError(name)
        self._set.set({n: x for n, x in self._set.get().items() if n != name})
        self._hidden.add(name)

    def _default(self, name: str) -> Any:
        value = self._defaults[name]
        if isinstance(value, Text):
            value = self._defaults[name] = set() if value == "set()" else literal_eval(value)
        return value

    def _is_default(self, name: str) -> bool:
        """Whether a setting has the value that it came with."""
        if name in self._acting:
            return self._acting[name][0]() == self._default(name)
        default, given = self._default(name), self._set.get()
        return name not in given or (not isinstance(default, _IMMUTABLE) and given[name] == default)

    def _values(self, ignored: Iterable[str] = (), prefixes: tuple[str, ...] = ()) -> dict[str, Any]:
        """Copies of all settings, but those that are others' aliases, ignored, or begin with a prefix."""
        given = self._set.get()
        names = (n for n, x in self._defaults.items() if not isinstance(x, Alias) and n not in ignored and not n.startswith(prefixes))
        return {n: deepcopy(given[n] if n in given else self._acting[n][0]() if n in self._acting else self._default(n)) for n in names}

    def _unsaved(self) -> list[str]:
        return self._save_config_ignore if "_save_config_ignore" in self._defaults else []

    def get_type(self, config_name: str) -> type:
        """The type of a setting's default value. KeyError for one that there is not."""
        return type(self._default(config_name))

    def get_config_copy(self) -> dict[str, Any]:
        """All settings by name: copies of their values."""
        return self._values()

    def get_serializable_config_copy(self) -> dict[str, Any]:
        """The settings that `save_config` saves."""
        return self._values(self._unsaved())

    def _deprecated_copy(self, name: str) -> dict[str, Any]:
        warnings.warn(f"`config.{name}()` has been deprecated. It no longer changes the underlying config. use `config.get_config_copy()` instead if you "
                      "just want a copy of the config, or config.load_config if you need mutable access", FutureWarning, stacklevel=3)
        return self._values()

    def to_dict(self) -> dict[str, Any]:
        """:meth:`get_config_copy`, with a FutureWarning."""
        return self._deprecated_copy("to_dict")

    def shallow_copy_dict(self) -> dict[str, Any]:
        """:meth:`get_config_copy`, with a FutureWarning."""
        return self._deprecated_copy("shallow_copy_dict")

    def save_config(self) -> bytes:
        """All settings as a pickle, for `load_config`."""
        return pickle.dumps(self.get_serializable_config_copy(), protocol=2)

    def save_config_portable(self, *, ignore_private_configs: bool = True, readonly_values: bool = False) -> dict[str, Any]:
        """The settings without those of this machine, and without private ones."""
        prefixes = self._cache_config_ignore_prefix if "_cache_config_ignore_prefix" in self._defaults else []
        return self._values((), (*("_",) * ignore_private_configs, *prefixes))

    def load_config(self, maybe_pickled_config: bytes | dict[str, Any]) -> None:
        """Set what `save_config` or a dictionary says. It warns of names that there are not."""
        config = maybe_pickled_config if isinstance(maybe_pickled_config, dict) else pickle.loads(maybe_pickled_config)
        for name, value in config.items():
            if name in self._defaults:
                setattr(self, name, value)
            elif (said := f"key {name} with value {value} is not understood by this config") not in _said:
                _said.add(said)
                warnings.warn(said, stacklevel=2)

    def codegen_config(self) -> str:
        """Lines of Python that set what differs from the defaults, as it is set now."""
        imports: set[str] = set()

        def written(function: Any) -> str:
            module = "" if function.__module__ == builtins.__name__ else function.__module__
            imports.update({module} - {""})
            return f"{module}.{function.__name__}" if module else function.__name__

        lines = []
        for name, value in self._values(self._unsaved()).items():
            if self._is_default(name):
                continue
            if _importable(value):
                text = written(value)
            elif isinstance(value, (list, set)) and all(map(_importable, value)):
                names = [written(x) for x in value]
                text = str(names) if isinstance(value, list) else f"{{ {', '.join(names)} }}"
            else:
                text = repr(value)
            lines.append(f"{self._says(name)} = {text}")
        return "\n".join([*(f"import {name}" for name in imports), *lines])

    def patch(self, arg1: str | dict[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Patch:
        """`patch(name, value)`, `patch({name: value})`, `patch(name=value)`: a context manager and decorator, inside of which settings have these values.

        AttributeError where it begins for a name that there is not.
        """
        if arg1 is None:
            if arg2 is not None:
                raise AssertionError("second positional argument is only valid when first argument is a key string")
            return Patch(self, kwargs)
        if arg2 is not None and not isinstance(arg1, str):
            raise AssertionError("first argument must be a string when passing 2 positional args to patch")
        if arg2 is None and not isinstance(arg1, dict):
            raise AssertionError("first argument must be a dict when passing a single positional arg to patch")
        if kwargs:
            raise AssertionError("cannot pass both positional and keyword arguments to patch")
        return Patch(self, arg1 if isinstance(arg1, dict) else {arg1: arg2})


def _importable(value: Any) -> bool:
    return callable(value) and hasattr(value, "__module__") and hasattr(value, "__name__")


def _place(alias: str) -> tuple[ModuleType, str]:
    module, _, name = alias.rpartition(".")
    return import_module(_LIBRARY + module.removeprefix("torch")), name


class Patch(ContextDecorator):
    """A context manager and decorator: settings of a module have other values inside."""

    def __init__(self, module: ConfigModule, changes: dict[str, Any]) -> None:
        self.module, self.changes = module, changes
        self._before: ContextVar[tuple[dict[str, Any], ...]] = ContextVar("before", default=())

    def __enter__(self) -> None:
        before = {name: getattr(self.module, name) for name in self.changes}
        for name, value in self.changes.items():
            setattr(self.module, name, value)
        self._before.set((*self._before.get(), before))

    def __exit__(self, *exc: object) -> None:
        *earlier, before = self._before.get()
        self._before.set(tuple(earlier))
        for name, value in before.items():
            setattr(self.module, name, value)


class SubConfigProxy:
    """The settings whose names begin with a prefix, as attributes."""

    def __init__(self, config: ModuleType, prefix: str) -> None:
        vars(self).update(_config=config, _prefix=prefix)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._config, self._prefix + name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, self._prefix + name)

    def __delattr__(self, name: str) -> None:
        delattr(self._config, self._prefix + name)
