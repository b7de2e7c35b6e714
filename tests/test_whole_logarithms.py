"""log10 of float32, compiled: whole at powers of ten, and as close as PyTorch's elsewhere."""
import numpy as np
import torch

import torchlike
from torchlike._core import program


def compiled(x):
    with program.tier("compiled"):
        return torchlike.tensor(x).log10().numpy()


def test_powers_of_ten_have_whole_logarithms():
    x = np.array([float(f"1e{k}") for k in range(-37, 39)], np.float32)
    assert compiled(x).tolist() == list(range(-37, 39))


def test_all_sizes_are_within_a_unit_in_the_last_place():
    x = np.arange(1, 0x7F800000, 9973, dtype=np.int64).astype(np.int32).view(np.float32)  # subnormal numbers too
    exact = np.log10(x.astype(np.float64))
    assert (abs(compiled(x) - exact) <= np.spacing(abs(exact).astype(np.float32))).all()


def test_ends_are_torchs():
    x = np.array([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 1.0], np.float32)
    np.testing.assert_array_equal(compiled(x), torch.tensor(x).log10().numpy())


def test_slopes_of_both_orders():
    def slopes(t):
        x = t.tensor([0.5, 1.0, 1000.0], requires_grad=True)
        first, = t.autograd.grad(x.log10().sum(), x, create_graph=True)
        return first.detach().numpy(), t.autograd.grad(first.sum(), x)[0].numpy()
    with program.tier("compiled"):
        ours = slopes(torchlike)
    np.testing.assert_allclose(ours, slopes(torch), rtol=1e-6)
