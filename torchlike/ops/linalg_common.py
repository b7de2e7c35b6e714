"""What the linear algebra families share: checks of arguments, errors that only the data can tell, small array helpers."""
from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._core import dtype as dt
from .._core import program
from .._core.errors import class_name, not_implemented
from .._core.layout import Layout, contiguous
from .._core.registry import Op
from .._core.shown import Shown
from .._exporting import state as exporting
from .._tensor import Tensor, apply


class LinAlgError(RuntimeError, metaclass=Shown):
    """A matrix for which an operation of torch.linalg has no result (singular, not positive-definite)."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"
LinAlgError.__module__ = "torch._C"

_ALL_ZERO = Op("all_zero", lambda xp, x: xp.all(x == 0), shape=lambda a: ((), dt.bool_), vjp=False)


def need_matrix(x, name: str, argument: str = "A") -> None:
    """x is a tensor of two or more dimensions."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name.replace('linalg.', 'linalg_')}(): argument '{argument}' (position 1) must be Tensor, not {class_name(x)}")
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def need_square(x, name: str, argument: str = "A") -> None:
    """x is a batch of square matrices."""
    need_matrix(x, name, argument)
    rows, columns = x.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {rows} by {columns} matrices")


def need_float(x: Tensor, name: str, kernel: str | None = None, low: bool = False) -> None:
    """x has a floating point or complex dtype; 16-bit ones only where `low`. `kernel`: the name torch's dispatcher reports."""
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.short}")
    if not low and x.dtype.to_real().itemsize < 4:
        if kernel is not None:
            raise not_implemented(kernel, x.dtype)
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {x.dtype.short}")


def need_same_dtype(a: Tensor, b: Tensor, name: str) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name}: Expected A and B to have the same dtype, but found A of type {a.dtype.short} and B of type "
                           f"{b.dtype.short} instead")


def raise_failures(info: Tensor | Callable[[], Tensor], message: Callable[[str, int], str], error: type[Exception] = LinAlgError) -> None:
    """Raise `error(message(batch prefix, info))` for the first nonzero info. torch waits for the result here on every device,
    so that `try: cholesky(a)` works; while torch.compile or a transform traces, the error waits for the next observation. An exported
    graph has none: `info` may be a function, which is then not called."""
    if exporting.graph or exporting.traced:
        return
    info = info if isinstance(info, Tensor) else info()
    v = info._current()
    if v.array is program.META_ARRAY or program.is_tracer(v.array):
        return

    def failure(found: np.ndarray) -> Exception:
        at = int(np.flatnonzero(found)[0])
        return error(message(f"(Batch element {at}): " if found.ndim else "", int(found.flat[at])))
    if program.state.capture is not None:
        program.check(apply(_ALL_ZERO, (info,))._value, failure, v)
        return
    found = info.detach()._host_array()
    if found.any():
        raise failure(found)


def by_columns(x: Tensor) -> Tensor:
    """A fresh x, its matrices column by column in memory, as LAPACK writes them."""
    shape = x._value.aval.shape
    rows = contiguous(shape).strides
    strides = (*rows[:-2], 1, max(shape[-2], 1))
    x._layout = None if strides == rows else Layout(shape, strides)
    return x


def adjoint(xp, x):
    """The conjugate transpose of the last two dimensions."""
    x = xp.swapaxes(x, -1, -2)
    return xp.conj(x) if x.dtype.kind == "c" else x


def eye_like(xp, x, n: int):
    """The identity of size n in x's dtype and batch."""
    return xp.broadcast_to(xp.eye(n, dtype=x.dtype), (*x.shape[:-2], n, n))


def each(function: Callable, *arrays, ranks: tuple[int, ...]):
    """NumPy: `function` of single matrices (vectors) over the leading dimensions; a list of stacked results."""
    lead = arrays[0].ndim - ranks[0]
    batch = arrays[0].shape[:lead]
    if lead == 0:
        return [np.asarray(r) for r in function(*arrays)]
    count = math.prod(batch)
    flat = [a.reshape(count, *a.shape[lead:]) for a in arrays]
    if not count:
        # pivots count from one: LAPACK would reach outside the matrix for others
        made = function(*[np.full(a.shape[1:], a.dtype.kind == "i", a.dtype) for a in flat])
        return [np.zeros((*batch, *np.shape(r)), np.asarray(r).dtype) for r in made]
    results = [function(*one) for one in zip(*flat)]
    return [np.stack(r).reshape(*batch, *np.shape(r[0])) for r in zip(*results)]


def lapack(dtype, name: str):
    """SciPy's LAPACK routine for a dtype; SciPy is imported at first use."""
    from scipy.linalg import get_lapack_funcs
    return get_lapack_funcs((name,), dtype=dtype)[0]


def of_symmetric(function, a):
    """function(a), which reads one triangle of a matrix of JAX's, with the derivative that PyTorch has: that along the symmetric part of a change."""
    f = jax.custom_jvp(function)
    f.defjvp(lambda primals, tangents: jax.jvp(function, primals, ((tangents[0] + adjoint(jnp, tangents[0])) / 2,)))
    return f(a)
