"""torch.compiler: questions and marks for compiled functions. XLA is the one back end."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _compile
from .._compile import BACKENDS, FOR_DEBUGGING, compile, running, stance
from .._core import program
from .._exporting import state as exporting
from .._tensor import Tensor
from ..nn.modules.module import Module
from ..ops.from_data import as_tensor
from ..utils._pytree import tree_map
from . import config

__all__ = ["allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin", "disable", "get_default_backend", "is_compiling",
           "is_dynamo_compiling", "is_exporting", "list_backends", "nested_compile_region", "reset", "set_default_backend", "set_stance", "wrap_numpy"]

_STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")
_backend: list[Any] = ["inductor"]


def is_compiling() -> bool:
    """Whether the Python of a compiled function runs now."""
    return running.depth > 0


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Whether a model is being exported."""
    return exporting.graph


def reset() -> None:
    """Forget what every compiled function was traced to."""
    for compiled in list(_compile.ALL):
        compiled.entries.clear()


def list_backends(exclude_tags: Sequence[str] = ("debug", "experimental")) -> list[str]:
    """The names that `backend=` takes; XLA serves them all."""
    return sorted(BACKENDS if "debug" in exclude_tags else BACKENDS + FOR_DEBUGGING)


def set_default_backend(backend: str | Callable | None) -> None:
    """Set what get_default_backend answers: XLA compiles in any case."""
    _backend[0] = "inductor" if backend is None else backend


def get_default_backend() -> str | Callable:
    """What set_default_backend was given."""
    return _backend[0]


def assume_constant_result(fn: Callable) -> Callable:
    """Mark `fn`: a replayed call keeps the result of its trace, as it does of everything that is not a tensor."""
    fn._dynamo_marked_constant = True
    return fn


def cudagraph_mark_step_begin() -> None:
    """Nothing to do: no call overwrites the results of an earlier one."""


class _Eager:
    """A block in which nothing is being compiled. A trace that meets it is not replayed: the block must run each time."""

    def __init__(self, reason: str | None) -> None:
        self.reason = "torch.compiler.disable" + (f" ({reason})" if reason else "")

    def __enter__(self) -> None:
        if program.state.capture is not None:
            program.state.capture.interrupted(self.reason)
        self.before, running.depth = running.depth, 0

    def __exit__(self, *exc: object) -> None:
        running.depth = self.before


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function or module that is never traced, whoever calls it; a decorator if there is no function."""
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason)
    assert callable(fn), "fn must be callable"
    if isinstance(fn, type):
        return fn
    if isinstance(fn, Module):
        made = _compile.OptimizedModule(fn, False)
        made.__dict__["_compiled"] = disable(fn.__call__, recursive, reason=reason)
        return made

    @functools.wraps(fn)
    def eager(*args: Any, **kwargs: Any) -> Any:
        with _Eager(reason):
            return fn(*args, **kwargs)

    eager._torchdynamo_orig_callable, eager._torchdynamo_disable = fn, True
    return eager


def allow_in_graph(fn: Any) -> Any:
    """The function itself (or a list of them): recording looks inside every function."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(f) for f in fn]
    assert callable(fn), "allow_in_graph expects a callable"
    return fn


def nested_compile_region(fn: Callable | None = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Callable | None = None) -> Callable:
    """The function itself; a decorator if there is none. What is recorded alike is compiled once as it is."""
    return fn if fn is not None else lambda f: f


def wrap_numpy(fn: Callable) -> Callable:
    """A function of NumPy arrays as one of tensors that require no gradient."""
    @functools.wraps(fn)
    def of_tensors(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        return tree_map(lambda x: as_tensor(x) if isinstance(x, np.ndarray) else x, fn(*args, **kwargs))
    return of_tensors


class set_stance:
    """What compiled functions do on a call: a setting, a context and a decorator."""

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        self.name, self.before = stance, _compile.stance.name
        self._set(stance)

    @staticmethod
    def _set(name: Any) -> None:
        if name not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{name}'")
        stance.name = name

    def __enter__(self) -> None:
        self._set(self.name)

    def __exit__(self, *exc: object) -> None:
        self._set(self.before)

    def __call__(self, fn: Callable) -> Callable:
        self._set(self.before)

        @functools.wraps(fn)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.name):
                return fn(*args, **kwargs)
        return inside
