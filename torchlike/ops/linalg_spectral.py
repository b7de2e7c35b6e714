"""Eigenvalues and singular values, and what is computed from them: svd, eigh, eig, pinv, matrix_rank, cond, lstsq."""
from __future__ import annotations

import functools
import operator

import numpy as np

from .._arguments import flag, real
from .._core import dtype as dt
from .._core.errors import not_implemented
from .._core.numpy_lax_linalg import eig_of
from .._core.registry import Op
from .._public import public, with_out
from .._tensor import Tensor, apply
from ..autograd.grad_mode import no_grad
from . import cpu_products
from .joining import cat
from .linalg_common import adjoint, by_columns, each, need_float, need_matrix, need_square, of_symmetric, raise_failures
from .named_results import named_result
from .underivable import refuse_gradient

_mm = cpu_products.matmul

# -- what LAPACK cannot do -------------------------------------------------------------------------------------------------

_NOT_FINITE = Op("not_finite", lambda xp, x, axes: xp.any(~xp.isfinite(x), axis=tuple(range(-axes, 0))).astype(np.int32), vjp=False,
                 shape=lambda x, axes: (x.shape[:-axes], dt.int32))


_NOT_A_NUMBER = Op("not_a_number", lambda xp, x: xp.any(xp.isnan(x), axis=(-2, -1)).astype(np.int32), vjp=False, shape=lambda x: (x.shape[:-2], dt.int32))


def _need_numbers(x: Tensor) -> None:
    """torch's error for matrices with NaN. Those with infinities LAPACK takes, and gives NaN."""
    raise_failures(lambda: apply(_NOT_A_NUMBER, (x,)), lambda prefix, _: (
        f"linalg.svd: {prefix}The algorithm failed to converge because the input matrix contained non-finite values."))


def _need_eigenvalues(x: Tensor, axes: int, vectors: bool) -> None:
    """The same for Hermitian matrices. LAPACK lets NaN pass where there is nothing to iterate over."""
    n = x.shape[-1]
    if n > 2:
        raise_failures(lambda: apply(_NOT_FINITE, (x,), (axes,)), lambda prefix, _: (
            f"linalg.eigh: {prefix}The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues "
            f"(error code: {n - 1 if vectors else n - 2})."))


def _each_or_nan(function, a):
    """NumPy: `function` of all matrices at once; where LAPACK fails, of one after the other, NaN for those that fail. XLA gives NaN too."""
    try:
        return function(a)
    except np.linalg.LinAlgError:
        def one(m):
            try:
                made = function(m)
            except np.linalg.LinAlgError:
                made = function(np.zeros_like(m))
                return [np.full_like(r, np.nan) for r in made] if isinstance(made, tuple) else [np.full_like(made, np.nan)]
            return list(made) if isinstance(made, tuple) else [made]
        found = each(one, a, ranks=(2,))
        return found if len(found) > 1 else found[0]


def _svd_of(xp, a, full: bool = False, vectors: bool = True):
    if xp is np:
        return _each_or_nan(lambda m: np.linalg.svd(m, full, vectors), a)
    return xp.linalg.svd(a, full_matrices=full, compute_uv=vectors)


# -- singular values -----------------------------------------------------------------------------------------------------


def _svd_shape(a, full):
    *batch, m, n = a.shape
    k = min(m, n)
    return [((*batch, m, m if full else k), a.dtype), ((*batch, k), a.dtype.to_real()), ((*batch, n if full else k, n), a.dtype)]


def _differences(xp, s, power):
    """1 / (s_j^p - s_i^p), 0 on the diagonal."""
    p = s * s if power == 2 else s
    d = p[..., None, :] - p[..., :, None]
    same = xp.eye(s.shape[-1], dtype=bool)
    return xp.where(same, xp.zeros((), s.dtype), 1 / xp.where(same, xp.ones((), s.dtype), d))


def _values_only(xp, g, vectors, adjoints):
    """A gradient that reached the values alone. Nothing is divided by their differences, so it is finite where values are equal."""
    return _mm(xp, vectors * g[..., None, :].astype(vectors.dtype), adjoints)


