"""PyTorch's meaning inside of JAX's transformations: dtypes, random numbers, what autograd does not see, Functions; and Tensors in JAX's own functions."""
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import torchlike as torch
from torchlike._core import program

F = torch.nn.functional


def _gradients(f, *xs):
    """(by .backward(), by jax.grad inside and outside of jax.jit) of f's first argument."""
    leaf = xs[0].clone().requires_grad_()
    f(leaf, *xs[1:]).backward()
    scalar = lambda *xs: f(*xs).jax()  # noqa: E731
    return [leaf.grad, jax.jit(jax.grad(scalar))(*xs), jax.grad(jax.jit(scalar))(*xs)]


def _agree(tensors, tolerance=1e-6):
    first, *others = [np.asarray(t.detach().numpy()) for t in tensors]
    for x in others:
        np.testing.assert_allclose(x, first, rtol=tolerance, atol=tolerance)


def test_numbers_of_64_bits_stay_so():
    big, third = torch.tensor([2**40 + 1, 5]), torch.tensor([1 / 3, 2.0], dtype=torch.float64)
    assert not jax.config.jax_enable_x64
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f, x in ((lambda x: x + 1, big), (lambda x: x * 3, third), (lambda x: x.argmax(), third), (lambda x: x.argmax(), big), (lambda x: x.double() / 3, big),
                     (lambda x: torch.arange(2) + x, big)):
            got, want = jax.jit(f)(x), f(x)
            assert got.dtype is want.dtype and torch.equal(got, want)
        assert jax.vmap(lambda x: x * 2)(big).tolist() == [2**41 + 2, 10]
        assert jnp.asarray(big).dtype == np.int64 and jnp.sin(third).dtype == np.float64


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
def test_what_the_engine_does_meanwhile_is_no_part_of_the_trace(tier):
    with program.tier(tier):
        w = torch.from_numpy(np.arange(3.0, dtype=np.float32)).clone()
        made = w * 2 + 1

        def f(x):
            return x + torch.from_jax(w.jax()) + made.cumsum(0) + torch.lgamma(made)
        got = jax.jit(f)(torch.ones(3))
        _agree([f(torch.ones(3)), got], 1e-5)
        assert (w + 1).tolist() == [1.0, 2.0, 3.0] and not program.is_tracer(w._current().array)


RANDOM = {
    "rand": lambda x: torch.rand(4), "float64": lambda x: torch.randn(4, dtype=torch.float64), "int64": lambda x: torch.randint(0, 2**40, (3,)), "dropout": lambda x: F.dropout(x),
    "bernoulli": torch.bernoulli, "normal": lambda x: torch.normal(x, x), "multinomial": lambda x: torch.multinomial(x, 2), "poisson": torch.poisson,
    "gamma": torch._standard_gamma, "rrelu": lambda x: F.rrelu(x - 0.5, training=True), "many": lambda x: torch.randn(300_000)[-3:],
    "seeded": lambda x: (torch.manual_seed(5), torch.rand(3))[1], "generator": lambda x: torch.rand(3, generator=torch.Generator()),
    "state": lambda x: [torch.get_rng_state(), torch.rand(3)] and (lambda s: (torch.rand(3), torch.set_rng_state(s), torch.rand(3))[2])(torch.get_rng_state()),
    "vmap": lambda x: torch.vmap(lambda a: a + torch.rand(()), randomness="different")(x), "compiled": torch.compile(lambda x: F.dropout(x)),
}


def test_random_numbers_are_drawn_at_each_run_in_order():
    x = torch.tensor([0.2, 0.4, 0.6, 0.8])

    def all_of(x):
        return {name: f(x) for name, f in RANDOM.items()}
    torch.manual_seed(3)
    want = [all_of(x), all_of(x), torch.get_rng_state()]
    torch.manual_seed(3)
    compiled = jax.jit(all_of)
    got = [compiled(x), compiled(x), torch.get_rng_state()]
    for name in RANDOM:
        for run in (0, 1):
            assert torch.equal(want[run][name], got[run][name]), name
    assert torch.equal(want[2], got[2])
    assert not torch.equal(got[0]["gamma"], got[1]["gamma"])


