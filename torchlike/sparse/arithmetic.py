"""Sums, products and functions of the entries."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.aval import broadcast_shapes
from .._public import FUNCTIONS
from .._tensor import Tensor
from .._writing import write_into
from ..ops.creation import LAYOUT_NAMES
from ..ops.elements import common_dtype
from .compressed import Compressed, compress
from .coo import Coo, coo, empty, place_numbers
from .tensor import SparseTensor, named, on_device

# -- sums ------------------------------------------------------------------------------------------------------------------


def add(input: Tensor, other: Any, *, alpha: Any = 1, name: str = "Add") -> Tensor:
    """input + alpha * other: of two sparse tensors, or of a strided and a sparse one."""
    if not isinstance(input, SparseTensor):
        input = _strided(input, other)
        if input.shape != other.shape:
            raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but self has size {list(input.shape)} while other has size "
                               f"{list(other.shape)} (FYI: dense-sparse addition does not currently support broadcasting)")
        return named(_onto(input, other, alpha), name)
    if isinstance(input, Compressed) and isinstance(other, Tensor) and not isinstance(other, SparseTensor) and other.dim():
        if input.shape != other.shape:
            raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but self has size {list(other.shape)} while other has size "
                               f"{list(input.shape)} (FYI: op2-sparse addition does not currently support broadcasting)")
        return named(other.add(input.to_dense(), alpha=alpha), name)  # torch turns the two around
    if not isinstance(other, SparseTensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if input.shape != other.shape:
        if isinstance(input, Compressed):
            raise RuntimeError(f"torch.add: Expected input tensors to have the same shape, but got tensor `self` with shape {list(input.shape)} and tensor "
                               f"`other` with shape {list(other.shape)}")
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(input.shape)} != {list(other.shape)}")
    if isinstance(input, Compressed) or isinstance(other, Compressed):
        if type(input) is not type(other):
            raise RuntimeError(f"Expected two tensors of one layout, but got {input.layout} and {other.layout}")
        if input.block != other.block:
            raise RuntimeError(f"add: expected blocks of one size, but got {list(input.block)} and {list(other.block)}")
        made = _sum(input.coordinates().coalesce(), other.coordinates().coalesce(), alpha, name)
        return compress(made, type(input), name, input.block, input._others.dtype)
    return _sum(input, other, alpha, name)


def _onto(dense: Tensor, other: SparseTensor, alpha: Any) -> Tensor:
    """A strided tensor with entries added at their places."""
    other = other.coordinates() if isinstance(other, Compressed) else other
    kind = common_dtype(dense, other)
    entries = other._entries.to(kind)
    rows = dense.to(kind).reshape(math.prod(dense.shape[:other.sparse_dim()]), *entries.shape[1:])
    return rows.index_put((other.flat(),), entries if alpha == 1 else entries * alpha, accumulate=True).reshape(dense.shape)


def _strided(x: Any, other: SparseTensor) -> Tensor:
    return x if isinstance(x, Tensor) else FUNCTIONS["tensor"](x, device=other.device)


def _sum(a: Coo, b: Coo, alpha: Any, name: str) -> Coo:
    if a.sparse_dim() != b.sparse_dim() and not (a._nnz() and b._nnz()):  # nothing to add, whatever its layout
        kind, found = common_dtype(a, b), a if a._nnz() else b
        entries = found._entries.to(kind)
        return found._like(named(entries if found is a or alpha == 1 else entries * alpha, name))
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(f"add: expected 'self' and 'other' to have same number of sparse dimensions, but got {a.sparse_dim()} and {b.sparse_dim()}")
    kind = common_dtype(a, b)
    x, y = a._entries.to(kind), b._entries.to(kind)
    y = y if alpha == 1 else y * alpha
    if a._places is b._places or not a._nnz() and not b._nnz():
        return coo(a._places, named(x + y, name), a._dims, a._unique and b._unique, a._inside or b._inside)
    into_a, into_b, places = (_merged if a._unique and b._unique else _zipped)(a.host(), b.host(), a._dims)
    made = x.new_zeros((places.shape[1], *x.shape[1:])).index_add(0, on_device(into_a, x), x).index_add(0, on_device(into_b, x), y)
    return coo(on_device(places, x), named(made, name), a._dims, a._unique and b._unique, True)


def _merged(a: np.ndarray, b: np.ndarray, dims: tuple) -> tuple:
    """Where the entries of two coalesced tensors go in their union, and its places."""
    both = np.concatenate([a, b], 1)
    found, first, inverse = np.unique(place_numbers(both, dims), return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    return inverse[:a.shape[1]], inverse[a.shape[1]:], both[:, first]


def _zipped(a: np.ndarray, b: np.ndarray, dims: tuple) -> tuple:
    """The same of tensors that are in no order, in the one that torch gives them: the smaller of the next two entries comes next."""
    x, y = place_numbers(a, dims).tolist(), place_numbers(b, dims).tolist()
    into_a, into_b, sources, i, j = [], [], [], 0, 0
    while i < len(x) or j < len(y):
        step = -1 if i == len(x) else 1 if j == len(y) else (x[i] < y[j]) - (x[i] > y[j])
        n = len(sources)
        sources.append(i if step >= 0 else len(x) + j)
        if step >= 0:
            into_a.append(n)
            i += 1
        if step <= 0:
            into_b.append(n)
            j += 1
    return np.array(into_a, np.int64), np.array(into_b, np.int64), np.concatenate([a, b], 1)[:, sources]


def sub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha * other."""
    if isinstance(input, Compressed):
        raise RuntimeError(f"unsupported tensor layout: {input.class_name}")
    return add(input, other, alpha=-alpha, name="Sub")


