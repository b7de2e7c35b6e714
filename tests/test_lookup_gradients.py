"""The gradient of a look-up table in compiled programs on the CPU is a sum of rows, not a product with a one-hot matrix."""
import jax
import numpy as np
import pytest
from same import same

import torchlike
from torchlike._core.aval import aval
from torchlike._core.device import CPU
from torchlike._core.dtype import float32, int64
from torchlike.nn._functional.embedding import EMBEDDING, _embedding_vjp


def _lowered(platform):
    plan = EMBEDDING.plan((aval((100, 8), float32, CPU), aval((4, 16), int64, CPU)), (None,))
    with jax.enable_x64(True):
        shapes = (jax.ShapeDtypeStruct((4, 16, 8), np.float32), jax.ShapeDtypeStruct((4, 16), np.int64))
        return jax.jit(lambda g, i: _embedding_vjp(jax.numpy, g, i, None, plan)[0]).trace(*shapes).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("platform, product", [("cpu", False), ("tpu", True)])
def test_products_only_where_they_are_quick(platform, product):
    text = _lowered(platform)
    assert ("dot_general" in text) == product and ("scatter" in text) != product


def test_rows_that_come_back_are_summed():
    weight = torchlike.zeros(5, 2, requires_grad=True)
    torchlike.nn.functional.embedding(torchlike.tensor([[1, 3], [1, 1]]), weight, padding_idx=3).sum().backward()
    assert weight.grad.tolist() == [[0, 0], [3, 3], [0, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@same
def test_sums_of_many_16_bit_numbers(torch, kind):
    """Where torch rounds each sum they stop growing (bfloat16 at 256); where it adds in 32 bits they do not."""
    index = torch.arange(2000) % 3
    g = ((torch.arange(8000) * 37 % 64).reshape(2000, 4) / 64).to(getattr(torch, kind))
    found = []
    for look in (lambda w: torch.nn.functional.embedding(index, w), lambda w: torch.nn.functional.embedding(index, w, sparse=True), lambda w: w[index],
                 lambda w: w.index_select(0, index), lambda w: w.t().contiguous().index_select(1, index).t()):
        w = torch.zeros(3, 4, dtype=g.dtype, requires_grad=True)
        look(w).backward(g)
        found.append(w.grad.to_dense())
    there = torch.sparse_coo_tensor(index[None], g, (3, 4), check_invariants=False)
    joined = there.coalesce().values() if kind == "bfloat16" else None  # float16's sums depend on the order there, which is that of torch's sort
    return found, there.to_dense(), joined, torch.ones(3, 4, dtype=g.dtype).add(there)