def test_random_numbers_in_scan_and_refusals():
    torch.manual_seed(0)
    made = jax.jit(lambda x: jax.lax.scan(lambda c, _: (c, F.dropout(c)), x, None, length=2)[1])(torch.ones(4))
    torch.manual_seed(0)
    assert torch.equal(made, torch.stack([F.dropout(torch.ones(4)) for _ in range(2)]))
    with pytest.raises(RuntimeError, match="JAX traces"):
        jax.jit(lambda x: (torch.seed(), x)[1])(torch.ones(2))
    with pytest.raises(NotImplementedError, match="Effects not supported"):
        jax.grad(jax.checkpoint(lambda x: F.dropout(x).sum().jax()))(torch.ones(2))
    with pytest.raises(ValueError, match="ordered"):
        jax.vmap(torch.bernoulli)(torch.ones(2, 3))


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return (x * k).round()

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * x * ctx.k, None


class Picked(torch.autograd.Function):
    @staticmethod
    def forward(x, i):
        return x[i], i

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.i, ctx.shape = inputs[1], inputs[0].shape

    @staticmethod
    def backward(ctx, g, _):
        return torch.zeros(ctx.shape).index_add(0, ctx.i, 3 * g), None


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return 7 * g


def _written_without_grad(x):
    y = x * 1
    with torch.no_grad():
        y.clamp_(min=1.0)
        y[0] *= 2
    return (y * x).sum()


def _written_data(x):
    y = x * 1
    y.data.mul_(3)
    y.detach()[1:].add_(1)
    return (y * x).sum()


UNSEEN = {
    "detach": lambda x: ((x + (x.round() - x).detach()) ** 2).sum(),
    "no_grad": lambda x: (x * x).sum() + (torch.no_grad()(lambda: x * 5)() * x).sum(),
    "write under no_grad": _written_without_grad, "write of data": _written_data,
    "Function": lambda x: (Rounded.apply(x, 2.0) ** 2).sum(), "setup_context": lambda x: (Picked.apply(x, torch.tensor([0, 2]))[0] ** 2).sum(),
    "mark_dirty": lambda x: (lambda y: (Doubled.apply(y), (y ** 2).sum())[1])(x * 1),
    "reentrant checkpoint": lambda x: torch.utils.checkpoint.checkpoint(lambda x: (x ** 3).sin().sum(), x * 1, use_reentrant=True),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(lambda x: (x ** 3).sin().sum(), x, use_reentrant=False),
    "gaussian_nll": lambda x: F.gaussian_nll_loss(x, x.detach() * 2, x * x),
}
KINKS = {
    "relu": lambda x: x.relu().sum(), "abs": lambda x: x.abs().sum(), "norm": lambda x: x.norm(), "std": lambda x: x.std(), "l1": lambda x: F.l1_loss(x, x.detach()),
    "hardtanh": lambda x: F.hardtanh(x, 0, 1).sum(), "normalize": lambda x: F.normalize(x, dim=0).sum(), "cdist": lambda x: torch.cdist(x[None], x[None]).sum(),
    "max": lambda x: x.max(), "amax": lambda x: x.amax(), "maximum": lambda x: torch.maximum(x, 2 * x).sum(), "hypot": lambda x: torch.hypot(x, 2 * x).sum(),
    "cumprod": lambda x: x.cumprod(0).sum(), "cosine": lambda x: F.cosine_similarity(x, 2 * x, 0),
    "scatter_reduce": lambda x: x.scatter_reduce(0, torch.tensor([0, 0, 1]), x + 1, "prod").sum(),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_what_autograd_does_not_see(name):
    _agree(_gradients(UNSEEN[name], torch.tensor([0.3, 1.7, 2.2])), 1e-5)


@pytest.mark.parametrize("name", KINKS)
def test_derivatives_at_kinks_are_autograds(name):
    f, x = KINKS[name], torch.zeros(3)
    leaf = x.clone().requires_grad_()
    f(leaf).backward()
    _agree([leaf.grad, jax.jit(jax.grad(lambda x: f(x).jax()))(x)])


def test_forward_mode_and_second_derivatives():
    def f(x):
        return (x.relu() ** 3).sum() + x.norm() * x.amax()
    x = torch.tensor([0.5, -1.0, 2.0])
    want = torch.func.hessian(f)(x)
    scalar = lambda x: f(x).jax()  # noqa: E731

    @jax.jit
    def by_jax(x):
        gradient = lambda x: torch.func.grad(f)(x).jax()  # noqa: E731
        return [jax.hessian(scalar)(x), jax.jacfwd(gradient)(x), jax.jacrev(gradient)(x)]
    _agree([want, *by_jax(x)], 1e-5)
    tangents = jax.jit(lambda x, t: [jax.jvp(scalar, (x,), (t,))[1], jax.linearize(scalar, x)[1](t)])(x, torch.ones(3))
    _agree([torch.func.jvp(f, (x,), (torch.ones(3),))[1], *map(torch.from_jax, tangents)], 1e-5)


def test_symmetric_factorizations_have_the_gradient_along_symmetric_changes():
    a = torch.tensor([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])
    _agree(_gradients(lambda a: (torch.linalg.cholesky(a) * torch.arange(9.0).reshape(3, 3).cos()).sum(), a)[:2], 1e-5)
    _agree(_gradients(lambda a: (torch.linalg.eigvalsh(a) * torch.tensor([1.0, 2.0, 4.0])).sum(), a)[:2], 1e-5)


def test_the_row_at_padding_idx_does_not_learn():
    index = torch.tensor([[1, 2], [3, 1]])
    _agree(_gradients(lambda w: (F.embedding(index, w, padding_idx=1) ** 2).sum(), torch.arange(8.0).reshape(4, 2)))


def test_functions_in_transformations():
    x = torch.tensor([0.3, 1.7, 2.2])
    f = UNSEEN["Function"]

    def backward(x):
        leaf = x.detach().requires_grad_()
        f(leaf).backward()
        return leaf.grad
    want = backward(x)
    _agree([want, jax.jit(backward)(x), jax.vmap(jax.grad(lambda x: f(x).jax()))(x.expand(2, 3))[0]])
    doubling = jax.custom_vjp(lambda x: x * 2)
    doubling.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 100,))
    leaf = x.clone().requires_grad_()
    torch.jax_function(doubling)(leaf).sum().backward()
    assert leaf.grad.tolist() == [100.0] * 3


