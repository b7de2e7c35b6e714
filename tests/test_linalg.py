"""Linear algebra beyond the case table: complex gradients, singular matrices, errors that the data causes; both tiers."""
import math

import numpy as np
import pytest
from same import caught, same

import torchlike
from torchlike._core.program import tier

TIERS = pytest.mark.parametrize("which", ["numpy", "compiled"])
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


def _array(*shape, kind="float64"):
    rng = np.random.default_rng(len(shape) + sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape)).astype(kind) if kind.startswith("complex") else x.astype(kind)


def _invariant(name):
    """A function of a matrix in which signs and phases of the factors cancel."""
    def qr(torch, a):
        q, r = torch.linalg.qr(a)
        return (q @ r).abs().sum() + (r.abs() ** 2).sum() + (q[..., 0].abs() ** 3).sum()

    def svd(torch, a):
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        return (u[..., 0].abs() ** 3).sum() + (vh[..., 0, :].abs() ** 3).sum() + s.sin().sum() + (u @ vh).abs().sum()

    def eigh(torch, a):
        w, v = torch.linalg.eigh(a + a.mH)
        return (v.abs() ** 3).sum() + w.sin().sum()

    def eig(torch, a):
        w, v = torch.linalg.eig(a[..., : a.shape[-1], :])
        return (v.abs() ** 3).sum() + w.abs().sin().sum()

    def slogdet(torch, a):
        sign, size = torch.linalg.slogdet(a)
        return (sign.real * 2 + sign.abs() + size).sum()

    def pinv(torch, a):
        return (torch.linalg.pinv(a).abs() ** 3).sum()
    return locals()[name]


@TIERS
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("name,shape", [("qr", (4, 3)), ("qr", (3, 4)), ("svd", (4, 3)), ("svd", (2, 3, 3)), ("eigh", (3, 3)), ("eig", (3, 3)),
                                        ("slogdet", (3, 3)), ("pinv", (4, 3)), ("pinv", (2, 3))])
def test_gradients_of_factorizations(oracle, which, kind, name, shape):
    found = []
    for torch in (oracle, torchlike):
        with tier(which):
            a = torch.from_numpy(_array(*shape, kind=kind)).requires_grad_()
            out = _invariant(name)(torch, a)
            out.backward()
            found.append((out.item(), a.grad.resolve_conj().numpy()))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-9)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-7, atol=1e-8)


@TIERS
def test_gradient_of_the_determinant_of_a_singular_matrix_is_zero(oracle, which):
    grads = []
    for torch in (oracle, torchlike):
        with tier(which):
            a = torch.tensor(SINGULAR, dtype=torch.float64, requires_grad=True)
            torch.linalg.det(a).backward()
            grads.append(a.grad.numpy())
    np.testing.assert_allclose(grads[1], np.zeros((2, 2)))
    np.testing.assert_allclose(grads[1], grads[0])


@TIERS
@pytest.mark.parametrize("call", [lambda t, a: t.linalg.inv(a), lambda t, a: t.linalg.cholesky(a), lambda t, a: t.linalg.solve(a, a[0]),
                                  lambda t, a: t.linalg.cholesky(t.stack([t.eye(2), a])), lambda t, a: t.linalg.lu_factor(a)])
def test_errors_at_the_call(oracle, which, call):
    """Raised by the call itself, with torch's words, for matrices that are still being computed as well."""
    with pytest.raises(RuntimeError) as theirs:
        call(oracle, oracle.tensor(SINGULAR) * 1)
    with tier(which), pytest.raises(RuntimeError) as ours:
        call(torchlike, torchlike.tensor(SINGULAR) * 1)
    assert str(ours.value) == str(theirs.value)
    assert isinstance(ours.value, torchlike.linalg.LinAlgError) == isinstance(theirs.value, oracle.linalg.LinAlgError)