# -- products ----------------------------------------------------------------------------------------------------------------


def _is_number(x: Any) -> bool:
    return not isinstance(x, Tensor) or (not isinstance(x, SparseTensor) and x.dim() == 0)


def mul(input: Any, other: Any) -> Tensor:
    """input * other, elementwise."""
    if not isinstance(input, SparseTensor) or isinstance(other, SparseTensor) and not input.dim():
        input, other = other, input
    if _is_number(other):
        return _scaled(input, other, "Mul")
    if isinstance(input, Compressed) or isinstance(other, Compressed):
        for x in (input, other):
            if isinstance(x, Compressed) and (x.blocked or x.batch_dim):
                raise RuntimeError(f"empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got {x.class_name}" if x.blocked else
                                   "coo_to_sparse_csr: conversion from Sparse to SparseCsr for input tensors with sparse_dim()!=2 is not supported")
        plain = [x.coordinates() if isinstance(x, Compressed) else x for x in (input, other)]
        made = mul(*plain)
        like = input if isinstance(input, Compressed) else other
        if made.dim() != like.dim():
            raise RuntimeError(_NOT_BROADCAST)
        return like._like(made._entries) if made._places is plain[0]._places else compress(made, type(like), "Mul", kind=like._others.dtype)
    if isinstance(other, SparseTensor) and not other.dim():
        other = other.to_dense()
    if not isinstance(other, SparseTensor):
        shape = broadcast_shapes(input._dims, tuple(other.shape))
        if shape != input._dims:
            input = _repeated(input, shape)
        n = input.sparse_dim()
        rows = other.expand(shape).reshape(math.prod(shape[:n]), *shape[n:]).index_select(0, input.flat())
        return input._like(named(input._entries * rows, "Mul"))
    n = input.sparse_dim()
    if input.dim() != other.dim() or n != other.sparse_dim() or input._dims[:n] != other._dims[:n]:
        raise RuntimeError("sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse dimensions, and shape of "
                           "sparse dimensions")
    return _intersection(input, other)


_NOT_BROADCAST = "mul: a sparse tensor is not broadcast to the shape of a strided one, other than by dimensions before its own"


def _repeated(t: Coo, shape: tuple) -> Coo:
    """t as often as new dimensions before its own say."""
    n = len(shape) - t.dim()
    if n < 1 or shape[n:] != t._dims:
        raise RuntimeError(_NOT_BROADCAST)
    times, x = math.prod(shape[:n]), t._entries
    ahead = np.repeat(np.indices(shape[:n]).reshape(n, times), t._nnz(), 1)
    places = np.concatenate([ahead, np.tile(t.host(), (1, times))])
    return coo(on_device(places, x), x.repeat(times, *[1] * (x.dim() - 1)), shape, t._unique, t._inside)


