"""Programs that an enumeration found: all combinations of a small grammar were run on both libraries, and these differed. And the
enumerations themselves, where they take seconds."""
import numpy as np
import pytest
from test_expressions import lines, outcome

from torchlike._core import executor

WRITTEN_VIEWS = """
a = torch.ones(3, requires_grad=True); x = torch.zeros(2, 3); v = x[0]; x[0] = a * 2; v.requires_grad_(); v.sum().backward(); a.grad, v.requires_grad, v.is_leaf
"""

NARROW_NUMBERS = """
[torch.trapezoid(torch.tensor([1, 2, 100, 100], dtype=d)) for d in (torch.int8, torch.uint8, torch.int64, torch.float16)]
[torch.trapezoid(torch.tensor([1, 2, 100, 100], dtype=d), dx=2) for d in (torch.int8, torch.uint8, torch.int64)]
[torch.cumulative_trapezoid(torch.tensor([1, 2, 100, 100], dtype=d), dx=2) for d in (torch.int8, torch.uint8, torch.int64)]
torch.cumulative_trapezoid(torch.tensor([1, 2, 100], dtype=torch.int8), torch.tensor([1, 2, 100], dtype=torch.int8))
torch.trapezoid(torch.zeros(2, 0, dtype=torch.int8)), torch.trapezoid(torch.zeros(2, 0, dtype=torch.bool), torch.zeros(0))
x = torch.ones(2, 3, requires_grad=True); torch.trapezoid(x, dx=3).sum().backward(); x.grad
torch.floor_divide(torch.tensor([5, 100], dtype=torch.int8), 256)
torch.remainder(torch.tensor([5, 100], dtype=torch.uint8), torch.tensor(512))
torch.fmod(torch.tensor([5, 100], dtype=torch.int8), 256)
torch.div(torch.tensor([5, 100], dtype=torch.int8), -256, rounding_mode="trunc")
torch.floor_divide(torch.tensor([5, 100], dtype=torch.int8), 300), torch.remainder(torch.tensor([5, 100], dtype=torch.int16), 256)
torch.isin(torch.tensor([1.0, float("nan"), 2.0], dtype=torch.bfloat16), torch.tensor([float("nan"), 2.0, 3.0, 4.0] * 5, dtype=torch.bfloat16))
torch.inner(torch.tensor(2), 7)
torch.inner(torch.ones(2), 7.0)
"""

CLOSE = """
torch.isclose(torch.tensor(0j), torch.tensor(3e38 + 3e38j)), torch.isclose(torch.tensor(3e38 + 3e38j), torch.tensor(3e38 + 3e38j))
torch.isclose(torch.tensor(16777216), torch.tensor(16777217), 0, 0.5), torch.isclose(torch.tensor(16777216), torch.tensor(16777217), 0, 0)
torch.isclose(torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0078, dtype=torch.bfloat16), 0.0078125, 0)
torch.isclose(torch.zeros(1, dtype=torch.bfloat16), torch.tensor([1e-8], dtype=torch.bfloat16))
torch.allclose(torch.ones(1), torch.ones(1), float("nan"))
torch.allclose(torch.ones(1), torch.ones(1), 0, float("nan"))
"""

ONE_ELEMENT_NORMS = """
x = torch.tensor([[1e30, -1e-30, 0.0]]); [torch.linalg.vector_norm(x, p, dim=0).tolist() for p in (0, 0.5, 1, 2, 3, -1, float("inf"), -float("inf"))]
x = torch.tensor([[1e30, -1e-30, 0.0]]); [x.norm(p, 0, keepdim=True).tolist() for p in (1, 2, 3)]
x = torch.tensor([[1e30, -1e-30, 0.0]], requires_grad=True); x.norm(dim=0).sum().backward(); x.grad
x = torch.tensor(1e30 + 1e30j); torch.linalg.vector_norm(x), torch.linalg.vector_norm(x[None, None], 3, (0, 1), True)
torch.nn.functional.normalize(torch.tensor([[1e30, -1e30, 2.0]]), dim=0)
"""

