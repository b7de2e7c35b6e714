"""Matrix products in which an operand is sparse."""
from __future__ import annotations

import numpy as np
import scipy.sparse

from .._core.errors import class_name
from .._core.registry import Op
from .._tensor import Tensor, apply
from ..ops.creation import LAYOUT_NAMES
from ..ops.joining import cat, stack
from ..ops.positions import rows_add
from .compressed import Compressed, Csr, compress
from .coo import Coo, coo, empty, gathered
from .tensor import SparseTensor, named, on_device

_SCIPY = {"f4", "f8", "c8", "c16"}


def _kernel(xp, rows, cols, entries, dense, n):
    if xp is np:
        if entries.dtype.str[1:] in _SCIPY:
            return scipy.sparse.csr_matrix((entries, (rows, cols)), (n, dense.shape[0])) @ dense
        return rows_add(n, rows, entries[:, None] * dense[cols])
    return xp.zeros((n, dense.shape[1]), entries.dtype).at[rows].add(entries[:, None] * dense[cols])


def _vjp(xp, g, rows, cols, entries, dense, needs):
    return (None, None, (g[rows] * dense[cols].conj()).sum(1) if needs[2] else None,
            _kernel(xp, cols, rows, entries.conj(), g, dense.shape[0]) if needs[3] else None)


def _product(name: str, torch_name: str) -> Op:
    return Op(name, _kernel, shape=lambda rows, cols, entries, dense, n: ((n, dense.shape[1]), entries.dtype), vjp=_vjp, torch_name=torch_name)


_MM, _ADDMM = _product("mm_sparse", "MmBackward0"), _product("addmm_sparse", "SparseAddmmBackward0")


def _matrix(t: Tensor) -> Coo:
    """A sparse operand as coordinates."""
    if isinstance(t, Compressed) and t.batch_dim:
        raise RuntimeError(f"mat1 must be a matrix, got {t.dim()}-D tensor")
    t = t.coordinates() if isinstance(t, Compressed) else t
    if t.dense_dim() or t.sparse_dim() != 2:
        raise RuntimeError(f"addmm: expected a matrix of 2 sparse dimensions, but got {t.sparse_dim()} sparse and {t.dense_dim()} dense ones")
    return t


def _check(a: Tensor, b: Tensor) -> None:
    for t in (a, b):
        if t.dim() != 2:
            raise RuntimeError(f"addmm: matrices expected, got {t.dim()}D tensor")
    if a.shape[1] != b.shape[0]:
        if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype.short} but found {b.dtype.short}")


def _refuse_blocks(a: Tensor, b: Tensor) -> None:
    """Blocks are multiplied with strided matrices: those by rows from the left, those by columns from the right."""
    kinds = [t.class_name if isinstance(t, SparseTensor) else "Strided" for t in (a, b)]
    if any(isinstance(t, Compressed) and t.blocked for t in (a, b)) and kinds not in (["SparseBsr", "Strided"], ["Strided", "SparseBsc"]):
        raise RuntimeError(f"addmm: computation on CPU is not implemented for Strided + {kinds[0]} @ {kinds[1]}")


def product(a: Tensor, b: Tensor, op: Op = _MM) -> Tensor:
    """a @ b for matrices, at least one of them sparse. The product of two sparse ones is sparse."""
    _check(a, b)
    _refuse_blocks(a, b)
    if not isinstance(a, SparseTensor):
        s = _matrix(b)
        s.host()
        return named(apply(op, (s._places[1], s._places[0], s._entries, a.t()), (b.shape[1],)).t(), op.torch_name.removesuffix("Backward0"))
    if isinstance(b, SparseTensor):
        made = _both(_matrix(a).coalesce(), _matrix(b).coalesce(), "Mm" if op is _MM else "SparseSparseMatmul")
        return compress(made, Csr, "Mm") if isinstance(a, Compressed) else made
    s = _matrix(a)
    s.host()
    return apply(op, (s._places[0], s._places[1], s._entries, b), (a.shape[0],))