def _svd_vjp(xp, out0, out1, out2, full, g0=None, g1=None, g2=None):
    k = out1.shape[-1]
    u, s, vh = out0[..., :k], out1, out2[..., :k, :]
    if g0 is None and g2 is None:
        return _values_only(xp, g1, u, vh)
    gu = xp.zeros_like(u) if g0 is None else g0[..., :k]
    gvh = xp.zeros_like(vh) if g2 is None else g2[..., :k, :]
    g1 = xp.zeros_like(s) if g1 is None else g1
    f, v, gv = _differences(xp, s, 2), adjoint(xp, vh), adjoint(xp, gvh)
    uu, vv = _mm(xp, adjoint(xp, u), gu), _mm(xp, vh, gv)
    su, sv = uu - adjoint(xp, uu), vv - adjoint(xp, vv)
    middle = su * f * s[..., None, :] + s[..., :, None] * (sv * f)
    diagonal = g1.astype(u.dtype)
    if u.dtype.kind == "c":
        diagonal = diagonal + xp.diagonal(su, axis1=-2, axis2=-1) / (2 * s)
    middle = middle + diagonal[..., None, :] * xp.eye(k, dtype=u.dtype)
    out = _mm(xp, _mm(xp, u, middle), vh)
    if u.shape[-2] > k:
        out = out + _mm(xp, (gu - _mm(xp, u, uu)) / s[..., None, :], vh)
    if vh.shape[-1] > k:
        out = out + _mm(xp, u / s[..., None, :], adjoint(xp, gv - _mm(xp, v, vv)))
    return out


SVD = Op("linalg_svd", lambda xp, a, full: list(_svd_of(xp, a, full)), shape=_svd_shape, vjp=_svd_vjp)


def _svdvals_vjp(xp, g, a):
    u, _, vh = _svd_of(xp, a)
    return _values_only(xp, g, u, vh)


SVDVALS = Op("linalg_svdvals", lambda xp, a: _svd_of(xp, a, vectors=False), vjp=_svdvals_vjp, torch_name="LinalgSvdBackward0",
             shape=lambda a: ((*a.shape[:-2], min(a.shape[-2:])), a.dtype.to_real()))
_linalg_svd, _svd = named_result("linalg_svd", "U", "S", "Vh"), named_result("svd", "U", "S", "V")


def _check_svd(A, driver) -> None:
    need_matrix(A, "linalg.svd")
    need_float(A, "linalg.svd", "linalg_svd_cpu")
    if driver is not None:
        if A.device.type == "cpu":
            raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
        if driver not in ("gesvd", "gesvdj", "gesvda"):
            raise RuntimeError(f"torch.linalg.svd: unknown svd driver {driver} in svd_cusolver computation. ")


def _refuse_phase(name: str, what: str, word: str, *vectors: tuple[int, Tensor]) -> None:
    """torch's error where a loss depends on the phases of complex vectors, which nothing determines. vectors: results of one operation, with
    their numbers among them; those of svd are the columns of one and the rows of the other."""
    node = vectors[0][1]._edge
    if node is None or vectors[0][1].dtype.category != dt.COMPLEX:
        return
    known = [(i, v.detach()) for i, v in vectors]

    def check(grads) -> None:
        with no_grad():
            turned = [((v.conj() * grads[i]).sum(-1 if i == 2 else -2).imag * (-1 if i == 2 else 1)) for i, v in known if grads[i] is not None]
            k = min([t.shape[-1] for t in turned], default=0)
            if k:
                total = functools.reduce(operator.add, [t[..., :k] for t in turned])
                raise_failures((total.abs() > 1e-2).any().to(dt.int32), lambda *_: (
                    f"{name}_backward: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss function "
                    f"depends on this {word} ill-defined."), RuntimeError)
    node.register_prehook(check)


@with_out
def linalg_svd(A, full_matrices: bool = True, *, driver: str | None = None) -> _linalg_svd:
    """(U, S, Vh) with A = U diag(S) Vh, S descending."""
    _check_svd(A, driver)
    u, s, vh = apply(SVD, (A,), (flag(full_matrices),))
    _need_numbers(A)
    made = _linalg_svd(by_columns(u), s, by_columns(vh))
    _refuse_phase("svd", "singular vectors", "phase term, making it", (0, u), (2, vh))
    return made


