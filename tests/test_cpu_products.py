"""Products with transpositions, in the forms that XLA's CPU backend computes soonest."""
import contextlib
import itertools
import math
import re

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch as real

import torchlike as torch
from torchlike._core import program
from torchlike._core.processor import flags
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


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("first, second", [((20,), (20,)), ((3, 1), (1, 5)), ((2, 4), (4,))])
def test_products_of_many_small_matrices(dtype, first, second):
    rng = np.random.default_rng(0)
    for m, k, n in itertools.product((2, 4, 7), (2, 3, 4, 8), (2, 4, 16)):
        x, y = [(rng.normal(size=s) + (1j * rng.normal(size=s) if dtype == "complex64" else 0)).astype(dtype) for s in ((*first, m, k), (*second, k, n))]
        with jax.enable_x64(dtype == "float64"):
            assert cpu_products.are_small(x, y) == (k > 2 or n <= 8)
            for form in (cpu_products.product, lambda x, y: cpu_products.matmul(jnp, x, y)):
                made = form(jnp.asarray(x), jnp.asarray(y))
                assert made.dtype == dtype
                np.testing.assert_allclose(made, x @ y, rtol=2e-4, atol=2e-5)


def test_gradients_of_many_small_matrices():
    x, y = (torch.tensor(a, requires_grad=True) for a in _matrices((30, 4, 5), (30, 5, 3)))
    a, b = (real.tensor(t.detach().numpy(), requires_grad=True) for t in (x, y))
    with program.tier("compiled"):
        found = [g.numpy() for g in torch.autograd.grad(((x @ y) ** 2).sum(), (x, y))]
    for got, want in zip(found, real.autograd.grad(((a @ b) ** 2).sum(), (a, b))):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-4)


def test_few_rows_are_the_same_in_every_form():
    for m, k, n in itertools.product((2, 4, 7, 13, 40, 64, 65), (100, 130, 600, 1100), (30, 64, 200)):
        x, y = _matrices((m, k), (n, k))
        np.testing.assert_allclose(cpu_products.of_rows(x, y), x @ y.T, rtol=2e-4, atol=2e-4)


def _bfloat16(*shapes):
    return [x.astype(ml_dtypes.bfloat16) for x in _matrices(*shapes)]


def test_bfloat16_products_are_the_same_in_every_form():
    """They are sums of float32 numbers, rounded once."""
    for k, m, n in itertools.product((1, 10, 64, 130), (1, 3, 16, 65, 300), (1, 10, 64, 200)):
        x, y, w = _bfloat16((m, k), (k, n), (n, k))
        want, of_rows = [(a.astype(np.float32) @ b.astype(np.float32)).astype(ml_dtypes.bfloat16) for a, b in ((x, y), (x, w.T))]
        for got in (cpu_products.product(x, y), *cpu_products.of_columns(np.ascontiguousarray(x.T), [y, y]), cpu_products.product(x, np.ascontiguousarray(y.T).T)):
            np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=1e-2, atol=1e-4 * k)
        np.testing.assert_allclose(cpu_products.of_rows(x, w).astype(np.float32), of_rows.astype(np.float32), rtol=1e-2, atol=1e-4 * k)


@pytest.mark.parametrize("rows", [4, 64, 600])
def test_processors_that_multiply_bfloat16_numbers_do(rows):
    x, w, g = _bfloat16((rows, 256), (512, 256), (rows, 512))
    able = cpu_products.takes_bfloat16(x)
    assert able == bool({"avx512_bf16", "amx_bf16"} & flags())
    for f, arrays in ((cpu_products.of_rows, (x, w)), (cpu_products.product, (g, w)), (lambda g, x: cpu_products.of_columns(g, [x])[0], (g, x))):
        text = jax.jit(lambda a, b: f(jnp.maximum(a, 0), jnp.maximum(b, 0))).lower(*arrays).compile().as_text()  # noqa: B023
        sides = re.findall(r" = f32\[\d+,\d+\]\S* dot\((?:\w+\[[^ ]* )?%([\w.-]+), ", text)  # none: jaxlib 0.11.2 leaves a product that rounds its sums whole
        assert any(f"%{side} = bf16[" in text for side in sides) == able


def test_bfloat16_layers_are_torchs():
    """Forward and gradients of a layer with and without a bias, of a product with a transposed view, of addmm, of a batch."""
    x, w, b = (np.float32(a) for a in _bfloat16((6, 20, 96), (48, 96), (48,)))
    found = []
    for library in (real, torch):
        x_, w_, b_ = (library.tensor(a).to(library.bfloat16).requires_grad_() for a in (x, w, b))
        with contextlib.nullcontext() if library is real else program.tier("compiled"):
            flat = x_.reshape(-1, 96)
            results = [library.nn.functional.linear(x_, w_, b_), library.nn.functional.linear(flat, w_), flat @ w_.t(), library.addmm(b_, flat, w_.t()),
                       x_ @ w_.t(), x_ @ x_.mT]
            sum(r.float().square().sum() for r in results).backward()
            found.append([t.detach().float().numpy() for t in (*results, x_.grad, w_.grad, b_.grad)])
    for want, got in zip(*found):
        np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-2 * np.abs(want).max())


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


@pytest.mark.parametrize(("rows", "k", "n"), [((0,), 8, 3), ((2, 5), 0, 3), ((5,), 0, 3), ((2, 0), 8, 3), ((5,), 8, 0)])
def test_bfloat16_products_of_nothing(rows, k, n):
    x, y = (np.ones(shape, ml_dtypes.bfloat16) for shape in ((*rows, k), (k, n)))
    for got in (cpu_products.product(x, y), cpu_products.of_rows(x.reshape(math.prod(rows), k), y.T)):
        assert got.size == 0 or not np.asarray(got, np.float32).any()
    assert cpu_products.product(x, y).shape == (*rows, n)


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
