"""Lines that PyTorch's own tests led to: numbers, errors, warnings and strides of operations, in both libraries."""
import contextlib
import math

import numpy as np
import pytest
from test_expressions import lines, outcome

import torchlike
from torchlike._core.program import tier
from torchlike.nn._functional import distance

COUNTS = """
torch.histc(torch.tensor([1.0, float("inf")])) and None
torch.histc(torch.tensor([3e38, 1.0, -float("inf")])) and None
torch.histc(torch.tensor([1.0, float("inf")]) * 2)
torch.histc(torch.tensor([1.0, 2]), min=float("nan"), max=2.0)
torch.histogram(torch.tensor([1.0, float("inf")]), 5) and None
torch.histogram(torch.tensor([1.0, 2]), 5, range=(0, float("inf")))
torch.histogramdd(torch.tensor([[1.0, float("nan")]]), 5) and None
torch.histogram(torch.tensor([1.0, 2]), torch.tensor([1.0, 2]), range=(0, 1))
torch.histogram(torch.tensor([1.0, 2]), torch.tensor([2]), range=(0, 1))
torch.histogram(torch.tensor([1.0, 2]), torch.tensor(2), range=(0, 1))
torch.histogram(torch.tensor([1.0, 2]), 3.5)
torch.histogram(torch.tensor([1.0, 2]), [1.0, 2])
torch.histogram(torch.tensor(1.0), torch.tensor(1.0, dtype=torch.float64))
torch.histogram(torch.tensor([1.0, 2]), torch.tensor([1.0, 9, 2, 9])[::2])
torch.histogramdd(torch.zeros(0, 2), [2, 3])
torch.histogramdd(torch.zeros(3, 0), [])
torch.histogramdd(torch.zeros(0, 0), [], density=True)
torch.histogramdd(torch.zeros(2, 0), [], weight=torch.tensor([1.0, 2]))
torch.set_warn_always(True); x = torch.tensor([[1.0, 2], [3, 4]]).T; r = torch.searchsorted(x, x, sorter=torch.tensor([[0, 0], [1, 1]]).T); torch.set_warn_always(False); r
torch.set_warn_always(True); x = torch.tensor([[1.0, 2], [3, 4]]); r = torch.bucketize(x.T, x.view(-1)[::2]); torch.set_warn_always(False); r
torch.randn(0, 3, dtype=torch.int8)
torch.randn(1, dtype=torch.int8)
"""

NAMED_DIMENSIONS = """
x = torch.arange(24.0).view(2, 3, 4); torch.einsum(x, [30, 2, 27])
x = torch.arange(6.0).view(2, 3); torch.einsum(x, [51, 0], x, [25, 26])
x = torch.arange(6.0).view(2, 3); torch.einsum(x, [51, 0], x, [51, 26], [26, 0])
torch.einsum(torch.ones(2, 3), [-1, 2])
torch.einsum(torch.ones(2, 3), [52, 2])
torch.einsum(torch.ones(2, 3), [1, 2], [60])
torch.einsum("", [])
torch.einsum("a->... .", [torch.ones(2)])
torch.einsum("a->..", [torch.ones(2)])
torch.einsum(". ..", [torch.ones(2)])
torch.einsum("... ...", [torch.ones(2)])
torch.einsum("...a , b ... -> ba...", [torch.ones(2, 3), torch.ones(4, 2)]).shape
"""