def test_buffers_of_a_batch_norm_are_results():
    model = torch.nn.BatchNorm1d(3)
    x = torch.arange(12.0).reshape(4, 3).sin()

    @jax.jit
    def step(buffers, x):
        buffers = dict(buffers)
        made = torch.func.functional_call(model, buffers, (x,))
        return made, buffers
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    for _ in range(2):
        made, buffers = step(buffers, x)
    want = [model(x) for _ in range(2)][-1]
    _agree([want, made], 1e-5)
    _agree([model.running_var, buffers["running_var"]], 1e-5)
    assert buffers["num_batches_tracked"].item() == 2


def test_a_tensor_from_outside_that_a_trace_wrote_says_so():
    outside = torch.zeros(2)
    jax.jit(lambda x: (outside.add_(x), x)[1])(torch.ones(2))
    with pytest.raises(jax.errors.UnexpectedTracerError, match="side effect"):
        outside + 1
    donated = torch.ones(3) * 2
    donated.jax()
    jax.jit(lambda x: x * 2, donate_argnums=0)(donated)
    with pytest.raises(RuntimeError, match="deleted"):
        donated + 1


def test_tensors_in_jaxs_functions():
    x, a = torch.ones(2), jnp.ones(2)
    for made in (jnp.sin(x), x + a, a + x, a @ x[:, None], jnp.stack([x, x]), jnp.where(torch.tensor([True, False]), x, 0), jax.nn.softmax(x)):
        assert isinstance(made, jax.Array)
    assert (a == x).all() and (x * jnp.float32(2)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        a + torch.ones(2, requires_grad=True)
    assert torch.jax_function(lambda x, k: x * k)(x, np.full(2, 3.0, np.float32)).tolist() == [3.0, 3.0]


def test_arrays_are_indices_and_data():
    """Outside of JAX's transformations and, as tracers, inside."""
    x, rows, mask, one = torch.arange(6.0).reshape(3, 2), jnp.array([2, 0]), jnp.array([[True, False], [False, True], [False, True]]), jnp.int32(1)
    assert torch.equal(x[rows], x[[2, 0]]) and torch.equal(x[mask], torch.tensor([0.0, 3.0, 5.0])) and x[one, one] == 3 and torch.equal(x[..., one], x[:, 1])

    def read(rows, mask, one):
        z = x.clone()
        z[mask] = 7
        z[one] = torch.as_tensor(rows)
        return x[rows], x[one, one], x[..., one], torch.tensor(rows), torch.asarray(rows, dtype=torch.float64), z
    for got, want in zip(jax.jit(read)(rows, mask, one), read(rows, mask, one), strict=True):
        assert got.dtype is want.dtype and torch.equal(got, want)
    with pytest.raises(IndexError, match="must be long, int, byte or bool"):
        jax.jit(lambda a: x[a])(jnp.ones(2))
    with pytest.raises(TypeError, match="array of numbers, got one of key"):
        torch.from_jax(jax.random.key(0))


def test_functions_of_jaxs_run_as_with_jax():
    """64-bit types where an argument has one, JAX's keys as arguments, JAX's errors from the function's own line."""
    plus = torch.jax_function(lambda x: x + jnp.arange(2.0))
    x = torch.ones(2, requires_grad=True)
    made = plus(x)
    made.sum().backward()
    assert made.dtype is x.grad.dtype is torch.float32 and plus(x.double()).dtype is torch.float64
    assert torch.jax_function(lambda i: i + 1)(torch.tensor([2**40])).tolist() == [2**40 + 1]
    with jax.enable_x64(True):
        assert torch.jax_function(lambda: jnp.ones(2))().dtype is torch.float64
    assert torch.jax_function(lambda: jnp.ones(2))().dtype is torch.float32

    noisy = torch.jax_function(lambda key, x: x * jax.random.normal(key, x.shape))
    for key in (jax.random.key(3), jax.random.key(4), jax.random.key(3, impl="rbg"), jax.random.PRNGKey(3)):
        np.testing.assert_allclose(noisy(key, x).detach().numpy(), jax.random.normal(key, (2,)), rtol=1e-6)

    def looks(x):
        return np.sin(x)
    with pytest.raises(jax.errors.TracerArrayConversionError) as caught:
        torch.jax_function(looks)(x)
    assert "looks" in [entry.name for entry in caught.traceback]


def test_what_jax_differentiates_ends_in_an_array():
    x = torch.arange(3.0)
    with pytest.raises(ValueError, match=r"whose result is an array, as loss.jax\(\) is"):
        jax.grad(lambda x: (x ** 2).sum())(x)
    assert torch.equal(jax.grad(lambda x: (x ** 2).sum().jax())(x), jax.jit(torch.func.grad(lambda x: (x ** 2).sum()))(x))


def test_paths_in_trees():
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path({"w": torch.ones(1), "b": [torch.nn.Parameter(torch.zeros(1))]})]
    assert paths == ["['b'][0].jax", "['w'].jax"]


