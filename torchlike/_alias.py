"""Makes `import torch` mean torchlike, in this process and in the Python processes it starts.

A finder at the head of `sys.meta_path` maps `torch` and `torch.x` to the module objects of torchlike, so that
`torch.nn is torchlike.nn`; no file is imported twice, and a real torch in the same environment is never reached.
Child processes get the finder through `_children/sitecustomize.py`, which the environment puts on their path.

This file imports nothing of torchlike: a child that never says `import torch` must not pay for JAX.
"""

import importlib
import importlib.metadata
import importlib.util
import opcode
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

# The torch release whose behaviour is followed, with our name where a build of torch has "+cpu" or "+cu130".
VERSION = "2.13.0+torchlike"
_PACKAGE = Path(__file__).resolve().parent
_CHILDREN = str(_PACKAGE / "_children")
_SWITCH = "TORCHLIKE_ALIAS"  # in children's environment: the sys.prefix of the interpreters that shall have the alias
_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


_FUNCTORCH = "torchlike._functorch.package"  # what PyTorch installs as a package beside itself


def _own(name: str) -> str:
    return _FUNCTORCH + name[len("functorch"):] if name.partition(".")[0] == "functorch" else "torchlike" + name.removeprefix("torch")


def _public(name: str) -> str:
    if name == _FUNCTORCH or name.startswith(_FUNCTORCH + "."):
        return "functorch" + name[len(_FUNCTORCH):]
    return name if name.partition(".")[0] == "torch" else "torch" + name.removeprefix("torchlike")


def missing(name: str, module: str) -> Exception:
    """The error for a name that a torchlike module lacks, to be raised by the module's own `__getattr__`.

    An AttributeError, so that `hasattr` and `getattr` work; for `from module import name` an ImportError, because
    Python replaces an AttributeError there by one that does not say why.
    """
    public = _public(module)
    reason = f"{public}.{name} is not supported yet by torchlike"
    caller = sys._getframe(2)
    if caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == _IMPORT_FROM:
        return ImportError(f"cannot import name {name!r} from {public!r}: {reason}", name=public)
    if name.startswith("__"):
        return AttributeError(f"module {public!r} has no attribute {name!r}")
    return AttributeError(f"module {public!r} has no attribute {name!r}: {reason}")


