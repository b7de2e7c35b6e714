"""Products, einsum, decompositions, solves, Fourier transforms.

Decompositions whose factors are unique only up to sign or phase are compared through what is unique.
"""
from case import Name, bools, case, cplx, ints, lit, pos, s, t


def spd(*shape, **more):
    return t(*shape, kind="spd", **more)


def regular(*shape, **more):
    """A well conditioned matrix: symmetric positive definite input is far from singular."""
    return t(*shape, kind="spd", **more)


COMPUTE = ("int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool")

PRODUCTS = [
    case("torch.matmul", s(t(3, 4), t(4, 2)), s(t(4), t(4)), s(t(3, 4), t(4)), s(t(4), t(4, 2)),
         s(t(2, 3, 4), t(4, 2)), s(t(2, 3, 4), t(2, 4, 2)), s(t(2, 1, 3, 4), t(5, 4, 2)), s(t(4), t(2, 4, 3)),
         s(t(2, 3, 4), t(4)), s(t(0, 3), t(3, 2)), s(t(2, 0), t(0, 3)), s(cplx(2, 3), cplx(3, 2)),
         s(ints(2, 3), ints(3, 2)), errors=(s(t(2, 3), t(2, 3)), s(t(), t(2)), s(t(2), t(3)), s(t(2, 2), ints(2, 2)),
         s(t(2, 2, 3), t(3, 3, 2)), s(t(2, 2), t(2, 2, dtype="float64")), s(bools(2, 3), bools(2, 3)), s(bools(2, 3), bools(3, 2)),
         s(bools(3), bools(2, 1, 3))), dtypes=COMPUTE),
    case("torch.mm", s(t(3, 4), t(4, 2)), s(t(3, 4, layout="transposed"), t(4, 2)), s(t(0, 3), t(3, 2)),
         errors=(s(t(3), t(3, 2)), s(t(2, 3), t(2, 3)), s(t(2, 2), ints(2, 2)), s(t(2, 2, 2), t(2, 2))),
         dtypes=COMPUTE),
    case("torch.bmm", s(t(2, 3, 4), t(2, 4, 2)), errors=(s(t(2, 3, 4), t(3, 4, 2)), s(t(2, 3), t(3, 2)),
         s(t(2, 3, 4), t(2, 3, 2)), s(t(1, 2, 2), ints(1, 2, 2))), dtypes=COMPUTE),
    case("torch.mv", s(t(3, 4), t(4)), errors=(s(t(3, 4), t(3)), s(t(3), t(3)))),
    case("torch.dot", s(t(4), t(4)), s(ints(3), ints(3)),
         errors=(s(t(3), t(4)), s(t(2, 2), t(2, 2)), s(t(3), ints(3))), dtypes=COMPUTE),
    case("torch.vdot", s(cplx(3), cplx(3)), s(t(3), t(3)), errors=(s(t(3), t(4)),)),
    case("torch.inner", s(t(3), t(3)), s(t(2, 3), t(4, 3)), s(t(), t(3)), errors=(s(t(2), t(3)),)),
    case("torch.linalg.vecdot", s(t(2, 3), t(2, 3)), s(cplx(3), cplx(3)), errors=(s(t(3), cplx(3)), s(t(3), t(3, dtype="float64")))),
    *[case(f"torch.{n}", s(t(3), t(4)), s(ints(2), t(3)), errors=(s(t(2, 2), t(2)),)) for n in ("outer", "ger")],
    case("torch.kron", s(t(2, 2), t(2, 3)), s(t(2), t(3))),
    case("torch.addmm", s(t(3, 2), t(3, 4), t(4, 2)), s(t(2), t(3, 4), t(4, 2), beta=0.5, alpha=2.0),
         s(t(), t(3, 4), t(4, 2), beta=0),
         errors=(s(t(3), t(3, 4), t(4, 2)), s(t(2), t(3, 4), t(3, 2)), s(t(2), t(3), t(3, 2))), dtypes=COMPUTE,
         inplace=True),
    case("torch.addmv", s(t(3), t(3, 4), t(4)), s(t(3), t(3, 4), t(4), beta=0.5, alpha=2)),
    case("torch.addr", s(t(3, 4), t(3), t(4)), s(t(3, 4), t(3), t(4), beta=0.5, alpha=2)),
    case("torch.baddbmm", s(t(2, 3, 2), t(2, 3, 4), t(2, 4, 2)), s(t(2), t(2, 3, 4), t(2, 4, 2), beta=0.5, alpha=2),
         errors=(s(t(2), t(2, 3, 4), t(3, 4, 2)),)),
    case("torch.addbmm", s(t(3, 2), t(2, 3, 4), t(2, 4, 2))),
    case("torch.chain_matmul", s(t(2, 3), t(3, 4)), s(t(2, 3), t(3, 4), t(4, 2)), vmap=False),
    case("torch.linalg.multi_dot", s([t(2, 3), t(3, 4), t(4, 2)]), s([t(3), t(3, 2)]), vmap=False),
    case("torch.einsum", s("ij,jk->ik", t(2, 3), t(3, 4)), s("bij,bjk->bik", t(2, 2, 3), t(2, 3, 2)),
         s("ii", t(3, 3)), s("ii->i", t(3, 3)), s("ij->ji", t(2, 3)), s("i,j", t(2), t(3)),
         s("...ij,...jk->...ik", t(2, 2, 3), t(3, 2)), s("bhqd,bhkd->bhqk", t(1, 2, 3, 4), t(1, 2, 2, 4)),
         s("ij,ij->", t(2, 3), t(2, 3)), s("ab,bc,cd->ad", t(2, 3), t(3, 2), t(2, 2)),
         s("i j , j k -> i k", t(2, 3), t(3, 2)), s("ij", t(2, 3)), s("ij,j", t(2, 3), t(3)),
         s("b...->...b", t(2, 3)), s(t(2, 3), [0, 1], t(3, 2), [1, 2], [0, 2]),
         s("bn,anm,bm->ba", t(2, 3), t(2, 3, 2), t(2, 2)), s("a,ab,b,...->b...", t(2), t(2, 3), t(3), t(4, 2)), s("ij,e,jk->ik", t(2, 3), t(1), t(3, 2)),
         s("bij,bjk,bkl->bil", *[t(9, 3, 3)] * 3), errors=(s("ij,jk->ik", t(2, 3), t(2, 3)), s("ij,jk,kl->il", t(2, 2), t(2, 2), t(2, 2, dtype="float64")),
         s("ij->ik", t(2, 3)), s("i", t(2, 3)), s("ij,jk", t(2, 3)), s("ij->ii", t(2, 2)), s("i1", t(2, 2)))),
    case("torch.tensordot", s(t(2, 3), t(3, 4), 1), s(t(2, 3, 4), t(4, 3, 2), dims=([1, 2], [1, 0])),
         s(t(2, 3), t(2, 3)), errors=(s(t(2, 3), t(2, 3), 1), s(t(2), t(2), -1))),
    case("torch.cross", s(t(2, 3), t(2, 3)), s(t(3, 2), t(3, 2), dim=0), errors=(s(t(2, 2), t(2, 2)), s(t(3), t(2)))),
    case("torch.linalg.cross", s(t(2, 3), t(2, 3)), s(t(3, 2), t(3, 2), dim=0), errors=(s(t(3, 2), t(3, 2)),)),
    case("torch.trace", s(t(3, 4)), s(ints(2, 2)), errors=(s(t(3)),), dtypes=COMPUTE),
    case("torch.cdist", s(t(3, 4), t(2, 4)), s(t(2, 3, 4), t(2, 2, 4), p=1.0), s(t(3, 4), t(2, 4), p=float("inf")),
         s(t(3, 4), t(2, 4), 3.0), errors=(s(t(3), t(3)), s(t(2, 3), t(2, 4)), s(t(2, 2), t(2, 2), -1.0), s(t(3, 2, 2), t(2, 2, 2))),
         gradgrad=False, vmap=False, tol=20),
    case("torch.matrix_power", s(regular(3, 3), 3), s(regular(3, 3), 0), s(regular(2, 3, 3), -2),
         errors=(s(t(2, 3), 2),), tol=10),
    case("torch.linalg.matrix_power", s(regular(3, 3), 3), s(regular(3, 3), -1), tol=10),
    case("torch.matrix_exp", *(s(m) for m in (t(3, 3), t(1, 1), cplx(2, 2, 2), t(5, 3, 3, low=-9, high=9))), tol=20),
    case("torch.linalg.matrix_exp", s(t(3, 3)), tol=10, gradgrad=False),
    case("torch.cov", s(t(3, 5)), s(t(3, 5), correction=0), s(t(4))),
    case("torch.corrcoef", s(t(3, 5)), tol=10),
    case("torch.vander", s(t(3)), s(t(3), 2, True)),
    case("torch.linalg.vander", s(t(3)), s(t(3), N=4)),
]

