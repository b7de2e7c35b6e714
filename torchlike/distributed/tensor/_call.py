"""A call of one of torch's functions on DTensors, and how a rule answers it with a call on the local tensors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._functions import torch
from ..._tensor import Tensor
from ...autograd.function import Function
from ...overrides import DisableTorchFunctionSubclass
from ...utils._pytree import tree_leaves, tree_map_only
from ._dtensor import DTensor, marked, operand, piece, placed_piece
from ._layout import Placements
from .placement_types import Partial, Replicate, Shard, _StridedShard

_STRIDES_KEPT: set[str] = set()  # operations whose rules keep strided pieces; `_dispatch` fills it


def _without_strides(t: DTensor) -> DTensor:
    """The tensor without strided pieces, which most rules do not know."""
    if not any(isinstance(p, _StridedShard) for p in t._placements):
        return t
    lies = tuple(Replicate() if isinstance(p, _StridedShard) else p for p in t._placements)
    return marked(placed_piece(t, lies), t._mesh, lies, t._global)


class Call:
    """`func(*args, **kwargs)`, where all tensors are DTensors of one mesh."""

    def __init__(self, func: Callable, name: str, args: tuple, kwargs: dict[str, Any]) -> None:
        self.func, self.name, self.args, self.kwargs = func, name, args, kwargs
        if name.rstrip("_") not in _STRIDES_KEPT:
            self.args, self.kwargs = tree_map_only(DTensor, _without_strides, (args, kwargs))
        self.tensors: list[DTensor] = [x for x in tree_leaves((args, kwargs)) if isinstance(x, DTensor)]
        self.first = self.tensors[0]
        self.mesh = self.first._mesh
        self.inplace = name.endswith("_") and not name.endswith("__")
        for t in self.tensors:
            if t._mesh is not self.mesh and t._mesh != self.mesh:
                raise RuntimeError(f"{name} got DTensors of two meshes, which is not supported: {self.mesh} and {t._mesh}")

    def given(self, place: int, name: str, default: Any = None) -> Any:
        """An argument by its place or name."""
        return self.args[place] if len(self.args) > place else self.kwargs.get(name, default)

    def on(self, place: Callable[[DTensor], Tensor], args: Sequence[Any] | None = None) -> Any:
        """The call with other tensors in the place of the DTensors."""
        args, kwargs = tree_map_only(DTensor, place, (tuple(self.args if args is None else args), self.kwargs))
        with DisableTorchFunctionSubclass():
            return self.func(*args, **kwargs)

    def shapes(self) -> Any:
        """What the call gives, as tensors without data: how one finds the shapes of its results."""
        return self.on(lambda t: torch.empty(t._global, dtype=t.dtype, device="meta"))

    def locally(self, wanted: Callable[[DTensor], Placements], out: Placements, shape: Any = None, args: Sequence[Any] | None = None) -> Any:
        """The call on local tensors that lie as `wanted` says; its results lie as `out` says. `shape`: that of the result, where it is known."""
        lies = {id(t): wanted(t) for t in self.tensors}
        split = [any(not x[i].is_replicate() for x in (out, *lies.values())) for i in range(self.mesh.ndim)]
        target = self.first if self.inplace else None
        if target is not None:
            if lies[id(target)] != target._placements or out != target._placements:
                raise RuntimeError(f"{self.name}: in-place operations that require placement changes are not supported "
                                   f"({target._placements} would become {out})")
        made = self.on(lambda t: t if t is target else operand(t, lies[id(t)], split), args)
        if target is not None:
            return made
        return self.results(made, out, [shape] if shape is not None else None)

    def results(self, made: Any, out: Placements, shapes: Sequence[Any] | None = None) -> Any:
        """Local results as DTensors."""
        if not any(isinstance(x, Tensor) for x in tree_leaves(made)):
            return made
        if shapes is None:
            if all(p.is_replicate() or isinstance(p, Partial) for p in out):
                return tree_map_only(Tensor, lambda t: marked(t, self.mesh, out, t._aval.shape), made)
            shapes = [t.shape for t in tree_leaves(self.shapes()) if isinstance(t, Tensor)]
        left = iter(shapes)
        return tree_map_only(Tensor, lambda t: marked(t, self.mesh, out, next(left)), made)


def replicated(call: Call) -> Placements:
    return (Replicate(),) * call.mesh.ndim


def without(placements: Placements, dims: Sequence[int] | None, partial: bool = False) -> Placements:
    """Placements in which these dimensions (None: all) are not cut, and nothing is a term unless `partial`."""
    return tuple(Replicate() if isinstance(p, Shard) and (dims is None or p.dim in dims) or isinstance(p, Partial) and not partial else p
                 for p in placements)


class OutsideCall(Call):
    """The same on a rank outside of the mesh, whose local tensors hold nothing (of a number, zero): only shapes and placements are found."""

    def on(self, place: Any, args: Sequence[Any] | None = None) -> Any:
        """The call on tensors without data that have the whole's shapes."""
        return super().on(lambda t: torch.empty(t._global, dtype=t.dtype, device="meta"))

    def locally(self, wanted: Any, out: Placements, shape: Any = None, args: Sequence[Any] | None = None) -> Any:
        """The result as `out` says."""
        return self.first if self.inplace else self.results(self.on(None), out)

    def results(self, made: Any, out: Placements, shapes: Sequence[Any] | None = None) -> Any:
        """Results that hold nothing."""
        found = [t for t in tree_leaves(made) if isinstance(t, Tensor)]
        with DisableTorchFunctionSubclass():
            left = iter(_Nothing.apply([(tuple(t.shape), t.dtype) for t in found], self.mesh.device_type, *[piece(t) for t in self.tensors]))
        return tree_map_only(Tensor, lambda t: marked(next(left), self.mesh, out, t._aval.shape), made)


class _Nothing(Function):
    """What results hold on a rank outside of the mesh, in the graph of what they come from."""

    @staticmethod
    def forward(ctx: Any, about: list, device: str, *given: Tensor) -> tuple:
        ctx.given = [(tuple(t._aval.shape), t.dtype) for t in given]
        made = tuple([torch.zeros(shape and (0,), dtype=dtype, device=device) for shape, dtype in about])
        ctx.mark_non_differentiable(*[t for t in made if not t.is_floating_point()])
        return made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        return None, None, *[torch.zeros(shape, dtype=dtype) for shape, dtype in ctx.given]
