"""torch.lobpcg beside real torch and beside the whole spectrum."""
import numpy as np
import pytest


def symmetric(torch, *batch, n=12):
    root = torch.from_numpy(np.random.default_rng(0).standard_normal((*batch, n, n)))
    return root @ root.mT + torch.diag(torch.arange(n, dtype=torch.float64)) * 3


def both(subject, oracle, call):
    found = []
    for torch in (subject, oracle):
        torch.manual_seed(1)
        found.append([np.asarray(r.detach().abs()) for r in call(torch)])
    for mine, real in zip(*found):
        np.testing.assert_allclose(mine, real, rtol=1e-6, atol=1e-5)


CALLS = {
    "one": lambda torch, a: torch.lobpcg(a), "largest": lambda torch, a: torch.lobpcg(a, 3), "basic": lambda torch, a: torch.lobpcg(a, 2, method="basic"),
    "smallest": lambda torch, a: torch.lobpcg(a, 2, largest=False, n=3), "batch": lambda torch, a: torch.lobpcg(symmetric(torch, 2), 2),
    "start": lambda torch, a: torch.lobpcg(a, X=torch.ones(12, 2, dtype=torch.float64).tril()),
    "B": lambda torch, a: torch.lobpcg(a, 2, B=torch.diag(torch.arange(1.0, 13, dtype=torch.float64))),
    "preconditioner": lambda torch, a: torch.lobpcg(a, 2, largest=False, iK=a.inverse()),
}


@pytest.mark.parametrize("name", CALLS)
def test_pairs(subject, oracle, name):
    both(subject, oracle, lambda torch: CALLS[name](torch, symmetric(torch)))


def test_refusals(subject, oracle):
    for call in (lambda torch: torch.lobpcg(torch.eye(5), 2), lambda torch: torch.lobpcg(torch.ones(5, 4)), lambda torch: torch.lobpcg(torch.eye(9), 1, torch.eye(8))):
        with pytest.raises((ValueError, AssertionError)) as real:
            call(oracle)
        with pytest.raises(type(real.value)):
            call(subject)


def test_gradient(subject, oracle):
    def gradient(torch):
        torch.manual_seed(1)
        a = symmetric(torch).requires_grad_()
        values, vectors = torch.lobpcg(a, 2, tol=1e-12, niter=200)
        (values.sin().sum() + (vectors ** 4).sum()).backward()
        return [a.grad]
    both(subject, oracle, gradient)


def test_tracker(subject):
    steps = []
    subject.lobpcg(symmetric(subject), 2, tracker=lambda worker: steps.append((worker.ivars["istep"], worker.ivars["converged_count"])))
    assert steps[0] == (0, 0) and steps[-1][1] >= 2 and len(steps) > 3
