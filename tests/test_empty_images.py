"""Images, batches and outputs without elements: resizing, sampling at a grid and randomly placed pools, under both libraries."""

import pytest

RESIZED = [(n, mode) for n, modes in ((1, "nearest linear"), (2, "nearest nearest-exact bilinear bicubic"), (3, "nearest trilinear"))
           for mode in modes.split()]


def outcome(torch, f):
    """Shapes of the result and of the gradient, or the error."""
    try:
        x, y = f(torch)
        if y.requires_grad:
            y.sum().backward()
    except (RuntimeError, ValueError) as e:
        return type(e).__name__, str(e).splitlines()[0].strip()
    return tuple(y.shape), y.dtype.__str__(), None if x.grad is None else (tuple(x.grad.shape), x.grad.sum().item())


@pytest.mark.parametrize("how", [{"scale_factor": 2}, {"size": 3}])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
@pytest.mark.parametrize("n, mode", RESIZED)
def test_resized(subject, oracle, n, mode, shape, how):
    def f(torch):
        x = torch.rand(*shape, *[4] * n, requires_grad=True)
        return x, torch.nn.functional.interpolate(x, mode=mode, **how)
    assert outcome(subject, f) == outcome(oracle, f)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resized_with_antialias(subject, oracle, mode):
    def f(torch):
        x = torch.rand(0, 3, 8, 8, requires_grad=True)
        return x, torch.nn.functional.interpolate(x, size=3, mode=mode, antialias=True)

    def bytes(torch):
        x = torch.zeros(0, 3, 8, 8, dtype=torch.uint8)
        return x, torch.nn.functional.interpolate(x, size=3, mode=mode, antialias=True)
    assert outcome(subject, f) == outcome(oracle, f)
    assert outcome(subject, bytes) == outcome(oracle, bytes)


@pytest.mark.parametrize("mode, padding", [("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection")])
@pytest.mark.parametrize("shape, grid", [((0, 2, 3, 3), (0, 4, 5, 2)), ((1, 0, 3, 3), (1, 4, 5, 2)), ((1, 2, 3, 3), (1, 0, 5, 2)), ((1, 2, 0, 3), (1, 2, 5, 2)),
                                         ((0, 2, 3, 3, 3), (0, 4, 5, 6, 3)), ((1, 0, 3, 3, 3), (1, 4, 5, 6, 3)), ((1, 2, 3, 3, 3), (1, 4, 0, 6, 3))])
def test_sampled_at_a_grid(subject, oracle, shape, grid, mode, padding):
    if len(shape) == 5 and mode == "bicubic":
        mode = "bilinear"

    def f(torch):
        x = torch.rand(shape, requires_grad=True)
        return x, torch.nn.functional.grid_sample(x, torch.rand(grid), mode, padding, align_corners=False)
    assert outcome(subject, f) == outcome(oracle, f)


@pytest.mark.parametrize("shape, size, samples", [
    ((2, 3, 8, 8), (0, 1), None), ((2, 3, 8, 8), (1, 0), None), ((0, 3, 8, 8), (2, 2), None), ((1, 0, 8, 8), (2, 2), None), ((1, 3, 0, 8), (2, 2), None),
    ((3, 8, 8, 8), (0, 1, 1), None), ((3, 8, 8, 8), (1, 2, 0), None), ((1, 0, 8, 8, 8), (2, 2, 2), None), ((0, 3, 8, 8, 8), (2, 2, 2), None),
    ((0, 3, 8, 8), (1, 1), (0, 3, 2)), ((1, 3, 8, 8), (1, 1), (0, 3, 2)), ((1, 3, 8, 8), (1, 1), (1, 2, 2)), ((1, 3, 8, 8), (1, 1), (1, 3, 3)),
    ((1, 3, 8, 8), (1, 1), (2, 3, 2)), ((1, 3, 8, 8), (1, 1), (3, 2)), ((0, 3, 8, 8, 8), (1, 1, 1), (0, 3, 3)), ((1, 3, 8, 8, 8), (1, 1, 1), (1, 2, 3))])
def test_randomly_placed_pools(subject, oracle, shape, size, samples):
    def f(torch):
        x = torch.ones(shape, requires_grad=True)
        pool = getattr(torch.nn, f"FractionalMaxPool{len(size)}d")
        return x, pool(2, output_size=size, _random_samples=None if samples is None else torch.rand(samples))(x)
    assert outcome(subject, f) == outcome(oracle, f)
