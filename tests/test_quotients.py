"""Divisions are rounded once, in both tiers: whole quotients are whole, as torch's are."""
import numpy as np
import pytest
import torch

import torchlike as tl
from torchlike._core import executor

COUNTS = (41, 47, 55, 61, 82, 83)  # n * float32(1 / n) is less than 1
PROGRAMS = {
    "number": lambda t, x, n: x / n, "0-dim": lambda t, x, n: x / t.tensor(float(n)), "in place": lambda t, x, n: x.clone().div_(n),
    "of integers": lambda t, x, n: t.arange(1000) / n, "column": lambda t, x, n: x.reshape(50, 20) / t.full((50, 1), float(n)), "row": lambda t, x, n: x / x[n:n + 1],
    "double": lambda t, x, n: x.double() / n, "half": lambda t, x, n: x.half() / n, "truncated": lambda t, x, n: t.div(x, n, rounding_mode="trunc"),
    "floored": lambda t, x, n: x // n, "floored 0-dim": lambda t, x, n: x // t.tensor(float(n)), "remainder": lambda t, x, n: x % n,
    "mean": lambda t, x, n: t.ones(n).mean(), "means of rows": lambda t, x, n: x[:, None].expand(1000, n).mean(1), "variance": lambda t, x, n: t.stack(
        [t.ones(n), -t.ones(n)]).var(unbiased=False), "mse": lambda t, x, n: t.nn.functional.mse_loss(t.ones(n), t.zeros(n)),
    "l1": lambda t, x, n: t.nn.functional.smooth_l1_loss(t.full((n, 3), 1.5), t.zeros(n, 3)), "bag": lambda t, x, n: t.nn.functional.embedding_bag(
        t.zeros(1, n).long(), t.ones(2, 3)), "by a sum": lambda t, x, n: t.ones(n).sum() / t.ones(n).sum(),
}


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_quotients_are_rounded_once(name, kind):
    def run(t):
        x = t.arange(1000.0)
        return [PROGRAMS[name](t, x, n).double().numpy() for n in COUNTS]
    with executor.tier(kind):
        got = run(tl)
    for a, b in zip(got, run(torch), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("by", [lambda t, x: x / 41, lambda t, x: x.reshape(4, 5) / t.full((4, 1), 41.0), lambda t, x: x.reshape(4, 5).mean(1)])
def test_quotients_under_transforms(by):
    import jax
    x = tl.arange(20.0)
    want = by(torch, torch.arange(20.0)).numpy()
    np.testing.assert_array_equal(jax.jit(lambda x: by(tl, x))(x).numpy(), want)
    for vmap in (jax.vmap, tl.vmap):  # a divisor without the batch is repeated once more
        np.testing.assert_allclose(vmap(lambda x: by(tl, x))(tl.stack([x, x]))[1].numpy(), want, rtol=1.5e-7)
    t = torch.arange(20.0, requires_grad=True)
    by(torch, t).pow(2).sum().backward()
    slope = jax.grad(lambda x: by(tl, x).pow(2).sum().jax())(x)
    np.testing.assert_allclose(slope.numpy(), t.grad.numpy(), rtol=1e-6)
    made, tangent = tl.func.jvp(lambda x: by(tl, x), (x,), (tl.ones(20),))
    np.testing.assert_array_equal(made.numpy(), want)
    np.testing.assert_allclose(tangent.numpy(), by(torch, torch.ones(20)).numpy(), rtol=1e-6)
