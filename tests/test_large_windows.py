"""Pools and folds with many elements in a window, compiled (there they are loops) and in NumPy, against real torch: results, indices, gradients; ties and NaN."""
import numpy as np
import pytest

import torchlike
from torchlike._core import executor, program
from torchlike.nn._functional import windows
from torchlike.nn._functional.windows import FEW

POOLS = [("max_pool1d", (2, 3, 50), {"kernel_size": 20, "stride": 3, "padding": 9}), ("max_pool2d", (2, 3, 14, 15), {"kernel_size": (5, 7), "stride": 1, "padding": (2, 3)}),
         ("max_pool2d", (2, 3, 23, 26), {"kernel_size": (4, 5), "stride": (3, 2), "padding": (1, 2), "dilation": (2, 3)}),
         ("max_pool2d", (2, 3, 17, 16), {"kernel_size": 4}), ("max_pool3d", (1, 2, 9, 8, 9), {"kernel_size": (4, 4, 9)}),
         ("max_pool2d", (2, 3, 18, 17), {"kernel_size": 5, "stride": 3, "ceil_mode": True}),
         ("max_pool3d", (1, 2, 6, 7, 8), {"kernel_size": 3, "stride": 2, "padding": 1}), ("avg_pool1d", (2, 3, 50), {"kernel_size": 20, "stride": 3, "padding": 10}),
         ("avg_pool2d", (2, 3, 14, 15), {"kernel_size": (5, 7), "stride": 1, "padding": (2, 3), "count_include_pad": False}),
         ("avg_pool2d", (2, 3, 17, 16), {"kernel_size": 4}), ("avg_pool2d", (2, 3, 23, 26), {"kernel_size": (4, 5), "stride": (3, 2), "padding": (1, 2)}),
         ("avg_pool3d", (1, 2, 6, 7, 8), {"kernel_size": 3, "stride": 2, "padding": 1}), ("unfold", (2, 3, 13, 15), {"kernel_size": (4, 5), "stride": (3, 2), "padding": 1}),
         ("fold", (2, 40, 15), {"output_size": (9, 11), "kernel_size": (4, 5), "stride": (3, 2), "padding": 1})]


def results(torch, name, x, g, keywords):
    x = torch.tensor(x, requires_grad=True)
    y = getattr(torch.nn.functional, name)(x, **keywords)
    made = [y, *torch.autograd.grad(y, x, torch.tensor(g))]
    if name.startswith("max"):
        y, where = getattr(torch.nn.functional, name)(x, return_indices=True, **keywords)
        made += [y, where, *torch.autograd.grad(y, x, torch.tensor(g))]
    return [t.detach().numpy() for t in made]


def inputs(name, shape, kind):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape, np.float32)
    if kind == "ties":
        x = np.round(x)
    if kind == "nan":
        x[rng.random(shape) < 0.02] = -np.inf
        x.flat[x.size // 3] = np.nan  # of several in a window torch takes the last one's position
    return x


@pytest.mark.parametrize("tier", ["compiled", "numpy"])
@pytest.mark.parametrize("kind", ["distinct", "ties", "nan"])
def test_large_windows(oracle, subject, kind, tier):
    for name, shape, keywords in POOLS:
        assert np.prod(np.broadcast_to(keywords["kernel_size"], len(shape) - 2 if "pool" in name else 2)) > FEW
        x = inputs(name, shape, kind)
        out = getattr(oracle.nn.functional, name)(oracle.tensor(x), **keywords).shape
        g = np.random.default_rng(1).standard_normal(tuple(out), np.float32)
        want = results(oracle, name, x, g, keywords)
        with program.tier(tier):
            got = results(subject, name, x, g, keywords)
        for a, b in zip(want, got):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5, err_msg=f"{name} {keywords}")


@pytest.mark.parametrize("tier", ["compiled", "numpy"])
def test_windows_over_one_dimension(oracle, subject, tier):
    """Tensor.unfold: its gradient, and the gradient of a write into it where windows do not overlap."""
    def made(torch):
        found = []
        for shape, d, size, step in (((2, 100, 3), 1, 40, 3), ((2, 100), 1, 40, 1), ((3, 100), -1, 7, 40), ((90,), 0, 90, 1), ((2, 100), 1, 33, 10),
                                     ((50, 2), 0, 0, 7), ((5,), 0, 1, 1)):
            x = torch.arange(float(np.prod(shape))).reshape(shape).sin().requires_grad_()
            y = x.unfold(d, size, step)
            found += [y, *torch.autograd.grad((y * torch.arange(float(y.numel())).reshape(y.shape).cos()).sum(), x)]
        base = torch.arange(200.).requires_grad_()
        z = base * 2
        z.unfold(0, 3, 5).mul_(torch.arange(3.) + 2)
        found += [z, *torch.autograd.grad((z * torch.arange(200.).cos()).sum(), base)]
        return [t.detach().numpy() for t in found]
    with program.tier(tier):
        got = made(subject)
    for a, b in zip(made(oracle), got):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


def test_a_window_over_everything_is_no_loop_over_its_elements(monkeypatch):
    """A pool of 64,000 elements in NumPy ran as many instructions."""
    taken, offsets = [], windows.offsets

    def counted(kernel):
        for offset in offsets(kernel):
            taken.append(offset)
            yield offset
    monkeypatch.setattr(windows, "offsets", counted)
    x = torchlike.rand(1, 2, 40, 40, 40, requires_grad=True)
    with program.tier("numpy"):
        for y in (torchlike.nn.functional.adaptive_max_pool3d(x, 1), torchlike.nn.functional.adaptive_max_pool3d(x, 1, return_indices=True)[0]):
            g, = torchlike.autograd.grad(y.sum(), x)
            assert torchlike.equal(g, (x == x.amax((2, 3, 4), keepdim=True)).float())
    assert 0 < len(taken) <= 10 * 40


def test_overlapping_windows_backward_in_numpy(monkeypatch):
    """Each gradient is added once at its maximum's place: nothing is done as often as a window has positions (it took 3 s for windows of 7 x 7)."""
    x = torchlike.arange(40000.0).sin().reshape(1, 4, 100, 100).requires_grad_()
    y = torchlike.nn.functional.max_pool2d(x, 7, 1)
    count, choose = [], windows.choose
    monkeypatch.setattr(windows, "choose", lambda *args: count.append(1) or choose(*args))
    with executor.tier("numpy"):
        grad, = torchlike.autograd.grad(y.sum(), x)
        assert grad.sum().item() == y.numel()
    assert 0 < len(count) <= 2 * 2 * 7
