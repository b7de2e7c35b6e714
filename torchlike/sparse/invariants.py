"""What the indices of sparse tensors have to fulfil: `check_invariants=`, and torch's private functions that ask the same."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .._arguments import as_size
from .._tensor import Tensor
from ..ops.creation import LAYOUT_NAMES

_WORDS = (("crow_indices", "col_indices", "row", "ncols", "nrows"), ("ccol_indices", "row_indices", "column", "nrows", "ncols"))  # by rows, by columns
_LAYOUTS = {"sparse_csr": (0, 0), "sparse_csc": (1, 0), "sparse_bsr": (0, 2), "sparse_bsc": (1, 2)}  # which dimension is compressed, how many a block has


def check_inside(places: np.ndarray, dims: tuple) -> None:
    """RuntimeError where a place lies outside the shape."""
    for d in range(places.shape[0]):
        if not places.shape[1]:
            return
        low, high = int(places[d].min()), int(places[d].max())
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {d}")
        if high >= dims[d]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {dims[d]} but found index {high}")


def check_coo(places: np.ndarray, dims: tuple, coalesced: bool) -> None:
    """RuntimeError where coordinates lie outside the shape, or are called coalesced and are not in order or not distinct."""
    check_inside(places, dims)
    if coalesced and places.shape[0]:
        numbers = np.ravel_multi_index(tuple(places), dims[:places.shape[0]])
        if (numbers[1:] <= numbers[:-1]).any():
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def check_compressed(layout: str, pointers: Tensor, others: Tensor, values: Tensor, size: tuple) -> None:
    """RuntimeError where the parts of compressed matrices do not fit each other or their size."""
    axis, n = _LAYOUTS[layout]
    first, second, line, free, lines = _WORDS[axis]
    if not pointers.dim() or not others.dim():
        raise RuntimeError(f"{second if pointers.dim() else first} must have dimensionality >= 1 but got 0")
    if pointers.dim() != others.dim():
        raise RuntimeError(f"{first} and {second} dimensionalities must be equal but got {pointers.dim()} and {others.dim()}, respectively")
    for name, t in ((first, pointers), (second, others)):
        if t.shape[-1] > 1 and t.stride(-1) != 1:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    b = pointers.dim() - 1
    if values.dim() <= b + n:
        raise RuntimeError(f"values must have dimensionality > sum of batch and block dimensionalities (={b} + {n}) but got {values.dim()}")
    dense = values.dim() - b - n - 1
    if len(size) != b + 2 + dense:
        raise RuntimeError(f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={b} + 2 + {dense}) but got {len(size)}")
    batches = [list(t.shape[:b]) for t in (pointers, others, values)]
    if any(found != list(size[:b]) for found in batches):
        raise RuntimeError(f"all batch dimensions of {first} (={batches[0]}), {second} (={batches[1]}), and values (={batches[2]}) must be equal to tensor batch "
                           f"dimensions (={list(size[:b])})")
    block = tuple(values.shape[b + 1:b + 1 + n]) or (1, 1)
    for k in range(2):
        if block[k] and size[b + k] % block[k]:
            raise RuntimeError(f"tensor shape[{k}] (={size[b + k]}) must be divisible with blocksize[{k}] (={block[k]}) as defined by values shape")
    counted = [size[b + k] // max(block[k], 1) for k in range(2)]
    if pointers.shape[-1] != counted[axis] + 1:
        raise RuntimeError(f"{first}.shape[-1] must be equal to the number of {line}{' blocks' if n else 's'} + 1 (={counted[axis] + 1}), but got "
                           f"{pointers.shape[-1]}")
    if others.shape[-1] != values.shape[b]:
        raise RuntimeError(f"{second}.shape[-1] must be equal to nnz (={values.shape[b]}) as defined by values.shape[{b}], but got {others.shape[-1]}")
    kinds = [t.type().rpartition(".")[2].removesuffix("Tensor") for t in (pointers, others)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(f"{first} and {second} must have the same dtype, bot got {kinds[0]} and {kinds[1]}, respectively")
    if kinds[0] not in ("Int", "Long"):
        raise RuntimeError(f"{first} and {second} dtype must be Int or Long, but got {kinds[0]}")
    check_indices(axis, *(t._host_array().reshape(math.prod(size[:b]), t.shape[-1]) for t in (pointers, others)), counted[1 - axis])


def check_indices(axis: int, starts: np.ndarray, at: np.ndarray, wide: int) -> None:
    """RuntimeError where the indices of a batch, a matrix a row, break a rule; `wide` is how many places a line has."""
    first, second, _, free, lines = _WORDS[axis]
    counts = np.diff(starts)
    if (starts[:, 0] != 0).any():
        _broken(f"{first}[..., 0] == 0")
    if (starts[:, -1] != at.shape[1]).any():
        _broken(f"{first}[..., -1] == nnz")
    if (counts < 0).any() or (counts > wide).any():
        _broken(f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {free}")
    if (at < 0).any() or (at >= wide).any():
        _broken(f"0 <= {second} < {free}")
    numbers = np.repeat(np.arange(counts.size), counts.reshape(-1)) * wide + at.reshape(-1)
    if (numbers[1:] <= numbers[:-1]).any():
        _broken(f"{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {lines} are sorted and distinct along the last dimension values")


def _broken(rule: str) -> NoReturn:
    raise RuntimeError(f"`{rule}` is not satisfied.")


def _validate_sparse_coo_tensor_args(indices: Tensor, values: Tensor, size: Any, is_coalesced: bool | None = None, check_pinning: bool | None = None) -> None:
    """RuntimeError where these make no sparse_coo tensor."""
    size, n = as_size(size), indices.shape[0]
    if len(size) != n + values.dim() - 1:
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {n}, dense_dim = {values.dim() - 1}")
    check_coo(indices._host_array(), size, bool(is_coalesced))


def _validate_sparse_compressed_tensor_args(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Any, layout: Any,
                                            check_pinning: bool | None = None) -> None:
    """RuntimeError where these make no tensor of the compressed layout."""
    if layout.name not in _LAYOUTS:
        raise RuntimeError(f"validate_sparse_compressed_tensor_args expected sparse compressed tensor layout but got {LAYOUT_NAMES[layout.name]}")
    check_compressed(layout.name, compressed_indices, plain_indices, values, as_size(size))


def _validate_compressed_sparse_indices(is_crow: bool, compressed_idx: Tensor, plain_idx: Tensor, cdim: int, dim: int, nnz: int) -> None:
    """RuntimeError where these are no indices of `cdim` lines of `dim` places, by rows or by columns."""
    batches = math.prod(compressed_idx.shape[:-1])
    check_indices(1 - int(is_crow), *(t._host_array().reshape(batches, n) for t, n in ((compressed_idx, cdim + 1), (plain_idx, nnz))), dim)


def _of_layout(name: str) -> Callable:
    def validate(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Any, check_pinning: bool | None = None) -> None:
        check_compressed(name, compressed_indices, plain_indices, values, as_size(size))
    validate.__name__ = validate.__qualname__ = f"_validate_{name}_tensor_args"
    return validate


globals().update({f.__name__: f for f in map(_of_layout, _LAYOUTS)})
