"""Numbers between two ends, against real torch to the bit."""
import numpy as np
import pytest
import torch as oracle

import torchlike as torch
from torchlike._core import program


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sixteen_bits_are_rounded_at_each_step(kind, tier):
    draws = np.random.default_rng(0)
    for steps in (1, 2, 3, 7, 12, 50, 301, 3000):
        for _ in range(5):
            start, end = draws.uniform(-5, 5), draws.uniform(-50, 50)
            with program.tier(tier):
                got = torch.linspace(start, end, steps, dtype=getattr(torch, kind)).double().numpy()
            np.testing.assert_array_equal(got, oracle.linspace(start, end, steps, dtype=getattr(oracle, kind)).double().numpy())