@TIERS
@pytest.mark.parametrize("call", [
    lambda t, a: t.linalg.lstsq(a, a[:, :2], driver="gelsd"), lambda t, a: t.linalg.lstsq(a, a[:, :1]),
    lambda t, a: t.linalg.tensorsolve(t.eye(6, dtype=a.dtype).reshape(2, 3, 6) * 2, a[:2, :3]), lambda t, a: t.ormqr(*t.geqrf(a), a),
    lambda t, a: t.ormqr(*t.geqrf(a), a.mT, False, True), lambda t, a: t.orgqr(*t.geqrf(a)), lambda t, a: t.linalg.cholesky_ex(a[:3] + a[:3].mT),
    lambda t, a: t.linalg.matrix_norm(a.expand(2, 4, 3), 2, dim=(0, 2), keepdim=True), lambda t, a: t.linalg.lu(a), lambda t, a: t.lu(a[:3]),
    lambda t, a: t.linalg.matrix_rank(a, hermitian=False, atol=0.5), lambda t, a: t.linalg.solve(a[:3], a, left=False),
    lambda t, a: t.cholesky_solve(a.mT, t.linalg.cholesky(a.mT @ a)), lambda t, a: t.linalg.eigvals(a[:3]).abs().sort().values])
def test_values(oracle, which, call):
    made = []
    for torch in (oracle, torchlike):
        with tier(which):
            out = call(torch, torch.from_numpy(_array(4, 3)))
            made.append([x.numpy() for x in (out if isinstance(out, tuple) else (out,))])
    assert len(made[0]) == len(made[1])
    for theirs, ours in zip(*made):
        assert theirs.dtype == ours.dtype and theirs.shape == ours.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@TIERS
@pytest.mark.parametrize("kind,hermitian", [("float64", False), ("complex128", False), ("complex128", True)])
def test_ldl(oracle, which, kind, hermitian):
    """Factors and solutions in both tiers; the gradient reaches the right side."""
    found = []
    for torch in (oracle, torchlike):
        with tier(which):
            a, b = torch.from_numpy(_array(2, 3, 3, kind=kind)), torch.from_numpy(_array(3, 2, kind=kind)).requires_grad_()
            ld, pivots = torch.linalg.ldl_factor(a + (a.mH if hermitian else a.mT), hermitian=hermitian)
            x = torch.linalg.ldl_solve(ld, pivots, b.detach() if torch is oracle else b, hermitian=hermitian)
            through = torch.linalg.solve(a + (a.mH if hermitian else a.mT), b) if torch is oracle else x  # torch has no derivative of ldl_solve
            through.abs().sum().backward()
            found.append([y.detach().resolve_conj().numpy() for y in (ld, pivots, x, b.grad)])
    for mine, real in zip(*found):
        np.testing.assert_allclose(mine, real, rtol=1e-8)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@TIERS
def test_sums_with_products_of_16_bit_numbers_are_rounded_once(oracle, which, kind):  # Muon's steps: addmm of bfloat16
    def sums(t):
        def numbers(*shape):
            return t.tensor(_array(*shape)).to(getattr(t, kind))
        a, b, c = numbers(16, 32), numbers(32, 12), numbers(16, 12)
        x, y, z = numbers(4, 8, 16), numbers(4, 16, 8), numbers(8, 8)
        made = [t.addmm(c, a, b), t.addmm(c, a, b, beta=-4.775, alpha=2.0315), t.baddbmm(z, x, y, beta=0.5, alpha=2.5), t.nn.functional.linear(a, b.T, c[0])]
        c.requires_grad_(), a.requires_grad_()
        t.addmm(c, a, b, beta=0.5).sum().backward()
        return [*made, c.grad, a.grad]
    with tier(which):
        ours = [t.float().numpy() for t in sums(torchlike)]
    for want, got in zip(sums(oracle), ours):
        want = want.float().numpy()
        assert (want != got).mean() < 0.02 and np.allclose(want, got, rtol=0.01)  # the order of a sum may change a last bit


