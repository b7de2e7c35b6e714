"""Switches of the whole process: deterministic algorithms, repeated warnings, threads.

Results here never depend on timing (programs are compiled once, and reductions have a fixed order), and XLA and NumPy size their
thread pools at start: these switches are what torch programs set and ask, and are stored for that. Under deterministic algorithms memory that nobody wrote
is filled, as in torch (`_core/unwritten.py`).
"""
from __future__ import annotations

import os

from .._core import history, processor, program, unwritten
from .._core.device import default_device, device
from .._core.errors import class_name
from .._public import FUNCTIONS, called, public
from .._tensor import Tensor

_state = {"warn_only": False, "threads": None, "interop": None}
_MODES = ("default", "warn", "error")


@public(method=False)
def use_deterministic_algorithms(mode, *, warn_only=False) -> None:
    """Ask for algorithms whose results are the same at every run."""
    if not isinstance(mode, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {class_name(mode)}")
    if not isinstance(warn_only, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'warn_only' must be bool, not {class_name(warn_only)}")
    unwritten.deterministic_mode, _state["warn_only"] = (1 if warn_only else 2) if mode else 0, warn_only


@public(method=False)
def are_deterministic_algorithms_enabled() -> bool:
    """Whether use_deterministic_algorithms is on."""
    return unwritten.deterministic_mode > 0


@public(method=False)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms is on with warn_only."""
    return _state["warn_only"]


@public(method=False)
def get_deterministic_debug_mode() -> int:
    """0 (default), 1 (warn) or 2 (error)."""
    return unwritten.deterministic_mode


@public(method=False)
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same switch as use_deterministic_algorithms: 'default', 'warn', 'error', or 0 to 2."""
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = _MODES.index(debug_mode)
    if not 0 <= debug_mode <= 2:
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    unwritten.deterministic_mode, _state["warn_only"] = int(debug_mode), debug_mode == 1


@public(method=False)
def set_warn_always(b: bool, /) -> None:
    """Whether warnings that torch gives once are given every time."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    history.warnings_always = b


@public(method=False)
def is_warn_always_enabled() -> bool:
    """What set_warn_always set."""
    return history.warnings_always


def _set_threads(name: str, n) -> None:
    if isinstance(n, bool) or not isinstance(n, int):
        raise RuntimeError(f"set_num{name}_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"set_num{name}_threads expects a positive integer")
    if n >= 1 << 63:
        raise ValueError("Overflow when unpacking long long")


@public(method=False)
def set_num_threads(n) -> None:
    """The number that get_num_threads gives back; pools are sized by OMP_NUM_THREADS and by the process's affinity."""
    _set_threads("", n)
    _state["threads"] = n


@public(method=False)
def get_num_threads() -> int:
    """What set_num_threads set; at first, the processors that this process may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # a list has one number for each level of nesting
    return _state["threads"] or (int(asked) if asked.isdecimal() else 0) or processor.cores()


@public(method=False)
def set_num_interop_threads(n: int) -> None:
    """The number that get_num_interop_threads gives back."""
    _set_threads("_interop", n)
    if _state["interop"] is not None:
        raise RuntimeError("Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads called")
    _state["interop"] = n


@public(method=False)
def get_num_interop_threads() -> int:
    """What set_num_interop_threads set; at first, the processors that this process may use."""
    return _state["interop"] or processor.cores()


@public(method=False)
def set_flush_denormal(mode, /) -> bool:
    """Whether numbers below the smallest normal one count as zeros in this thread (compiled programs flush them always). False if the processor's
    mode cannot be set."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    program.flush()  # what was asked for before
    return processor.flush_denormals(mode)


@public(method=False)
def get_default_device() -> device:
    """The device of factories that are given none."""
    return default_device()


@public(method=False)
def typename(obj, /) -> str:
    """The name of an object's type, as a class of torch where it is a tensor."""
    if isinstance(obj, Tensor):
        return obj.type()
    owner = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(owner, "__module__", None) or ""
    return owner.__qualname__ if module in ("", "builtins") else f"{module}.{owner.__qualname__}"


@public(method=False)
def compiled_with_cxx11_abi() -> bool:
    """Whether PyTorch of this version has the C++ library's newer classes, which extensions built for it must share: it always has."""
    return True


def _assert(condition, message: str) -> None:
    """AssertionError with the message unless the condition holds. A function, so that a graph can hold it."""
    if not condition:
        raise AssertionError(message)


FUNCTIONS["_assert"] = _assert


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError unless the one element of input is nonzero: at once where it is known, else at the next observation."""
    if input.numel() != 1:
        raise RuntimeError("Boolean value of Tensor with " + ("no values" if not input.numel() else "more than one value") + " is ambiguous")
    known = input._value.array is not None
    program.check(input._value if known else (input != 0)._value, lambda: RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero"))


FUNCTIONS["_assert_async"] = called(_assert_async)
