"""Dimensions and shapes, as torch's Python kernels count them."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core.layout import Layout, extent
from .._size import Size

ShapeType = Size | list[int] | tuple[int, ...]
StrideType = list[int] | tuple[int, ...]
DimsType = int | list[int] | tuple[int, ...]
DimsSequenceType = list[int] | tuple[int, ...]


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front. IndexError outside of -rank to rank - 1; a tensor without dimensions has one, unless `wrap_scalar` is False."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx + rank if idx < 0 else idx


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """`canonicalize_dim` of a dimension, or of each."""
    if isinstance(indices, (list, tuple)):
        return tuple(canonicalize_dim(rank, d, wrap_scalar) for d in indices)
    return canonicalize_dim(rank, indices, wrap_scalar)


def validate_no_repeating_dims(dims: Sequence[int]) -> None:
    """RuntimeError where a dimension is there twice."""
    if len(dims) != len(set(dims)):
        raise RuntimeError("duplicate value in the list of dims")


def reduction_dims(shape: ShapeType, dims: Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions that a reduction goes over, from the front; None means all."""
    if dims is None:
        return tuple(range(len(shape)))
    found = tuple(canonicalize_dim(len(shape), d) for d in dims)
    validate_no_repeating_dims(found)
    return found


def compute_reduction_output_shape(shape: ShapeType, dimensions: Sequence[int]) -> tuple[int, ...]:
    """The shape without some dimensions."""
    return tuple(n for d, n in enumerate(shape) if d not in dimensions)


def prod(xs: Sequence[Any]) -> Any:
    """The product; 1 of nothing."""
    return math.prod(xs)


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether sizes are the same."""
    return tuple(a) == tuple(b)


def is_expandable_to(shape: ShapeType, desired: ShapeType) -> bool:
    """Whether dimensions of one element, and new ones in front, make the desired shape of this one."""
    return len(shape) <= len(desired) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(desired)))


def infer_size_shapes(a: ShapeType, b: ShapeType) -> tuple[int, ...]:
    """The shape that two broadcast to. RuntimeError where they do not."""
    rank, found = max(len(a), len(b)), []
    for d in range(rank):
        n, m = (s[d - rank + len(s)] if d - rank + len(s) >= 0 else 1 for s in (a, b))
        if n != m and 1 not in (n, m):
            raise RuntimeError(f"The size of tensor a ({n}) must match the size of tensor b ({m}) at non-jagged dimension {d}")
        found.append(m if n == 1 else n)
    return tuple(found)


def infer_size(shape: ShapeType, numel: int) -> tuple[int, ...]:
    """The shape with its -1 replaced by what `numel` elements need. RuntimeError where they do not fit."""
    open_, known = [d for d, n in enumerate(shape) if n == -1], math.prod(n for n in shape if n != -1)
    if len(open_) > 1:
        raise RuntimeError("only one dimension can be inferred")
    wrong = next((n for n in shape if n < -1), None)
    if wrong is not None:
        raise RuntimeError(f"invalid shape dimension {wrong}")
    if not (numel == known or open_ and known > 0 and numel % known == 0):
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    if not open_:
        return tuple(shape)
    if known == 0:
        raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 can be any value and is ambiguous")
    return tuple(numel // known if d == open_[0] else n for d, n in enumerate(shape))


def compute_required_storage_length(shape: ShapeType, strides: StrideType, storage_offset: int) -> int:
    """How many elements a storage needs for such a tensor to lie in it."""
    return extent(Layout(tuple(shape), tuple(strides), storage_offset)) if 0 not in shape else 0


def is_valid_permutation(rank: int, perm: DimsSequenceType) -> bool:
    """Whether it has each dimension once."""
    return sorted(perm) == list(range(rank))


def apply_perm(inp: Sequence[Any], perm: Sequence[int]) -> list[Any]:
    """The items in another order: the first is that of number perm[0]."""
    if len(inp) != len(perm):
        raise AssertionError(f"perm {perm} is not of the length of {inp}")
    return [inp[d] for d in perm]


def invert_perm(perm: Sequence[int]) -> list[int]:
    """The order that undoes it."""
    return sorted(range(len(perm)), key=perm.__getitem__)


def _unpacked(given: Any) -> Any:
    return given[0] if given and isinstance(given[0], (list, tuple)) and len(given) == 1 else given


def extract_dims_from_varargs(dims: Any) -> Any:
    """f(0, 1) and f((0, 1)) alike."""
    return _unpacked(dims)


def extract_shape_from_varargs(shape: Any, validate: bool = True) -> Any:
    """f(2, 3) and f((2, 3)) alike. RuntimeError for negative sizes, unless `validate` is False."""
    found = _unpacked(shape)
    if validate and any(n < 0 for n in found):
        raise RuntimeError(f"Sizes must not be negative, got {tuple(found)}")
    return found
