"""Transposing, selecting and joining: operations on the places."""
from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from .._arguments import as_dim, as_dims
from .._public import FUNCTIONS
from .._tensor import Tensor
from ..ops.creation import LAYOUT_NAMES
from ..ops.joining import cat as cat_strided
from .compressed import Compressed, empty_compressed
from .coo import Coo, coo, empty, joined
from .factories import legacy
from .tensor import SparseTensor, named, on_device


def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Dimensions in another order; sparse ones stay before dense ones."""
    dims = order if dims is None else tuple(dims)
    dims = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    if len(dims) != input.dim():
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions "
                           f"i.e. input.dim() = {input.dim()} is not equal to len(dims) = {len(dims)}")
    if len({as_dim(d, input.dim()) for d in dims}) < len(dims):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    order = as_dims(dims, input.dim())
    return _permuted(input, order, "Permute")


def _permuted(t: Tensor, order: tuple, name: str) -> Tensor:
    return _reordered(t, order, name).as_view()


def _reordered(t: Tensor, order: tuple, name: str) -> Tensor:
    if order == tuple(range(len(order))):
        return t._like(named(t._entries, name))
    if isinstance(t, Compressed):
        return _permuted_compressed(t, order)
    n = t.sparse_dim()
    if any(d >= n for d in order[:n]):
        raise RuntimeError("permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed."
                           "Only transpositions within sparse and dense dimensions are supported." if name == "Permute" else
                           "transpose: transposing sparse and dense dimensions is not supported")
    places = t._places.index_select(0, on_device(np.array(order[:n], np.int64), t._places)) if n else t._places
    entries = t._entries
    if order[n:] != tuple(range(n, len(order))):
        entries = entries.permute(0, *(d - n + 1 for d in order[n:]))
    return coo(places, named(entries, name), tuple(t._dims[d] for d in order), t._unique and order[:n] == tuple(range(n)), t._inside)


def _permuted_compressed(t: Compressed, order: tuple) -> Compressed:
    """Two dimensions of one kind exchanged."""
    moved = [d for d, e in enumerate(order) if d != e]
    if len(moved) != 2:
        t.refuse("permute")
    b = t.batch_dim
    kinds = ["Batch" if d < b else "Sparse" if d < b + 2 else "Dense" for d in moved]
    if kinds[0] != kinds[1]:
        raise RuntimeError(f"transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got {moved[0]}({kinds[0]}) and "
                           f"{moved[1]}({kinds[1]})")
    if kinds[0] == "Batch":
        return t.batch_exchanged(*moved)
    if kinds[0] == "Sparse":
        return t.transposed()
    raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    a, b = as_dim(dim0, input.dim()), as_dim(dim1, input.dim())
    order = list(range(input.dim()))
    if order:
        order[a], order[b] = order[b], order[a]
    return _permuted(input, tuple(order), "Transpose")


def t(input: Tensor) -> Tensor:
    """A matrix transposed."""
    if input.dim() > 2 and isinstance(input, Compressed):
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.dim()}D")
    if input.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {input.sparse_dim()} sparse and {input.dense_dim()} dense "
                           "dimensions")
    return _permuted(input, tuple(reversed(range(input.dim()))), "T")


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A dimension of size 1 more."""
    if not isinstance(input, Coo):
        input.refuse("unsqueeze")
    d, n = as_dim(dim, input.dim() + 1), input.sparse_dim()
    dims = (*input._dims[:d], 1, *input._dims[d:])
    if d > n:
        return coo(input._places, named(input._entries.unsqueeze(d - n + 1), "Unsqueeze"), dims, input._unique, input._inside).as_view()
    zeros = input._places.new_zeros((1, input._nnz()))
    places = cat_strided([input._places[:d], zeros, input._places[d:]])
    return coo(places, named(input._entries, "Unsqueeze"), dims, False, input._inside).as_view()


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices that index names."""
    if isinstance(index, SparseTensor) or not isinstance(input, Coo):
        (input if isinstance(input, SparseTensor) else index).refuse("index_select")
    d, n = as_dim(dim, input.dim()), input.sparse_dim()
    if index.dim() != 1 or index.dtype.name not in ("int64", "int32"):
        raise IndexError(f"index_select() argument index must be 1-D {'long' if index.dim() == 1 else ''}-tensor.")
    dims = (*input._dims[:d], index.numel(), *input._dims[d + 1:])
    if d >= n:
        return coo(input._places, named(input._entries.index_select(d - n + 1, index), "IndexSelect"), dims, input._unique, input._inside)
    wanted, places, size = index._host_array().astype(np.int64), input.host(), input._dims[d]
    if wanted.size and not (-size <= wanted.min() and wanted.max() < size):
        raise IndexError(f"index_select(): index contains {int(wanted.max() if wanted.max() >= size else wanted.min())} that is out of range for tensor of size "
                         f"{list(input._dims)} at dimension {d}")
    wanted = np.where(wanted < 0, wanted + size, wanted)
    order = np.argsort(places[d], kind="stable")
    starts, ends = (np.searchsorted(places[d][order], wanted, side) for side in ("left", "right"))
    counts = ends - starts
    to = np.repeat(np.arange(len(wanted)), counts)
    source = order[np.arange(len(to)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)]
    chosen = places[:, source].copy()
    chosen[d] = to
    return _chosen(input, source, chosen, dims, "IndexSelect")


def _chosen(t: Coo, source: np.ndarray, places: np.ndarray, dims: tuple, name: str) -> Coo:
    entries = t._entries.index_select(0, on_device(source.astype(np.int64), t._entries))
    return coo(on_device(places.astype(np.int64), entries), named(entries, name), dims, False, True)


def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` slices from `start` on, as a tensor of its own."""
    if not isinstance(input, Coo):
        input.refuse("narrow_copy")
    d = as_dim(dim, input.dim())
    size = input._dims[d]
    if not (length >= 0 and 0 <= start <= size - length):
        raise RuntimeError(f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {size}).")
    if d >= input.sparse_dim():
        return index_select(input, d, FUNCTIONS["arange"](start, start + length))
    places = input.host()
    kept = np.flatnonzero((places[d] >= start) & (places[d] < start + length))
    places = places[:, kept]
    places[d] -= start
    entries = named(input._entries.index_select(0, on_device(kept, input._entries)), "NarrowCopy")
    return coo(on_device(places, entries), entries, (*input._dims[:d], length, *input._dims[d + 1:]), input._unique, input._inside)


