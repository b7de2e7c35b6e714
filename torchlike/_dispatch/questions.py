"""Wrappers that answer for themselves how large they are, how they lie, where and in which layout: what `_make_wrapper_subclass` is told by
`dispatch_sizes_strides_policy`, `dispatch_device` and `dispatch_layout`. The engine goes by what it was told when they were made."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _leaves
from .._ops import OpOverloadPacket, aten
from .._plainly import dispatching
from .._size import Size
from .._tensor import Tensor


class _Prim:
    """torch.ops.prim, as far as a tensor asks for it."""

    device = OpOverloadPacket("device", lambda t: t.device, ["default"], "prim")
    layout = OpOverloadPacket("layout", lambda t: t.layout, ["default"], "prim")


prim = _Prim()


def _asked(kind: str, func: Any, plain: Callable, made: Callable = lambda x: x) -> Callable:
    """What asks the class of a wrapper that answers questions of this kind."""
    def ask(self: Tensor, *args: Any) -> Any:
        seat = self._storage
        return made(_leaves.hand_on(func, self, *args)) if kind in seat.answers and not dispatching.disabled else plain(self, *args)
    return ask


def _size(self: Tensor, dim: int | None = None) -> Any:
    if dim is None:
        return self.shape
    n = self.dim()
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return self.shape[dim]


def _length(self: Tensor) -> int:
    if not self.dim():
        raise TypeError("len() of a 0-d tensor")
    return self.shape[0]


def _contiguous(self: Tensor, memory_format: Any = None) -> bool:
    if "strides" not in self._storage.answers or dispatching.disabled:
        return Tensor.is_contiguous(self) if memory_format is None else Tensor.is_contiguous(self, memory_format)
    if memory_format is None or str(memory_format) == "torch.contiguous_format":
        return _leaves.hand_on(aten.is_contiguous.default, self)
    return _leaves.hand_on(aten.is_contiguous.memory_format, self, memory_format)


def _stride(self: Tensor, dim: int | None = None) -> Any:
    if "strides" not in self._storage.answers or dispatching.disabled:
        return Tensor.stride(self, dim)
    found = tuple(_leaves.hand_on(aten.sym_stride.default, self))
    return found if dim is None else found[dim]


def _members() -> dict[str, Any]:
    plain = vars(Tensor)
    dim = _asked("sizes", aten.dim.default, Tensor.dim)
    return {
        "shape": property(_asked("sizes", aten.sym_size.default, plain["shape"].fget, Size)), "size": _size, "__len__": _length,
        "dim": dim, "ndimension": dim, "ndim": property(dim), "numel": _asked("sizes", aten.sym_numel.default, Tensor.numel),
        "storage_offset": _asked("sizes", aten.sym_storage_offset.default, Tensor.storage_offset), "stride": _stride, "is_contiguous": _contiguous,
        "device": property(_asked("device", prim.device.default, plain["device"].fget)),
        "layout": property(_asked("layout", prim.layout.default, plain["layout"].fget)),
    }


def answers(t: Tensor, policy: str | None, device: bool, layout: bool) -> Tensor:
    """t, of a class that answers these questions."""
    if policy not in (None, "sizes", "strides"):
        raise ValueError(f"Unknown sizes_strides_policy: {policy}; expected 'strides' or 'sizes'")
    t._storage.answers = frozenset({"sizes": ("sizes", "strides"), "strides": ("strides",)}.get(policy, ()) + ("device",) * device + ("layout",) * layout)
    cls = type(t)
    if "_asks" not in cls.__dict__:
        cls._asks = True
        for name, made in _members().items():
            if getattr(cls, name) is getattr(Tensor, name):
                setattr(cls, name, made)
    return t