MATRICES = """
torch.inner(torch.ones(0), torch.ones(2, 0))
torch.inner(torch.ones(2, 0), torch.ones(3, 0)), torch.inner(torch.ones(0), torch.ones(0))
torch.tensordot(torch.ones(0, 2), torch.ones(2, 0), 1).shape, torch.tensordot(torch.ones(0, 2), torch.ones(3, 0), ([0], [1]))
a = torch.empty(0, 0, 1, 2, 3, 0); torch.linalg.tensorsolve(a, torch.empty(0, 0)).shape
torch.linalg.cond(torch.diag(torch.tensor([1.0, 1, 0])), "nuc")
torch.linalg.cond(torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, 1, 0]))]), "nuc")
torch.linalg.cond(torch.zeros(3, 3), "nuc")
a = torch.tensor([[2.0, 1], [0, 1]], dtype=torch.float64, requires_grad=True); torch.linalg.cond(a, "nuc").backward(); a.grad.round(decimals=6)
torch.linalg.multi_dot([torch.ones(2), torch.ones(2).double()])
torch.linalg.multi_dot([torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2, dtype=torch.complex64)])
a, p = torch.linalg.lu_factor(torch.eye(2) + 1); p[0] = 0; torch.linalg.lu_solve(a, p, torch.eye(2)) and None
a, p = torch.linalg.lu_factor(torch.eye(2) + 1); p[0] = 0; torch.linalg.lu_solve(a, p, torch.eye(2), left=False, adjoint=True) and None
a, p = torch.linalg.lu_factor(torch.eye(2) + 1); p[0] = 3; torch.linalg.lu_solve(a, p, torch.eye(2)) and None
a, p = torch.linalg.lu_factor(torch.eye(2) + 1); p[0] = 3; torch.lu_unpack(a, p) and None
a, p = torch.linalg.lu_factor(torch.eye(2) + 1); p[0] = 0; torch.lu_unpack(a, p) and None
torch.lu_unpack(torch.eye(2), torch.tensor([1, 3], dtype=torch.int32)) and None
torch.lu_unpack(torch.eye(2), torch.tensor([1, 3], dtype=torch.int32), unpack_pivots=False)
a, p = torch.linalg.lu_factor(torch.ones(3, 2, 2) + torch.eye(2)); torch.lu_unpack(a, p.clamp(max=2))[0].shape
"""


SEGMENTS = """
torch.segment_reduce(torch.arange(3.0), "sum", lengths=torch.tensor([1, 2]), axis=-1), torch.segment_reduce(torch.ones(1, 2), "max", offsets=torch.tensor([[0, 2]]), axis=-1)
torch.segment_reduce(torch.arange(3.0), "sum", lengths=torch.tensor([1, 2]), axis=1)
n = torch.nan; x = torch.tensor([1, n, 3, 2, 1, n]).requires_grad_(); torch.segment_reduce(x, "prod", lengths=torch.tensor([1, 2, 2, 0, 1]), initial=2).sum().backward(); x.grad
n = torch.nan; x = torch.tensor([1, n, 3, 2, 1, n]).requires_grad_(); torch.segment_reduce(x, "max", lengths=torch.tensor([1, 2, 2, 0, 1]), initial=2).sum().backward(); x.grad
n = torch.nan; x = torch.tensor([1, n, 3, 2, 1, n], requires_grad=True); y = torch.segment_reduce(x, "min", lengths=torch.tensor([1, 2, 2, 0, 1])); y.sum().backward(); y, x.grad
x = torch.tensor([1.0, 1, 2, 2, 3], requires_grad=True); y = torch.segment_reduce(x, "max", lengths=torch.tensor([2, 2, 1]), initial=1.0); y.sum().backward(); y, x.grad
x = torch.tensor([1.0, 1, 2, 2, 3], requires_grad=True); y = torch.segment_reduce(x, "min", lengths=torch.tensor([2, 2, 1]), initial=2.0); y.sum().backward(); y, x.grad
x = torch.tensor([1.0, 0, 2, 0, 0], requires_grad=True); y = torch.segment_reduce(x, "prod", lengths=torch.tensor([2, 3])); y.sum().backward(); y, x.grad
x = torch.ones(2, 6).cumsum(1).requires_grad_(); y = torch.segment_reduce(x, "mean", offsets=torch.tensor([[0, 2, 6], [0, 0, 6]]), axis=1); y.nansum().backward(); y, x.grad
x = torch.arange(12.0).view(2, 3, 2).bfloat16().requires_grad_(); torch.segment_reduce(x, "prod", lengths=torch.tensor([[1, 2]] * 2), axis=1).sum().backward(); x.grad
x = torch.zeros(0, requires_grad=True); y = torch.segment_reduce(x, "max", lengths=torch.tensor([0, 0])); y.sum().backward(); y, x.grad
x = torch.zeros(3, 0, requires_grad=True); y = torch.segment_reduce(x, "mean", lengths=torch.tensor([1, 2])); y.sum().backward(); y, x.grad
"""

