"""Matrices of which each four neighbours in a row hold two numbers: half of the memory, on GPUs. Products are those of the whole matrix, which XLA multiplies."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from .._core import dtype as dt
from .._functions import torch
from .._ops import aten
from .._tensor import Tensor
from ..autograd.grad_mode import no_grad

__all__ = ["SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUTLASS", "SparseSemiStructuredTensorCUSPARSELT", "to_sparse_semi_structured"]


class _Limits(NamedTuple):
    """What a matrix's sizes are multiples of, and those of what it is multiplied with."""

    sparse_min_rows: int
    sparse_min_cols: int
    dense_min_rows: int
    dense_min_cols: int


class SparseSemiStructuredTensor(Tensor):
    """A matrix (rows, columns) as `packed` (rows, columns / 2), the numbers that it holds, and `meta` (rows, columns / 8) of uint8, two bits for each one's
    place among its four. A transposed one has them as `packed_t` and `meta_t`. Made by `to_sparse_semi_structured`."""

    BACKEND: ClassVar[str]
    _DEFAULT_ALG_ID: ClassVar[int] = 0
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar[dict[dt.dtype, _Limits]]
    _FORCE_CUTLASS: ClassVar[bool] = False
    _FUSE_TRANSPOSE: ClassVar[bool] = False
    _PROTOTYPE_WARNING_SHOWN: ClassVar[bool] = False

    @staticmethod
    def __new__(cls, shape: Any, packed: Tensor | None, meta: Tensor | None, packed_t: Tensor | None, meta_t: Tensor | None,
                compressed_swizzled_bitmask: Tensor | None, fuse_transpose_cusparselt: bool = False, alg_id_cusparselt: int = 0, requires_grad: bool = False) -> Any:
        if not SparseSemiStructuredTensor._PROTOTYPE_WARNING_SHOWN:
            warnings.warn("The PyTorch API of SparseSemiStructuredTensor is in prototype stage and will change in the near future. Please open a Github issue for "
                          "features requests and see our documentation on the torch.sparse module for further information about the project.", UserWarning, stacklevel=2)
            SparseSemiStructuredTensor._PROTOTYPE_WARNING_SHOWN = True
        held = packed if packed is not None else packed_t
        if held is None:
            raise ValueError("At least one of packed or packed_t must be provided")
        made = Tensor._make_wrapper_subclass(cls, shape, dtype=held.dtype, device=held.device, layout=held.layout, requires_grad=requires_grad)
        made.packed, made.meta, made.packed_t, made.meta_t, made.compressed_swizzled_bitmask = packed, meta, packed_t, meta_t, compressed_swizzled_bitmask
        made.fuse_transpose_cusparselt, made.alg_id_cusparselt = fuse_transpose_cusparselt, alg_id_cusparselt
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """`__new__` has made it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def _parts(self) -> tuple:
        return self.packed, self.meta, self.packed_t, self.meta_t, self.compressed_swizzled_bitmask

    def _like(self, shape: Any, parts: tuple, requires_grad: bool = False) -> SparseSemiStructuredTensor:
        return type(self)(shape, *parts, self.fuse_transpose_cusparselt, self.alg_id_cusparselt, requires_grad)

    def __tensor_flatten__(self) -> tuple:
        return [n for n in ("packed", "meta", "packed_t", "meta_t", "compressed_swizzled_bitmask") if getattr(self, n) is not None], (
            self.shape, self.fuse_transpose_cusparselt, self.alg_id_cusparselt, self.requires_grad)

    @classmethod
    def __tensor_unflatten__(cls, inner_tensors: dict, tensor_meta: tuple, outer_size: Any, outer_stride: Any) -> SparseSemiStructuredTensor:
        shape, fuse, algorithm, requires_grad = tensor_meta
        return cls(shape, *[inner_tensors.get(n) for n in ("packed", "meta", "packed_t", "meta_t", "compressed_swizzled_bitmask")], fuse, algorithm, requires_grad)

    @classmethod
    def _validate_device_dim_dtype_shape(cls, original_tensor: Tensor) -> None:
        """RuntimeError for what no such matrix is made of."""
        def refuse(what: str) -> None:
            raise RuntimeError(f"Error original_tensor{what}")
        if not original_tensor.is_cuda:
            refuse(f".device= {original_tensor.device} is not supported! Only CUDA tensors are currently supported.")
        if original_tensor.dim() != 2:
            refuse(f".dim = {original_tensor.dim()} is not supported! Only 2d tensors are currently supported.")
        if not original_tensor.is_contiguous():
            refuse(" is not contiguous!Only contiguous tensors are currently supported.")
        if original_tensor.dtype not in cls._DTYPE_SHAPE_CONSTRAINTS:
            refuse(f".dtype {original_tensor.dtype} is not a supported dtype for {cls}!")
        m, n = original_tensor.shape
        limits = cls._DTYPE_SHAPE_CONSTRAINTS[original_tensor.dtype]
        rows, columns = limits.sparse_min_rows, limits.sparse_min_cols
        if m < rows or m % rows or n < columns or n % columns:
            refuse(f".shape {tuple(original_tensor.shape)} is not supported! Both dimensions must be larger or equal than and a multiple of ({rows}, {columns})")

    @classmethod
    def from_dense(cls, original_tensor: Tensor, alg_id: int = 0) -> SparseSemiStructuredTensor:
        """Of a matrix with at most two numbers other than zero among each four; of more, the two that are largest stay."""
        cls._validate_device_dim_dtype_shape(original_tensor)
        packed, meta = _packed(original_tensor)
        return cls(original_tensor.shape, packed, meta, None, None, None, cls._FUSE_TRANSPOSE, alg_id, original_tensor.requires_grad)

    def to_dense(self) -> Tensor:
        """The whole matrix."""
        with no_grad():
            if self.packed is not None:
                return _unpacked(self.packed, self.meta)
            return _unpacked(self.packed_t, self.meta_t).t()

    def _mm(self, B: Tensor, *, bias: Tensor | None = None, **kwargs: Any) -> Tensor:  # noqa: N803  (torch's name)
        """Its product with a strided matrix (columns, n), and a vector of rows added."""
        if isinstance(B, SparseSemiStructuredTensor):
            raise ValueError("`SparseSemiStructuredTensor @ SparseSemiStructuredTensor` is not supported by the hardware")
        if self.ndim != 2 or B.ndim != 2:
            raise NotImplementedError(f"`{type(self).__name__}` matmul: Broadcasting is not implemented")
        made = self.to_dense() @ B
        return made if bias is None else made + bias[:, None]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        form = _FORMS.get(func.overloadpacket)
        if form is None:
            raise NotImplementedError(f"{cls.__name__} only supports a specific set of operations, can't perform requested op ({func.__name__})")
        return form(*args, **(kwargs or {}))


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """With CUTLASS's limits of dtypes and sizes."""

    BACKEND = "cutlass"
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar = {dt.int8: _Limits(16, 128, 16, 16), dt.float16: _Limits(32, 64, 8, 8), dt.bfloat16: _Limits(32, 64, 8, 8),
                                          dt.float32: _Limits(32, 32, 4, 4)}


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """With cuSPARSELt's limits of dtypes and sizes."""

    BACKEND = "cusparselt"
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar = {dt.float8_e4m3fn: _Limits(32, 32, 16, 16), dt.int8: _Limits(32, 32, 16, 16), dt.float16: _Limits(16, 16, 8, 8),
                                          dt.bfloat16: _Limits(16, 16, 8, 8)}


