"""An elementwise operation inside of a traced function gives the bits that it gives alone, where NumPy runs both."""
import jax
import numpy as np
import pytest

import torchlike
from torchlike._core import numpy_lax

NAMES = ("tanh", "erf", "exp2", "expm1", "log1p", "log2", "log10", "sinh", "cosh")


def numbers(dtype):
    torchlike.manual_seed(0)
    return torchlike.randn(64, 33, dtype=dtype).abs() * 2 + 0.01


# log10 of doubles looks into a table, which a batch does in other steps
@pytest.mark.parametrize("name, dtype", [(n, d) for n in NAMES for d in ("float32", "float64") if (n, d) != ("log10", "float64")])
def test_a_batch_has_the_bits_of_the_operation(name, dtype):
    function, x = getattr(torchlike, name), numbers(getattr(torchlike, dtype))
    alone = function(x)
    assert torchlike.equal(torchlike.vmap(function)(x), alone)
    assert torchlike.equal(torchlike.vmap(torchlike.vmap(function))(x), alone)
    assert torchlike.equal(torchlike.vmap(lambda row: function(row.flip(0)).flip(0))(x), alone)


def test_a_jacobian_of_a_batch_is_that_of_its_sum():
    """As PyTorch's tutorial on Jacobians asserts: 1 - tanh(x) ** 2 shows the last bit of a tanh near 1."""
    torchlike.manual_seed(0)
    weight, bias, x = torchlike.randn(33, 31), torchlike.randn(33), torchlike.randn(64, 31)
    predict = lambda x: torchlike.nn.functional.linear(x, weight, bias).tanh()  # noqa: E731
    batch = torchlike.func.vmap(torchlike.func.jacrev(predict))(x)
    assert torchlike.allclose(batch, torchlike.func.jacrev(lambda x: predict(x).sum(0))(x).movedim(1, 0))


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_not_taken_for_the_operation(name):
    """JAX gives the parts of a derivative the name of the call."""
    kernel = torchlike._core.registry.OPS[name].kernel
    x = np.linspace(0.1, 3, 50, dtype=np.float32)

    def f(x):
        return kernel(jax.numpy, x)
    made = {"grad": jax.grad(lambda x: f(x).sum()), "jvp": lambda x: jax.jvp(f, (x,), (x,)), "linear": lambda x: jax.linearize(f, x)[1](x),
            "second": jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum()), "batch of grads": jax.vmap(jax.grad(f))}
    for what, function in made.items():
        jaxpr = jax.make_jaxpr(function)(x)
        assert numpy_lax.supported(jaxpr) is None
        got, want = numpy_lax.compile_jaxpr(jaxpr)(x), jax.tree.leaves(jax.jit(function)(x))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=3e-5, atol=2e-5, err_msg=what)