CONSTRUCTORS = """
torch.Tensor(device="cuda")
torch.Tensor((2.0, 3.0), device="meta")
torch.FloatTensor(3, device="cuda:1")
torch.Tensor(torch.ones(2), device="cpu")
torch.FloatTensor(torch.ones(2), device="cpu")
torch.ones(1).new(torch.ones(2), device="cpu")
torch.ones(1).new(3, device="meta")
torch.ones(1, device="meta").new(3, device="cpu")
torch.ones(1, device="meta").new(3, device="meta").device, torch.ones(1).new([2.0], device="cpu"), torch.Tensor([2.0], device="cpu")
import tempfile; f = tempfile.NamedTemporaryFile(); f.write(bytes(8)); f.flush(); torch.from_file(f.name, shared=True, size=2).untyped_storage().filename == f.name
import tempfile; f = tempfile.NamedTemporaryFile(); f.write(bytes(8)); f.flush(); torch.UntypedStorage.from_file(f.name, 0, 8).filename, torch.ones(1).untyped_storage().filename
"""

DEVIATIONS = """
torch.var_mean(torch.tensor([1, 2]))
torch.std_mean(torch.tensor([1, 2]))
torch.std(torch.tensor([1, 2]))
"""

LIMITS = """
torch.special.spherical_bessel_j0(torch.tensor([float("inf"), -float("inf"), float("nan"), 0, 0.4, -3, 1e30]))
torch.special.spherical_bessel_j0(torch.tensor([float("inf"), -float("inf"), float("nan"), 0, 0.4, -3, 1e30], dtype=torch.float64))
"""

REPEATED = """
torch.repeat_interleave(torch.ones(2, 2), torch.tensor([1, 2]), dim=1, output_size=4)
torch.repeat_interleave(torch.ones(2, 2), torch.tensor([2]), dim=1, output_size=5)
torch.repeat_interleave(torch.ones(2, 2), 2, dim=1, output_size=5)
torch.repeat_interleave(torch.tensor([1, 2]), output_size=4)
torch.repeat_interleave(torch.tensor([1, 2]), output_size=3), torch.repeat_interleave(torch.ones(2, 2), 2, output_size=8)
r = torch.tensor([0, 2, 1]) + 0; torch.repeat_interleave(torch.arange(6.0).view(2, 3), r, dim=1, output_size=3)
r = torch.tensor([0, 2, 1]) + 0; torch.repeat_interleave(torch.arange(6.0).view(2, 3), r, 1, output_size=4)
r = torch.tensor([0, 2, -1]) + 0; torch.repeat_interleave(torch.arange(6.0).view(2, 3), r, 1, output_size=1)
r = torch.tensor([0, 2, 1], dtype=torch.int32) + 0; x = torch.ones(3, requires_grad=True); torch.repeat_interleave(x, r, output_size=3).sum().backward(); x.grad
r = torch.zeros(0, dtype=torch.int64); torch.repeat_interleave(r, output_size=0)
"""

DISTANCES = """
torch.searchsorted(torch.tensor([1, 2, 3]), 2.5, sorter=torch.tensor([0, 1, 3])) and None
torch.searchsorted(torch.tensor([1, 2, 3]), 2.5, sorter=torch.tensor([0, 1, -1])) and None
a, b = [torch.tensor(x).requires_grad_() for x in ([[0.0, 0], [1, 2]], [[1.0, 1], [1, 2], [3, 0]])]; y = torch.cdist(a, b, torch.inf); y.sum().backward(); y, a.grad, b.grad
a = torch.tensor([[0.0, 0], [1, 1], [1, 2], [1, 2]], requires_grad=True); y = torch.pdist(a, float("inf")); y.sum().backward(); y, a.grad
torch.pdist(torch.ones(0, 3)), torch.pdist(torch.ones(1, 3)), torch.pdist(torch.ones(3, 0))
torch.cdist(torch.ones(2, 0, 3), torch.ones(4, 3)), torch.cdist(torch.ones(2, 0), torch.ones(3, 0), 0.0)
"""

TOLERANCES = """
torch.linalg.pinv(torch.eye(2), rcond=torch.full((), 1j))
torch.linalg.pinv(torch.eye(2), atol=torch.full((), 1j))
torch.linalg.pinv(torch.eye(2), rtol=torch.full((), 1j), hermitian=True)
torch.linalg.matrix_rank(torch.eye(2), rtol=torch.full((), 1j))
torch.linalg.matrix_rank(torch.eye(2), torch.full((), 1j))
"""

LIBRARIES = """
torch.backends.cuda.preferred_linalg_library(), torch.backends.cuda.preferred_linalg_library("default"), str(torch.backends.cuda.preferred_linalg_library())
torch.backends.cuda.preferred_linalg_library("MAGMA")
torch.backends.cuda.preferred_linalg_library(3)
b = torch.backends.cuda; b.preferred_blas_library("ck"), b.preferred_blas_library(), b.preferred_blas_library("default"), int(b.preferred_blas_library("hipblas"))
b = torch.backends.cuda; b.preferred_blas_library("mkl")
"""

