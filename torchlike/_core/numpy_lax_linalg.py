"""NumPy rules for linear algebra: LAPACK through scipy, the same routines as XLA's CPU backend, matrix by matrix."""
from __future__ import annotations

import math

import numpy as np

from .numpy_lax_rules import Lacks, dtype_of, out_dtype, out_shape, rule, shape_of
from .triangular import solve_triangle


def _lapack(dtype, *names):
    from scipy.linalg import get_lapack_funcs
    found = get_lapack_funcs(names, dtype=dtype)
    return found[0] if len(names) == 1 else found


def _batched(eqn, function):
    """`function` of one matrix (per operand), with one result per output, over the leading dimensions."""
    shapes, dtypes = [out_shape(eqn, i) for i in range(len(eqn.outvars))], [out_dtype(eqn, i) for i in range(len(eqn.outvars))]
    in_shapes = [shape_of(eqn, i) for i in range(len(eqn.invars))]
    core_ranks = _CORE_RANKS.get(eqn.primitive.name, (2,) * len(in_shapes))
    batch = in_shapes[0][:len(in_shapes[0]) - core_ranks[0]]
    n = math.prod(batch)
    cores = [s[len(batch):] for s in in_shapes]
    many = eqn.primitive.multiple_results

    def call(*xs):
        xs = [x.reshape(n, *c) for x, c in zip(xs, cores)]
        outs = [np.empty((n, *s[len(batch):]), d) for s, d in zip(shapes, dtypes)]
        for i in range(n):
            for out, value in zip(outs, function(*[x[i] for x in xs])):
                out[i] = value
        outs = [o.reshape(s) for o, s in zip(outs, shapes)]
        return outs if many else outs[0]
    return call


_CORE_RANKS = {"householder_product": (2, 1), "ormqr": (2, 1, 2), "lu_pivots_to_permutation": (1,), "tridiagonal_solve": (1, 1, 1, 2)}


@rule("cholesky")
def _cholesky(eqn):
    potrf = _lapack(dtype_of(eqn), "potrf")

    def one(a):
        c, info = potrf(a, lower=True, clean=True)
        return (c if info == 0 else np.full_like(a, np.nan),)
    return _batched(eqn, one)


@rule("lu")
def _lu(eqn):
    getrf = _lapack(dtype_of(eqn), "getrf")
    rows = shape_of(eqn)[-2]

    def one(a):
        if not a.size:
            return a, np.zeros(0, np.int32), np.arange(rows)
        lu, pivots, _ = getrf(a)
        return lu, pivots, _permutation(pivots, rows)
    return _batched(eqn, one)


def _permutation(pivots, rows):
    order = list(range(rows))
    for i, j in enumerate(pivots.tolist()):
        order[i], order[j] = order[j], order[i]
    return order


@rule("lu_pivots_to_permutation")
def _lu_pivots(eqn):
    rows = eqn.params["permutation_size"]
    return _batched(eqn, lambda pivots: (_permutation(pivots, rows),))


def _geqrf_of(dtype):
    geqrf, lwork = _lapack(dtype, "geqrf", "geqrf_lwork")

    def call(a):
        if not a.size:
            return a, np.zeros(min(a.shape), dtype)
        qr, taus, _, _ = geqrf(a, lwork=int(lwork(*a.shape)[0].real))
        return qr, taus
    return call


@rule("geqrf")
def _geqrf(eqn):
    return _batched(eqn, _geqrf_of(dtype_of(eqn)))


def _product_of(dtype):
    name = "ungqr" if dtype.kind == "c" else "orgqr"
    function = _lapack(dtype, name)

    def call(a, taus):
        if not a.size:
            return a
        if not len(taus):
            return np.eye(*a.shape, dtype=dtype)
        work = function(a, taus, lwork=-1)[1]
        return function(a, taus, lwork=int(work[0].real))[0]
    return call


@rule("householder_product")
def _householder_product(eqn):
    product = _product_of(dtype_of(eqn))
    return _batched(eqn, lambda a, taus: (product(a, taus),))


@rule("ormqr")
def _ormqr(eqn):
    p, dtype = eqn.params, dtype_of(eqn)
    function = _lapack(dtype, "unmqr" if dtype.kind == "c" else "ormqr")
    side = "L" if p.get("left", True) else "R"
    trans = ("C" if dtype.kind == "c" else "T") if p.get("transpose", False) else "N"

    def one(a, taus, c):
        if not c.size:
            return (c,)
        size = int(function(side, trans, a[:, :len(taus)], taus, c, -1)[1][0].real)
        return (function(side, trans, a[:, :len(taus)], taus, c, size)[0],)
    return _batched(eqn, one)


@rule("symmetric_product")
def _symmetric_product(eqn):
    p = eqn.params
    alpha, beta = p["alpha"], p["beta"]
    return lambda a, c: (alpha * (a @ a.swapaxes(-1, -2)) + beta * c).astype(c.dtype)