NOT_SQUARE = (s(t(2, 3)), s(t(3)))
SOLVERS = [
    *[case(f"torch.{n}", s(regular(3, 3)), s(regular(2, 3, 3)), s(regular(2, 2, dtype="complex64")),
         errors=NOT_SQUARE + (s(lit([[1.0, 2.0], [2.0, 4.0]])), s(ints(2, 2))), tol=10) for n in ("inverse",
         "linalg.inv")],
    case("torch.linalg.inv_ex", s(regular(3, 3)), tol=10),
    *[case(f"torch.{n}", s(regular(3, 3)), s(t(2, 3, 3)), s(lit([[1.0, 2.0], [2.0, 4.0]], grad=False)),
         errors=NOT_SQUARE, tol=20) for n in ("det", "linalg.det")],
    case("torch.logdet", s(regular(3, 3)), errors=NOT_SQUARE, tol=10),
    *[case(f"torch.{n}", s(regular(3, 3)), s(t(2, 3, 3)), errors=NOT_SQUARE, tol=20) for n in ("slogdet",
         "linalg.slogdet")],
    case("torch.linalg.solve", s(regular(3, 3), t(3)), s(regular(3, 3), t(3, 2)), s(regular(2, 3, 3), t(2, 3, 1)),
         s(regular(3, 3), t(2, 3), left=False),
         errors=(s(t(2, 3), t(2)), s(regular(3, 3), t(2, 2)), s(lit([[1.0, 2.0], [2.0, 4.0]]), t(2))), tol=20),
    case("torch.linalg.solve_ex", s(regular(3, 3), t(3, 2)), tol=20),
    case("torch.linalg.solve_triangular", s(regular(3, 3), t(3, 2), upper=True),
         s(regular(3, 3), t(3, 2), upper=False), s(regular(3, 3), t(2, 3), upper=True, left=False),
         s(regular(3, 3), t(3, 2), upper=True, unitriangular=True),
         errors=(s(t(3, 3), t(2, 2), upper=True), s(t(3, 3), t(3, 2))), tol=10),
    case("torch.triangular_solve", s(t(3, 2), regular(3, 3)), s(t(3, 2), regular(3, 3), upper=False), tol=10,
         vmap=False),
    *[case(f"torch.{n}", s(spd(3, 3)), s(spd(2, 3, 3)), s(spd(2, 2, dtype="complex64")),
         errors=NOT_SQUARE + (s(lit([[1.0, 2.0], [2.0, 1.0]])),), tol=10) for n in ("cholesky", "linalg.cholesky")],
    case("torch.linalg.cholesky_ex", s(spd(3, 3)), s(lit([[1.0, 0.0], [0.0, -1.0]], grad=False)), tol=10),
    case("torch.cholesky_solve", s(t(3, 2), spd(3, 3)), s(t(3, 2), spd(3, 3), upper=True), fn=lambda torch, b, a,
         **k: torch.cholesky_solve(b, torch.tril(a).mT if k.get("upper") else torch.tril(a), **k), tol=10),
    case("torch.cholesky_inverse", s(spd(3, 3)), fn=lambda torch, a: torch.cholesky_inverse(torch.tril(a)), tol=10),
    case("torch.linalg.qr", s(t(4, 3)), s(t(3, 3)), s(t(2, 4, 3)),
         fn=lambda torch, a: (lambda q, r: (r.abs(), q @ r))(*torch.linalg.qr(a)), gradgrad=False, errors=(s(t(3)),),
         tol=20),
    case("torch.linalg.qr", s(t(4, 3), "complete"), s(t(4, 3), "r"),
         fn=lambda torch, a, m: torch.linalg.qr(a, m).R.abs(), grad=False, errors=(s(t(3, 3), "x"),), tag="modes",
         tol=20),
    case("torch.qr", s(t(4, 3)), s(t(4, 3), False), fn=lambda torch, a, *m: torch.qr(a, *m).R.abs(), grad=False,
         tol=20),
    *[case(f"torch.{n}", s(t(4, 3)), s(t(3, 4)), s(t(2, 3, 3)), fn=lambda torch, a, n=n: (lambda u, d, v: (d, (u[...,
         : d.shape[-1]] * d.unsqueeze(-2)) @ (v.mT if n == "svd" else v[..., : d.shape[-1],
         :])))(*(torch.svd(a) if n == "svd" else torch.linalg.svd(a, full_matrices=False))), gradgrad=False,
         vmap=False, tol=20) for n in ("svd", "linalg.svd")],
    case("torch.linalg.svd", s(t(4, 3)), s(t(2, 3)), fn=lambda torch, a: [list(x.shape) for x in torch.linalg.svd(a)],
         tag="full", grad=False, vmap=False, errors=(s(t(3)),)),
    case("torch.linalg.svdvals", s(t(4, 3)), s(t(2, 3, 3)), gradgrad=False, vmap=False, tol=20, errors=(s(t(3)),)),
    case("torch.linalg.eigh", s(spd(3, 3)), s(spd(2, 3, 3), "U"),
         fn=lambda torch, a, *u: (lambda w, v: (w, (v * w.unsqueeze(-2)) @ v.mT))(*torch.linalg.eigh(a, *u)),
         gradgrad=False, tol=20, errors=NOT_SQUARE),
    case("torch.linalg.eigvalsh", s(spd(3, 3)), s(spd(2, 3, 3)), gradgrad=False, tol=20, errors=NOT_SQUARE),
    case("torch.linalg.eig", s(spd(3, 3)),
         fn=lambda torch, a: (lambda w, v: ((v * w.unsqueeze(-2)) @ torch.linalg.inv(v)).real)(*torch.linalg.eig(a)),
         grad=False, vmap=False, tol=50, errors=NOT_SQUARE),
    case("torch.linalg.eigvals", s(spd(3, 3)), fn=lambda torch, a: torch.linalg.eigvals(a).real.sort().values,
         grad=False, vmap=False, tol=20),
    *[case(f"torch.{n}", s(t(4, 3)), s(t(2, 3, 3)), errors=(s(t(3)),), gradgrad=False, vmap=False,
         tol=50) for n in ("pinverse", "linalg.pinv")],
    case("torch.linalg.matrix_rank", s(t(4, 3)), s(lit([[1.0, 2.0], [2.0, 4.0]])), s(t(2, 3, 3)), grad=False,
         vmap=False, errors=(s(t(3)),)),
    case("torch.linalg.lstsq", s(t(4, 3), t(4, 2)), fn=lambda torch, a, b: torch.linalg.lstsq(a, b).solution,
         errors=(s(t(2, 2), t(3, 2, 2)), s(t(3), t(3))), grad=False, vmap=False, tol=50),
    case("torch.linalg.cond", s(regular(3, 3)), s(regular(3, 3), 1), gradgrad=False, vmap=False, tol=50),
    case("torch.linalg.lu", s(t(3, 3)), s(t(4, 3)), gradgrad=False, vmap=False, tol=10),
    case("torch.linalg.lu_factor", *(s(m) for m in (t(3, 3), t(2, 4), t(5, 3), cplx(2, 3, 3), t(12, 2, 2))), vmap=False, tol=20),
    case("torch.linalg.lu_solve", s(t(3, 3), t(3, 2)),
         fn=lambda torch, a, b: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b), gradgrad=False, vmap=False,
         tol=50),
    case("torch.lu_unpack", s(t(3, 3)), fn=lambda torch, a: torch.lu_unpack(*torch.linalg.lu_factor(a)),
         gradgrad=False, vmap=False, tol=10),
    case("torch.linalg.householder_product", s(t(4, 2), t(2)), s(t(4, 3), t(2)), s(cplx(2, 3, 2), cplx(2, 2)), s(t(40, 3, 2), t(40, 2)), gradgrad=False, vmap=False, tol=20),
    case("torch.linalg.tensorinv", s(regular(4, 4)), fn=lambda torch, a: torch.linalg.tensorinv(a.reshape(2, 2, 4)),
         tol=20),
]

