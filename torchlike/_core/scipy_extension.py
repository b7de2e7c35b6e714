"""SciPy's extension modules by themselves: the packages around them take 20 times as long to import."""
from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType


@functools.cache
def extension(package: str, name: str) -> ModuleType:
    """The extension module scipy.<package>.<name>."""
    found = sys.modules.get(f"scipy.{package}.{name}")
    if found is not None:
        return found
    import scipy
    try:
        spec = importlib.machinery.PathFinder.find_spec(name, [os.path.join(path, package) for path in scipy.__path__])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except (AttributeError, ImportError):  # a SciPy that is built otherwise
        return importlib.import_module(f"scipy.{package}.{name}")


_work: dict[str, int] = {}


def worth(name: str, work: int, enough: int) -> bool:
    """Whether an extension may be used for so much work: once all that it might have done adds up to more than `enough`, it is worth loading."""
    done = _work[name] = _work.get(name, 0) + work
    return done > enough
