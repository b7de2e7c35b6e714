"""tril_indices and triu_indices, counted out row by row, and a Kronecker product that is no view."""
import numpy as np
import pytest
import torch

import torchlike


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_places_are_torchs(name, dtype):
    for row in (0, 1, 3, 6):
        for col in (0, 1, 4, 6):
            for offset in range(-8, 9):
                ours = getattr(torchlike, name)(row, col, offset, dtype=getattr(torchlike, dtype))
                theirs = getattr(torch, name)(row, col, offset, dtype=getattr(torch, dtype))
                assert str(ours.dtype) == str(theirs.dtype)
                np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_a_kronecker_product_is_no_view_of_the_products():
    for t in (torch, torchlike):
        a, b = t.ones(3, 4, requires_grad=True), t.ones(5, 2)
        for made in (t.kron(a, b), t.kron(a, t.ones(128, 128))):
            assert made._base is None and type(made.grad_fn).__name__ == "UnsafeViewBackward0"
