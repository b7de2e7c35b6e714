"""Scans, ranks, sets, scatters and edits of shape against real torch, in the NumPy tier and compiled."""

import numpy as np
import pytest
import torch
import torch as real
from compare import attempt, differences
from same import same

import torchlike

N, INF = float("nan"), float("inf")
_rng = np.random.default_rng(0)
X = _rng.normal(size=(3, 5)).astype(np.float32)
SPECIAL = np.array([[0.5, N, 2.0, -0.0, 0.0], [N, N, 1.0, -N, 3.0], [INF, 1.0, 1.0, -2.0, -INF]], np.float32)
TIES = _rng.integers(0, 4, (3, 6))
KINDS = {
    "float32": SPECIAL,
    "float64": SPECIAL.astype(np.float64),
    "float16": TIES.astype(np.float16),
    "bool": TIES > 1,
    "uint8": TIES.astype(np.uint8),
    "int16": TIES.astype(np.int16) - 2,
    "int32": TIES.astype(np.int32) - 2,
    "int64": (TIES << 40) - (2 << 40) + TIES % 2,
}
INDEX = np.array([[0, 1, 2, 0, 0], [2, 0, 0, 1, 2]])
SOURCE = _rng.normal(size=(2, 5)).astype(np.float32)
LONG = _rng.normal(size=(2, 700)).astype(np.float32)
SHUFFLED = _rng.permutation(3000).astype(np.float32)
ZEROS = np.where(_rng.random((3, 5)) < 0.4, 0, X).astype(np.float32)


def gradients(torch, function, *arrays):
    """The results of `function`, and the gradient of a weighted sum of them."""
    inputs = [torch.tensor(a).requires_grad_() if a.dtype.kind == "f" else torch.tensor(a) for a in arrays]
    made = function(*inputs)
    made = list(made) if isinstance(made, (tuple, list)) else [made]
    smooth = [m for m in made if m.requires_grad]
    if not smooth:
        return made
    loss = sum((m * torch.cos(torch.arange(m.numel(), dtype=m.dtype)).reshape(m.shape)).sum() for m in smooth)
    return made + list(torch.autograd.grad(loss, [x for x in inputs if x.requires_grad], allow_unused=True))


def ordered(torch, x):
    plain = x.detach()
    parts = []
    for dim in (0, 1):
        for descending in (False, True):
            parts += [*torch.sort(x, dim=dim, descending=descending, stable=True)]
            parts.append(torch.argsort(x, dim=dim, descending=descending, stable=True))
        if x.dtype != torch.bool:
            parts += [
                torch.kthvalue(plain, 2, dim)[0],
                torch.median(plain, dim)[0],
                torch.nanmedian(plain, dim)[0],
                torch.topk(plain, 2, dim)[0],
                torch.topk(plain, 2, dim, largest=False)[0],
            ]
    return parts


def scanned(torch, x):
    x = x if torch.isfinite(x).all() else x.detach()
    return [
        y
        for dim in (0, 1)
        for y in (
            torch.cumsum(x, dim),
            torch.cumprod(x, dim),
            *torch.cummax(x, dim),
            *torch.cummin(x, dim),
            torch.diff(x, dim=dim),
            torch.nansum(x, dim),
            torch.count_nonzero(x, dim),
        )
    ]


def distinct(torch, x):
    x = torch.where(x == x, x.detach(), torch.ones_like(x))
    found = [*torch.unique_consecutive(x, return_inverse=True, return_counts=True), torch.nonzero(x)]
    for dim in (None, 0, 1):
        found += torch.unique(x, return_inverse=True, return_counts=True, dim=dim)
    x = x.float()
    return found + [
        torch.bucketize(x, torch.tensor([-1, 0, 2]), right=True),
        torch.searchsorted(torch.sort(x)[0], x[:, :2]),
    ]


def quantiles(torch, x):
    kinds = ("linear", "lower", "higher", "midpoint", "nearest")
    parts = [
        f(x, q, d, interpolation=kind)
        for f in (torch.quantile, torch.nanquantile)
        for q in (0.3,)
        for d in (1,)
        for kind in kinds
    ]
    return parts + [torch.quantile(x, torch.tensor([0.1, 0.9], dtype=x.dtype), dim=-1, keepdim=True)]


def combined(torch, x, source):
    parts = []
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            parts.append(torch.scatter_reduce(x, 0, torch.tensor(INDEX), source, reduce, include_self=include_self))
            if reduce != "sum":
                parts.append(torch.index_reduce(x, 0, torch.tensor([1, 1]), source, reduce, include_self=include_self))
    return parts