def _both(a: Coo, b: Coo, name: str) -> Coo:
    (rows, inner), (inner_b, cols) = a.host(), b.host()
    starts = np.searchsorted(inner_b, np.arange(a._dims[1] + 1))
    counts = np.diff(starts)[inner]
    from_a = np.repeat(np.arange(len(rows)), counts)
    from_b = np.arange(len(from_a)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts[inner], counts)
    entries = a._entries.index_select(0, on_device(from_a, a._entries)) * b._entries.index_select(0, on_device(from_b, b._entries))
    return gathered(np.stack([rows[from_a], cols[from_b]]), entries, (a._dims[0], b._dims[1]), name)


# -- torch's functions -----------------------------------------------------------------------------------------------------


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """input @ mat2."""
    if not isinstance(mat2, Tensor):
        raise TypeError(f"mm(): argument 'mat2' (position 2) must be Tensor, not {class_name(mat2)}")
    return product(input, mat2)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """input @ other, of matrices and vectors."""
    if not isinstance(other, Tensor):
        raise TypeError(f"matmul(): argument 'other' (position 2) must be Tensor, not {class_name(other)}")
    dims = input.dim(), other.dim()
    if dims == (2, 2):
        return product(input, other)
    if dims == (2, 1):
        return mv(input, other)
    if dims == (1, 2):
        return mv(other.t(), input)
    sparse = input if isinstance(input, SparseTensor) else other
    if dims == (3, 3) and isinstance(input, Coo):
        return bmm(input, other)
    if dims == (1, 1):
        sparse.refuse("dot")
    if isinstance(sparse, Coo) and sparse.dim() > 2:
        sparse.reshape()
    sparse.expand()


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A sparse matrix times a vector."""
    if not isinstance(input, SparseTensor) or isinstance(vec, SparseTensor):
        (vec if isinstance(vec, SparseTensor) else input).refuse("mv")
    if input.dim() != 2 or vec.dim() != 1:
        raise RuntimeError("mv: two tensor dim should be 2 and 1, but got " + f"SparseTensor Dim: {input.dim()}Tensor Dim: {vec.dim()}")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    return named(product(input, vec.unsqueeze(1)).squeeze(1), "Mv")


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """A batch of sparse matrices times one of strided matrices: one product with the batch on the diagonal."""
    if isinstance(mat2, SparseTensor):
        raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
    if not isinstance(input, Coo):
        input.refuse("bmm")
    if input.dim() != 3 or mat2.dim() != 3 or input.dense_dim():
        raise RuntimeError("bmm_sparse: Tensor 'self' and 'mat2' must have 3 dimensions, all of them sparse")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError("bmm_sparse: the sizes of the batches or of the summed dimension do not match")
    if input.dtype is not mat2.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.short} but found {mat2.dtype.short}")
    b, n, k = input.shape
    input.host()
    which, rows, cols = (input._places[d] for d in range(3))
    made = apply(_MM, (which * n + rows, which * k + cols, input._entries, mat2.reshape(b * k, mat2.shape[2])), (b * n,))
    return made.reshape(b, n, mat2.shape[2])


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1, op: Op = _MM) -> Tensor:
    """beta * input + alpha * mat1 @ mat2."""
    if isinstance(input, SparseTensor) and not (isinstance(mat1, SparseTensor) and isinstance(mat2, SparseTensor)):
        raise RuntimeError(f"addmm_sparse_dense: expected strided result tensor, got tensor with layout {input.class_name}")
    made = product(mat1, mat2, op)
    if isinstance(made, SparseTensor) and not isinstance(input, SparseTensor):
        made = made.to_dense()
    made = made if alpha == 1 else made * alpha
    if beta:
        made = (input if beta == 1 else input * beta) + made
    return named(made, "Addmm" if op is _MM else "SparseAddmm")


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * mat @ vec, of a compressed matrix."""
    if not isinstance(mat, Compressed):
        mat.refuse("addmv")
    if mat.dim() != 2 or vec.dim() != 1 or mat.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({mat.shape[0]}), mat ({'x'.join(map(str, mat.shape))}), vec ({vec.shape[0]})")
    made = mv(mat, vec) * alpha
    return named(input.expand(made.shape) * beta + made if beta else made, "Addmv")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, of a sparse weight or input."""
    if isinstance(input, SparseTensor) or input.dim() == 2:
        made = mm(input, weight.t())
    else:
        made = mm(input.reshape(-1, input.shape[-1]), weight.t()).reshape(*input.shape[:-1], weight.shape[0])
    return made if bias is None else named(bias + made, "Addmm")


def _rows_of_product(name: str, mat1: Tensor, mat2: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows of mat1 have entries, in order, and these rows of mat1 @ mat2; torch's errors for what is no COO matrix, or no matrix."""
    if not isinstance(mat1, Coo):
        mat1.refuse(name) if isinstance(mat1, SparseTensor) else None
        raise RuntimeError(f"{name}: expected 'mat1' to have sparse layout, got 'mat1' with layout Strided")
    if isinstance(mat2, SparseTensor):
        raise RuntimeError(f"{name}: expected 'mat2' to have strided layout, got 'mat2' with layout {mat2.class_name}")
    for place, t in ((2, mat1), (3, mat2)):
        if t.dim() != 2:
            raise RuntimeError(f"{name}: Argument #{place}: matrices expected, got {t.dim()}D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"{name}: Argument #3: Expected dim 0 size {mat1.shape[1]}, got {mat2.shape[0]}")
    if mat1.dtype is not mat2.dtype:
        raise RuntimeError(f"expected scalar type {mat1.dtype.short} but found {mat2.dtype.short}")
    rows, which = np.unique(mat1.host()[0], return_inverse=True)
    compact = apply(_MM, (on_device(which.reshape(-1), mat1._entries), mat1._places[1], mat1._entries, mat2), (len(rows),))
    return on_device(rows, mat1._entries), compact


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """mat1 @ mat2 of a COO matrix and a strided one: rows are sparse, columns dense."""
    rows, product_rows = _rows_of_product("hspmm", mat1, mat2)
    return coo(rows.unsqueeze(0), named(product_rows, "Hspmm"), (mat1.shape[0], mat2.shape[1]), False, True)


def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2 of COO matrices and a strided mat2: input's entries, then every column of the product's rows."""
    if not isinstance(input, Coo):
        input.refuse("sspaddmm") if isinstance(input, SparseTensor) else None
        raise RuntimeError("sspaddmm: expected 'self' to have sparse layout, got 'self' with layout Strided")
    rows, product_rows = _rows_of_product("sspaddmm", mat1, mat2)
    shape = mat1.shape[0], mat2.shape[1]
    for d in range(2):
        if input.shape[d] != shape[d]:
            raise RuntimeError(f"sspaddmm: Argument #1: Expected dim {d} size {shape[d]}, got {input.shape[d]}")
    columns = on_device(np.arange(shape[1], dtype=np.int64), mat1._entries)
    places = cat([input._places, stack([rows.repeat_interleave(shape[1]), columns.repeat(len(rows))])], 1)
    entries = [input._entries if beta == 1 else input._entries * beta, (product_rows if alpha == 1 else product_rows * alpha).reshape(-1)]
    return coo(places, named(cat(entries), "Sspaddmm"), shape)


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """input @ mat of a COO matrix and a strided one, with every column of the rows that have entries."""
    if not isinstance(input, SparseTensor):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")
    return sspaddmm(empty((input.shape[0], mat.shape[-1]), 2, input._entries), input, mat)


def _combined(mat1: Csr, mat2: Tensor, reduce: str) -> Tensor:
    """The product with another sum: rows of mat2, times the entries, combined by 'mean', 'amax' or 'amin'; 0 where a row has no entries."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")
    if reduce not in ("mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if mat2.dim() != 2 or mat1.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, mat1.shape))} and {'x'.join(map(str, mat2.shape))})")
    rows, cols = mat1.coordinates()._places
    terms = mat1._entries.unsqueeze(1) * mat2.index_select(0, cols)
    base = terms.new_zeros((mat1.shape[0], mat2.shape[1]))
    if terms.is_floating_point():  # unlike any term, so that no gradient is shared with it
        base = base.masked_fill((mat1._pointers.diff() > 0).unsqueeze(1), float("nan"))
    return base.scatter_reduce(0, rows.unsqueeze(1).expand_as(terms), terms, reduce, include_self=False)