SYMMETRIC = [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 1.0]]
HERMITIAN = [[0.5, 1 + 1j, 2.0], [1 - 1j, -1.0, 3j], [2.0, -3j, 1.0]]


def ldl(torch, a, b, hermitian=False):
    return torch.linalg.ldl_solve(*torch.linalg.ldl_factor(a.detach(), hermitian=hermitian), b, hermitian=hermitian)


def lowrank(torch, name, a, *args, **options):
    torch.manual_seed(3)
    u, s, v = getattr(torch, name)(a, *args, **options)
    return u.contiguous().abs(), s, v.contiguous().abs(), (u * s.unsqueeze(-2)) @ v.mT


def lowrank_M(torch, a, m):
    return lowrank(torch, "svd_lowrank", a, 2, 3, M=m)


LOW = [
    case("torch.linalg.ldl_factor", s(lit(SYMMETRIC)), s(regular(2, 3, 3)), s(lit(HERMITIAN, "complex64")), s(lit(HERMITIAN, "complex64"), hermitian=True), s(t(0, 0)),
         errors=(s(t(2, 3)), s(t(3)), s(ints(2, 2)), s(lit([[0.0, 0.0], [0.0, 0.0]])), s(t(2, 2, dtype="float16"))), grad=False, vmap=False),
    case("torch.linalg.ldl_factor_ex", s(lit(SYMMETRIC)), s(lit([[0.0, 0.0], [0.0, 0.0]])), grad=False, vmap=False),
    case("torch.linalg.ldl_solve", s(lit(SYMMETRIC), t(3, 2)), s(lit([SYMMETRIC, SYMMETRIC]), t(3, 2)), s(lit(SYMMETRIC), t(2, 3, 1)),
         s(lit(HERMITIAN, "complex64"), cplx(3, 2)), s(lit(HERMITIAN, "complex64"), cplx(3, 2), hermitian=True), fn=ldl, vmap=False, tol=10,
         errors=(s(lit(SYMMETRIC), t(2, 2)), s(lit(SYMMETRIC), t(3, 1, dtype="float64")))),
    case("torch.svd_lowrank", s(t(5, 3), 2), s(t(3, 5), 2), s(t(2, 6, 4), 3, niter=1), fn=lambda torch, *args, **kw: lowrank(torch, "svd_lowrank", *args, **kw),
         vmap=False, gradgrad=False, tol=50),
    case("torch.svd_lowrank", s(t(5, 3), t(1, 3)), s(t(3, 5), t(3, 1)), fn=lowrank_M, vmap=False, gradgrad=False, tol=50, tag="M"),
    case("torch.pca_lowrank", s(t(5, 3)), s(t(6, 4), 2), s(t(6, 4), q=3, center=False, niter=3), fn=lambda torch, *args, **kw: lowrank(torch, "pca_lowrank", *args, **kw),
         errors=(s(t(3, 4), 5), s(t(3, 4), 2, niter=-1)), vmap=False, gradgrad=False, tol=50),
]