def select(input: Tensor, dim: int, index: int, name: str = "Select") -> Tensor:
    """One slice; strided where no sparse dimension is left."""
    made = _slice(input, dim, index, name)
    return made.as_view() if isinstance(made, SparseTensor) else made


def _slice(input: Tensor, dim: int, index: int, name: str) -> Tensor:
    if isinstance(input, Compressed):
        d, b = as_dim(dim, input.dim()), input.batch_dim
        if not b <= d < b + 2:
            index = _index(input, d, index)
            return input.part(d, index, name)
        if b:
            raise RuntimeError("select(): selecting sparse dimensions is not supported for batched sparse compressed tensors.")
        made = _slice(input.coordinates(), dim, index, name)
        made._unique = True  # what is compressed is in order
        return made
    d, n = as_dim(dim, input.dim()), input.sparse_dim()
    index = _index(input, d, index)
    dims = (*input._dims[:d], *input._dims[d + 1:])
    if d >= n:
        return coo(input._places, named(input._entries.select(d - n + 1, index), name), dims, input._unique, input._inside)
    places = input.host()
    source = np.flatnonzero(places[d] == index)
    if n == 1:
        rows = input._entries.index_select(0, on_device(source, input._entries))
        return named(rows.sum(0).to(input.dtype), name)
    return _chosen(input, source, np.delete(places, d, 0)[:, source], dims, name)


def _index(t: SparseTensor, d: int, index: int) -> int:
    index, size = operator.index(index), t._dims[d]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(t._dims)} at dimension {d}")
    return index % size


