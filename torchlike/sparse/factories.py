"""torch.sparse_coo_tensor and its relatives: sparse tensors from their parts."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arguments import as_size
from .._core import device as dev
from .._core import dtype as dt
from .._core import history
from .._core.grad_mode import mode
from .._public import FUNCTIONS
from .._size import Size
from .._tensor import Tensor
from ..ops.creation import LAYOUT_NAMES
from ..ops.from_data import from_data
from .compressed import LAYOUTS, Compressed, compressed
from .coo import Coo, coo, empty
from .invariants import check_compressed, check_coo
from .tensor import SparseTensor, named

INVARIANTS = [False]  # whether every new tensor's indices are checked: torch.sparse.check_sparse_tensor_invariants


def _numbers(data: Any, dtype: dt.dtype | None, device: Any) -> Tensor:
    """An argument as a tensor; one that is a tensor stays in its graph and shares its memory."""
    if isinstance(data, SparseTensor):
        raise RuntimeError("expected a strided tensor of indices or values")
    if not isinstance(data, Tensor):
        return from_data(data, dtype, device)
    return data if dtype is None and device is None else data.to(dtype=dtype or data.dtype, device=device or data.device)


def _held(values: Tensor, requires_grad: bool, name: str) -> Tensor:
    """Values as a sparse tensor holds them: a result where they require gradients, else an alias."""
    if requires_grad:
        return values.detach().requires_grad_()
    return named(values, name) if values._edge is not None and mode.enabled else values.detach()


def sparse_coo_tensor(*args: Any, dtype: dt.dtype | None = None, device: Any = None, requires_grad: bool = False, check_invariants: bool | None = None,
                      is_coalesced: bool | None = None, pin_memory: bool = False, layout: Any = None, **named_args: Any) -> Coo:
    """A tensor with `values[k]` at `indices[:, k]`; without a size the smallest one, without indices an empty one of the size."""
    parts = dict(zip(("indices", "values", "size"), args)) | named_args
    device = None if device is None else dev.canonical(device)
    if "values" not in parts:
        size = parts.get("size", parts.get("indices"))
        if size is None or isinstance(size, Tensor):
            raise TypeError("sparse_coo_tensor() received an invalid combination of arguments - expected indices and values, or a size")
        made = empty(as_size(size), len(size), from_data([], dtype or dt.get_default_dtype(), device))
        return made.requires_grad_() if requires_grad else made
    values = _numbers(parts["values"], dtype, device)
    places = _numbers(parts["indices"], dt.int64, device or values.device)
    if places.dim() == 1 and not places.numel():
        places = places.reshape(0, 0)
    if places.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(places.shape)}")
    if not values.dim():
        values = values.reshape(1)
    n = places.shape[0]
    size = parts.get("size")
    if size is None:
        host = places._host_array()
        if not host.size and n:
            host = np.full((n, 1), -1)
        if host.min(initial=0) < 0 and places.numel():
            raise RuntimeError(f"found negative index {host.min()} for dim {int(np.argmin(host.min(1)))}")
        size = (*(int(h) + 1 for h in host.max(1)), *values.shape[1:]) if n else tuple(values.shape[1:])
    size = as_size(size)
    if 0 not in size and math.prod(size) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")
    if len(size) != n + values.dim() - 1:
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {n}, dense_dim = {values.dim() - 1}")
    if values.shape[0] != places.shape[1]:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {places.shape[1]}, nnz from values: {values.shape[0]}")
    if tuple(values.shape[1:]) != size[n:]:
        raise RuntimeError(f"values has incorrect size, expected {[values.shape[0], *size[n:]]}, got {list(values.shape)}")
    if INVARIANTS[0] if check_invariants is None else check_invariants:
        check_coo(places._host_array(), size, bool(is_coalesced))
    unique = bool(is_coalesced) if is_coalesced is not None else False
    return coo(places.detach(), _held(values, requires_grad, "SparseCooTensorWithDimsAndTensors"), size, unique)


_LEGACY = """new() received an invalid combination of arguments - got ({}), but expected one of:
 * (*, torch.device device = None)
 * (Tensor indices, Tensor values, *, torch.device device = None)
 * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)
 * (tuple of ints size, *, torch.device device = None)