INFINITIES = """
x = torch.tensor([float("inf"), 200.0, -float("inf")], requires_grad=True); y = x.detach().flip(0).requires_grad_(); torch.logaddexp(x, y).sum().backward(); x.grad, y.grad
x = torch.tensor([float("inf"), 300.0, 1.0], requires_grad=True); y = x.detach().flip(0).requires_grad_(); torch.logaddexp2(x, y).sum().backward(); x.grad, y.grad
x = torch.tensor([1.0, 0.7, 1e20]); y = torch.tensor([0.1, 0.1, 3.0], requires_grad=True); torch.remainder(x, y).sum().backward(); y.grad
x = torch.ones(1, 4, 3); x[0, 0, 1] = float("inf"); F.local_response_norm(x, 3)
p = nn.Parameter(torch.ones(4)); o = torch.optim.Rprop([p]); [(setattr(p, "grad", torch.full((4,), g)), o.step()) for g in (1.0, float("nan"), -1.0, 1.0)]; p, o.state[p]
"""

FUNCTIONS = """
a = torch.ones(3, requires_grad=True); u = function(lambda ctx, x: x * 1, lambda ctx, g: g.mul_(2))(a); u.retain_grad(); (u * torch.arange(3.0)).sum().backward(); u.grad, a.grad
function(lambda ctx, x: ctx.mark_dirty(x) or x * 1)(torch.ones(2))
a = torch.ones(2, requires_grad=True).clone(); torch.no_grad()(lambda: function(lambda ctx, x: ctx.mark_dirty(x) or x * 1)(a))()
"""

NOTHING = """
F.adaptive_avg_pool2d(torch.zeros(1, 2, 4, 4), 0), F.adaptive_avg_pool2d(torch.zeros(1, 2, 4, 4), (0, 3)), F.adaptive_avg_pool1d(torch.zeros(2, 4), 0)
F.adaptive_avg_pool2d(torch.zeros(0, 2, 4, 4), 3), F.adaptive_avg_pool3d(torch.zeros(1, 2, 4, 4, 4), (3, 0, 2))
F.instance_norm(torch.zeros(2, 0, 3)), F.instance_norm(torch.zeros(2, 0, 3, 3))
x = torch.zeros(2, 0, 3, requires_grad=True); F.instance_norm(x).sum().backward(); x.grad
[F.cross_entropy(torch.zeros(0, 0), torch.zeros(0, dtype=torch.long), reduction=r) for r in ("none", "sum", "mean")]
x = torch.zeros(0, 0, requires_grad=True); F.cross_entropy(x, torch.zeros(0, dtype=torch.long), reduction="sum").backward(); x.grad
"""

SPARSE = """
torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]]).to_sparse_csr().t_()
torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]]).to_sparse_csc().transpose_(0, 1)
torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]]).to_sparse_bsr((1, 1)).swapaxes_(0, 1)
torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]]).to_sparse().t_().to_dense()
"""


@pytest.mark.parametrize("program", lines(WRITTEN_VIEWS, NARROW_NUMBERS, CLOSE, ONE_ELEMENT_NORMS, INFINITIES, FUNCTIONS, NOTHING, SPARSE))
def test_same_outcome(oracle, subject, program):
    expected, warnings = outcome(oracle, program)
    warnings = [w for w in warnings if not w.startswith("Sparse ")]  # once in a process: docs/differences.md
    assert outcome(subject, program) == (expected, warnings)