def getitem(input: Tensor, index: Any) -> Tensor:
    """t[i], t[i, j]: whole numbers, `...` and `:` only."""
    parts = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [p for p in parts if not isinstance(p, Tensor)]:
        at = parts.index(Ellipsis)
        parts = (*parts[:at], *[slice(None)] * (input.dim() - len(parts) + 1), *parts[at + 1:])
    if len(parts) > input.dim():
        raise IndexError(f"too many indices for tensor of dimension {input.dim()}")
    d = 0
    for p in parts:
        if isinstance(p, slice) and p == slice(None):
            d += 1
        elif isinstance(p, (int, np.integer)) and not isinstance(p, bool):
            input = input.select(d, p)
        elif p is None and isinstance(input, Coo):
            input = unsqueeze(input, d)
            d += 1
        elif isinstance(input, SparseTensor):
            input.refuse("as_strided" if isinstance(p, slice) else "index.Tensor")
        else:
            input = input[(*[slice(None)] * d, p)]
            d += 1
    return input


def unbind(input: Tensor, dim: int = 0) -> tuple:
    """All slices."""
    d = as_dim(dim, input.dim())
    return tuple(select(input, d, i, "Unbind") for i in range(input.shape[d]))


def cat(tensors: Any, dim: int = 0) -> Tensor:
    """Tensors one after another along a dimension."""
    tensors = list(tensors)
    _check_joined(tensors)
    first = tensors[0]
    d, n = as_dim(dim, first.dim()), first.sparse_dim()
    for k, x in enumerate(tensors):
        if x.dim() != first.dim() or [m for e, m in enumerate(x._dims) if e != d] != [m for e, m in enumerate(first._dims) if e != d]:
            raise RuntimeError(f"All tensors must have the same shape: {list(first._dims)} (except in the concatenating dimension), but found shape: "
                               f"{list(x._dims)} at position {k}.")
        if x.sparse_dim() != n:
            raise RuntimeError(f"All tensors must have the same sparse_dim and dense_dim: {n}, {first.dense_dim()}, but tensor at position {k} has "
                               f"{x.sparse_dim()}, {x.dense_dim()}.")
    dims = (*first._dims[:d], sum(x._dims[d] for x in tensors), *first._dims[d + 1:])
    if d >= n:
        starts = np.cumsum([0, *(x._dims[d] for x in tensors)])
        padded = []
        for x, start in zip(tensors, starts):
            left, right = (x._entries.new_zeros((*x._entries.shape[:d - n + 1], int(m), *x._entries.shape[d - n + 2:]))
                           for m in (start, dims[d] - start - x._dims[d]))
            padded.append(coo(x._places, cat_strided([left, x._entries, right], d - n + 1), dims))
        return joined(padded, cat_strided([x._places for x in padded], 1), dims, "Cat")
    places, start = [], 0
    for x in tensors:
        moved = x.host().copy()
        moved[d] += start
        start += x._dims[d]
        places.append(moved)
    return joined(tensors, np.concatenate(places, 1), dims, "Cat")


def _check_joined(tensors: list) -> None:
    for i, x in enumerate(tensors):
        if isinstance(x, Compressed):
            x.refuse("cat")
        if not isinstance(x, Coo):
            if not isinstance(tensors[0], Coo):
                next(y for y in tensors if isinstance(y, SparseTensor)).refuse("cat")
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {i}.")


