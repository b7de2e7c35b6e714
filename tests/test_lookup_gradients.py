"""The gradient of a look-up table in compiled programs on the CPU is a sum of rows, not a product with a one-hot matrix."""
import jax
import numpy as np
import pytest

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