DENORMALS = """
x = torch.full((3,), 1e-310, dtype=torch.float64); y = x * 0.5; on = torch.set_flush_denormal(True); z = x * 0.5; z.tolist(), on, torch.set_flush_denormal(False), y, x * 0.5
torch.set_flush_denormal(1)
"""

INFERENCE = """
exec("with torch.inference_mode(): c = torch.ones(2, 3, requires_grad=True); v = c.view(-1)"); [(x.requires_grad, x._is_view(), x.is_leaf) for x in (v, c[0])], v.is_inference()
exec("with torch.inference_mode(): c = torch.ones(2, 3, requires_grad=True).resize_(1, 2)"); c.shape, c.requires_grad
exec("with torch.inference_mode(): c = torch.ones(3)"); n = torch.ones(3, requires_grad=True); torch.where(torch.ones(3) > 0, c, n), c * 2 + n
exec("with torch.inference_mode(): c = torch.ones(3) > 0"); n = torch.ones(3, requires_grad=True); torch.where(c, n, n) and None
exec("with torch.inference_mode(): a = torch.zeros(3, 4); b = a[1].view(2, 2); b.add_(1); a.mul_(2); d = b.t(); d[0] = 7"); a, b, d
exec("with torch.inference_mode(): a = torch.zeros(3)"); a[1:].add_(1)
n = torch.ones(3, requires_grad=True); exec("with torch.inference_mode(): v = n[1:]"); v, v.is_inference(), v._is_view()
"""
GRADIENT_EDGES = """
x = torch.ones(2, requires_grad=True); y = x * 2; e = torch.autograd.graph.get_gradient_edge(y); torch.autograd.grad(x.sum(), [x, e], allow_unused=True, materialize_grads=True)
x = torch.ones(2, requires_grad=True); y = x * 2; e = torch.autograd.graph.get_gradient_edge(y); torch.autograd.grad(y.sum(), e, materialize_grads=True)
x = torch.tensor(0.5, requires_grad=True); a = torch.ones((), requires_grad=True); torch.autograd.grad(a * 2, x, materialize_grads=True)
"""
CONSTRUCTORS_OF_TENSORS = """
y = torch.ones(2, 2); z = torch.empty(0).new(y); z[0, 0] = 7; y
y = torch.ones(2, requires_grad=True); y.new(y).grad_fn is None, torch.FloatTensor(y).requires_grad
torch.ones(2).new(torch.tensor([1, 2]))
torch.FloatTensor(torch.tensor([1, 2]))
torch.LongTensor(torch.ones(2, dtype=torch.float64))
"""
COPIES_OF_STORAGES = """
import copy; s = torch.arange(4, dtype=torch.uint8).untyped_storage(); c = copy.copy(s); d = copy.deepcopy(s); c[0] = d[1] = 9; s.tolist(), c.tolist(), d.tolist()
import copy, warnings; warnings.simplefilter("ignore"); s = torch.arange(4.).storage(); c = copy.copy(s); d = copy.deepcopy(s); c[0] = d[1] = 9; s.tolist(), c.tolist(), d.tolist()
import copy; t = torch.arange(4.); u, s = copy.deepcopy([t, t.untyped_storage()]); u[0] = 5; t, u, u.untyped_storage() is s
"""
VIEWS_OF_FORMER_DATA = """
p = torch.nn.Parameter(torch.ones(3, 2)); v = p[:]; p.data = p.data.double() * 2; exec("with torch.no_grad(): v[0] = 9"); v.detach(), p
p = torch.nn.Parameter(torch.ones(3)); v, w = p[1:], p.detach()[:2]; p.data = torch.zeros(3); exec("with torch.no_grad(): w.add_(1)"); v.detach(), w, p
x = torch.ones(3); y = x[:2]; x.data = torch.zeros(4); y.add_(1); x[0] = 5; x, y
"""
SWITCHES = """
torch.use_deterministic_algorithms(1)
torch.use_deterministic_algorithms(False, warn_only=1)
"""
SPARSE_WEIGHTS = """
w = torch.ones(3, 2).to_sparse().requires_grad_(); x = torch.ones(2, requires_grad=True); torch.autograd.grad((w @ x).sum(), [w, x])[1]
"""
DUALS = """
f = torch.autograd.forward_ad; f.enter_dual_level(); d = f.make_dual(torch.ones(2), torch.ones(2)); exec("try: f.make_dual(torch.ones(2), d)\\nfinally: f.exit_dual_level()")
"""