def _scaled(t: SparseTensor, x: Any, name: str) -> SparseTensor:
    made = t._entries * x if name == "Mul" else t._entries / x
    return t._like(made.to(common_dtype(t, x)) if name == "Mul" else made)


def _intersection(a: Coo, b: Coo) -> Coo:
    """Entries of one at the other's places: the one that is not coalesced (of equals, the shorter) keeps its own."""
    if a._unique > b._unique or (a._unique == b._unique and a._nnz() > b._nnz()):
        a, b = b, a
    b = b.coalesce()
    where, known = (np.ravel_multi_index(tuple(t.host()), a._dims[:a.sparse_dim()]) if t.sparse_dim() and t._nnz() else np.zeros(t._nnz(), np.int64) for t in (a, b))
    at = np.searchsorted(known, where)
    inside = at < len(known)
    inside[inside] = known[at[inside]] == where[inside]
    mine, theirs = np.flatnonzero(inside), at[inside]
    x, y = a._entries, b._entries
    if len(mine) < len(where):
        x = x.index_select(0, on_device(mine, x))
    if len(theirs) != len(known) or (theirs != np.arange(len(known))).any():
        y = y.index_select(0, on_device(theirs, y))
    places = a._places if len(mine) == len(where) else on_device(a.host()[:, mine], x)
    made = named(x * y, "Mul")
    return coo(places, made, (*a._dims[:a.sparse_dim()], *made.shape[1:]), a._unique, True)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, for a number or a tensor without dimensions."""
    if not isinstance(input, SparseTensor):
        other.refuse("reciprocal" if _is_number(input) else "div.out")
    if isinstance(input, Compressed) and not isinstance(other, SparseTensor):
        raise RuntimeError(f"unsupported tensor layout: {input.class_name}")
    if not _is_number(other):
        raise RuntimeError(f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for divisor)")
    if rounding_mode is None:
        return _scaled(input, other, "Div")
    input = input.coalesce()
    return input._like(input._entries.div(other, rounding_mode=rounding_mode))


def floor_divide(input: Any, other: Any) -> Tensor:
    """The floor of input / other."""
    return div(input, other, rounding_mode="floor")


def power(input: Any, exponent: Any) -> Tensor:
    """Entries to a power."""
    if not isinstance(input, Coo) or isinstance(exponent, Tensor):
        (input if isinstance(input, SparseTensor) else exponent).refuse("pow.Tensor_Scalar")
    if exponent == 0:
        input.refuse("fill_")
    input = input.coalesce()
    return input._like(input._entries ** exponent)


# -- functions of entries that are zero at zero --------------------------------------------------------------------------------

UNARY = ("abs", "sqrt", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "arcsin", "arctan", "arcsinh", "arctanh", "absolute", "relu", "log1p",
         "expm1", "sgn", "sign", "floor", "ceil", "trunc", "round", "frac", "nan_to_num", "isnan", "isinf", "isposinf", "isneginf", "deg2rad", "rad2deg",
         "erf", "erfinv", "signbit", "square", "fix", "conj_physical")
LINEAR = ("neg", "negative", "positive")
WITHOUT_INPLACE = ("isnan", "isinf", "isposinf", "isneginf", "signbit", "positive", "square", "pow")


def _of_entries(name: str, sums: bool) -> Callable:
    f = FUNCTIONS[name]

    def of_entries(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if sums and isinstance(input, Coo):
            input = input.coalesce()
        return input._like(f(input._entries, *args, **kwargs))
    of_entries.__name__ = name
    return of_entries


def _in_place(name: str, f: Callable) -> Callable:
    """Writes f's result into its first argument."""
    needs_order = name[:-1] in UNARY

    def write(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if needs_order and isinstance(input, Coo) and not input._unique:
            raise RuntimeError(f"{name} requires coalesced input")
        made = f(input, *args, **kwargs)
        if not isinstance(input, SparseTensor):  # a strided tensor, with which a sparse one is combined
            return write_into(input, made.to_dense())
        return input.become(made, name)
    write.__name__ = name
    return write


def zero_(input: SparseTensor) -> SparseTensor:
    """Drop all entries."""
    if isinstance(input, Compressed) and not input._of_leaf:
        return input.adopt(input.emptied())
    if input._of_leaf:
        return input.adopt(input._like(input._entries.new_zeros(input._entries.shape)))
    return input.adopt(empty(input._dims, input.sparse_dim(), input._entries))


def _check_copied(t: Compressed, src: Tensor) -> None:
    """RuntimeError where a compressed tensor cannot become a copy of src."""
    if type(t) is not type(src):
        raise RuntimeError("torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self layout is "
                           f"{t.class_name} and src layout is {LAYOUT_NAMES[src.layout.name]}")
    if t._nnz() != src._nnz():
        raise RuntimeError("torch.copy_: only sparse compressed tensors with the same number of specified elements are supported.")
    d = t.batch_dim + t.axis
    if len(t._dims) == len(src._dims) and t._dims[d] != src._dims[d]:
        raise RuntimeError(f"torch.copy_: expected shapes of self and src to match along dimension {d} for {t.class_name} layout but the corresponding dimensions "
                           f"of self and src are {t._dims[d]} and {src._dims[d]}, respectively.")
    if t.block != src.block:
        raise RuntimeError("torch.copy_: copy of sparse compressed tensors having different block sizes is not supported. self and src block sizes are "
                           f"{list(t.block)} and {list(src.block)}, respectively.")
    if t._dims[:t.batch_dim] != src._dims[:src.batch_dim]:
        raise RuntimeError(f"output with shape {list(t._pointers.shape)} doesn't match the broadcast shape {list(src._pointers.shape)}")


def copy_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Become a copy of src."""
    if isinstance(input, Compressed):
        _check_copied(input, src)
    if type(input) is not type(src):
        kinds = [t.type() if not isinstance(t, Compressed) else t.layout_name for t in (input, src)]
        raise RuntimeError(f"copy_() between dense and sparse Tensors is not implemented! Found self type = {kinds[0]} and src type = {kinds[1]}")
    return input.adopt(src.clone())


FORMS: dict[str, Callable] = {"add": add, "sub": sub, "subtract": sub, "mul": mul, "multiply": mul, "div": div, "divide": div, "true_divide": div,
                              "floor_divide": floor_divide, "pow": power, "zero_": zero_, "copy_": copy_,
                              "result_type": common_dtype, "clone": lambda input, **kwargs: input.clone(), "detach": lambda input: input.detach()}


def _of_compressed(name: str, in_place: bool = False) -> Callable:
    """What torch has of compressed tensors only: entries filled, or made anew at the same places."""
    f = FUNCTIONS[name] if name in FUNCTIONS else getattr(Tensor, name)

    def of_compressed(input: Tensor, *args: Any, layout: Any = None, **kwargs: Any) -> Tensor:
        if not isinstance(input, Compressed):
            input.refuse(name)
        if layout is not None and layout is not input.layout:
            raise RuntimeError(f"empty_like with different sparse layout is not supported (self is {input.class_name} but you requested {LAYOUT_NAMES[layout.name]})")
        made = f(input._entries, *args, **kwargs)
        return input if in_place else input._like(made)
    of_compressed.__name__ = name
    return of_compressed


FORMS |= {n: _of_compressed(n) for n in ("angle", "ones_like", "full_like", "randn_like")} | {n: _of_compressed(n, True) for n in ("fill_", "normal_")}
FORMS |= {n: _of_entries(n, True) for n in UNARY if n in FUNCTIONS} | {n: _of_entries(n, False) for n in LINEAR}
FORMS |= {n + "_": _in_place(n + "_", f) for n, f in FORMS.items() if not n.endswith("_") and n not in (*WITHOUT_INPLACE, "result_type", "clone", "detach")}


def _converted(name: str) -> Callable:
    def convert(input: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
        entries = getattr(input._entries, name)(*args, **kwargs)
        return input if entries is input._entries else input._like(named(entries, "ToCopy"))._moved(entries.device)
    convert.__name__ = name
    return convert


FORMS |= {n: _converted(n) for n in ("double", "float", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble", "cpu")}
