"""Products with transpositions, in the forms that XLA's CPU backend computes soonest."""
import itertools
import re

import jax
import numpy as np
import pytest
import torch as real

import torchlike as torch
from torchlike._core import program
from torchlike.ops import cpu_products

SIZES = (1, 3, 10, 64, 130, 512)


def _matrices(*shapes):
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("batch", [(), (3,)])
def test_products_are_the_same_in_every_form(batch):
    for k, m, n in itertools.product(SIZES, repeat=3):
        x, y = _matrices((*batch, k, m), (*batch, k, n))
        want = np.swapaxes(x, -1, -2) @ y
        for got in (*cpu_products.of_columns(x, [y, y]), cpu_products.product(np.swapaxes(x, -1, -2), y)):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def test_few_rows_are_the_same_in_every_form():
    for m, k, n in itertools.product((2, 4, 7, 13, 40, 64, 65), (100, 130, 600, 1100), (30, 64, 200)):
        x, y = _matrices((m, k), (n, k))
        np.testing.assert_allclose(cpu_products.of_rows(x, y), x @ y.T, rtol=2e-4, atol=2e-4)


def _dots(f, *arrays) -> list[tuple[str, str]]:
    """The dimensions that the compiled products sum over."""
    text = jax.jit(f).lower(*arrays).compile().as_text()
    return re.findall(r" dot\(.*lhs_contracting_dims=\{(\d)\}, rhs_contracting_dims=\{(\d)\}", text)


@pytest.mark.parametrize(("k", "m", "n"), [(512, 256, 256), (512, 512, 10), (512, 10, 512)])
def test_no_product_reads_its_left_side_by_columns(k, m, n):
    x, y = _matrices((k, m), (k, n))
    assert _dots(lambda x, y: cpu_products.of_columns(x, [y])[0], x, y) == [("1", "0")]
    assert _dots(lambda x, y: cpu_products.product(x.T, y).T, x, y) == [("1", "0")]
    assert _dots(lambda x, y: (x.T @ y).T, x, y) != [("1", "0")]  # as XLA would have it


@pytest.mark.parametrize("shape", [(0, 128, 128), (2, 0, 128), (2, 128, 0)])
def test_products_of_nothing(shape):
    x, y = np.ones(shape, np.float32), np.ones((*shape[:2], 100), np.float32)
    np.testing.assert_array_equal(cpu_products.of_columns(x, [y])[0], x.swapaxes(1, 2) @ y)


def test_gradients_of_transposed_products_are_torchs():
    for left, right in itertools.product((False, True), repeat=2):
        x, y, g = _matrices((300, 200) if left else (200, 300), (150, 300) if right else (300, 150), (200, 150))
        found = []
        for t in (real, torch):
            a, b = t.tensor(x, requires_grad=True), t.tensor(y, requires_grad=True)
            with program.tier("compiled"):
                ((a.t() if left else a) @ (b.t() if right else b)).backward(t.tensor(g))
                found.append([np.asarray(a.grad.numpy()), np.asarray(b.grad.numpy())])
        for one, other in zip(*found):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