def at_first_use(package: str, *modules: str) -> Callable[[str], Any]:
    """A package's `__getattr__`, for modules that `import torch` loads in PyTorch and here their first use."""
    def __getattr__(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        raise missing(name, package)
    return __getattr__


def _explain_missing(module: ModuleType) -> None:
    """Gives `module` a `__getattr__` that says what is not supported yet, unless it or its class has one."""
    if "__getattr__" not in module.__dict__ and not hasattr(type(module), "__getattr__"):
        own = module.__name__

        def __getattr__(name: str) -> Any:
            if name == "__path__":  # each `from module import name` asks for it, in a function at every call
                raise AttributeError(f"module {module.__name__!r} has no attribute '__path__'")
            submodule = sys.modules.get(f"{own}.{name}")
            if submodule is not None:  # still being loaded: Python itself would look there, but not after an ImportError
                return submodule
            raise missing(name, module.__name__)

        module.__getattr__ = __getattr__


def _rename_packages(module: ModuleType) -> None:
    """Names the package itself `torch`, and public packages as in torch: libraries compare `torch.__name__` and `torch.jit.__name__` (hummingbird). Not those
    that define functions: whose frames are torchlike's own, tracebacks and warnings tell by that name."""
    own = module.__name__
    if own == "torchlike" or hasattr(module, "__path__") and "._" not in own and own.partition(".")[2] not in ("", "ops") and not any(
            isinstance(value, FunctionType) and name != "__getattr__" and value.__code__.co_filename == module.__file__ for name, value in vars(module).items()):
        module.__name__ = _public(own)


# Where torch keeps the classes of modules that have another name, or are further divided, here.
_HOMES = {
    "torchlike.cuda._devices": "torch.cuda",
    "torchlike.distributions._joined_transforms": "torch.distributions.transforms",
    "torchlike.distributions._matrix_transforms": "torch.distributions.transforms",
    "torchlike.nn._functional.sdp_backends": "torch.nn.attention",
    "torchlike.nn.modules._attention": "torch.nn.modules.activation",
    "torchlike.nn.modules._rnn_cells": "torch.nn.modules.rnn",
    "torchlike.optim._adafactor": "torch.optim",
    "torchlike.optim._muon": "torch.optim",
    **{f"torchlike.optim.lr_scheduler.{part}": "torch.optim.lr_scheduler" for part in ("base", "chainable", "composite", "cyclic", "plateau")},
    "torchlike.utils._pytree": "torch.utils._pytree",
    "torchlike.utils._pytree_nodes": "torch.utils._pytree",
    "torchlike.utils._python_dispatch": "torch.utils._python_dispatch",
    "torchlike.utils._selective_checkpoint": "torch.utils.checkpoint",
}


def _rename_members(holder: ModuleType | type, own: str) -> None:
    """Tells the classes of a module (`own` is its name), and its public functions where torch has them in Python, that they are torch's, unless torch
    has no such module. (Private ones are what processes are started with, by their names, before there is the alias.)

    Libraries ask `type(layer).__module__` whether something is of torch, print it, and write it into configurations and
    pickles, which then have to be found by PyTorch. Function modes that leave initial values out ask it of `torch.nn.init`'s functions.
    """
    home = _HOMES.get(own) or (_public(own) if "._" not in own else None)
    public_functions = home and isinstance(holder, ModuleType) and not own.startswith("torchlike.ops.")
    for name, value in list(vars(holder).items()) if home else ():
        if isinstance(value, type) and value.__module__ == own:
            value.__module__ = home
            _rename_members(value, own)
        elif public_functions and isinstance(value, FunctionType) and value.__module__ == own and name[0] != "_":
            value.__module__ = home


def _present(name: str, module: ModuleType) -> None:
    """Makes a module of torchlike that was just loaded look like torch's."""
    sys.modules.setdefault(_public(name), module)
    _explain_missing(module)
    _rename_packages(module)
    _rename_members(module, name)


class _OwnLoader(SourceFileLoader):
    """Loads `torchlike.x` once there is the alias."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _present(self.name, module)


class _AliasLoader(Loader):
    """Loads `torch.x` by handing out the module object of `torchlike.x`."""

    def __init__(self, own: ModuleSpec) -> None:
        self.own = own

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.own.name)
        self.spec_before = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just overwritten the spec with that of the alias.
        vars(module)["__spec__"] = self.spec_before  # modules of settings refuse names that they do not have
        _present(self.own.name, module)

    def is_package(self, fullname: str) -> bool:
        return self.own.submodule_search_locations is not None

    def get_code(self, fullname: str) -> CodeType | None:
        return self.own.loader.get_code(self.own.name)

    def get_source(self, fullname: str) -> str | None:
        return self.own.loader.get_source(self.own.name)


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` tells of the package `torch`."""

    def read_text(self, filename: str) -> str | None:
        if filename == "top_level.txt":
            return "torch\n"
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\nSummary: torchlike, under torch's name\n"

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        return _PACKAGE.parent / path


def _own_loaded(spec: ModuleSpec | None) -> ModuleSpec | None:
    """The spec, whose module shall be presented as torch's."""
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = _OwnLoader(spec.loader.name, spec.loader.path)
    return spec


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torchlike":  # in a child: the same torchlike as its parent's, whatever its sys.path
            return _own_loaded(PathFinder.find_spec("torchlike", [str(_PACKAGE.parent)]))
        if fullname.startswith("torchlike."):
            return _own_loaded(PathFinder.find_spec(fullname, path))
        if fullname.partition(".")[0] not in ("torch", "functorch"):
            return None
        own = self._own_spec(_own(fullname))
        if own is None:
            if sys._getframe(2).f_code.co_name == "_find_and_load_unlocked":  # an import, not a mere question
                raise ModuleNotFoundError(
                    f"No module named {fullname!r}: {fullname} is not supported yet by torchlike", name=fullname
                )
            return None
        is_package = own.submodule_search_locations is not None
        spec = ModuleSpec(fullname, _AliasLoader(own), origin=own.origin, is_package=is_package)
        if is_package:
            spec.submodule_search_locations = own.submodule_search_locations
        return spec

    @staticmethod
    def _own_spec(own: str) -> ModuleSpec | None:
        loaded = sys.modules.get(own)
        if loaded is not None and loaded.__spec__ is None:  # made by hand, without a file
            return ModuleSpec(own, None, is_package=hasattr(loaded, "__path__"))
        return importlib.util.find_spec(own)

    def find_distributions(self, context: Any = None) -> Iterator[_Distribution]:
        name = getattr(context, "name", None)
        if name is None or name.lower() == "torch":
            yield _Distribution()


_FINDER = _Finder()


def install() -> None:
    """Makes every later `import torch`, here and in child processes, resolve to torchlike.

    Raises RuntimeError if the real torch is already imported.
    """
    present = sys.modules.get("torch")
    if present is not None and present is not sys.modules.get("torchlike"):
        raise RuntimeError(
            "torchlike.install() must come before the first `import torch`: the real torch is already imported from "
            f"{getattr(present, '__file__', None)}"
        )
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    for name, module in list(sys.modules.items()):
        if name == "torchlike" or name.startswith("torchlike."):
            _present(name, module)
    _pass_on()


def _pass_on() -> None:
    """Tells the child processes of this one, through the environment, to install the alias as they start."""
    os.environ[_SWITCH] = sys.prefix
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    if _CHILDREN not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([_CHILDREN, *paths])
