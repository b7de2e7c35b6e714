"""What the indices of sparse tensors have to fulfil: `check_invariants=`, and torch's private functions that ask the same."""
from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .._arguments import as_size
from .._tensor import Tensor
from ..ops.creation import LAYOUT_NAMES

_WORDS = {"sparse_csr": ("crow_indices", "col_indices", "row", "ncols", "nrows"), "sparse_csc": ("ccol_indices", "row_indices", "column", "nrows", "ncols")}


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
    """RuntimeError where the parts of a compressed matrix do not fit each other or its size."""
    first, second, line, free, lines = _WORDS[layout]
    axis = int(layout == "sparse_csc")
    if not pointers.dim() or not others.dim():
        raise RuntimeError(f"{second if pointers.dim() else first} must have dimensionality >= 1 but got 0")
    if pointers.dim() != others.dim():
        raise RuntimeError(f"{first} and {second} dimensionalities must be equal but got {pointers.dim()} and {others.dim()}, respectively")
    if not values.dim():
        raise RuntimeError("values must have dimensionality > sum of batch and block dimensionalities (=0 + 0) but got 0")
    if len(size) != 1 + values.dim():
        raise RuntimeError(f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + {values.dim() - 1}) but got {len(size)}")
    if pointers.shape[-1] != size[axis] + 1:
        raise RuntimeError(f"{first}.shape[-1] must be equal to the number of {line}s + 1 (={size[axis] + 1}), but got {pointers.shape[-1]}")
    if others.shape[-1] != values.shape[0]:
        raise RuntimeError(f"{second}.shape[-1] must be equal to nnz (={values.shape[0]}) as defined by values.shape[0], but got {others.shape[-1]}")
    if pointers.dtype is not others.dtype:
        kinds = [t.type().rpartition(".")[2].removesuffix("Tensor") for t in (pointers, others)]
        raise RuntimeError(f"{first} and {second} must have the same dtype, bot got {kinds[0]} and {kinds[1]}, respectively")
    starts, at = pointers._host_array(), others._host_array()
    counts, n = np.diff(starts), size[1 - axis]
    if starts[0] != 0:
        _broken(f"{first}[..., 0] == 0")
    if starts[-1] != len(at):
        _broken(f"{first}[..., -1] == nnz")
    if (counts < 0).any() or (counts > n).any():
        _broken(f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {free}")
    if (at < 0).any() or (at >= n).any():
        _broken(f"0 <= {second} < {free}")
    numbers = np.repeat(np.arange(len(counts)), counts) * n + at
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
    if layout.name not in _WORDS:
        raise RuntimeError(f"validate_sparse_compressed_tensor_args expected sparse compressed tensor layout but got {LAYOUT_NAMES[layout.name]}")
    check_compressed(layout.name, compressed_indices, plain_indices, values, as_size(size))
