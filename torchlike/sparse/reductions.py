"""Sums over dimensions, and softmax, where only entries count."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arguments import as_dims
from .._core import dtype as dt
from .._core.errors import class_name, not_implemented
from .._core.grad_mode import mode
from .._public import FUNCTIONS
from .._tensor import Tensor
from .compressed import Compressed, Csr, compress
from .coo import Coo, added, coo, gathered
from .tensor import SparseTensor, named, on_device


def total(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, name: str = "SumBackward1") -> Tensor:
    """The sum over dimensions: strided where no sparse dimension is left."""
    if not isinstance(keepdim, bool):
        raise TypeError(f"sum(): argument 'keepdim' (position 3) must be bool, not {class_name(keepdim)}")
    if dim is None and name != "SparseSum" and input.whole() is not None and mode.enabled:
        return input.whole().sum(dtype=dtype)  # whose gradient is one everywhere
    if isinstance(input, Compressed):
        if dim is None:
            return named(input._entries.sum(dtype=dtype), "Sum")
        if not keepdim:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        if not isinstance(input, Csr) or input.batch_dim:
            raise RuntimeError("Currently the only compressed sparse format supported for sum.dim_IntList is CSR of one matrix, but got layout "
                               f"{input.class_name}")
        made = total(input.coordinates(), dim, True, dtype=dtype)
        return compress(made if isinstance(made, SparseTensor) else made.to_sparse(), Csr, "SumBackward1")
    if dim is None:
        return named(input._entries.sum(dtype=dtype), "Sum")
    input = input.coalesce()
    dims = as_dims(dim, input.dim())
    n = input.sparse_dim()
    inner = [d - n + 1 for d in dims if d >= n]
    kept = [d for d in range(n) if d not in dims]
    if dtype is None and not input.is_floating_point() and not input.is_complex() and (name != "SparseSum" or not kept):
        dtype = dt.int64  # as sums of strided integers; only torch.sparse.sum leaves entries what they are
    entries = input._entries if dtype is None else input._entries.to(dtype)
    if inner:
        entries = entries.sum(inner, keepdim=keepdim)
    if not kept:
        made = entries.sum(0)
        return named(made.reshape(*[1] * n, *made.shape) if keepdim else made, name)
    rest = tuple(entries.shape[1:])
    if len(kept) == n:
        return coo(input._places, named(entries, name), (*input._dims[:n], *rest), input._unique, input._inside)
    places = input.host()
    if keepdim:
        places = np.stack([places[d] * (d in kept) for d in range(n)])
        made = gathered(places, entries, (*(m if d in kept else 1 for d, m in enumerate(input._dims[:n])), *rest), name)
        return made._coalesced_(made._nnz() < 2)
    return gathered(places[kept], entries, (*(input._dims[d] for d in kept), *rest), name)


def sparse_sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of a sparse tensor's elements, over all or some of its dimensions."""
    if isinstance(input, Compressed):
        if dim is not None:
            input.refuse("_indices")
        input.coalesce()
    if not isinstance(input, SparseTensor):
        return input.sum(dtype=dtype) if dim is None else input.sum(dim, dtype=dtype)
    return total(input, dim, dtype=dtype, name="SparseSum")


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of all entries."""
    if not isinstance(input, Coo):
        input.refuse("norm")
    if dim is not None and len(as_dims(dim, input.dim())) < input.dim():
        raise RuntimeError("norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions of the input")
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    return input.coalesce()._entries.norm(2 if p == "fro" else p, dtype=dtype)


def any_(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether an entry is not zero."""
    if dim is not None or not isinstance(input, Coo):
        input.refuse("any.dim")
    return input.coalesce()._entries.any()


# -- softmax ---------------------------------------------------------------------------------------------------------------


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """softmax along dim in which elements without an entry count as minus infinity."""
    return _soft(input, dim, dtype, FUNCTIONS["softmax"], lambda x, highest, sums: (x - highest).exp() / sums)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of softmax."""
    return _soft(input, dim, dtype, FUNCTIONS["log_softmax"], lambda x, highest, sums: x - highest - sums.log())


def _soft(input: Tensor, dim: int, dtype: Any, plain: Callable, formula: Callable) -> Tensor:
    if not isinstance(input, Coo):
        if isinstance(input, Compressed):
            input.refuse("_sparse_softmax" if plain.__name__ == "softmax" else "_sparse_log_softmax")
        raise NotImplementedError(f"Could not run 'aten::_sparse_{plain.__name__}' with arguments from the 'CPU' backend.")
    (d,) = as_dims(dim, input.dim())
    input = input.coalesce()
    x = input._entries if dtype is None else input._entries.to(dtype)
    if not x.is_floating_point():
        raise not_implemented(plain.__name__, x.dtype)
    n = input.sparse_dim()
    name = "SparseSoftmax" if plain.__name__ == "softmax" else "SparseLogSoftmax"
    if d >= n:
        return input._like(named(plain(x, d - n + 1), name))
    others = [k for k in range(n) if k != d]
    places = input.host()[others]
    numbers = np.ravel_multi_index(tuple(places), [input._dims[k] for k in others]) if others and places.size else np.zeros(x.shape[0], np.int64)
    groups, inverse = np.unique(numbers, return_inverse=True)
    index = on_device(inverse.reshape(-1), x)
    highest = x.detach().new_full((len(groups), *x.shape[1:]), -np.inf).index_reduce(0, index, x.detach(), "amax").index_select(0, index)
    sums = added(len(groups), index, (x - highest).exp()).index_select(0, index)
    return input._like(named(formula(x, highest, sums), name))


FORMS = {"sum": total, "norm": norm, "any": any_}