@with_out
def svdvals(A, *, driver: str | None = None) -> Tensor:
    """The singular values, descending."""
    _check_svd(A, driver)
    s = apply(SVDVALS, (A,))
    _need_numbers(A)
    return s


@public(out=True)
def svd(input, some: bool = True, compute_uv: bool = True) -> _svd:
    """(U, S, V) with input = U diag(S) V^H; zeros for U and V without compute_uv."""
    if input.ndim < 2:
        raise RuntimeError(f"linalg.svd: input should have at least 2 dimensions, but has {input.ndim} dimensions instead")
    some, compute_uv = flag(some), flag(compute_uv)
    if not compute_uv:
        *batch, m, n = input.shape
        return _svd(input.new_zeros(*batch, m, m), svdvals(input), by_columns(input.new_zeros(*batch, n, n)))
    u, s, vh = linalg_svd(input, not some)
    return _svd(u, s, vh.mH)


# -- eigenvalues ---------------------------------------------------------------------------------------------------------


def _eigh(xp, a, uplo):
    if xp is np:
        w, v = _each_or_nan(lambda m: tuple(np.linalg.eigh(m, uplo)), a)
    else:
        w, v = of_symmetric(lambda a: xp.linalg.eigh(a, UPLO=uplo, symmetrize_input=False), a)
    return [w, v]


def _eigh_vjp(xp, out0, out1, g0=None, g1=None):
    vh = adjoint(xp, out1)
    if g1 is None:
        return _values_only(xp, g0, out1, vh)
    middle = _mm(xp, vh, g1) * _differences(xp, out0, 1)
    if g0 is not None:
        middle = middle + g0[..., None, :] * xp.eye(out0.shape[-1], dtype=out0.dtype)
    middle = 0.5 * (middle + adjoint(xp, middle))
    return _mm(xp, _mm(xp, out1, middle), vh)


EIGH = Op("linalg_eigh", _eigh, vjp=_eigh_vjp, shape=lambda a, uplo: [(a.shape[:-1], a.dtype.to_real()), (a.shape, a.dtype)])
_linalg_eigh, _linalg_eig = (named_result(f"linalg_{n}", "eigenvalues", "eigenvectors") for n in ("eigh", "eig"))


def _eigh_checked(input: Tensor, UPLO: str, vectors: bool) -> list[Tensor]:
    need_square(input, "linalg.eigh")
    if input.dtype.to_real().itemsize < 4 or input.dtype.category < dt.FLOAT:
        raise not_implemented("linalg_eigh_cpu", input.dtype)
    if str(UPLO).upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    found = apply(EIGH, (input,), (UPLO.upper(),))
    _need_eigenvalues(found[0], 1, vectors)
    return found


@with_out
def eigh(input, UPLO: str = "L") -> _linalg_eigh:
    """(eigenvalues ascending, eigenvectors) of Hermitian matrices, of which one triangle is read."""
    values, vectors = _eigh_checked(input, UPLO, True)
    made = _linalg_eigh(values, by_columns(vectors))
    _refuse_phase("linalg_eigh", "eigenvectors", "quantity, so it is", (1, vectors))
    return made


