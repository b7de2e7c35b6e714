"""max, min, argmax and argmin along a dimension in compiled programs: torch's values, first places, NaN, and gradients."""
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike.ops import reductions

RNG = np.random.default_rng(0)
N = reductions.SHORT + 3


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape, dim", [((N, 5), 0), ((4, N), 1), ((2, N, 3), 1), ((N,), 0), ((0, N), 1)])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes(kind, shape, dim, name):
    x = np.round(RNG.standard_normal(shape) * 2)
    if "float" in kind and x.size:
        flat = x.reshape(-1)
        flat[::5], flat[1::7] = -0.0, 0.0
        x[..., -1] = np.where(RNG.random(x[..., -1].shape) < 0.5, np.nan, np.inf)
    elif kind == "uint8":
        x = abs(x)
    if kind == "bool" and name.startswith("arg"):
        refused = []
        for m in (torchlike, torch):
            with pytest.raises((RuntimeError, IndexError)) as info:
                getattr(m, name)(m.tensor(x).to(m.bool), dim)
            refused.append(info.type)
        assert refused[0] is refused[1]
        return
    found = []
    for m in (torchlike, torch):
        t = m.tensor(x).to(getattr(m, kind))
        if "float" in kind:
            t.requires_grad_()
        with program.tier("compiled"):
            made = getattr(m, name)(t, dim)
            if name.startswith("arg"):
                found.append([made.numpy()])
                continue
            values, places = made
            if t.requires_grad:
                (values.float() * m.arange(values.numel()).reshape(values.shape)).nan_to_num(0, 0, 0).sum().backward()
            found.append([v.detach().float().numpy() for v in (values, places, *([t.grad] if t.requires_grad else []))])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(np.signbit(ours[ours == ours]), np.signbit(theirs[ours == ours]))


def test_under_vmap_and_jvp():
    x = RNG.standard_normal((3, N, 4)).astype(np.float32)
    with program.tier("compiled"):
        for m in (torchlike, torch):
            t = m.tensor(x)
            values, places = m.vmap(lambda a: a.max(0))(t)
            assert np.array_equal(values.numpy(), x.max(1)) and np.array_equal(places.numpy(), x.argmax(1))
            value, slope = m.func.jvp(lambda a: a.max(1)[0], (t,), (m.ones_like(t),))
            assert np.array_equal(value.numpy(), x.max(1)) and slope.numpy().all()
