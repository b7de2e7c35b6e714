"""NumPy rules for contractions (through matmul) and Fourier transforms."""
from __future__ import annotations

import math

import numpy as np

from .numpy_lax_rules import Lacks, dtype_of, is_narrow, out_dtype, out_shape, rule, shape_of


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.matmul, with operands laid out so that BLAS takes them."""
    return np.matmul(_blas_ready(a), _blas_ready(b))


def _blas_ready(a):
    m, n = a.shape[-2:]
    s, t = a.strides[-2:]
    z = a.itemsize
    if (t == z and s >= n * z) or (s == z and t >= m * z):
        return a
    return np.ascontiguousarray(a)


def compute_dtypes(eqn) -> tuple[np.dtype | None, np.dtype]:
    """(the dtype to compute a contraction in, or None for the operands' own; the result's dtype)."""
    a, b, out = dtype_of(eqn, 0), dtype_of(eqn, 1), out_dtype(eqn)
    if out.kind in "iu":
        if max(a.itemsize, b.itemsize) <= 2 and out.itemsize <= 8 and a.kind != "b":
            return np.dtype(np.float64), out  # exact up to 2**21 terms, and BLAS has no integers
        return out, out
    if a == b == out and not is_narrow(a):
        return None, out
    wide = np.result_type(*[np.float32 if is_narrow(d) else d for d in (a, b, out)])
    return wide, out


def _merged(x, order, shape):
    return x.transpose(order).reshape(shape)


@rule("dot_general")
def _dot_general(eqn):
    (lc, rc), (lb, rb) = [tuple(tuple(map(int, d)) for d in pair) for pair in eqn.params["dimension_numbers"]]
    a, b, shape = shape_of(eqn, 0), shape_of(eqn, 1), out_shape(eqn)
    compute, out = compute_dtypes(eqn)
    if out.kind in "iu" and compute == np.float64 and math.prod([a[d] for d in lc]) > 1 << 21:
        compute = out

    def call(f):
        if compute is None:
            return f

        def cast(x, y):
            r = f(x.astype(compute), y.astype(compute))
            return (r.astype(np.int64) if out.kind in "iu" else r).astype(out)
        return cast
    if out == bool:
        raise Lacks("dot_general of bool")
    lf = [d for d in range(len(a)) if d not in lc and d not in lb]
    rf = [d for d in range(len(b)) if d not in rc and d not in rb]
    if lc != tuple(sorted(lc)):  # any common order of the contracted dimensions will do
        pairs = sorted(zip(lc, rc))
        lc, rc = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    if not lb and len(a) == len(b) == 2 and len(lc) == 1:
        left, right = lc[0] == 0, rc[0] == 1
        if left:
            return call((lambda x, y: matmul(x.T, y.T)) if right else lambda x, y: matmul(x.T, y))
        return call((lambda x, y: matmul(x, y.T)) if right else matmul)
    batch = tuple(a[d] for d in lb)
    m, n, k = (math.prod([s[d] for d in dims]) for s, dims in ((a, lf), (b, rf), (a, lc)))
    # contracted dimensions before the free ones when they lie so: then no copy is made
    left_first, right_first = _before(lc, lf), _before(rc, rf)
    left = ((*lb, *lc, *lf), (*batch, k, m)) if left_first else ((*lb, *lf, *lc), (*batch, m, k))
    right = ((*rb, *rc, *rf), (*batch, k, n)) if right_first else ((*rb, *rf, *rc), (*batch, n, k))

    def dot(x, y):
        x, y = _merged(x, *left), _merged(y, *right)
        if left_first:
            x = x.swapaxes(-1, -2)
        if not right_first:
            y = y.swapaxes(-1, -2)
        return matmul(x, y).reshape(shape)
    return call(dot)


def _before(first, second) -> bool:
    return not second or not first or max(first) < min(second)


@rule("ragged_dot_general")
def _ragged_dot(eqn):
    """Rows of the left operand in groups, each against its own right matrix: (m, k), (g, k, n), (g,) -> (m, n)."""
    numbers = eqn.params["ragged_dot_dimension_numbers"]
    (lc, rc), (lb, _) = numbers.dot_dimension_numbers
    plain = (tuple(lc), tuple(rc), tuple(lb), tuple(numbers.lhs_ragged_dimensions), tuple(numbers.rhs_group_dimensions))
    if plain != ((1,), (1,), (), (0,), (0,)) or len(eqn.invars) != 3:
        raise Lacks("ragged_dot_general of this form")
    shape, (compute, out) = out_shape(eqn), compute_dtypes(eqn)

    def ragged_dot(x, y, sizes):
        if compute is not None:
            x, y = x.astype(compute), y.astype(compute)
        result = np.zeros(shape, x.dtype)
        start = 0
        for g, size in enumerate(sizes.tolist()):
            result[start:start + size] = x[start:start + size] @ y[g]
            start += size
        return result.astype(out, copy=False)
    return ragged_dot


@rule("fft")
def _fft(eqn):
    kind = eqn.params["fft_type"]
    name = getattr(kind, "name", str(kind)).rsplit(".", 1)[-1].lower()
    lengths, dtype = tuple(eqn.params["fft_lengths"]), out_dtype(eqn)
    axes = tuple(range(-len(lengths), 0))
    if not lengths or eqn.invars[0].aval.size == 0 or eqn.outvars[0].aval.size == 0:
        shape = out_shape(eqn)
        return lambda x: x.astype(dtype) if lengths == () else np.zeros(shape, dtype)
    function = {"fft": np.fft.fftn, "ifft": np.fft.ifftn, "rfft": np.fft.rfftn, "irfft": np.fft.irfftn}[name]
    return lambda x: function(x, lengths, axes).astype(dtype, copy=False)
