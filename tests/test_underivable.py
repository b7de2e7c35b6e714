"""What torch has no derivative for: which results require gradients, and what a backward or the call says."""
import pytest


def leaf(torch, *shape):
    torch.manual_seed(0)
    return torch.rand(*shape, dtype=torch.float64, requires_grad=True)


def index(torch):
    return torch.tensor([0, 2])


RESULTS = {
    "floor_divide": lambda torch: leaf(torch, 3) // 2,
    "floor_divide by a tensor": lambda torch: torch.floor_divide(torch.ones(3), leaf(torch, 3)),
    "number over tensor": lambda torch: 2 // leaf(torch, 3),
    "histogram": lambda torch: torch.histogram(leaf(torch, 5), 3),
    "histogram of weights": lambda torch: torch.histogram(leaf(torch, 5).detach(), 3, weight=leaf(torch, 5)),
    "histogramdd": lambda torch: [(made := torch.histogramdd(leaf(torch, 5, 2), [2, 2])).hist, *made.bin_edges],
    "histogramdd of edges": lambda torch: [(made := torch.histogramdd(leaf(torch, 5, 2), [torch.tensor([0.0, 1], dtype=torch.float64)] * 2)).hist, *made.bin_edges],
    "bincount": lambda torch: torch.bincount(index(torch), weights=leaf(torch, 2)),
    "ldl_factor": lambda torch: torch.linalg.ldl_factor(leaf(torch, 3, 3)),
    "ldl_factor_ex": lambda torch: torch.linalg.ldl_factor_ex(leaf(torch, 3, 3)),
    "ldl_solve": lambda torch: torch.linalg.ldl_solve(leaf(torch, 3, 3), torch.tensor([1, 2, 3], dtype=torch.int32), leaf(torch, 3, 3)),
    "geqrf": lambda torch: torch.geqrf(leaf(torch, 3, 2)),
    "binomial": lambda torch: torch.binomial(torch.full((3,), 4.0, dtype=torch.float64), leaf(torch, 3)),
    "unique": lambda torch: torch.unique(leaf(torch, 3)),
    "heaviside": lambda torch: torch.heaviside(leaf(torch, 3), leaf(torch, 3)),
    "airy_ai": lambda torch: torch.special.airy_ai(leaf(torch, 3)),
    "bessel_j0": lambda torch: torch.special.bessel_j0(leaf(torch, 3)),
    "modified_bessel_k1": lambda torch: torch.special.modified_bessel_k1(leaf(torch, 3)),
    "spherical_bessel_j0": lambda torch: torch.special.spherical_bessel_j0(leaf(torch, 3)),
    "zeta": lambda torch: torch.special.zeta(1 + leaf(torch, 3), leaf(torch, 3)),
}
REFUSED = {
    "batch_norm": lambda torch, F: F.batch_norm(torch.ones(4, 3), leaf(torch, 3).float(), torch.ones(3), training=True),
    "instance_norm": lambda torch, F: F.instance_norm(torch.ones(4, 3, 2), torch.ones(3), leaf(torch, 3).float(), use_input_stats=False),
    "nll_loss": lambda torch, F: F.nll_loss(torch.ones(2, 3), index(torch), leaf(torch, 3).float()),
    "nll_loss of images": lambda torch, F: F.nll_loss(torch.ones(2, 3, 1, 1), index(torch).reshape(2, 1, 1), leaf(torch, 3).float()),
    "cross_entropy": lambda torch, F: F.cross_entropy(torch.ones(2, 3), index(torch), leaf(torch, 3).float()),
    "cross_entropy, smoothed": lambda torch, F: F.cross_entropy(torch.ones(2, 3), index(torch), leaf(torch, 3).float(), label_smoothing=0.1),
    "soft_margin_loss": lambda torch, F: F.soft_margin_loss(torch.ones(3), leaf(torch, 3)),
    "binary_cross_entropy": lambda torch, F: F.binary_cross_entropy(torch.ones(3), torch.ones(3), leaf(torch, 3).float()),
    "binary_cross_entropy_with_logits": lambda torch, F: F.binary_cross_entropy_with_logits(torch.ones(3), torch.ones(3), leaf(torch, 3)),
    "pos_weight": lambda torch, F: F.binary_cross_entropy_with_logits(torch.ones(3), torch.ones(3), pos_weight=leaf(torch, 3)),
    "multi_margin_loss": lambda torch, F: F.multi_margin_loss(torch.ones(2, 3), index(torch), weight=leaf(torch, 3).float()),
    "pinv": lambda torch, F: torch.linalg.pinv(torch.eye(2), rtol=leaf(torch, 1)[0]),
    "pinv, atol": lambda torch, F: torch.linalg.pinv(torch.eye(2), atol=leaf(torch, 1)[0], hermitian=True),
    "full": lambda torch, F: torch.full((2,), leaf(torch, 1)[0]),
    "full_like": lambda torch, F: torch.full_like(torch.ones(2), leaf(torch, 1)[0]),
    "tril_indices": lambda torch, F: torch.tril_indices(2, 2, dtype=torch.float32),
}


def told(torch, make):
    """For each result: the name of its node, and the error of a backward through it."""
    made = make(torch)
    found = []
    for y in [made] if isinstance(made, torch.Tensor) else made:
        if not y.requires_grad:
            found.append(None)
            continue
        with pytest.raises(Exception) as error:
            y.sum().backward()
        found.append((type(y.grad_fn).__name__, error.type, str(error.value)))
    return found


@pytest.mark.parametrize("name", RESULTS)
def test_results(subject, oracle, name):
    assert told(subject, RESULTS[name]) == told(oracle, RESULTS[name])


@pytest.mark.parametrize("name", RESULTS)
def test_values_without_gradients(subject, oracle, name):
    """The same numbers as where gradients are wanted, and no node."""
    with subject.no_grad():
        made = RESULTS[name](subject)
    wanted = RESULTS[name](subject)
    for x, y in zip([made] if isinstance(made, subject.Tensor) else made, [wanted] if isinstance(wanted, subject.Tensor) else wanted):
        assert not x.requires_grad and x.equal(y)


@pytest.mark.parametrize("name", REFUSED)
def test_arguments(subject, oracle, name):
    errors = []
    for torch in (subject, oracle):
        with pytest.raises(Exception) as error:
            REFUSED[name](torch, torch.nn.functional)
        errors.append((error.type, str(error.value)))
    assert errors[0] == errors[1]


def test_where_gradients_are_off(subject):
    with subject.no_grad():
        F = subject.nn.functional
        assert F.soft_margin_loss(subject.ones(3), leaf(subject, 3)).ndim == 0