"""
# what a call of the type is given -> today's call, for its warning
_TODAY = {"": "(0,), dtype=", "shape, *, device=": "shape, dtype=, device=", "indices, values, *, device=": "indices, values, dtype=, device=",
          "indices, values, shape, *, device=": "indices, values, shape, dtype=, device="}


def legacy(kind: dt.dtype, device: Any, args: tuple, constructor: bool = True) -> Coo:
    """torch.sparse.FloatTensor(...), or (`constructor=False`) Tensor.new of a sparse tensor: of nothing, of sizes, or of indices, values and perhaps a size.

    A call of the type warns, once for each of these forms. Raises TypeError for anything else, also for a sequence of sizes that is not a torch.Size.
    """
    tensors = [isinstance(a, Tensor) for a in args]
    if any(tensors) and not (1 < len(args) <= 3 and all(tensors[:2]) and not any(tensors[2:])) or any(isinstance(a, str) for a in args):
        raise TypeError(_LEGACY.format(", ".join("Tensor" if isinstance(a, Tensor) else type(a).__name__ for a in args)))
    if not any(tensors) and len(args) == 1 and isinstance(args[0], (tuple, list)) and not isinstance(args[0], Size):
        raise TypeError(f"{'torch.sparse.SparseTensor' if constructor else 'SparseTensor.new'}(sequence) only accepts sizes.  Please use "
                        "torch.sparse_coo_tensor() or construct a strided tensor and convert it to sparse via to_sparse.")
    if constructor:
        form = ("indices, values, shape, *, device=" if len(args) == 3 else "indices, values, *, device=") if any(tensors) else "shape, *, device=" if args else ""
        history.warn(f"torch.sparse.SparseTensor({form}) is deprecated.  Please use torch.sparse_coo_tensor({_TODAY[form]}).", once=True)
    if any(tensors):
        return sparse_coo_tensor(*args)
    size = as_size(*args) if args else (0,)
    return empty(size, len(size), from_data([], kind, dev.canonical(device)))


# -- compressed ------------------------------------------------------------------------------------------------------------


def sparse_compressed_tensor(compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: dt.dtype | None = None, layout: Any = None,
                             device: Any = None, requires_grad: bool = False, check_invariants: bool | None = None, pin_memory: bool = False) -> Compressed:
    """Matrices by compressed rows or columns, of elements or blocks, as `layout` says."""
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
    if layout.name not in LAYOUTS:
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {LAYOUT_NAMES[layout.name]}")
    device = None if device is None else dev.canonical(device)
    values = _numbers(values, dtype, device)
    pointers, others = (_numbers(x, None if isinstance(x, (Tensor, np.ndarray)) else dt.int64, device or values.device).detach()
                        for x in (compressed_indices, plain_indices))
    cls = LAYOUTS[layout.name]
    size = _estimated(cls, pointers, others, values) if size is None else as_size(size)
    checked = INVARIANTS[0] if check_invariants is None else check_invariants
    if checked or not _has_form(cls, pointers, others, values, size):  # always where nothing could be done with such a tensor
        check_compressed(layout.name, pointers, others, values, size)
    if any(t.dtype not in (dt.int32, dt.int64) for t in (pointers, others)):
        raise RuntimeError(f"compressed_indices and plain_indices must be int32 or int64, but got {pointers.dtype} and {others.dtype}")
    return compressed(cls, pointers, others, _held(values, requires_grad, "SparseCompressedTensor"), size)


def _has_form(cls: type, pointers: Tensor, others: Tensor, values: Tensor, size: tuple) -> bool:
    """Whether the parts have the dimensions of such a tensor, and as many values as indices."""
    b = pointers.dim() - 1
    return (b >= 0 and others.dim() == b + 1 and values.dim() > b + 2 * cls.blocked and len(size) == values.dim() + 1 - 2 * cls.blocked
            and tuple(pointers.shape[:b]) == tuple(others.shape[:b]) == tuple(values.shape[:b]) == tuple(size[:b]) and values.shape[b] == others.shape[b])


def _estimated(cls: type, pointers: Tensor, others: Tensor, values: Tensor) -> tuple:
    """The smallest size."""
    b, n = pointers.dim() - 1, 2 * cls.blocked
    if b < 0 or others.dim() != b + 1 or values.dim() <= b + n:
        check_compressed(cls.layout_name, pointers, others, values, ())  # raises
    block = tuple(max(m, 1) for m in values.shape[b + 1:b + 1 + n]) or (1, 1)
    size = [pointers.shape[-1] - 1, int(others._host_array().max(initial=-1)) + 1]
    rows, columns = size[::-1] if cls.axis else size
    return (*pointers.shape[:-1], rows * block[0], columns * block[1], *values.shape[b + 1 + n:])


def _of_layout(name: str):
    lines, free = ("ccol", "row") if LAYOUTS[name].axis else ("crow", "col")
    names = {f"{lines}_indices": "compressed_indices", f"{free}_indices": "plain_indices"}

    def make(*args: Any, layout: Any = None, **options: Any) -> Compressed:
        if layout is not None and layout.name != name:
            raise RuntimeError(f"{name}_tensor: layout must be {LAYOUT_NAMES[name]} but got {LAYOUT_NAMES[layout.name]}")
        return sparse_compressed_tensor(*args, layout=FUNCTIONS[name], **{names.get(n, n): x for n, x in options.items()})
    make.__name__ = make.__qualname__ = name + "_tensor"
    return make


sparse_csr_tensor, sparse_csc_tensor, sparse_bsr_tensor, sparse_bsc_tensor = map(_of_layout, LAYOUTS)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple, layout: Any = None) -> Tensor:
    """A sparse matrix whose diagonals at `offsets` are the rows of `diagonals`: column j of a row lands in column j."""
    if diagonals.dim() not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dim() > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.dtype is not dt.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.type().rpartition('.')[2].removesuffix('Tensor')}")
    if layout is not None and layout.name not in ("sparse_coo", "sparse_csr", "sparse_csc"):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {LAYOUT_NAMES[layout.name]}")
    rows = diagonals if diagonals.dim() == 2 else diagonals.unsqueeze(0)
    where = np.atleast_1d(offsets._host_array())
    if rows.shape[0] != len(where):
        raise RuntimeError(f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({len(where)})")
    if len(set(where.tolist())) != len(where):
        raise RuntimeError("Offset tensor contains duplicate values")
    n, m = shape
    j = np.arange(min(rows.shape[1], m))
    places, sources = [np.zeros((2, 0), np.int64)], [np.zeros(0, np.int64)]
    for k, offset in enumerate(where.tolist()):
        inside = j[(j - offset >= 0) & (j - offset < n)]
        places.append(np.stack([inside - offset, inside]))
        sources.append(k * rows.shape[1] + inside)
    entries = rows.reshape(-1).index_select(0, from_data(np.concatenate(sources)))
    made = coo(from_data(np.concatenate(places, 1)), entries, (n, m), False, True)
    return made if layout is None else made.to_sparse(layout=layout)


def from_file(layout: Any, indices: tuple, entries: Tensor, size: tuple, coalesced: bool) -> SparseTensor:
    """A sparse tensor of a checkpoint."""
    if layout.name == "sparse_coo":
        return sparse_coo_tensor(*indices, entries, size, is_coalesced=coalesced, check_invariants=True)
    return sparse_compressed_tensor(*indices, entries, size, layout=layout, check_invariants=True)


class check_sparse_tensor_invariants:  # noqa: N801  (torch's name)
    """Whether new sparse tensors are checked; a switch, a context manager and a decorator."""

    @staticmethod
    def is_enabled() -> bool:
        return INVARIANTS[0]

    @staticmethod
    def enable() -> None:
        INVARIANTS[0] = True

    @staticmethod
    def disable() -> None:
        INVARIANTS[0] = False

    def __init__(self, enable: bool = True):
        self.state, self.before = enable, None

    def __enter__(self) -> None:
        if self.before is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager instance for context nesting.")
        self.before, INVARIANTS[0] = INVARIANTS[0], self.state

    def __exit__(self, *exc: Any) -> None:
        INVARIANTS[0], self.before = self.before, None

    def __call__(self, f: Any) -> Any:
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return f(*args, **kwargs)
        return checked