RESIZED = {
    **{f"linear to {s}": ((1, 2, 20), 3, lambda torch, x, s=s: torch.nn.functional.interpolate(x, size=s, mode="linear")) for s in (3, 7, 13, 40)},
    **{f"means of {s}": ((1, 2, 20), 3, lambda torch, x, s=s: torch.nn.functional.adaptive_avg_pool1d(x, s)) for s in (3, 7, 13, 40)},
    **{f"{mode} to {s}": ((1, 2, 6, 8), 19, lambda torch, x, s=s, mode=mode: torch.nn.functional.interpolate(x, size=s, mode=mode))
       for mode in ("bilinear", "bicubic", "area") for s in ((3, 5), (9, 11), (12, 16))},
    "smooth": ((1, 2, 6, 8), 19, lambda torch, x: torch.nn.functional.interpolate(x, size=(4, 11), mode="bilinear", antialias=True)),
    "from many": ((1, 1, 2, 300), 100, lambda torch, x: torch.nn.functional.interpolate(x, size=(1, 9), mode="bilinear", antialias=True)),
    "trilinear": ((1, 2, 4, 4, 4), 42, lambda torch, x: torch.nn.functional.interpolate(x, size=(7, 3, 5), mode="trilinear")),
    "means in space": ((1, 2, 4, 4, 4), 42, lambda torch, x: torch.nn.functional.adaptive_avg_pool3d(x, (3, 3, 2))),
}


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("name", RESIZED)
def test_infinities_stay_where_they_are(oracle, subject, name, tier, value):
    """What is no number in an image is none in the pixels made of it, and nowhere else; so in the gradient."""
    shape, place, resize = RESIZED[name]

    def run(torch):
        x = torch.arange(float(np.prod(shape))).reshape(shape)
        x.view(-1)[place] = value
        x.requires_grad_()
        y = resize(torch, x)
        g = torch.ones(y.shape)
        g.view(-1)[g.numel() // 2] = value
        y.backward(g)
        return y.detach().numpy(), x.grad.numpy()
    with executor.tier(tier):
        found = run(subject)
    expected = run(oracle)
    np.testing.assert_array_equal(np.isfinite(found[0]), np.isfinite(expected[0]))
    for made, wanted in zip(found, expected):  # torch's gradient is NaN also where a weight of zero meets an infinity
        finite = np.isfinite(wanted)
        np.testing.assert_allclose(made[finite], wanted[finite], rtol=1e-4, atol=1e-4)


AUTOCAST = """
torch.polar(h, h)|torch.stft(h.flatten(), 4, return_complex=True)|torch.view_as_complex(h[:, :2].contiguous())|torch.fake_quantize_per_tensor_affine(h, .1, 0, 0, 255)
torch.cholesky_inverse(h)|torch.cholesky_solve(h, h)|torch.inverse(h)|torch.pinverse(h)|torch.orgqr(h, h[0])|torch.geqrf(h)[0]|torch.svd(h)[1]|torch.linalg.cholesky(h)
torch.linalg.inv(h)|torch.linalg.solve(h, h)|torch.linalg.cond(h)|torch.linalg.matrix_rank(h)|torch.linalg.svdvals(h)|torch.linalg.svd(h)[1]|torch.linalg.eigvals(h)
torch.linalg.eigh(h)[0]|torch.linalg.eigvalsh(h)|torch.linalg.qr(h)[1]|torch.linalg.lstsq(h, h)[0]|torch.linalg.tensorsolve(h, h[0])|torch.linalg.inv_ex(h)[0]
torch.fft.fft(h)|torch.fft.ifft2(h)|torch.fft.rfft(h)|torch.fft.irfftn(h)|torch.fft.hfft(h)|torch.linalg.vector_norm(h)|torch.linalg.multi_dot([h, h])|torch.std(h)
torch.index_copy(h.float(), 0, torch.arange(4), h)|torch.index_copy(h, 0, torch.arange(4), h.float())|torch.index_copy(h, 0, torch.arange(4), h)|torch.cat([h, h.float()])
F.max_pool3d(h[None, None], 1)|F.adaptive_avg_pool3d(h[None, None], 2)|F.adaptive_max_pool3d(h[None, None], 2)|F.adaptive_avg_pool2d(h[None], 3)|F.avg_pool2d(h[None], 2)
F.pad(h, (1, 1), 'reflect')|F.pad(h[None], (1, 1, 1, 1), 'replicate')|F.pad(h[None, None], (1, 1, 1, 1, 1, 1), 'replicate')|F.pad(h, (1, 1))|F.pad(h, (1, 1), 'circular')
torch.mm(h.float(), h.float(), out=torch.zeros(4, 4))|torch.matmul(h.float(), h.float(), out=torch.zeros(4, 4))|torch.addmm(h.float(), h.float(), h.float(), out=torch.zeros(4, 4))
"""


@pytest.mark.parametrize("expression", [e for line in lines(AUTOCAST) for e in line.split("|")])
def test_dtypes_under_autocast(oracle, subject, expression):
    def dtype(torch):
        names = {"torch": torch, "F": torch.nn.functional, "h": torch.eye(4).to(torch.bfloat16) * 2}
        with torch.autocast("cpu"):
            return str(eval(expression, names).dtype)
    assert dtype(subject) == dtype(oracle)