FFT = [
    *[case(f"torch.fft.{n}", s(t(6)), s(t(3, 5)), s(t(3, 4), 6), s(t(3, 4), 3, 0), s(t(4), norm="ortho"),
         s(t(4), norm="forward"), s(cplx(5)), errors=(s(t(3), 0), s(t(3), 2, 1), s(t(3), norm="x"), s(t())),
         tol=5) for n in ("fft", "ifft")],
    *[case(f"torch.fft.{n}", s(t(6)), s(t(3, 5)), s(t(4), 6), s(t(3, 4), dim=0), s(t(5), norm="ortho"),
         errors=(s(t(3), 0), s(cplx(3))) if n == "rfft" else (s(t(3), 0),), tol=5) for n in ("rfft", "ihfft")],
    *[case(f"torch.fft.{n}", s(cplx(4)), s(cplx(3, 4), 5), s(cplx(4, 2), dim=0), s(cplx(4), norm="ortho"),
         tol=5) for n in ("irfft", "hfft")],
    *[case(f"torch.fft.{n}", s(cplx(3, 4)), s(t(3, 4)), s(t(2, 3, 4), (3, 3)), s(cplx(2, 3), norm="ortho"),
         tol=5) for n in ("fft2", "ifft2")],
    *[case(f"torch.fft.{n}", s(cplx(3, 4)), s(t(2, 3, 4)), s(t(2, 3, 4), dim=(0, 2)), tol=5) for n in ("fftn",
         "ifftn")],
    *[case(f"torch.fft.{n}", s(t(3, 4)), s(t(2, 3, 4)), s(t(3, 5), dim=(0, 1)), tol=5) for n in ("rfft2", "rfftn")],
    *[case(f"torch.fft.{n}", s(cplx(3, 4)), s(cplx(2, 3, 4), dim=(1, 2)), tol=5) for n in ("irfft2", "irfftn")],
    case("torch.fft.fftfreq", s(5), s(6, 0.5), s(4, dtype=Name("float64")), grad=False),
    case("torch.fft.rfftfreq", s(5), s(6, 0.5), grad=False),
    *[case(f"torch.fft.{n}", s(t(5)), s(t(3, 4)), s(t(3, 4), 1)) for n in ("fftshift", "ifftshift")],
    case("torch.stft", s(t(16), 8, return_complex=True), s(t(2, 16), 8, 2, 8, pos(8), return_complex=True),
         s(t(16), 8, center=False, return_complex=True),
         s(t(16), 8, onesided=False, normalized=True, return_complex=True),
         errors=(s(t(16), 8), s(t(3), 8, return_complex=True)), gradgrad=False, vmap=False, tol=10),
    case("torch.istft", s(cplx(5, 9), 8, window=pos(8)), s(cplx(2, 5, 9), 8, 2, window=pos(8), length=14),
         gradgrad=False, vmap=False, tol=10),
]

CASES = PRODUCTS + SOLVERS + LOW + FFT
