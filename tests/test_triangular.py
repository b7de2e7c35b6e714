"""Triangular systems in NumPy, beside SciPy's and JAX's."""
import itertools

import jax
import numpy as np
import pytest
import scipy.linalg

from torchlike._core import numpy_lax
from torchlike._core.triangular import solve_triangle

KINDS = {"float32": 1e-4, "float64": 1e-11, "complex64": 1e-4, "complex128": 1e-11}


def _numbers(rng, *shape, kind):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if kind.startswith("complex") else x).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, columns", [(1, 1), (4, 3), (5, 40), (40, 5), (40, 40), (130, 3)])  # each way that it takes
def test_solve_triangle(kind, n, columns):
    rng = np.random.default_rng(n)
    for order, lower, unit in itertools.product("CF", (True, False), (True, False)):
        a = np.asarray(_numbers(rng, n, n, kind=kind) * np.float32(0.1 / n**0.5) + 2 * np.eye(n, dtype=kind), order=order)
        b = _numbers(rng, n, columns, kind=kind)
        found = solve_triangle(a, b, lower, unit)
        assert found.dtype == kind
        np.testing.assert_allclose(found, scipy.linalg.solve_triangular(a, b, lower=lower, unit_diagonal=unit), rtol=KINDS[kind], atol=KINDS[kind])


def test_a_zero_on_the_diagonal_divides():
    found = solve_triangle(np.array([[2.0, 0], [1, 0]]), np.array([[2.0], [3]]), True, False)
    np.testing.assert_array_equal(found, [[1], [np.inf]])


@pytest.mark.parametrize("left, lower, transpose, conjugate, unit", [p for p in itertools.product((True, False), repeat=5) if p[2] or not p[3]])
def test_the_rule_of_triangular_solve(left, lower, transpose, conjugate, unit):
    rng = np.random.default_rng(0)
    a = _numbers(rng, 2, 5, 5, kind="complex64") + 4 * np.eye(5, dtype="complex64")
    b = _numbers(rng, *((2, 5, 3) if left else (2, 3, 5)), kind="complex64")

    def solved(a, b):
        return jax.lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit)
    np.testing.assert_allclose(numpy_lax.compile_jaxpr(jax.make_jaxpr(solved)(a, b))(a, b)[0], solved(a, b), atol=1e-4)