def to_sparse_semi_structured(original_tensor: Tensor, transposed: bool = False) -> SparseSemiStructuredTensor:
    """A matrix of which each four neighbours in a row hold two numbers. RuntimeError for other dtypes, sizes and devices than `_DTYPE_SHAPE_CONSTRAINTS` says:
    they are made on GPUs, by torchlike as by PyTorch. `transposed` changes nothing."""
    if transposed:
        warnings.warn("Setting transpose from `to_sparse_semi_structured` is deprecated and will be removed in a future release. `SparseSemiStructuredTensor` "
                      "only support contiguous input tensors.", FutureWarning, stacklevel=2)
    kind = SparseSemiStructuredTensorCUTLASS if SparseSemiStructuredTensor._FORCE_CUTLASS else SparseSemiStructuredTensorCUSPARSELT
    return kind.from_dense(original_tensor)


def _packed(dense: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix's two largest numbers of each four, in order, and their places, four to a byte."""
    with no_grad():
        fours = dense.detach().reshape(dense.shape[0], -1, 4)
        places = fours.float().abs().topk(2, -1).indices.sort(-1).values
        bits = places.reshape(dense.shape[0], -1, 4).to(dt.uint8)
        return fours.gather(-1, places).reshape(dense.shape[0], -1), (bits << torch.arange(0, 8, 2, dtype=dt.uint8, device=dense.device)).sum(-1).to(dt.uint8)


def _unpacked(packed: Tensor, meta: Tensor) -> Tensor:
    """The matrix again."""
    rows = packed.shape[0]
    places = (meta[..., None] >> torch.arange(0, 8, 2, dtype=dt.uint8, device=meta.device)) & 3
    pairs = packed.reshape(rows, -1, 2)
    return torch.zeros(rows, pairs.shape[1], 4, dtype=packed.dtype, device=packed.device).scatter(-1, places.reshape(rows, -1, 2).long(), pairs).reshape(rows, -1)


# -- the operators that there are for them ---------------------------------------------------------------------------------------


def _transposed(x: SparseSemiStructuredTensor) -> SparseSemiStructuredTensor:
    packed, meta, packed_t, meta_t, bitmask = x._parts()
    return x._like((x.shape[1], x.shape[0]), (packed_t, meta_t, packed, meta, None if bitmask is None else bitmask.transpose(0, 1)))


def _viewed(x: SparseSemiStructuredTensor, size: Any) -> SparseSemiStructuredTensor:
    if tuple(size) != tuple(x.shape):
        raise NotImplementedError(f"`view` is not implemented for SparseSemiStructuredTensor, except for the dummy case (shape={tuple(x.shape)} -> {tuple(size)})")
    return x


def _mm(a: Tensor, b: Tensor) -> Tensor:
    if isinstance(a, SparseSemiStructuredTensor):
        return a._mm(b)
    if a.ndim != 2:
        raise NotImplementedError("`SparseSemiStructuredTensor` matmul: Broadcasting is not implemented")
    return b.t()._mm(a.t()).t()


def _addmm(bias: Tensor, a: Tensor, b: Tensor, **kwargs: Any) -> Tensor:
    if bias.ndim != 1:
        raise NotImplementedError(f"`SparseSemiStructuredTensor` matmul: only bias dim=1 supported. Shape={bias.shape}")
    if isinstance(a, SparseSemiStructuredTensor):
        raise NotImplementedError("`SparseSemiStructuredTensor` matmul: operation is not supported")
    return b.t()._mm(a.t(), bias=bias).t()


def _linear(x: Tensor, weight: SparseSemiStructuredTensor, bias: Tensor | None = None) -> Tensor:
    return weight._mm(x.reshape(-1, x.shape[-1]).t(), bias=bias).t().reshape(*x.shape[:-1], -1)


def _each_part(f: Callable) -> Callable:
    return lambda x, *args, **kwargs: x._like(x.shape, tuple(None if p is None else f(p, *args, **kwargs) for p in x._parts()))


def _of_parts(name: str) -> Callable:
    return lambda x: next(p for p in (getattr(x, name), getattr(x, f"{name}_t")) if p is not None)


def _to_copy(x: SparseSemiStructuredTensor, *, dtype: dt.dtype | None = None, device: Any = None, **kwargs: Any) -> SparseSemiStructuredTensor:
    if dtype not in (None, x.dtype):
        raise NotImplementedError(f"{type(x).__name__} has no other dtype: make one of `to_dense().to({dtype})`")
    return _each_part(lambda p: p.to(device=device, copy=True))(x)


_FORMS = {aten.t: _transposed, aten.view: _viewed, aten.mm: _mm, aten.matmul: _mm, aten.addmm: _addmm, aten.linear: _linear, aten.detach: _each_part(Tensor.detach),
          aten.clone: _each_part(lambda p, **kwargs: p.clone()), aten._to_copy: _to_copy, aten.values: _of_parts("packed"), aten.indices: _of_parts("meta"),
          aten.is_same_size: lambda x, y: x.shape == y.shape}