def sparse_mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of a sparse matrix and a sparse or strided one, with gradients for both; a sparse one's has its pattern."""
    if reduce not in (None, "sum"):
        if not isinstance(mat1, Csr) or isinstance(mat2, SparseTensor):
            (mat1 if isinstance(mat1, SparseTensor) else mat2).refuse("_sparse_mm_reduce_impl")
        return _combined(mat1, mat2, reduce)
    if not isinstance(mat1, SparseTensor) and not isinstance(mat2, SparseTensor):
        return mat1.mm(mat2)
    return product(mat1, mat2, _ADDMM)


def sparse_addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2) for a sparse mat1, with gradients as of `mm`."""
    return addmm(mat, mat1, mat2, beta=beta, alpha=alpha, op=_ADDMM)


def sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0, out: Tensor | None = None) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), at the places of the sparse input only."""
    if not isinstance(input, SparseTensor):
        raise NotImplementedError("Could not run 'aten::sparse_sampled_addmm' with arguments from the 'CPU' backend.")
    result = input if out is None else out
    if result.layout.name != "sparse_csr" and (out is not None or isinstance(input, Compressed)):
        raise RuntimeError(f"sampled_addmm: Expected result to have sparse csr layout, but got {LAYOUT_NAMES[result.layout.name]}")
    _check_sampled(input, mat1, mat2, result)
    s = input.coordinates() if isinstance(input, Compressed) else input
    s.host()
    b = s.sparse_dim() - 2
    batch, row, column = tuple(s._places[d] for d in range(b)), s._places[b], s._places[b + 1]
    made = (mat1[(*batch, row)] * mat2.mT[(*batch, column)]).sum(-1)
    made = input._like(input._entries * beta + made.reshape(input._entries.shape) * alpha)
    return made if out is None else out.adopt(made)