def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Tensors along a new dimension."""
    tensors = list(tensors)
    _check_joined(tensors)
    d = as_dim(dim, tensors[0].dim() + 1)
    return cat([unsqueeze(x, d) for x in tensors], d)


def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of input at the places of a sparse mask."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask: expected a sparse mask")
    if input.shape != mask.shape:
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(input.shape)} but mask has size {list(mask.shape)}")
    where = mask.coordinates() if isinstance(mask, Compressed) else mask
    dense = input.to_dense()
    rows = dense.reshape(math.prod(mask._dims[:where.sparse_dim()]), *mask._dims[where.sparse_dim():]).index_select(0, where.flat())
    return mask._like(named(rows.reshape(mask._entries.shape), "SparseMask"))


def _in_place(f: Any) -> Any:
    def write(input: SparseTensor, *args: Any) -> SparseTensor:
        if isinstance(input, Compressed) and f in (t, transpose):
            raise RuntimeError(f"torch.transpose_: in-place transposition is not supported for {LAYOUT_NAMES[input.layout_name]} layout")
        return input.adopt(f(input, *args))
    return write


def _copied(data: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    made = data.detach().clone().to(dtype=dtype or data.dtype, device=device or data.device)
    return made.requires_grad_() if requires_grad else made


def _empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None, memory_format: Any = None,
                name: str = "empty_like", **kwargs: Any) -> Tensor:
    if memory_format is not None and (layout is None or layout.name != "strided"):
        raise RuntimeError("memory format option is only supported by strided tensors")
    if layout is not None and layout.name == "strided":
        return input._entries.new_zeros(input._dims, dtype=dtype, device=device, requires_grad=requires_grad)
    if isinstance(input, Compressed) and name == "empty_like":
        if layout is not None and layout is not input.layout:
            raise RuntimeError(f"empty_like with different sparse layout is not supported (self is {input.class_name} but you requested {LAYOUT_NAMES[layout.name]})")
        made = input._like(input._entries.new_empty(input._entries.shape, dtype=dtype, device=device))._moved(input.device if device is None else device)
    elif isinstance(input, Compressed):
        made = input.emptied(dtype, device)
    else:
        made = empty(input._dims, input.sparse_dim(), input._entries, dtype, device)
    if layout is not None and layout is not made.layout:
        blocks = made.block if isinstance(made, Compressed) and layout.name in ("sparse_bsr", "sparse_bsc") else None
        made = made.to_sparse(layout=layout, blocksize=blocks)
    return made.requires_grad_() if requires_grad else made


def _zeros_like(input: Tensor, **kwargs: Any) -> Tensor:
    return _empty_like(input, name="zeros_like", **kwargs)


def _new_empty(input: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None, **kwargs: Any) -> Tensor:
    if layout is not None and layout.name == "strided":
        return input._entries.new_zeros(*size, dtype=dtype, device=device, requires_grad=requires_grad, **kwargs)
    if not size:
        raise TypeError('new_empty() missing 1 required positional arguments: "size"')
    size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    if not isinstance(input, Coo):
        if input.blocked:
            raise RuntimeError(f"empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got {input.class_name}")
        if len(size) < 2:
            raise RuntimeError(f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}")
        made = empty_compressed(input, size, dtype, device)
        return made.requires_grad_() if requires_grad else made
    made = empty(size, len(size), input._entries, dtype, device)
    return made.requires_grad_() if requires_grad else made


def _new(input: Tensor, *args: Any) -> Tensor:
    if not isinstance(input, Coo):
        input.refuse("new")
    return legacy(input.dtype, input.device, args, constructor=False)


def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, and conjugated."""
    return transpose(input.conj() if input.is_complex() else input, -2, -1)


Coo.T = property(lambda self: permute(self, *reversed(range(self.dim()))))
SparseTensor.mT = property(lambda self: transpose(self, -2, -1))
SparseTensor.H = property(adjoint)
SparseTensor.real = property(lambda self: self if not self.is_complex() else self._like(self._entries.real))
SparseTensor.new_tensor = lambda self, data, **kwargs: self._entries.detach().new_tensor(data, **kwargs)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other positions."""
    n = input.dim()
    of, to = ([as_dim(d, n) for d in (x if isinstance(x, (tuple, list)) else (x,))] for x in (source, destination))
    rest = iter([d for d in range(n) if d not in of])
    return permute(input, [of[to.index(d)] if d in to else next(rest) for d in range(n)])


FORMS = {"permute": permute, "transpose": transpose, "t": t, "adjoint": adjoint, "swapaxes": transpose, "swapdims": transpose, "unsqueeze": unsqueeze,
         "index_select": index_select, "narrow_copy": narrow_copy, "select": select, "__getitem__": getitem, "unbind": unbind, "cat": cat, "concat": cat, "concatenate": cat,
         "stack": stack, "sparse_mask": sparse_mask, "zeros_like": _zeros_like, "empty_like": _empty_like, "new_zeros": _new_empty,
         "new_empty": _new_empty, "new": _new, "conj": lambda input: input._like(input._entries.conj()) if input.is_complex() else input,
         "movedim": movedim, "moveaxis": movedim, "tensor": _copied, "hstack": lambda tensors: cat(tensors, 1), "vstack": cat, "row_stack": cat,
         "resolve_conj": lambda input: input, "resolve_neg": lambda input: input}
FORMS |= {n + "_": _in_place(f) for n, f in FORMS.items() if n in ("t", "transpose", "swapaxes", "swapdims", "unsqueeze")}
