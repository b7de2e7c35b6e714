"""The names of sparse tensors on torch and on strided tensors. What they do is in `torchlike.sparse`, loaded at the first call."""
from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from .._exchange import copied
from .._public import FUNCTIONS, named_as, public
from .._tensor import Tensor


def _loaded(module: str) -> Any:
    package = __package__.replace(".ops", ".sparse")
    importlib.import_module(package)
    return importlib.import_module(f"{package}.{module}")


def _later(module: str, name: str) -> Callable:
    def call(*args: Any, **kwargs: Any) -> Tensor:
        return getattr(_loaded(module), name)(*args, **kwargs)
    call.__name__ = call.__qualname__ = name
    return call


for _name in ("sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor", "sparse_compressed_tensor"):
    FUNCTIONS[_name] = _later("factories", _name)
for _name in ("_validate_compressed_sparse_indices", *(f"_validate_sparse_{kind}_tensor_args" for kind in ("coo", "compressed", "csr", "csc", "bsr", "bsc"))):
    FUNCTIONS[_name] = _later("invariants", _name)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """torch.mm, by the name that sparse programs use."""
    return FUNCTIONS["mm"](input, mat2)


FUNCTIONS["spmm"], FUNCTIONS["dsmm"] = spmm, named_as("dsmm", copied(spmm))


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """A strided tensor is returned as it is."""
    return self if dtype is None else self.to(dtype)


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
    """The elements that are not zero, as a sparse_coo tensor (or of another `layout`)."""
    return _loaded("conversions").to_sparse(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Matrices by compressed rows."""
    return _loaded("conversions").to_sparse_csr(self, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """Matrices by compressed columns."""
    return _loaded("conversions").to_sparse_csc(self, dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Matrices by compressed rows of blocks, of which those are kept that are not zero."""
    return _loaded("conversions").to_sparse_bsr(self, blocksize, dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """Matrices by compressed columns of blocks."""
    return _loaded("conversions").to_sparse_bsc(self, blocksize, dense_dim)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places of a sparse mask."""
    return _loaded("shapes").sparse_mask(self, mask)


@public()
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta=1, alpha=1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2, sparse, of sparse matrices (COO) and a strided mat2; RuntimeError for other layouts."""
    return _loaded("products").sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


@public()
def smm(input: Tensor, mat: Tensor) -> Tensor:
    """input @ mat, sparse, of a sparse matrix (COO) and a strided one; RuntimeError for other layouts."""
    return _loaded("products").smm(input, mat)


@public(method=False)
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """mat1 @ mat2 of a sparse matrix (COO) and a strided one, with sparse rows and dense columns; RuntimeError for other layouts."""
    return _loaded("products").hspmm(mat1, mat2)


def _own(self: Tensor, name: str) -> Callable | None:
    """The method of the class of a tensor of another kind, where it has one of its own."""
    own = getattr(type(self), name)
    return None if own is getattr(Tensor, name) else own


def _or_its_own(f: Callable) -> Callable:
    """f for strided tensors; for a sparse one its own method, where f is asked of Tensor and not of the tensor."""
    @functools.wraps(f)
    def ask(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        own = _own(self, f.__name__) if self._sparse else None
        return (own or f)(self, *args, **kwargs)
    return ask


for _f in (to_dense, to_sparse, to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc, sparse_mask):
    setattr(Tensor, _f.__name__, _or_its_own(_f))
Tensor.to_sparse_coo = Tensor.to_sparse


def sparse_dim(self: Tensor) -> int:
    """How many dimensions have places: none."""
    return 0


def dense_dim(self: Tensor) -> int:
    """How many dimensions an entry has."""
    return self.ndim


Tensor.sparse_dim, Tensor.dense_dim = _or_its_own(sparse_dim), _or_its_own(dense_dim)


def _only_sparse(name: str, layout: str) -> Callable:
    def refuse(self: Tensor) -> Any:
        if self._sparse:  # asked of Tensor, not of the tensor
            own = _own(self, name)
            return own(self) if own else self.refuse(name)
        raise RuntimeError(f"{name} expected sparse {layout}tensor layout but got Strided")
    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def _no_parts(name: str) -> Callable:
    def refuse(self: Tensor, *args: Any) -> Any:
        if self._sparse:
            own = _own(self, name)
            return own(self, *args) if own else self.refuse(name)
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{self.device.type.upper()}' backend.")
    refuse.__name__ = refuse.__qualname__ = name
    return refuse


for _name, _layout in (("coalesce", "coordinate "), ("is_coalesced", "coordinate "), ("indices", "coordinate "), ("values", ""),
                       ("crow_indices", "row compressed "), ("col_indices", "row compressed "), ("ccol_indices", "column compressed "),
                       ("row_indices", "column compressed ")):
    setattr(Tensor, _name, _only_sparse(_name, _layout))
for _name in ("_indices", "_values", "_nnz", "sparse_resize_", "sparse_resize_and_clear_"):
    setattr(Tensor, _name, _no_parts(_name))


def to_padded_tensor(self: Tensor, padding: float, output_size: Any = None) -> Tensor:
    """Parts stacked and filled up: NotImplementedError but for nested tensors."""
    own = _own(self, "to_padded_tensor")
    if own:  # asked of Tensor, not of the tensor
        return own(self, padding, output_size)
    raise NotImplementedError(f"Could not run 'aten::to_padded_tensor' with arguments from the '{self.device.type.upper()}' backend.")


Tensor.to_padded_tensor = to_padded_tensor