def written(torch, x, s):
    at = torch.tensor([0, 2])
    return [
        torch.scatter(x, 0, torch.tensor(INDEX), s)[1],
        torch.scatter_add(x, 0, torch.tensor(INDEX), s),
        torch.index_add(x, 0, at, s, alpha=2.5),
        torch.index_copy(x, 0, at, s),
        torch.index_fill(x, 1, torch.tensor([0, -1]), 3),
        x.put(torch.tensor([0, 3, 0]), s[0, :3], accumulate=True),
        torch.take(x, torch.tensor([[0, -1]])),
        torch.gather(x, 1, torch.tensor(INDEX[:, :2])),
        torch.masked_scatter(x, x.detach() > 0, torch.cat([s, s])),
        torch.masked_select(x, x.detach() > 0),
        torch.repeat_interleave(x, torch.tensor([1, 0, 2]), 0),
        torch.diag_embed(x, 1, 0, 2),
        torch.diag(x, 1),
        torch.slice_scatter(x, x[:, :2] * 2, 1, 0, 4, 2),
        torch.select_scatter(x, s[0], 0, -1),
        torch.diagonal_scatter(x, s[0, :3]),
    ]


def counted(torch, x):
    x = x.detach()
    return [
        torch.histc(x, 4),
        torch.histc(x, 5, -1, 1),
        *torch.histogram(x, 5),
        *torch.histogram(x, 5, range=(-1.0, 1.0), density=True),
        torch.histogramdd(x, [2] * 5)[0],
        torch.bincount(torch.tensor([0, 3, 3]), x[0, :3]),
    ]


def long_scans(torch, x):
    with_limits = torch.cat([x[0], torch.tensor([INF, 1.0, N])])
    return [
        torch.cumsum(x, 1),
        torch.cumsum(x.T, 0),
        torch.cumprod(1 + x / 100, 1),
        torch.logcumsumexp(x, 1),
        torch.cumsum(with_limits, 0),
        torch.cumsum(x.reshape(-1).repeat(7), 0),
    ]


def long_ranks(torch, x):
    return [
        *torch.sort(x),
        *torch.topk(x, 7),
        *torch.topk(x, 7, largest=False),
        *torch.topk(x.double(), 300),
        torch.median(x),
    ]


PROGRAMS = {
    **{f"{f.__name__} {kind}": (f, (data,)) for f in (ordered, scanned, distinct) for kind, data in KINDS.items()},
    "quantiles": (quantiles, (X,)),
    "quantiles nan": (quantiles, (SPECIAL,)),
    "combined": (combined, (X, SOURCE)),
    "combined zeros": (combined, (ZEROS, ZEROS[:2].copy())),
    "scans": (scanned, (X,)),
    "written": (written, (X, SOURCE)),
    "counted": (counted, (X,)),
    "long scans": (long_scans, (LONG,)),
    "long ranks": (long_ranks, (SHUFFLED,)),
    "products of zeros": (lambda torch, x: [torch.cumprod(x, 0), torch.cumprod(x, 1)], (ZEROS,)),
}


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_in_both_tiers(oracle, subject, name, tier):
    from torchlike._core.program import tier as run_in

    function, data = PROGRAMS[name]
    want = attempt(gradients, oracle, lambda *x: function(oracle, *x), *data)
    assert isinstance(want, list), want
    with run_in(tier):
        got = attempt(gradients, subject, lambda *x: function(subject, *x), *data)
    found = differences(want, got, strides=None)
    assert not found, "\n" + "\n".join(map(str, found[:5]))


def reshaped_base(torch, x):
    y = x * 2
    row = y[0]
    y.unsqueeze_(1)
    row.add_(1)
    return [y.mul_(2), row]


def reshaped_alone(torch, x):
    y = x * 2
    y.unsqueeze_(0).mul_(3)
    return [y.squeeze_().t_(), torch.tensor(y.stride())]


def resized(torch, x):
    y = x.detach().clone()
    y.resize_(2, 3)[0, 0] = 9
    before = y.clone()
    return [before, y.resize_(4, 4)[0, :3].clone()]


def set_to_memory(torch, x):
    x = x.detach().clone()
    y = torch.zeros(1).set_(x.untyped_storage(), 1, (2, 2), (3, 1))
    y.add_(1)
    return [x, y]


def stored(torch, x):
    x = x.detach().clone()
    memory = x.storage()
    memory[3] = 7.0
    bytes_ = x[1].untyped_storage()
    return [
        x,
        torch.tensor(memory.tolist()),
        torch.tensor([len(memory), bytes_.nbytes(), bytes_.data_ptr() == memory.data_ptr()]),
    ]


@pytest.mark.parametrize("program", [reshaped_base, reshaped_alone, resized, set_to_memory, stored])
def test_shape_and_memory_in_place(oracle, subject, program):
    want = attempt(gradients, oracle, lambda x: program(oracle, x), X)
    assert isinstance(want, list), want
    found = differences(want, attempt(gradients, subject, lambda x: program(subject, x), X), strides=False)
    assert not found, "\n" + "\n".join(map(str, found[:5]))