@same(strides=True)
def test_lapack_writes_by_columns(torch):
    g = (torch.arange(40, dtype=torch.float64) ** 2).sin().reshape(2, 5, 4)
    tall, square = g, g[:, :4] + 3 * torch.eye(4)
    spd, b = square @ square.mT, g[:, :4, :2].contiguous()
    la, factor = torch.linalg, torch.linalg.cholesky(spd)
    lu, packed = la.lu_factor(square), torch.geqrf(tall)
    return (factor, la.cholesky(spd, upper=True), la.cholesky_ex(spd), torch.cholesky_inverse(factor), torch.cholesky_solve(b, factor), lu, la.lu(square),
            la.inv(square), la.inv_ex(square), la.solve(square, b), la.solve(square, g[:, 0, :4]), la.solve(square, b.mT.contiguous(), left=False),
            la.solve_triangular(square, b, upper=True), la.solve_triangular(square, b.mT, upper=True, left=False), torch.triangular_solve(b, square),
            la.lu_solve(*lu, b), la.lu_solve(*lu, b.mT, left=False), packed, la.householder_product(*packed), torch.ormqr(*packed, g), la.qr(tall),
            la.qr(tall, "complete"), la.qr(tall.mT, "r"), la.lstsq(tall, g[..., :2]), la.matrix_norm(tall, "nuc", (-1, 0), True), la.tensorinv(g[0, :4].reshape(2, 2, 4)),
            la.ldl_factor(spd), la.matrix_power(square, -1), [x.abs() for x in (*la.svd(tall), *la.eigh(spd), *torch.svd(tall, some=False))])


@same
def test_no_matrices_and_empty_ones(torch):
    la = torch.linalg
    none, empty, b = (torch.zeros(s, requires_grad=True) for s in ((0, 3, 3), (2, 0, 0), (2, 3, 0)))
    full = torch.eye(3).expand(2, 3, 3).clone().requires_grad_()
    results = [la.cholesky(none), la.cholesky(torch.zeros(0, 0, 0, requires_grad=True), upper=True), la.solve_triangular(full, b, upper=True), la.pinv(none),
               la.pinv(empty), la.pinv(none, hermitian=True), la.householder_product(none, none[..., 0]), la.lu_solve(none, torch.zeros(0, 3, dtype=torch.int32), none),
               *la.qr(torch.zeros(0, 3, 0, requires_grad=True)), la.vander(torch.tensor(2.0), N=3)]
    grads = [torch.autograd.grad(r.sum(), [none, empty, full, b], allow_unused=True) for r in results if r.requires_grad]
    return results, [r.requires_grad for r in (*results, la.lstsq(full, full)[1])], grads


@same
def test_gradients_of_factors_reach_both_triangles(torch):
    found, la = [], torch.linalg
    wave = torch.arange(9.0, dtype=torch.float64).reshape(3, 3).sin()
    for start in (wave + 2 * torch.eye(3), wave + 2 * torch.eye(3) + 0.5j * (wave - wave.diag().diag())):
        for f in (torch.cholesky_inverse, lambda a: torch.cholesky_inverse(a, True), lambda a: torch.cholesky_solve(a.detach(), a),
                  lambda a: torch.cholesky_solve(a, a, True), lambda a: la.cholesky(a @ a.mH, upper=True)):
            a = start.clone().requires_grad_()
            found.append(torch.autograd.grad((f(a) * wave.cos()).abs().sum(), a)[0].resolve_conj())
    return found


@same
def test_a_loss_may_not_depend_on_phases(torch):
    la = torch.linalg
    a = torch.arange(9.0).reshape(3, 3).sin() * (1 + 0.5j) + torch.eye(3)

    def ends(f):
        x = a.clone().requires_grad_()
        return attempt_message(lambda: f(x).sum().backward())
    return [ends(f) for f in (lambda x: la.svd(x)[0].real, lambda x: la.svd(x)[0].abs(), lambda x: (lambda r: (r[0] @ r[2]).real)(la.svd(x)),
                              lambda x: la.svd(x, full_matrices=False)[2].imag, lambda x: la.eigh(x + x.mH)[1].real, lambda x: la.eigh(x + x.mH)[1].abs(),
                              lambda x: la.eig(x)[1].real, lambda x: la.eig(x.real)[1].imag, lambda x: la.eigvals(x).abs(), lambda x: la.eigvalsh(x))]


