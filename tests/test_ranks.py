"""kthvalue, median and nanmedian of long vectors in compiled programs."""
import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program
from torchlike.ops import sorting


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int64, np.uint8])
@pytest.mark.parametrize("shape, dim", [((sorting.SHORT + 3, 5), 0), ((4, 300), 1), ((2, 65, 3), 1), ((700,), 0)])
def test_ranks_in_compiled_programs(kind, shape, dim):
    """Found bit by bit, without sorting: the values are torch's, and the positions those of a stable sort."""
    rng = np.random.default_rng(0)
    x = (np.round(rng.standard_normal(shape) * 3) if kind in (np.float32, np.uint8) else rng.standard_normal(shape) * 1000).astype(kind)
    if x.dtype.kind == "f":
        flat = x.reshape(-1)
        flat[::7], flat[::11], flat[::13] = -0.0, np.inf, -np.inf
    n = shape[dim]
    order = np.argsort(x + x.dtype.type(0), axis=dim, kind="stable")
    ks = 1, 2, n // 2, n - 1, n
    with program.tier("compiled"):  # one program
        found = [torchlike.kthvalue(torchlike.tensor(x), k, dim) for k in ks]
        found = [(values.numpy(), index.numpy()) for values, index in found]
    for k, (values, index) in zip(ks, found):
        assert np.array_equal(values, torch.kthvalue(torch.tensor(x), k, dim)[0].numpy()) and np.array_equal(index, order.take(k - 1, dim))
    if x.dtype.kind == "f":
        x.reshape(-1)[5] = np.nan
    names = "median", "nanmedian"
    with program.tier("compiled"):
        t = torchlike.tensor(x)
        found = [(getattr(torchlike, name)(t, dim)[0], getattr(torchlike, name)(t)) for name in names]
        found = [[y.numpy() for y in some] for some in found]
    for name, (values, whole) in zip(names, found):
        assert np.array_equal(values, getattr(torch, name)(torch.tensor(x), dim)[0].numpy(), equal_nan=True)
        assert np.array_equal(whole, getattr(torch, name)(torch.tensor(x)).numpy(), equal_nan=True)