def _check_sampled(input: Tensor, mat1: Tensor, mat2: Tensor, result: Tensor) -> None:
    for name, t in ("mat1", mat1), ("mat2", mat2):
        if t.layout.name != "strided":
            raise RuntimeError(f"sampled_addmm: Expected {name} to have strided layout, but got {LAYOUT_NAMES[t.layout.name]}")
    for a, b, names in (mat1, mat2, "mat1 and mat2"), (mat1, input, "mat1 and self"), (result, input, "result and self"):
        if a.dtype is not b.dtype:
            raise RuntimeError(f"sampled_addmm: Expected {names} to have the same dtype, but got {a.dtype.short} and {b.dtype.short}")
    for name, t in ("mat1", mat1), ("mat2", mat2):
        if t.dim() < 2:
            raise RuntimeError(f"sampled_addmm: Expected {name} to be a matrix, got {t.dim()}-D tensor")
    if mat1.shape[-1] != mat2.shape[-2]:
        raise RuntimeError("sampled_addmm: mat1 and mat2 shapes cannot be multiplied "
                           f"({mat1.shape[-2]}x{mat1.shape[-1]} and {mat2.shape[-2]}x{mat2.shape[-1]})")
    for d, name, t in (-2, "mat1", mat1), (-1, "mat2", mat2):
        if input.shape[d] != t.shape[d]:
            raise RuntimeError(f"sampled_addmm: self.shape[{d}] must match {name}.shape[{d}]")


FORMS = {"mm": mm, "spmm": mm, "matmul": matmul, "mv": mv, "bmm": bmm, "addmm": addmm, "addmv": addmv, "linear": linear, "sspaddmm": sspaddmm, "smm": smm}
