"""The changes that hold while a function is traced."""
from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from .. import overrides
from .._ops import OpOverload, OpOverloadPacket
from ._wrap import _wrapped_fns_to_patch, _wrapped_methods_to_patch
from .node import map_aggregate
from .proxy import Proxy

_ABSENT = object()


def _named(scope: dict[str, Any], name: str) -> Any:
    return scope.get(name, getattr(builtins, name, None))


def find_proxy(*trees: Any) -> Proxy | None:
    """A Proxy somewhere in the arguments of a call."""
    found = []

    def look(x: Any) -> Any:
        if isinstance(x, Proxy):
            found.append(x)
        return x
    map_aggregate(trees, look)
    return found[0] if found else None


def as_one_step(f: Callable) -> Callable:
    """f, whose calls with proxies become nodes."""
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return f(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", f, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made
    call._is_one_step = True
    return call


def _method_as_one_step(cls: type, name: str) -> Callable:
    f = getattr(cls, name)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        return f(*args, **kwargs) if proxy is None else proxy.tracer.create_proxy("call_method", name, args, kwargs)
    return call


def _operator_as_one_step(f: Callable) -> Callable:
    """The call of torch.ops' operators."""
    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        return f(self, *args, **kwargs) if proxy is None else proxy.tracer.create_proxy("call_function", self, args, kwargs)
    return call


class _Patcher:
    """Changes of module globals and class attributes, taken back when the block ends. Inside it tensors' methods and operators dispatch."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []
        self.visited: set[int] = set()
        self.blocks = ExitStack()

    def __enter__(self) -> _Patcher:
        self.blocks.enter_context(overrides.dispatching_methods())
        for cls in (OpOverload, OpOverloadPacket):
            self.patch_method(cls, "__call__", _operator_as_one_step(cls.__call__))
        return self

    def __exit__(self, *exc: Any) -> None:
        self.revert_all_patches()
        self.blocks.close()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Callable, deduplicate: bool = True) -> None:
        """Change a global."""
        before = frame_dict.get(name, _ABSENT)
        frame_dict[name] = new_fn
        self.undo.append(lambda: frame_dict.pop(name) if before is _ABSENT else frame_dict.__setitem__(name, before))

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Change a class's own attribute."""
        before = vars(cls).get(name, _ABSENT)
        setattr(cls, name, new_fn)
        self.undo.append(lambda: delattr(cls, name) if before is _ABSENT else setattr(cls, name, before))

    def visit_once(self, thing: object) -> bool:
        """Whether this is the first time that the thing is seen."""
        new = id(thing) not in self.visited
        self.visited.add(id(thing))
        return new

    def revert_all_patches(self) -> None:
        """Take the changes back, the last one first."""
        while self.undo:
            self.undo.pop()()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Make the marked functions and methods single steps."""
    for (_, name), scope in list(_wrapped_fns_to_patch.items()):
        f = _named(scope, name)
        if f is not None and not hasattr(f, "_is_one_step"):
            patcher.patch(scope, name, as_one_step(f))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _method_as_one_step(cls, name))


def _autowrap_check(patcher: _Patcher, scope: dict[str, Any], ids: set[int]) -> None:
    """Make those functions single steps that a traced module took from the tracer's autowrap modules."""
    if not patcher.visit_once(scope):
        return
    for name, value in list(scope.items()):
        if name.startswith("_") or not callable(value):
            continue
        if id(value) in ids:
            patcher.patch(scope, name, as_one_step(value))
        elif overrides.dispatching_form(value) is not value:
            patcher.patch(scope, name, overrides.dispatching_form(value))


def renew(patcher: _Patcher, m: Any) -> None:
    """Replace functions of torch that a module, or its class, kept from before they began to dispatch."""
    if not patcher.visit_once(m):
        return
    for name, value in list(m.__dict__.items()):
        form = overrides.dispatching_form(value)
        if form is not value:
            patcher.patch(m.__dict__, name, form)
    for cls in type(m).__mro__:
        if patcher.visit_once(cls):
            for name, value in list(vars(cls).items()):
                if isinstance(value, staticmethod) and overrides.dispatching_form(value.__func__) is not value.__func__:
                    patcher.patch_method(cls, name, staticmethod(overrides.dispatching_form(value.__func__)))