@pytest.mark.parametrize("call", ["std(x, unbiased=True, correction=1)", "var(x, 0, True, correction=0)", "var(x, False, correction=0)"])
def test_two_corrections(subject, oracle, call):
    for torch in (subject, oracle):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            eval(f"torch.{call}", {"torch": torch, "x": torch.tensor([1.0, 2.0])})


@pytest.mark.parametrize("program", lines(COUNTS, NAMED_DIMENSIONS, MATRICES, SEGMENTS, CONSTRUCTORS, DEVIATIONS, LIMITS, REPEATED, DISTANCES, TOLERANCES, LIBRARIES,
                                                   DENORMALS, INFERENCE, GRADIENT_EDGES, DUALS, CONSTRUCTORS_OF_TENSORS, COPIES_OF_STORAGES, SWITCHES, VIEWS_OF_FORMER_DATA,
                                                   SPARSE_WEIGHTS))
def test_both_print_it(subject, oracle, program):
    assert outcome(subject, program) == outcome(oracle, program)


def test_repeating_a_known_number_of_times_is_traced(subject):
    """With output_size nobody looks at the counts."""
    def repeated(x, mask):
        return subject.repeat_interleave(x, mask.long() * 2, output_size=4)
    compiled, mask = subject.compile(repeated, fullgraph=True), subject.tensor([True, False, True])
    for n in range(4):
        assert compiled(subject.arange(3.0) + n, mask).tolist() == [n, n, n + 2, n + 2]


@pytest.mark.parametrize("how", ["numpy", "numpy by rows", "compiled"])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_distances(subject, oracle, monkeypatch, p, how):
    if how == "numpy by rows":
        monkeypatch.setattr(distance, "BLOCK", 50)
    draw = np.random.RandomState(0).rand
    for left, right in (((5, 3), (7, 3)), ((2, 1, 5, 3), (4, 7, 3)), ((30, 4), (3, 4))):
        found, a, b = [], draw(*left), draw(*right)
        g, h = draw(*np.broadcast_shapes(left[:-2], right[:-2]), left[-2], right[-2]), draw(left[-2] * (left[-2] - 1) // 2)
        for torch in (subject, oracle):
            x, y = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
            z = torch.tensor(a.reshape(-1, *left[-2:])[0], requires_grad=True)
            with tier("compiled") if how == "compiled" else contextlib.nullcontext():
                made, pairs = torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist"), torch.pdist(z, p)
                ((made * torch.tensor(g)).sum() + (pairs * torch.tensor(h)).sum()).backward()
                found.append([t.detach().numpy() for t in (made, pairs, x.grad, y.grad, z.grad)])
        for ours, theirs in zip(*found):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_second_derivatives_of_distances(subject, p):
    a, b = (subject.rand(n, 3, dtype=subject.float64, requires_grad=True) for n in (4, 5))
    assert subject.autograd.gradgradcheck(lambda a, b: subject.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist"), (a, b))
    assert subject.autograd.gradgradcheck(lambda a: subject.pdist(a, p), (a,))


def test_distances_take_no_memory_for_differences(subject, monkeypatch):
    x = subject.rand(600, 200)
    largest = []
    real = distance.norm_of

    def watched(xp, d, *rest):
        largest.append(d.size)
        return real(xp, d, *rest)
    monkeypatch.setattr(distance, "norm_of", watched)
    subject.cdist(x, x, 1.0).sum().item(), subject.pdist(x).sum().item()
    assert max(largest) <= distance.BLOCK


def test_libraries_that_are_not_there_cannot_be_preferred():
    """Compared with no oracle: whether they are there depends on the build of torch."""
    cuda = torchlike.backends.cuda
    absent = {"MAGMA": cuda.preferred_linalg_library}
    if not torchlike.cuda.is_available():
        absent |= {"cuSOLVER": cuda.preferred_linalg_library, "cuBLASLt": cuda.preferred_blas_library}
    for name, prefer in absent.items():
        with pytest.raises(RuntimeError, match=f"Cannot set preferred backend to {name}"):
            prefer(name.lower())