def test_shapes_without_data_are_meta_tensors():
    shape = jax.eval_shape(lambda x: x @ x.T, torch.ones(2, 3))
    assert shape.is_meta and shape.shape == (2, 2)
    assert jax.eval_shape(lambda x: x.sum(), shape).shape == ()
    assert jax.jit(lambda x: x @ x.T).lower(torch.ones(2, 3, device="meta")).out_info.shape == (2, 2)
    assert "(2, 3)" in repr(jax.tree.map(lambda x: x.shape, torch.ones(2, 3)))


def test_lengths_and_classes_may_be_traced():
    log_probs, targets = torch.arange(24.0).reshape(4, 2, 3).sin().log_softmax(-1), torch.tensor([[1, 2], [2, 1]])
    lengths = torch.tensor([4, 3]), torch.tensor([2, 1])
    _agree([F.ctc_loss(log_probs, targets, *lengths), jax.jit(F.ctc_loss)(log_probs, targets, *lengths)], 1e-5)
    assert torch.equal(jax.jit(lambda i: F.one_hot(i, 3))(targets), F.one_hot(targets, 3))
    _agree([torch.quantile(log_probs, torch.tensor([0.2, 0.7])), jax.jit(torch.quantile)(log_probs, torch.tensor([0.2, 0.7]))])
