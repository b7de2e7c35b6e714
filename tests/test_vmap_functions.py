"""torch.autograd.Function under vmap with a generated rule: derivatives from outside, and theirs, are those that its backward says."""
import jax
import numpy as np
import pytest
from same import same


def functions(torch) -> dict:
    Function = torch.autograd.Function

    class Product(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return Product.apply(g, y.conj()) if ctx.needs_input_grad[0] else None, Product.apply(g, x.conj()) if ctx.needs_input_grad[1] else None

        @staticmethod
        def jvp(ctx, dx, dy):
            x, y = ctx.saved_tensors
            return dx * y + dy * x

    class Grows(Function):  # of the wrong gradient on purpose, which is read from the result
        generate_vmap_rule = True

        @staticmethod
        def forward(x, k):
            return (x * k).exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * ctx.k * 1.5, None

    class Straight(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.round()

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g

    class Reversed(Straight):
        @staticmethod
        def forward(x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return -2 * g

    class Pair(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, options):
            return x.sin(), x.sign(), x.cos() * options[0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.save_for_backward(inputs[0], *output)
            ctx.options = inputs[1]

        @staticmethod
        def backward(ctx, a, _, b):
            x, sine, sign, cosine = ctx.saved_tensors
            return a * cosine / ctx.options[0] * 2 - b * sine * sign + x * a, None

    def squared_pair(x):
        a, sign, b = Pair.apply(x, [2.0])
        return a ** 2 * b + sign * a
    return {
        "product": lambda x: Product.apply(x, x.sin()) * 2.5, "detached": lambda x: Product.apply(x.detach(), x) * x,
        "read from the result": lambda x: Grows.apply(x, 0.3).sin() * 1.7, "another number": lambda x: Grows.apply(x, 0.5).sin() * 1.7,
        "straight through": lambda x: Straight.apply(x * 3) ** 2 * x, "reversed": lambda x: Reversed.apply(x * 1.5) ** 3, "several": squared_pair,
        "one after the other": lambda x: Grows.apply(Product.apply(Straight.apply(x), x), 0.2),
        "complex": lambda x: Product.apply(torch.complex(x, x * 2), torch.complex(x.cos(), x)).sin().abs()}


NAMES = ("product", "detached", "read from the result", "another number", "straight through", "reversed", "several", "one after the other", "complex")


@pytest.mark.parametrize("name", NAMES)
@same
def test_second_derivatives_from_outside_of_vmap(torch, name):
    from importlib import import_module
    func = import_module(f"{torch.__name__}.func")
    f, x = functions(torch)[name], torch.linspace(-1.2, 1.1, 12, dtype=torch.float64).view(2, 3, 2)
    losses = {"once": lambda x: func.vmap(f)(x), "twice": lambda x: func.vmap(func.vmap(f))(x), "inside": lambda x: func.vmap(lambda r: func.vmap(f)(r).cos())(x)}
    found = {}
    for key, h in losses.items():
        def loss(x, h=h):
            return (h(x).sin() * h(x)).sum()

        def slope(x, loss=loss):
            return (func.grad(loss)(x) ** 2).sum()
        leaf = x.clone().requires_grad_()
        g, = torch.autograd.grad(loss(leaf), leaf, create_graph=True)
        found[key] = func.grad(loss)(x), func.grad(slope)(x), torch.autograd.grad((g ** 2).sum(), leaf)[0], func.jacrev(func.grad(loss))(x)
        if key == "once":
            found["three times"] = func.jacrev(func.jacrev(func.grad(loss)))(x)
    return found


@same
def test_forward_over_reverse_of_a_function_with_jvp(torch):
    from importlib import import_module
    func, f = import_module(f"{torch.__name__}.func"), functions(torch)["product"]
    x = torch.linspace(-1.2, 1.1, 6, dtype=torch.float64).view(2, 3)
    return func.jvp(func.grad(lambda x: (func.vmap(f)(x).sin() * x).sum()), (x,), (x.cos(),)), func.hessian(lambda x: func.vmap(f)(x).sin().sum())(x)


@same
def test_second_derivatives_of_what_returns_its_argument(torch):
    from importlib import import_module
    func = import_module(f"{torch.__name__}.func")

    class Same(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 3
    x = torch.tensor([0.3, -0.4])
    first = func.grad(lambda x: (func.vmap(Same.apply)(x) ** 3).sum())
    return first(x), func.grad(lambda x: first(x).sum())(x)


def test_jax_differentiates_a_function_of_complex_numbers_by_its_backward(subject, oracle):
    def loss(torch, x):
        return functions(torch)["complex"](x).sum()
    x = np.linspace(-1.2, 1.1, 5).astype(np.float32)
    want = oracle.from_numpy(x).requires_grad_()
    loss(oracle, want).backward()
    found = jax.grad(lambda a: loss(subject, subject.from_jax(a)).jax())(x)
    np.testing.assert_allclose(found, want.grad.numpy(), rtol=1e-4)


def test_jax_differentiates_a_function_many_times(subject, oracle):
    f, g = functions(subject)["read from the result"], functions(oracle)["read from the result"]
    found, x = lambda a: f(subject.from_jax(a)).jax(), oracle.tensor(0.4, requires_grad=True)
    want, at = g(x), jax.numpy.float32(0.4)
    for _ in range(3):
        found = jax.grad(found)
        want, = oracle.autograd.grad(want, x, create_graph=True)
        np.testing.assert_allclose(found(at), want.item(), rtol=1e-5)


def test_second_derivatives_of_what_draws_are_refused(subject):
    class Noise(subject.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * subject.rand_like(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]
    func = subject.func
    first = func.grad(lambda x: func.vmap(Noise.apply, randomness="different")(x).sum())
    assert first(subject.ones(2)).shape == (2,)
    with pytest.raises(NotImplementedError, match="draws random numbers"):
        func.grad(lambda x: first(x).sum())(subject.ones(2)).tolist()