@with_out
def eigvalsh(input, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices, ascending."""
    return _eigh_checked(input, UPLO, False)[0]


def _numpy_eig(a):
    one, kind = eig_of(a.dtype, False, True), np.result_type(a.dtype, np.complex64)  # numpy.linalg computes in double: another order of eigenvalues
    return [x.astype(kind) for x in each(one, a, ranks=(2,))]


def _eig_vjp(xp, out0, out1, g0=None, g1=None):
    vh = adjoint(xp, out1)
    if g1 is None:
        return xp.linalg.solve(vh, g0[..., :, None] * vh)
    product = _mm(xp, vh, g1)
    length = xp.diagonal(product, axis1=-2, axis2=-1).real.astype(out1.dtype)
    turned = product - _mm(xp, vh, out1) * length[..., None, :]
    middle = turned * xp.conj(_differences(xp, out0, 1))
    if g0 is not None:
        middle = middle + g0[..., None, :] * xp.eye(out0.shape[-1], dtype=out0.dtype)
    return _mm(xp, xp.linalg.solve(vh, middle), vh)


def _to_complex(d: dt.dtype) -> dt.dtype:
    return dt.complex64 if d in (dt.float32, dt.complex64) else dt.complex128


EIG = Op("linalg_eig", lambda xp, a: list(xp.linalg.eig(a)), numpy=_numpy_eig, vjp=_eig_vjp,
         shape=lambda a: [(a.shape[:-1], _to_complex(a.dtype)), (a.shape, _to_complex(a.dtype))])


def _check_eig(A, name: str) -> None:
    need_square(A, name)
    if A.dtype.category < dt.FLOAT:
        raise RuntimeError(f"Unknown Complex ScalarType for {A.dtype.short}")
    need_float(A, name, "linalg_eig_out_cpu")
    raise_failures(lambda: apply(_NOT_FINITE, (A,), (2,)), lambda *_: "torch.linalg.eig: input tensor should not contain infs or NaNs.", RuntimeError)


@with_out
def eig(input) -> _linalg_eig:
    """(eigenvalues, eigenvectors), complex, in LAPACK's order."""
    _check_eig(input, "linalg.eig")
    values, vectors = apply(EIG, (input,))
    made = _linalg_eig(values, by_columns(vectors))
    _refuse_phase("linalg_eig", "eigenvectors", "quantity, so it is", (1, vectors))
    return made


@with_out
def eigvals(input) -> Tensor:
    """The eigenvalues, complex."""
    _check_eig(input, "linalg.eigvals")
    return apply(EIG, (input,))[0]


# -- pseudo-inverse, rank, least squares -----------------------------------------------------------------------------------


def _pinv(xp, a, atol, rtol, hermitian):
    if not a.size:
        return xp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        w, v = _eigh(xp, a, "L")
        size = xp.abs(w)
        u, vh = v, adjoint(xp, v)
    else:
        u, w, vh = _svd_of(xp, a)
        size = w
    limit = xp.maximum(xp.asarray(atol, w.dtype)[..., None], xp.asarray(rtol, w.dtype)[..., None] * xp.max(size, axis=-1, keepdims=True))
    keep = size > limit
    inverse = xp.where(keep, 1 / xp.where(keep, w, xp.ones((), w.dtype)), xp.zeros((), w.dtype))
    return _mm(xp, adjoint(xp, vh) * inverse[..., None, :], adjoint(xp, u))


def _pinv_vjp(xp, g, a, out):
    """Golub and Pereyra, 1973."""
    p, ph, gh = out, adjoint(xp, out), adjoint(xp, g)
    left = _mm(xp, gh, _mm(xp, p, ph))
    right = _mm(xp, _mm(xp, ph, p), gh)
    return -_mm(xp, _mm(xp, ph, g), ph) + left - _mm(xp, a, _mm(xp, p, left)) + right - _mm(xp, _mm(xp, right, p), a), None, None


PINV = Op("linalg_pinv", _pinv, vjp=_pinv_vjp, torch_name="LinalgPinvBackward0",
          shape=lambda a, atol, rtol, hermitian: ((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype))


def _need_real(function: str, **tolerances) -> None:
    for name, x in tolerances.items():
        if isinstance(x, Tensor) and x.dtype.is_complex:
            raise RuntimeError(f"torch.linalg.{function}: {name} tensor of complex type is not supported. Got {x.dtype.short}")


def _tolerances(A, atol, rtol):
    """torch's defaults: eps * max(m, n) relative, unless an absolute tolerance is given."""
    if rtol is None:
        default = np.finfo(A.dtype.to_real().np).eps * max(A.shape[-2:])
        if isinstance(atol, Tensor):
            rtol = (atol <= 0).to(A.dtype.to_real()) * float(default)
        else:
            rtol = 0.0 if atol is not None and atol > 0 else float(default)
    return 0.0 if atol is None else atol, rtol


@with_out
def pinv(input, rcond=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """The Moore-Penrose inverse; singular values up to max(atol, rtol * the largest) count as zero."""
    if input.ndim < 2 or input.dtype.category < dt.FLOAT or input.dtype.to_real().itemsize < 4:
        raise RuntimeError(f"linalg.pinv({input.dtype.short}{{{list(input.shape)}}}): expected a tensor with 2 or more dimensions of float, double, cfloat "
                           "or cdouble types")
    _need_real("pinv", rcond=rcond, atol=atol, rtol=rtol)
    rtol = rcond if rtol is None else rtol
    for x, name in ((atol, "atol"), (rtol, "rtol")):
        refuse_gradient(x, "linalg_pinv", name)
    atol, rtol = _tolerances(input, atol, rtol)
    if hermitian:
        need_square(input, "linalg.eigh")
        _need_eigenvalues(input.tril(), 2, True)
    else:
        _need_numbers(input)
    return apply(PINV, (input, atol, rtol), (flag(hermitian),))


@public()
def pinverse(input, rcond: float = 1e-15) -> Tensor:
    """linalg.pinv(input, rtol=rcond)."""
    return pinv(input, rtol=real(rcond, "pinverse", "rcond", 2))


@with_out
def matrix_rank(input, tol=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """The number of singular values above max(atol, rtol * the largest)."""
    if input.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if input.dtype.category < dt.FLOAT or input.dtype.to_real().itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if not input.numel():
        return input.new_zeros(input.shape[:-2], dtype=dt.int64)
    atol = tol if atol is None else atol
    _need_real("matrix_rank", atol=atol, rtol=rtol)
    atol, rtol = _tolerances(input, atol, 0.0 if tol is not None else rtol)
    values = (eigvalsh(input).abs() if hermitian else svdvals(input)).detach()
    limit = values.amax(-1) * rtol
    limit = limit.maximum(atol) if isinstance(atol, Tensor) else limit.clamp(min=atol)
    return (values > limit.unsqueeze(-1)).sum(-1)


def _padded(x: Tensor, rows: int) -> Tensor:
    """LAPACK leaves a solution in the first rows of where the right hand side was."""
    more = rows - x.shape[-2]
    return cat([x, x.new_zeros(*x.shape[:-2], more, x.shape[-1])], -2) if more > 0 else x


_lstsq = named_result("linalg_lstsq", "solution", "residuals", "rank", "singular_values")


@with_out
def lstsq(input, b, rcond: float | None = None, *, driver: str | None = None) -> _lstsq:
    """The X of least norm that minimises |A X - B|; (solution, residuals, rank, singular_values)."""
    name = "torch.linalg.lstsq"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if not 0 <= input.ndim - b.ndim <= 1:
        raise RuntimeError(f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1")
    need_float(input, name, "lstsq_cpu")
    if input.dtype is not b.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got input's dtype {input.dtype.short} and other's dtype "
                           f"{b.dtype.short}")
    drivers = ("gels", "gelsy", "gelsd", "gelss") if input.device.type == "cpu" else ("gels",)
    driver = driver or ("gelsy" if len(drivers) > 1 else "gels")
    if driver not in drivers:
        raise RuntimeError(f"{name}: parameter `driver` should be one of ({', '.join(drivers)})")
    vector = input.ndim - 1 == b.ndim and tuple(b.shape) == tuple(input.shape[:-1])
    if input.shape[-2] != b.shape[-1 if vector or b.ndim == 1 else -2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({-1 if vector or b.ndim == 1 else -2})")
    rhs = b.unsqueeze(-1) if vector else b
    m, n = input.shape[-2:]
    rtol = float(np.finfo(input.dtype.to_real().np).eps) * max(m, n) if rcond is None else rcond
    if driver == "gelsd" and not 0 < rtol < 1:  # LAPACK's routine takes its own bound then
        rtol = float(np.finfo(input.dtype.to_real().np).eps)
    x = by_columns(_padded(pinv(input, rtol=0.0 if driver == "gels" else rtol) @ rhs, m)).narrow(-2, 0, n)
    empty = input.new_zeros(0, dtype=input.dtype.to_real())
    rank = input.new_zeros(0, dtype=dt.int64) if driver == "gels" else matrix_rank(input, rtol=rtol)
    residuals = x.flatten()[:0].abs()
    if m > n and driver != "gelsy" and (driver == "gels" or bool((rank == n).all())):
        residuals = (input @ x - rhs).abs().square().sum(-2)
    values = svdvals(input).detach() if driver in ("gelsd", "gelss") else empty
    return _lstsq(x.squeeze(-1) if vector else x, residuals, rank, values)