def attempt_message(function):
    try:
        function()
    except RuntimeError as error:
        return str(error)
    return "done"


def test_gradients_of_16_bit_numbers_are_rounded_once(oracle):
    """A derivative of several steps, each of which would round; a sum over rows."""
    def gradients(t):
        F, found = t.nn.functional, []
        for f in (F.gelu, F.silu, t.tanh, t.sigmoid, F.softplus, lambda x: t.add(x, x.detach(), alpha=0.3), lambda x: t.lerp(x, x.detach() + 1, 0.3),
                  lambda x: F.linear(t.ones(32, 32).to(x.dtype), t.ones(16, 32).to(x.dtype), x[0])):
            x = t.tensor(_array(32, 16)).bfloat16().requires_grad_()
            out = f(x)
            out.backward(t.tensor(_array(16, 32).T.copy()).to(out.dtype))
            found.append(x.grad.float().numpy())
        return found
    with tier("numpy"):
        ours = gradients(torchlike)
    for want, got in zip(gradients(oracle), ours):
        assert (want != got).mean() < 0.03 and np.allclose(want, got, rtol=0.02, atol=1e-3)


@same
def test_norms_of_matrices_without_elements(torch):
    la, found = torch.linalg, []
    for shape in ((0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 3)):
        x = torch.zeros(shape, requires_grad=True)
        for order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
            for f in (lambda: la.matrix_norm(x, order), lambda: la.matrix_norm(x, order, keepdim=True), lambda: la.cond(x, order)):  # noqa: B023
                made = caught(f)
                found.append((made, getattr(made, "requires_grad", None)))
    none = torch.zeros(0, dtype=torch.int32)
    return found, torch.lu_solve(torch.zeros(0, 4), torch.zeros(0, 0), none), la.lu_solve(torch.zeros(2, 0, 0), torch.zeros(2, 0, dtype=torch.int32), torch.zeros(2, 0, 3))


@TIERS
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)])
def test_factors_of_nothing(oracle, which, shape):
    for upper in (False, True):
        with tier(which):
            factor, info = torchlike.linalg.cholesky_ex(torchlike.zeros(shape), upper=upper)
            found = factor.numpy().shape, info.numpy().tolist()
        assert found == (shape, oracle.linalg.cholesky_ex(oracle.zeros(shape), upper=upper).info.tolist())


@pytest.mark.parametrize("call", ["torch.svd_lowrank(s, q=5)", "torch.svd_lowrank(s.transpose(0, 1), q=5)", "torch.svd_lowrank(s, q=5, M=torch.ones(8, 5, dtype=s.dtype))",
                                  "torch.pca_lowrank(s)", "torch.pca_lowrank(s.transpose(0, 1), q=5)", "torch.pca_lowrank(s, center=False)",
                                  "torch.svd_lowrank(s * (1 + 2j), q=5)"])
def test_low_rank_of_sparse_matrices(subject, oracle, call):
    """Of full rank these are exact, so both libraries find the same singular values; the factors give the matrix back."""
    found = []
    for torch in (subject, oracle):
        a = torch.tensor(np.random.RandomState(0).rand(8, 5) * (np.random.RandomState(1).rand(8, 5) > 0.4))
        u, d, v = eval(call, {"torch": torch, "s": a.to_sparse()})
        found.append((d.numpy(), (u * d @ v.mH).numpy()))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("kind", ["float32", "complex128"])
@pytest.mark.parametrize("shape, reflections", [((5, 3), 3), ((2, 4, 6, 4), 3), ((200, 5, 3), 2), ((7, 7), 4)])
def test_products_of_reflections(subject, oracle, kind, shape, reflections):
    """One by one in LAPACK, and many small ones at once."""
    draw = np.random.RandomState(0).rand
    a, tau = ((draw(*s) + 1j * draw(*s)).astype("complex128") for s in (shape, (*shape[:-2], reflections)))
    if kind == "float32":
        a, tau = a.real.astype(kind), tau.real.astype(kind)
    ours, theirs = (torch.linalg.householder_product(torch.tensor(a), torch.tensor(tau)).numpy() for torch in (subject, oracle))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@TIERS
