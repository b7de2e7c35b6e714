"""Errors shown as PyTorch shows them: by the program's own lines, without the frames of what is C++ there.

A wrong shape is refused deep inside the recorder. Where Python or IPython is about to show such an error, those frames are taken out of its traceback,
so that it ends on the line that made the call, which is also where a debugger begins then. What torch has in Python too (modules, optimizers, data
loaders) stays. An error that torchlike did not mean to raise keeps every frame, and so does everything where TORCHLIKE_TRACEBACK=full is set.
"""
from __future__ import annotations

import opcode
import os
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

_PACKAGE = os.path.dirname(__file__) + os.sep
_IN_C = ("ops", "autograd", "fft", "linalg", "masked", "nested", "sparse", "special", "functional.py", "overrides.py",
         os.path.join("nn", "_functional"), os.path.join("nn", "functional.py"))
_WRAPPERS = (_PACKAGE + "_public.py", _PACKAGE + "_autocast.py")
_LIBRARIES = frozenset({"jax", "jaxlib", "ml_dtypes", "numpy", "optax", "scipy"})  # what torchlike computes with
_RAISE = opcode.opmap["RAISE_VARARGS"]


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


def in_c(frame: FrameType) -> bool:
    """Whether it is a function of torchlike's that is none of Python in PyTorch."""
    path = frame.f_code.co_filename[len(_PACKAGE):]
    return _is_ours(frame) and (path.startswith("_") and path != "__init__.py" or any(path == x or path.startswith(x + os.sep) for x in _IN_C))


def _top(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _meant(error: BaseException) -> bool:
    """Whether the error was raised on purpose: by a `raise` of torchlike's, by the program, or by Ctrl-C."""
    if not isinstance(error, Exception):
        return True
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    frame = last.tb_frame
    if not _is_ours(frame):
        return _top(frame) not in _LIBRARIES
    if isinstance(error, TypeError) and frame.f_code.co_filename in _WRAPPERS:  # arguments that the wrapped function does not have
        return True
    return frame.f_code.co_code[last.tb_lasti] == _RAISE


def _without_c(error: BaseException) -> None:
    kept = error.__traceback__  # the first frame is whoever started the program
    inside, below = in_c(kept.tb_frame), kept.tb_next
    while below is not None:
        frame = below.tb_frame
        inside = in_c(frame) or inside and (_top(frame) in _LIBRARIES or _top(frame) in sys.stdlib_module_names)
        if not inside:
            kept.tb_next = below
            kept = below
        below = below.tb_next
    kept.tb_next = None


def shorten(error: BaseException | None) -> None:
    """Take the frames of what is C++ in PyTorch out of an error's traceback, and out of those that it came of."""
    seen: set[int] = set()
    waiting = [] if os.environ.get("TORCHLIKE_TRACEBACK") == "full" else [error]
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        cause, context = error.__cause__, error.__context__
        if error.__traceback__ is not None and _meant(error):
            _without_c(error)
            if context is not None and context.__traceback__ is not None and in_c(context.__traceback__.tb_frame):
                error.__suppress_context__ = True  # how torchlike came upon it
        waiting += cause, context


def _shown_by_python() -> None:
    by_main, by_threads = sys.excepthook, threading.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shorten(error)
        by_main(kind, error, traceback)

    def show_of_thread(args: Any) -> None:
        shorten(args.exc_value)
        by_threads(args)

    show.before = by_main
    sys.excepthook, threading.excepthook = show, show_of_thread


def leave_python() -> None:
    """Give `sys.excepthook` back as it was: somebody else sees to it (`torchlike.run`, whose program finds Python's own)."""
    sys.excepthook = getattr(sys.excepthook, "before", sys.excepthook)


def _shown_by_ipython() -> None:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    shown = getattr(shell, "InteractiveTB", None)  # a notebook's cells and magics all show their errors through it
    if shown is None:
        return
    plain = shown.structured_traceback

    def structured_traceback(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()):
            if isinstance(x, BaseException):
                shorten(x)
        return plain(*args, **kwargs)

    shown.structured_traceback = structured_traceback


def begin() -> None:
    """From now on errors are shown shortened."""
    _shown_by_python()
    _shown_by_ipython()