FACTORS = {  # a target and what is scattered to its first element, by how many of them are zero
    "none": ([1.5, 2.0], [3.0, -5.0, 7.0]), "own": ([0.0, 2.0], [3.0, -5.0, 7.0]), "one": ([1.5, 2.0], [0.0, -5.0, 7.0]), "own and one": ([0.0, 2.0], [0.0, -5.0, 7.0]),
    "own apart": ([1.5, 0.0], [3.0, -5.0, 7.0])}


def product_by_index(torch, function, target, source, include_self):
    """Products, their gradients, and gradients of these."""
    x, s = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (target, source))
    made = function(x, 0, torch.tensor([0, 0, 1]), s, "prod", include_self=include_self)
    first = torch.autograd.grad((made * torch.tensor([2.0, 3.0])).sum(), (x, s), create_graph=True)
    return [made, *first, *torch.autograd.grad(sum((g * g * (k + 1)).sum() for k, g in enumerate(first)), (x, s))]


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
@pytest.mark.parametrize("factors", FACTORS)
def test_second_derivatives_of_products_by_index(oracle, subject, factors, name, include_self):
    want, got = (attempt(product_by_index, torch, getattr(torch, name), *FACTORS[factors], include_self) for torch in (oracle, subject))
    assert isinstance(want, list), want
    found = differences(want, got, strides=False)
    assert not found, "\n" + "\n".join(map(str, found[:5]))


def test_second_derivatives_of_products_with_two_zeros(subject):
    """Where torch raises RuntimeError."""
    for factors in (([1.5, 2.0], [0.0, 0.0, 7.0]), ([0.0, 2.0], [0.0, 0.0, 7.0])):
        got = product_by_index(subject, subject.scatter_reduce, *factors, True)
        x, s = (subject.tensor(v, dtype=subject.float64, requires_grad=True) for v in factors)
        made = subject.stack([x[0] * s[0] * s[1], x[1] * s[2]])
        first = subject.autograd.grad((made * subject.tensor([2.0, 3.0])).sum(), (x, s), create_graph=True)
        want = [made, *first, *subject.autograd.grad(sum((g * g * (k + 1)).sum() for k, g in enumerate(first)), (x, s))]
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-12)


def test_unique_refuses_a_gradient(subject):
    x = subject.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2' is not implemented"):
        subject.unique(x * 2).sum().backward()


def test_file_is_shared(subject, tmp_path):
    path = str(tmp_path / "numbers")
    x = subject.from_file(path, shared=True, size=4, dtype=subject.int32)
    x[2] = 5
    assert np.fromfile(path, np.int32).tolist() == [0, 0, 5, 0]
    assert subject.from_file(path, size=3, dtype=subject.int32).tolist() == [0, 0, 5]


@pytest.mark.parametrize("repeats", [1, 3])
def test_unique_wide_rows(subject, repeats):
    """Rows that agree in their first columns, and rows that agree in all."""
    rows = np.random.default_rng(1).integers(0, 3, (60, 20)).repeat(repeats, 0)
    rows[:, :2] = 1
    rows = np.random.default_rng(2).permutation(rows)
    given = {"return_inverse": True, "return_counts": True, "dim": 0}
    for ours, theirs in zip(subject.unique(subject.from_numpy(rows), **given), torch.unique(torch.from_numpy(rows), **given)):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("n, r", [(0, 2), (1, 2), (3, 5), (5, 1), (6, 3), (40, 2)])
@pytest.mark.parametrize("repeated", [False, True])
def test_combinations(subject, n, r, repeated):
    made, want = (m.combinations(m.arange(n), r, repeated) for m in (subject, torch))
    np.testing.assert_array_equal(made.numpy(), want.numpy())


@same
def test_searchsorted_of_nothing(torch):
    """Rows without elements, no rows, and both."""
    sizes = [((0, 0), (0, 0)), ((0, 0), (0, 3)), ((0, 5), (0, 3)), ((2, 0), (2, 0)), ((2, 0), (2, 3)), ((0,), (3,)), ((3,), (0, 2))]
    return [torch.searchsorted(torch.zeros(s), torch.zeros(v), right=right, out_int32=small) for s, v in sizes for right in (False, True) for small in (False, True)]


@pytest.mark.parametrize("library", ["torch", "torchlike", "compiled"])
def test_scattered_nothing(library):
    """A mixture's expert that gets no row: its weight is part of the graph, and gets zeros for a gradient, not None."""
    torch = real if library == "torch" else torchlike
    x, w, m = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True), torch.zeros(2, 1, dtype=torch.bool)
    scatter = torchlike.compile(lambda x, m, source: x.masked_scatter(m, source)) if library == "compiled" else torch.masked_scatter
    out = scatter(x, m, x[m[:, 0]] * w)
    (out * out).sum().backward()
    assert (out.tolist(), x.grad.tolist(), w.grad.tolist()) == ([[1.0] * 3] * 2, [[2.0] * 3] * 2, [0.0] * 3)
    written = torch.zeros(2, 3)
    written.masked_scatter_(m, w[:0])
    written.sum().backward()
    assert w.grad.tolist() == [0.0] * 3 and not written.any()