@rule("qr")
def _qr(eqn):
    p, dtype = eqn.params, dtype_of(eqn)
    m, n = shape_of(eqn)[-2:]
    columns = m if p["full_matrices"] else min(m, n)
    geqrf, product, pivots = _geqrf_of(dtype), _product_of(dtype), p.get("pivoting", False)
    geqp3 = _lapack(dtype, "geqp3")

    def one(a):
        if not a.size:
            return np.eye(m, columns, dtype=dtype), np.zeros((columns, n), dtype), np.arange(n)
        if pivots:
            qr, order, taus, _, _ = geqp3(a)
        else:
            (qr, taus), order = geqrf(a), np.zeros(0)
        q = np.zeros((m, columns), dtype)
        q[:, :min(columns, n)] = qr[:, :min(columns, n)]
        return product(q, taus), np.triu(qr[:columns]), order - 1
    return _batched(eqn, one)


@rule("eigh")
def _eigh(eqn):
    p, dtype = eqn.params, dtype_of(eqn)
    if p.get("subset_by_index") not in (None, (0, shape_of(eqn)[-1])):
        raise Lacks("eigh of a subset")
    lower = p["lower"]
    prefix = "he" if dtype.kind == "c" else "sy"
    evd = _lapack(dtype, prefix + "evd")
    vectors_first = len(out_shape(eqn, 0)) > len(out_shape(eqn, 1))

    def one(a):
        if not a.size:
            v, w = a, np.zeros(0, out_dtype(eqn, 1))
        else:
            w, v, info = evd(a, lower=lower)
            if info:
                w, v = np.full_like(w, np.nan), np.full_like(v, np.nan)
        return (v, w) if vectors_first else (w, v)
    return _batched(eqn, one)


@rule("svd")
def _svd(eqn):
    p, dtype = eqn.params, dtype_of(eqn)
    m, n = shape_of(eqn)[-2:]
    if p.get("subset_by_index") not in (None, (0, min(m, n))):
        raise Lacks("svd of a subset")
    full, vectors = p.get("full_matrices", False), p.get("compute_uv", True)
    gesdd, lwork = _lapack(dtype, "gesdd", "gesdd_lwork")

    def one(a):
        if not a.size:
            parts = np.zeros(0), np.eye(m, m if full else 0), np.eye(n if full else 0, n)
        else:
            size = int(lwork(m, n, compute_uv=vectors, full_matrices=full)[0].real)
            u, s, vt, info = gesdd(a, compute_uv=vectors, full_matrices=full, lwork=size)
            parts = (s, u, vt) if not info else [np.full_like(x, np.nan) for x in (s, u, vt)]
        return parts if vectors else parts[:1]
    return _batched(eqn, one)


def eig_of(dtype, left, right):
    """Eigenvalues of one matrix, then its left and right eigenvectors where they are asked for."""
    out = np.result_type(dtype, np.complex64)
    geev, lwork = _lapack(dtype, "geev", "geev_lwork")

    def vectors(v, imaginary):
        v = v.astype(out)
        for i in np.flatnonzero(imaginary > 0):  # LAPACK keeps a conjugate pair as two real columns
            re, im = v[:, i].real.copy(), v[:, i + 1].real.copy()
            v[:, i], v[:, i + 1] = re + 1j * im, re - 1j * im
        return v

    def one(a):
        n = a.shape[0]
        if not n:
            return [np.zeros(0)] + [a] * (left + right)
        if not np.isfinite(a).all():
            return [np.full(n, np.nan)] + [np.full((n, n), np.nan)] * (left + right)
        size = int(lwork(n, compute_vl=left, compute_vr=right)[0].real)
        found = geev(a, compute_vl=left, compute_vr=right, lwork=size)
        if dtype.kind == "c":
            w, vl, vr, _ = found
        else:
            re, im, vl, vr, _ = found
            w = re + 1j * im
            vl, vr = vectors(vl, im) if left else vl, vectors(vr, im) if right else vr
        return [w] + [vl] * left + [vr] * right
    return one


@rule("eig")
def _eig(eqn):
    return _batched(eqn, eig_of(dtype_of(eqn), eqn.params["compute_left_eigenvectors"], eqn.params["compute_right_eigenvectors"]))


@rule("triangular_solve")
def _triangular_solve(eqn):
    p = eqn.params
    right, unit = not p["left_side"], p["unit_diagonal"]
    turned = p["transpose_a"] != right  # x op(a) = b is op(a)^T x^T = b^T
    lower = p["lower"] != turned

    def one(a, b):
        a = a.conj() if p["conjugate_a"] else a
        x = solve_triangle(a.T if turned else a, b.T if right else b, lower, unit)
        return (x.T if right else x,)
    return _batched(eqn, one)


@rule("tridiagonal_solve")
def _tridiagonal_solve(eqn):
    gtsv = _lapack(dtype_of(eqn), "gtsv")
    return _batched(eqn, lambda low, diag, up, b: (gtsv(low[1:], diag, up[:-1], b)[3],))


@rule("schur")
def _schur(eqn):
    from scipy.linalg import schur
    p, dtype = eqn.params, dtype_of(eqn)
    if p.get("sort_eig_vals") or p.get("select_callable") is not None:
        raise Lacks("schur with sorting")
    output, vectors = "complex" if dtype.kind == "c" else "real", p["compute_schur_vectors"]
    return _batched(eqn, lambda a: schur(a, output, check_finite=False)[:2 if vectors else 1])


@rule("hessenberg")
def _hessenberg(eqn):
    gehrd = _lapack(dtype_of(eqn), "gehrd")

    def one(a):
        h, taus, _ = gehrd(a)
        return h, taus
    return _batched(eqn, one)
