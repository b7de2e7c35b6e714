"""Linear algebra beyond the case table: complex gradients, singular matrices, errors that the data causes; both tiers."""
import numpy as np
import pytest

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