@pytest.mark.parametrize("name", ["eigvalsh", "eigh", "eigvals", "eig", "svd", "svdvals"])
def test_equal_values_have_gradients_where_no_vectors_are_asked_for(oracle, which, name):
    matrix = np.diag([2.0, 3.0, 3.0])

    def gradient(torch):
        a = torch.tensor(matrix.tolist(), dtype=torch.float64, requires_grad=True)
        made = getattr(torch.linalg, name)(a)
        values = made if isinstance(made, torch.Tensor) else made[1 if name == "svd" else 0]
        (grad,) = torch.autograd.grad((values.abs() ** 2).sum(), a)
        return grad.detach().numpy()
    with tier(which):
        found = gradient(torchlike)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, gradient(oracle), atol=1e-12)


@TIERS
def test_gram_matrices_without_full_rank_have_a_last_pivot(which):
    """A homography from points without noise, by Gauss: an exact zero made every fifth of them NaN."""
    rng = np.random.default_rng(0)
    a = rng.random((200, 10, 2), np.float32)
    b = a * rng.random((200, 1, 2), np.float32)
    (x, y), (u, v) = (np.moveaxis(p / p.std((1, 2), keepdims=True), 2, 0) for p in (a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)))
    one, zero = np.ones_like(x), np.zeros_like(x)
    rows = np.concatenate([np.stack(r, -1) for r in ((zero, zero, zero, -x, -y, -one, v * x, v * y, v), (x, y, one, zero, zero, zero, -u * x, -u * y, -u))], 1)
    with tier(which):
        gram = torchlike.tensor(rows.swapaxes(1, 2) @ rows)
        assert not torchlike.linalg.lu_factor_ex(gram).info.any()
        lu, pivots = torchlike.linalg.lu_factor(gram)
        p, lower, upper = torchlike.lu_unpack(lu, pivots)
        assert torchlike.allclose(p @ lower @ upper, gram, atol=1e-4)
        assert lu.dtype is torchlike.float32


INTEGER_PRODUCTS = {
    "int8": lambda t, i: t._int_mm(i(3, 4), i(4, 2)), "uint8": lambda t, i: t._int_mm(i(3, 4).to(t.uint8), i(4, 2)), "no rows": lambda t, i: t._int_mm(i(0, 4), i(4, 2)),
    "no columns": lambda t, i: t._int_mm(i(3, 0), i(0, 2)), "transposed": lambda t, i: t._int_mm(i(4, 3).t(), i(2, 4).t()),
    "long": lambda t, i: t._int_mm(i(17, 4000).fill_(-128), i(4000, 8).fill_(-128)), "out": lambda t, i: t._int_mm(i(3, 4), i(4, 2), out=t.zeros(3, 2, dtype=t.int32)),
    "other shapes": lambda t, i: t._int_mm(i(3, 4), i(3, 2)),
    "int32": lambda t, i: t._int_mm(i(3, 4).int(), i(4, 2)), "two uint8": lambda t, i: t._int_mm(i(3, 4), i(4, 2).to(t.uint8)),
    "a vector": lambda t, i: t._int_mm(i(3), i(3, 2)), "times a vector": lambda t, i: t._int_mm(i(3, 4), i(4)), "float": lambda t, i: t._int_mm(i(3, 4).float(), i(4, 2))}


@pytest.mark.parametrize("name", INTEGER_PRODUCTS)
@TIERS
def test_products_of_bytes(which, name, oracle, subject):
    def found(t):
        def drawn(*shape):
            t.manual_seed(2)
            return t.randint(-128, 128, shape).to(t.int8)
        try:
            made = INTEGER_PRODUCTS[name](t, drawn)
            return str(made.dtype), made.tolist()
        except Exception as error:
            return type(error).__name__, str(error).splitlines()[0]
    with tier(which):
        assert found(subject) == found(oracle)
