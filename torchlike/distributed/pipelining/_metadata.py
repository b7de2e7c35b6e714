"""What a stage knows of the tensors that it receives and sends before they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torchlike
from torchlike._tensor import Tensor
from torchlike.fx.node import map_aggregate


class PipeliningMetadataError(RuntimeError):
    """Two stages disagree about the tensors between them, or such a tensor is none."""


@dataclass(frozen=True)
class TensorMeta:
    shape: torchlike.Size
    stride: tuple[int, ...]
    dtype: Any
    requires_grad: bool

    @staticmethod
    def of(tensor: Tensor) -> TensorMeta:
        if hasattr(tensor, "placements"):
            raise PipeliningMetadataError("DTensors between the stages of a pipeline are not supported yet by torchlike: send `to_local()`")
        return TensorMeta(tensor.shape, tensor.stride(), tensor.dtype, tensor.requires_grad)

    def empty(self, device: Any) -> Tensor:
        return torchlike.empty_strided(self.shape, self.stride, dtype=self.dtype, device=device)

    def gradient(self) -> TensorMeta | None:
        return replace(self, requires_grad=False) if self.requires_grad else None

    def differences(self, other: TensorMeta) -> list[str]:
        """What differs, but for whether a gradient is required: that depends on the run."""
        return [f"{name} mismatch: {getattr(self, name)} vs {getattr(other, name)}" for name in ("shape", "stride", "dtype")
                if getattr(self, name) != getattr(other, name)]


Metas = tuple[TensorMeta | None, ...]


def as_tensors(args: Any, allow_none: bool = False) -> tuple | None:
    """One tensor, or a tuple or list of them, as a tuple. PipeliningMetadataError for anything else."""
    if args is None:
        return None
    if isinstance(args, Tensor):
        return (args,)
    if not isinstance(args, (tuple, list)):
        raise PipeliningMetadataError(f"Stage args must be a tensor, tuple, or list of tensors, got {type(args).__name__}.")
    for i, arg in enumerate(args):
        if arg is None and not allow_none:
            raise PipeliningMetadataError(f"Stage arg[{i}] is None. Stage args must be tensors. Use kwargs for optional values.")
        if arg is not None and not isinstance(arg, Tensor):
            raise PipeliningMetadataError(
                f"Stage arg[{i}] has type {type(arg).__name__}. All stage args must be tensors. Use kwargs for non-tensor inputs.")
    return tuple(args)


def metas_of(tensors: Sequence[Tensor | None] | None) -> Metas | None:
    return None if tensors is None else tuple(None if t is None else TensorMeta.of(t) for t in tensors)


def check(what: str, given: Metas | None, inferred: Metas | None) -> None:
    """PipeliningMetadataError where the program described tensors otherwise than they are."""
    if not given or not inferred:
        return
    if len(given) != len(inferred):
        raise PipeliningMetadataError(f"{what}: expected {len(given)} tensors, got {len(inferred)}")
    for i, (g, f) in enumerate(zip(given, inferred)):
        if (g is None) != (f is None):
            raise PipeliningMetadataError(f"{what}[{i}]: expected {'None' if g is None else 'metadata'}, got {'None' if f is None else 'metadata'}")
        if g is not None and (differences := g.differences(f)):
            raise PipeliningMetadataError(f"{what}[{i}]: {'; '.join(differences)}")


@dataclass
class PipeInfo:
    """What a stage has to know of the pipe that it is cut from."""

    graph: Any
    num_stages: int
    has_loss_and_backward: bool


def described(value: Any) -> Any:
    """For an error's text: tensors by their shape."""
    return map_aggregate(value, lambda v: f"Tensor({v.shape}, grad={v.requires_grad}, dtype={v.dtype})" if isinstance(v, Tensor) else str(v))
