"""Strides of shapes, and what a tensor's strides stand for."""
from __future__ import annotations

from collections.abc import Sequence

from .._core import layout as lay
from .._core.layout import Layout
from .._tensor import Tensor
from ..ops.memory_formats import channels_last, channels_last_3d, contiguous_format, memory_format, suggested_format
from .checking import check_same_shape, is_cpu_scalar_tensor
from .shapes import ShapeType


def make_contiguous_strides_for(shape: ShapeType, row_major: bool = True) -> tuple[int, ...]:
    """Strides of elements in order; with `row_major` False the last two dimensions change places in memory, as LAPACK has matrices."""
    if not isinstance(shape, (list, tuple)):
        raise AssertionError(f"shape must be a sequence, got {type(shape)}")
    if not row_major and len(shape) >= 2:
        *_, rows, columns = found = make_contiguous_strides_for((*shape[:-2], shape[-1], shape[-2]))
        return (*found[:-2], columns, rows)
    return lay.contiguous_strides(shape)


def _channels_last(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    if len(shape) != rank:
        raise RuntimeError(f"Only tensors of rank {rank} can use the channels_last{'_3d' if rank == 5 else ''} memory format")
    return lay.channels_last_strides(shape)


def make_channels_last_1d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Those of (N, C, L) with channels last in memory."""
    return _channels_last(shape, 3)


def make_channels_last_2d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Those of (N, C, H, W) with channels last in memory."""
    return _channels_last(shape, 4)


def make_channels_last_3d_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Those of (N, C, D, H, W) with channels last in memory."""
    return _channels_last(shape, 5)


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Those with channels last in memory, of three to five dimensions. RuntimeError for others."""
    if len(shape) not in (3, 4, 5):
        raise RuntimeError(f"no channels last format strides exist in {len(shape)} dimensions")
    return _channels_last(shape, len(shape))


def _layout(a: Tensor) -> Layout:
    return Layout(tuple(a.shape), tuple(a.stride()), a.storage_offset())


def suggest_memory_format(x: Tensor) -> memory_format:
    """channels_last where a tensor of four (five) dimensions has such strides, else contiguous_format."""
    return suggested_format(x)


def is_contiguous(a: Tensor, false_if_dde: bool = False) -> bool:
    """Whether elements lie in order."""
    return a.is_contiguous()


def is_contiguous_or_false(a: Tensor) -> bool:
    """is_contiguous: sizes are numbers here, so there is always an answer."""
    return a.is_contiguous()


def is_channels_last_contiguous_2d(a: Tensor, false_if_dde: bool = False) -> bool:
    """Whether (N, C, H, W) has channels last in memory."""
    return a.ndim == 4 and a.is_contiguous(memory_format=channels_last)


def is_channels_last_contiguous_3d(a: Tensor, false_if_dde: bool = False) -> bool:
    """Whether (N, C, D, H, W) has channels last in memory."""
    return a.ndim == 5 and a.is_contiguous(memory_format=channels_last_3d)


def is_channels_last_contiguous(a: Tensor) -> bool:
    """Either of these."""
    return is_channels_last_contiguous_2d(a) or is_channels_last_contiguous_3d(a)


def is_contiguous_for_memory_format(a: Tensor, *, memory_format: memory_format, false_if_dde: bool = False) -> bool:
    """Whether elements lie in the order of a format. RuntimeError for preserve_format."""
    kinds = {contiguous_format: is_contiguous, channels_last: is_channels_last_contiguous_2d, channels_last_3d: is_channels_last_contiguous_3d}
    if memory_format not in kinds:
        raise RuntimeError(f"is_contiguous received unsupported memory format {memory_format}")
    return kinds[memory_format](a)


def is_non_overlapping_and_dense_or_false(a: Tensor) -> bool:
    """Whether it is all of its memory, each element once, in any order."""
    return lay.is_dense(_layout(a))


def compute_elementwise_output_strides(*tensors: Tensor) -> tuple[int, ...]:
    """Strides of what an elementwise operation makes of tensors of one shape. ValueError for no tensors."""
    if not tensors:
        raise ValueError("Can't compute elementwise output strides for zero tensors!")
    check_same_shape(*tensors, allow_cpu_scalar_tensors=True)
    shown = [t for t in tensors if not is_cpu_scalar_tensor(t)]
    if not shown:
        return ()
    shape = tuple(shown[0].shape)
    found = lay.combined(shape, tuple(map(_layout, shown)))
    return make_contiguous_strides_for(shape) if found is None else found.strides


def clone_preserve_strides(x: Tensor) -> Tensor:
    """A copy with the same strides, memory between the elements included."""
    needed = lay.extent(_layout(x)) - x.storage_offset() if x.numel() else 0
    return x.as_strided((needed,), (1,), x.storage_offset()).clone().as_strided(x.shape, x.stride(), 0)
