"""Gamma samples whose doubles XLA chooses: torch's numbers, and the generator is left where torch leaves it."""
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from same import same_draws

import torchlike
from torchlike._core import rng_gamma, rng_gamma_loop
from torchlike._core.kept_kernel import KeptKernel

R = np.random.default_rng(0)
N = rng_gamma_loop.SAMPLES + 101
SHAPES = {"below one": R.random(N), "mixed": np.exp(R.standard_normal(N) * 2), "one": np.full(N, 1.0), "tiny": np.full(N, 1e-3), "far apart": np.exp(R.random(N) * 20 - 5),
          "a few are huge": np.where(R.random(N) < 0.02, np.exp(R.random(N) * 60 + 20), R.random(N)), "infinite": np.where(R.random(N) < 0.02, np.inf, 0.7),
          "few": R.random(rng_gamma._MANY) * 3, "none among them": R.random(N) * (R.random(N) > 0.2)}


@pytest.fixture(autouse=True)
def there(monkeypatch):
    """The kernel takes over at once."""
    monkeypatch.setattr(rng_gamma_loop._KERNEL, "seconds", 1e9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", SHAPES)
def test_torchs_numbers(monkeypatch, name, kind):
    shapes, asked, samples = SHAPES[name].astype(kind), [], rng_gamma.samples
    monkeypatch.setattr(rng_gamma, "samples", lambda *given: asked.append(1) or samples(*given))

    def draw(library):
        t = library.tensor(shapes)
        drawn = library._standard_gamma(t), library.randn(1), library._standard_gamma(t), library.randn(3), library.rand(3)
        return [x.numpy() for x in drawn]
    same_draws(draw)
    assert len(asked) == 2


def _doubting(numbers, shapes, count, i, *left):
    """The walk, in doubt after every hundred samples."""
    at, end, last, _, *places = rng_gamma_loop._walk(numbers, shapes, jnp.minimum(count, i + 100), i, *left)
    return at, end, last, end < count, *places


def test_doubt_is_settled_by_python(monkeypatch):
    asked, one, shapes = [], rng_gamma._one, SHAPES["mixed"]
    kernel = KeptKernel("doubting", _doubting, rng_gamma_loop._KERNEL.structs, {})
    kernel.seconds = 1e9
    monkeypatch.setattr(rng_gamma_loop, "_KERNEL", kernel)
    monkeypatch.setattr(rng_gamma, "_one", lambda *given: asked.append(1) or one(*given))
    torch.manual_seed(1)
    torchlike.manual_seed(1)
    assert np.array_equal(torchlike._standard_gamma(torchlike.tensor(shapes)).numpy(), torch._standard_gamma(torch.tensor(shapes)).numpy())
    assert len(asked) > 30 and torchlike.rand(1).item() == torch.rand(1).item()
