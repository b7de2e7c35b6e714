"""Installs the `torch` alias in a child process, then runs the `sitecustomize` that this one hides, if any."""

import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _install() -> None:
    # Loaded by its file: importing the package would import JAX into every child, also those that never need it.
    spec = importlib.util.spec_from_file_location("torchlike._alias", os.path.join(os.path.dirname(_HERE), "_alias.py"))
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install()


def _run_hidden() -> None:
    this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this


sys.path[:] = [p for p in sys.path if os.path.abspath(p) != _HERE]
if os.environ.get("TORCHLIKE_ALIAS") == sys.prefix:
    _install()
_run_hidden()
