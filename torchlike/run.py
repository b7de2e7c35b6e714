"""Runs a PyTorch program, unmodified, on torchlike.

    python -m torchlike.run SCRIPT ARGS...
    python -m torchlike.run -m MODULE ARGS...
    python -m torchlike.run -c COMMAND ARGS...
    python -m torchlike.run - ARGS...             (the program comes from standard input)

The program sees what it would see under plain `python`: `sys.argv`, `sys.path[0]`, `__main__`, `__file__`, the same
tracebacks and exit codes; only `import torch` gives torchlike, also in the processes that it starts.
"""

import builtins
import importlib.util
import os
import pkgutil
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType

from torchlike._alias import install
from torchlike._tracebacks import leave_python, shorten

_USAGE = "usage: " + "       ".join(f"python -m torchlike.run {what} ARGS...\n" for what in ("SCRIPT", "-m MODULE", "-c COMMAND", "-"))


def _fail(message: str, code: int) -> None:
    sys.stderr.write(f"{sys.executable}: {message}\n")
    sys.exit(code)


def _script(path: str) -> tuple[CodeType, dict[str, object]]:
    """The code of the script at `path`, and what plain Python puts into its `__main__` module."""
    full = os.path.join(os.getcwd(), path)
    importer = pkgutil.get_importer(full)
    if importer is not None:
        return _directory(full, importer)
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(full))
    kind = SourcelessFileLoader if full.endswith(".pyc") else SourceFileLoader
    loader = kind("__main__", full)
    try:
        data = loader.get_data(full)
    except OSError as error:
        _fail(f"can't open file {full!r}: [Errno {error.errno}] {error.strerror}", 2)
    # Not get_code() for a source file: it would leave a .pyc, as for an imported module.
    code = loader.get_code("__main__") if kind is SourcelessFileLoader else loader.source_to_code(data, full)
    return code, {"__file__": full, "__cached__": None, "__loader__": loader, "__package__": None, "__spec__": None}


def _directory(path: str, importer: object) -> tuple[CodeType, dict[str, object]]:
    """The same for a directory or a zip archive, whose `__main__` module runs."""
    sys.path[0] = path
    spec = importer.find_spec("__main__")
    if spec is None:
        _fail(f"can't find '__main__' module in {path!r}", 1)
    return spec.loader.get_code("__main__"), _attributes(spec)


def _module(name: str) -> tuple[CodeType, dict[str, object]]:
    """The same for a module, found on the path; a package's `__main__` module runs."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            package, name = name, f"{name}.__main__"
            spec = importlib.util.find_spec(name)
            if spec is None:
                _fail(f"No module named {name}; {package!r} is a package and cannot be directly executed", 1)
    except ModuleNotFoundError as error:
        if not name.startswith(f"{error.name}"):
            raise
        _fail(f"Error while finding module specification for {name!r} (ModuleNotFoundError: {error})", 1)
    if spec is None:
        _fail(f"No module named {name}", 1)
    return spec.loader.get_code(spec.name), _attributes(spec)


def _command(text: str, name: str) -> tuple[CodeType, dict[str, object]]:
    """The same for a program given as text."""
    if not sys.flags.safe_path:
        sys.path[0] = ""
    return compile(text, name, "exec", dont_inherit=True), {"__loader__": builtins.__loader__, "__package__": None, "__spec__": None}


def _attributes(spec: ModuleSpec) -> dict[str, object]:
    return {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }


def _below(traceback: TracebackType | None, code: CodeType | None) -> TracebackType | None:
    """`traceback` from the frame of the program's own `code` on."""
    while traceback is not None and traceback.tb_frame.f_code is not code:
        traceback = traceback.tb_next
    return traceback


def _hide_launcher(code: CodeType | None) -> None:
    """Lets the exception under way be shown as plain Python would show it, by whatever hook the program has set."""
    hook = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        traceback = _below(traceback, code)
        shorten(error.with_traceback(traceback))
        hook(kind, error, traceback)

    sys.excepthook = show


def main(arguments: list[str]) -> None:
    """Runs the program that `arguments` name, as `__main__`."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments in (["-m"], ["-c"]):
        (sys.stdout if arguments[:1] in (["-h"], ["--help"]) else sys.stderr).write(_USAGE)
        sys.exit(0 if arguments[:1] in (["-h"], ["--help"]) else 2)
    install()
    leave_python()
    code = None
    try:
        if arguments[0] == "-m":
            sys.argv = ["-m", *arguments[2:]]
            code, attributes = _module(arguments[1])
            sys.argv[0] = attributes["__file__"]
        elif arguments[0] == "-c":
            sys.argv = ["-c", *arguments[2:]]
            code, attributes = _command(arguments[1], "<string>")
        elif arguments[0] == "-":
            sys.argv = list(arguments)
            code, attributes = _command(sys.stdin.read(), "<stdin>")
            attributes |= {"__file__": "<stdin>", "__cached__": None}
        else:
            sys.argv = list(arguments)
            code, attributes = _script(arguments[0])
        program = ModuleType("__main__")
        program.__dict__.update(attributes, __builtins__=__builtins__, __annotations__={})
        sys.modules["__main__"] = program
        exec(code, program.__dict__)
    except SystemExit:
        raise
    except BaseException:
        _hide_launcher(code)
        raise


if __name__ == "__main__":
    launcher = sys.modules["__main__"]  # kept: the program takes its place, and its globals must live on
    main(sys.argv[1:])
