"""Functions under `grad`, `jvp` and the like may not write to tensors from outside of the call: torch cannot differentiate that.

Which memory was made inside is known by its value: those made while a call is open are noted.
"""
from __future__ import annotations

import sys
import threading
from weakref import WeakSet

from .._core.value import Value
from .._storage import Storage
from .._tensor import Tensor
from ..autograd import _tangents

REFUSED = ("During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation (aten::{}) that would mutate a "
           "captured Tensor. This is not supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs.")
OVERLOADED = frozenset({"add_", "sub_", "mul_", "div_"})


class _Calls(threading.local):
    def __init__(self) -> None:
        self.open: list[Call] = []


_calls = _Calls()
_lock = threading.Lock()
_count = [0]  # in all threads
_make, _check = Value.__init__, Tensor._check_write


class Call:
    """A function that runs under a transform."""

    def __init__(self) -> None:
        self.values: WeakSet[Value] = WeakSet()
        self.memory: WeakSet[Storage] = WeakSet()

    def __enter__(self) -> Call:
        with _lock:
            _count[0] += 1
            if _count[0] == 1:
                Value.__init__, Tensor._check_write = _made, _checked
                _tangents.watchers.append(_note)
        _tangents.hold()
        _calls.open.append(self)
        return self

    def __exit__(self, *exc) -> None:
        _calls.open.remove(self)
        _tangents.release()
        with _lock:
            _count[0] -= 1
            if not _count[0]:
                Value.__init__, Tensor._check_write = _make, _check
                _tangents.watchers.remove(_note)


def allow(t: Tensor) -> None:
    """t is an input of the innermost call, which may be written."""
    st = t._ensure_storage()
    for call in _calls.open:
        call.memory.add(st)


def _note(made: tuple) -> None:
    for call in _calls.open:
        call.values.update(made)


def _made(self: Value, *args, **kwargs) -> None:
    _make(self, *args, **kwargs)
    for call in _calls.open:
        call.values.add(self)


def _checked(self: Tensor, repeats: bool = False) -> None:
    """Tensor._check_write while functions run under transforms."""
    st = self._storage
    value = self._value if st is None else st.value
    for call in _calls.open:
        if value not in call.values and st not in call.memory and _tangents.recording():
            raise RuntimeError(REFUSED.format(_operation()))
    _check(self, repeats)


def _operation() -> str:
    """The in-place operation that is under way."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_locals.get("name") if frame.f_code.co_name == "write" else frame.f_code.co_name
        if isinstance(name, str) and name[:1] != "_" and name[-1:] == "_":
            return f"{name}.Tensor" if name in OVERLOADED else name
        frame = frame.f_back if "torchlike" in frame.f_code.co_filename else None
    return "copy_"
