"""Wrappers that answer for themselves how large they are, how they lie, where and in which layout: what `_make_wrapper_subclass` is told by
`dispatch_sizes_strides_policy`, `dispatch_device` and `dispatch_layout`. The engine goes by what it was told when they were made."""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .. import _leaves
from .._exchange import copied, exchange
from .._ops import OpOverloadPacket, aten
from .._plainly import dispatching, plain_function
from .._size import Size
from .._tensor import Tensor


class _Prim:
    """torch.ops.prim, as far as a tensor asks for it."""

    device = OpOverloadPacket("device", lambda t: t.device, ["default"], "prim")
    layout = OpOverloadPacket("layout", lambda t: t.layout, ["default"], "prim")


prim = _Prim()


_plain: dict[str, Any] = {}  # Tensor's own answers


def _answers(self: Tensor, kind: str) -> bool:
    return self._dispatches and kind in self._storage.answers and not dispatching.disabled


def _asked(name: str, kind: str, func: Any, made: Callable = lambda x: x) -> Callable:
    """What asks the class of a wrapper that answers questions of this kind, and Tensor itself of any other."""
    plain = _plain[name].fget if isinstance(_plain[name], property) else _plain[name]

    @functools.wraps(plain)
    def ask(self: Tensor, *args: Any) -> Any:
        found = _leaves.hand_on(func, self, *args) if _answers(self, kind) else None
        return plain(self, *args) if found is None else made(found)
    return property(ask) if isinstance(_plain[name], property) else ask


def _size(self: Tensor, dim: int | None = None) -> Any:
    if not _answers(self, "sizes"):
        return _plain["size"](self, dim)
    if dim is None:
        return self.shape
    n = self.dim()
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return self.shape[dim]


def _length(self: Tensor) -> int:
    if not _answers(self, "sizes"):
        return _plain["__len__"](self)
    if not self.dim():
        raise TypeError("len() of a 0-d tensor")
    return self.shape[0]


def _contiguous(self: Tensor, memory_format: Any = None) -> bool:
    if not _answers(self, "strides"):
        return _plain["is_contiguous"](self) if memory_format is None else _plain["is_contiguous"](self, memory_format=memory_format)
    if memory_format is None or str(memory_format) == "torch.contiguous_format":
        found = _leaves.hand_on(aten.is_contiguous.default, self)
        return _plain["is_contiguous"](self) if found is None else found
    return _leaves.hand_on(aten.is_contiguous.memory_format, self, memory_format)


def _stride(self: Tensor, dim: int | None = None) -> Any:
    if not _answers(self, "strides"):
        return _plain["stride"](self, dim)
    found = _leaves.hand_on(aten.sym_stride.default, self)
    if found is None:  # as what it was made with
        return _plain["stride"](self, dim)
    return tuple(found) if dim is None else tuple(found)[dim]


def _install() -> None:
    """Tensor's own members ask, once there is a wrapper that answers."""
    if _plain:
        return
    names = "shape size __len__ dim ndimension ndim numel nelement storage_offset stride is_contiguous device layout".split()
    _plain.update({name: copied(plain_function(x)) if isinstance(x, FunctionType) else x for name, x in vars(Tensor).items() if name in names})
    ways = {
        "shape": _asked("shape", "sizes", aten.sym_size.default, Size), "size": _size, "__len__": _length, "stride": _stride, "is_contiguous": _contiguous,
        **{name: _asked(name, "sizes", aten.dim.default) for name in ("dim", "ndimension", "ndim")},
        **{name: _asked(name, "sizes", aten.sym_numel.default) for name in ("numel", "nelement")},
        "storage_offset": _asked("storage_offset", "sizes", aten.sym_storage_offset.default),
        "device": _asked("device", "device", prim.device.default), "layout": _asked("layout", "layout", prim.layout.default),
    }
    for name, made in ways.items():
        if isinstance(made, property):
            setattr(Tensor, name, made)
        else:
            exchange(plain_function(vars(Tensor)[name]), lambda plain, made=made: made)  # one that asks classes and modes first goes on doing so


def answers(t: Tensor, policy: str | None, device: bool, layout: bool) -> Tensor:
    """t, whose class answers these questions."""
    if policy not in (None, "sizes", "strides"):
        raise ValueError(f"Unknown sizes_strides_policy: {policy}; expected 'strides' or 'sizes'")
    _install()
    t._storage.answers = frozenset({"sizes": ("sizes", "strides"), "strides": ("strides",)}.get(policy, ()) + ("device",) * device + ("layout",) * layout)
    return t
