"""Poisson samples whose doubles XLA chooses: torch's numbers, and the generator is left where torch leaves it."""
import numpy as np
import pytest
import torch
from same import same_draws

import torchlike
from torchlike._core import rng_discrete, rng_poisson_loop

R = np.random.default_rng(0)
N = rng_poisson_loop.SAMPLES + 100
RATES = {"small": R.random(N) * 4, "large": 10 + R.random(N) * 40, "mixed": R.random(N) * 30 * (R.random(N) > 0.1), "one": np.full(N, 3.0),
         "far apart": np.exp(R.random(700) * 28 - 5), "nearly ten": 10 + R.integers(-2, 3, N) * 1e-6, "few": R.random(rng_discrete._FOR_XLA) * 20}


@pytest.fixture(autouse=True)
def there(monkeypatch):
    """The kernels take over at once."""
    for kernel in rng_poisson_loop._KERNELS:
        monkeypatch.setattr(kernel, "seconds", 1e9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", RATES)
def test_torchs_numbers(monkeypatch, name, kind):
    rates, asked, chosen = RATES[name].astype(kind), [], rng_poisson_loop.chosen
    monkeypatch.setattr(rng_poisson_loop, "chosen", lambda *given: asked.append(1) or chosen(*given))

    def draw(library):
        t = library.tensor(rates)
        return [library.poisson(t).numpy(), library.poisson(t).numpy(), library.rand(3).numpy()]
    same_draws(draw)
    assert len(asked) == 2


def test_doubt_is_settled_by_python(monkeypatch):
    asked, accepted = [], rng_discrete._accepted
    rates = np.exp(R.random(600) * 3 + 21)  # whose logarithms have few places behind the point
    monkeypatch.setattr(rng_discrete, "_accepted", lambda *given: asked.append(1) or accepted(*given))
    torch.manual_seed(1)
    torchlike.manual_seed(1)
    assert np.array_equal(torchlike.poisson(torchlike.tensor(rates)).numpy(), torch.poisson(torch.tensor(rates)).numpy()) and asked
