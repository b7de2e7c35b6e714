"""gammainc and gammaincc by formulas of fixed length: as exact as float32 allows, and at the ends as PyTorch's."""
import numpy as np
import pytest
import scipy.special
import torch

import torchlike
from torchlike._core import program

EDGES = np.array([(a, x) for a in (0, 1e-8, 0.3, 1, 9.9, 39, 40, 41, np.inf, -1) for x in (0, 1e-30, 0.3, 1, 2, 40.5, 1e4, 1e38, np.inf, -1)], np.float32)


def both(name, a, x, tier):
    with program.tier(tier):
        made = getattr(torchlike.special, name)(torchlike.tensor(a), torchlike.tensor(x)).numpy()
    return made, getattr(torch.special, name)(torch.tensor(a), torch.tensor(x)).numpy()


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize("shapes", [(1e-3, 2), (1, 40), (30, 60)])
def test_values_are_exact_to_float32(name, shapes, tier):
    rng = np.random.default_rng(0)
    a = rng.uniform(*shapes, 20000).astype(np.float32)
    x = np.maximum(a + 4 * np.sqrt(a + 1) * rng.standard_normal(a.size), 0).astype(np.float32)
    made, theirs = both(name, a, x, tier)
    exact = getattr(scipy.special, name)(a.astype(np.float64), x.astype(np.float64))
    np.testing.assert_allclose(made, exact, rtol=1.5e-7, atol=1.2e-38)  # below, XLA has zeros
    np.testing.assert_allclose(made, theirs, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize("most", [40, np.inf])
def test_ends_are_torchs(name, most, tier):
    a, x = EDGES[(EDGES[:, 0] <= most) | np.isinf(EDGES[:, 0])].T.copy()
    made, theirs = both(name, a, x, tier)
    np.testing.assert_allclose(made, theirs, rtol=1e-4, atol=2e-7)


def test_a_batch_without_large_shapes_runs_no_loop_on_the_cpu():
    import jax

    from torchlike.ops import incomplete_gamma
    with jax.enable_x64(True):
        text = str(jax.make_jaxpr(lambda a, x: incomplete_gamma._short(a, x, True))(np.ones(3), np.ones(3)))
    assert "while" not in text and "igamma" not in text
