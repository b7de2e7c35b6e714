"""torch.func and torch.vmap against real torch: values, composition, what closures capture, in-place writes, errors."""
import numpy as np
import pytest
from same import caught, same

import torchlike
from torchlike._core.program import tier


def _model(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def _data(torch, *shape):
    n = 1
    for s in shape:
        n *= s
    return torch.arange(float(n)).reshape(shape).sin()


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def _tier(request):
    with tier(request.param):
        yield


@same
def test_per_sample_gradients(torch):
    F, model = torch.func, _model(torch)
    params = {k: v.detach() for k, v in model.named_parameters()}
    x, y = _data(torch, 5, 3), _data(torch, 5, 2)

    def loss(params, x, y):
        return ((F.functional_call(model, params, (x,)) - y) ** 2).sum()
    return F.vmap(F.grad(loss), in_dims=(None, 0, 0))(params, x, y), F.grad(loss)(params, x, y)


@same
def test_ensemble(torch):
    F = torch.func
    models = [_model(torch) for _ in range(3)]
    params, buffers = F.stack_module_state(models)
    base = _model(torch)
    out = F.vmap(lambda p, b, x: F.functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, _data(torch, 2, 3))
    out.square().sum().backward()
    return out, [p.grad for p in params.values()]


@same
def test_captured_parameters_get_gradients(torch):
    model, x = _model(torch), _data(torch, 5, 3).requires_grad_()
    w = torch.tensor([0.5, -2.0], requires_grad=True)
    h = w * 3  # captured below, with a graph of its own
    out = torch.vmap(lambda a: model(a) * h + w.detach() * a.sum())(x)
    out.pow(2).mean().backward()
    return out, x.grad, w.grad, [p.grad for p in model.parameters()]


@same
def test_second_derivatives_through_vmap(torch):
    x = _data(torch, 4).requires_grad_()
    w = torch.tensor(1.5, requires_grad=True)
    y = torch.vmap(lambda a: (a * w).sin() * a.detach())(x)
    g, = torch.autograd.grad(y.sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    return g, x.grad, w.grad


@same
def test_nested(torch):
    F, x, y = torch.func, _data(torch, 3), _data(torch, 4)
    m = _data(torch, 2, 3, 4)
    f = lambda a: (a ** 3).sum() + (a[0] * a[1]).sin()  # noqa: E731
    return [F.vmap(F.vmap(torch.mul, (None, 0)), (0, None))(x, y), F.vmap(F.vmap(lambda a: a.cumsum(0).relu()))(m),
            F.vmap(F.vmap(torch.dot, (0, 0)), (1, 1))(m, m), F.hessian(f)(x), F.jacrev(F.jacrev(f))(x), F.jacfwd(F.jacfwd(f))(x),
            F.jacrev(F.grad(f))(x), F.vmap(F.hessian(f))(m[0].mT), F.grad(lambda a: F.grad(f)(a).sum())(x),
            F.vmap(F.grad(lambda a: F.vmap(torch.sin)(a).sum()))(m[0]), F.jvp(F.grad(f), (x,), (x,)), F.grad(lambda s: F.vmap(lambda a: a * s)(x).sum())(y[1])]


@same
def test_gradients_at_ties_are_torch_s(torch):
    x = torch.tensor([[-1.0, 0.0, 2.0], [2.0, 2.0, 0.0]], requires_grad=True)
    torch.vmap(lambda a: a.relu().sum() + a.abs().sum())(x).sum().backward()
    return x.grad, torch.func.vmap(torch.func.grad(lambda a: a.relu().sum() + a.amax() + a.abs().sum()))(x.detach())


@same
def test_arguments(torch):
    V, x, m = torch.vmap, _data(torch, 3), _data(torch, 2, 3, 4)
    return [V(lambda a: a.sum(-1), in_dims=1)(m), V(lambda a: a.sum(-1), in_dims=-1, out_dims=1)(m), V(lambda a, b: (a, b * a), (0, None), (0, -1))(x, m[0]),
            V(lambda d: d["a"] * d["b"], ({"a": 0, "b": None},))({"a": x, "b": m[0]}), V(lambda a: [a, {"z": a + 1}])(x), V(torch.sin, chunk_size=2)(x),
            V(lambda a, k: a * k, (0, None))(x, 2.5), V(lambda a: torch.ones(2), out_dims=None)(x), V(lambda a: torch.ones(2))(x),
            V(lambda a, i: a.gather(0, i.reshape(1)))(m[0, :2], torch.tensor([1, 3])), V(lambda a, i: a.index_select(0, i), (0, None))(m[0], torch.tensor([1, 3])),
            V(lambda a: torch.where(a > 0, a, -a))(x), V(lambda a: a.sort(descending=True).values)(m[0]), V(lambda a: a @ a.mT)(m),
            V(lambda a: torch.stack([a, a * 2]).softmax(0))(x)]


@same
def test_draws_are_the_same_in_every_chunk(torch):
    f, x = lambda a: a + torch.rand(()), torch.zeros(6)
    out = []
    for chunk_size in (None, 1, 4):
        torch.manual_seed(3)
        out += [torch.vmap(f, randomness="same", chunk_size=chunk_size)(x), torch.vmap(f, randomness="different", chunk_size=chunk_size)(x), torch.rand(2)]
    twice = torch.vmap(torch.vmap(f, randomness="same", chunk_size=2), randomness="same", chunk_size=1)
    return out, twice(x.view(2, 3)), torch.rand(2)


@same
def test_in_place(torch):
    x, w = _data(torch, 3), torch.zeros(2)
    y = torch.vmap(lambda a: a.mul_(2))(x)
    z = torch.vmap(lambda a: (w.add_(1), a + w)[1])(x)

    def own(a):
        b = a.clone()
        b[0] = 5
        b.view(-1)[1:].mul_(3)
        return b
    return x, y, z, w, torch.vmap(own)(_data(torch, 2, 3)), caught(torch.vmap(lambda a: w.add_(a)), x), w


@same
def test_what_a_function_made_or_got_may_be_written(torch):
    F, x, w = torch.func, _data(torch, 3), torch.ones(3)

    def made(a):
        parts = [torch.zeros(3), torch.tensor([1.0, 2.0, 3.0]), w * 2, a.clone(), a.detach() * 1, torch.empty(3).fill_(2), w.clone()]
        for p in parts:
            p.mul_(a)
            p[0] = 5
            p[1:].add_(1)
        return sum(p.sum() for p in parts)

    def got(a):
        a.mul_(2)
        a.view(-1)[0] = 1
        return (a * a).sum()
    inner = lambda a: F.grad(lambda b: (b.clone().mul_(2) * a).sum())(a.clone()).sum()  # noqa: E731
    return (F.grad(made)(x), F.jvp(made, (x,), (x,)), F.jacrev(made)(x), F.jvp(got, (x.clone(),), (x,)), F.grad(inner)(x),
            torch.vmap(F.grad(lambda a: a.clone().mul_(a).sum()))(_data(torch, 2, 3)))


@same
def test_buffers_that_are_arguments_may_be_written(torch):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    torch.manual_seed(0)
    parameters = {name: torch.randn_like(p) for name, p in model.named_parameters()}
    buffers, x = dict(model.named_buffers()), torch.randn(8, 3)
    gradients = torch.func.grad(lambda p, b: (torch.func.functional_call(model, (p, b), (x,)) ** 2).sum())(parameters, buffers)
    return [gradients[name] for name in sorted(gradients) if name != "0.bias"], model[1].num_batches_tracked  # that one is zero, and its rounding


@same
def test_random(torch):
    V, x = torch.vmap, _data(torch, 3)
    out = [V(lambda a: a + torch.rand(2), randomness=r)(x) for r in ("same", "different")]
    out.append(V(torch.nn.functional.dropout, randomness="different")(torch.ones(3, 4)))
    return *out, caught(V(lambda a: torch.rand(2) + a), x), torch.func.jacfwd(lambda a: a * torch.rand(3), randomness="same")(x)


@same
def test_custom_function_under_grad(torch):
    class Cube(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x ** 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return 7 * g * ctx.saved_tensors[0] ** 2
    x = _data(torch, 4).requires_grad_()
    torch.vmap(Cube.apply)(x).sum().backward()
    return x.grad, torch.func.grad(lambda a: Cube.apply(a).sum())(x.detach()), torch.vmap(torch.func.grad(Cube.apply))(x.detach())


@same
def test_no_grad(torch):
    F, x = torch.func, _data(torch, 3).requires_grad_()
    with torch.no_grad():
        outside = F.grad(lambda a: (a ** 3).sum())(x)

    def inside(a):
        with torch.no_grad():
            c = a ** 2
        return (a * c).sum()
    y = torch.vmap(inside)(x.reshape(3, 1))
    y.sum().backward()
    return outside.requires_grad, outside, F.grad(inside)(x), F.grad(lambda a: (a ** 3).sum())(x).requires_grad, x.grad


def test_gradients_of_forward_derivatives_of_forward_derivatives(oracle, subject):
    """Tangents that depend on the point themselves, of operations that save their inputs, and their results."""
    point, along = np.array([0.5, -1.3, 2.1, 0.7]), np.array([1.0, 2.0, -1.0, 0.5])

    def found(torch, function):
        func, x, v = torch.func, torch.tensor(point.tolist(), dtype=torch.float64), torch.tensor(along.tolist(), dtype=torch.float64)
        once = lambda x: func.jvp(lambda x: function(torch, x), (x,), (x * 0.3 + 0.2,))[1]  # noqa: E731
        twice = lambda x: func.jvp(once, (x,), (x.sin() * v,))[1].sum()  # noqa: E731
        made = [func.grad(twice)(x), func.grad(lambda x: func.jacfwd(once)(x).sum())(x), func.grad(lambda x: func.jvp(twice, (x,), (x * v,))[1])(x)]
        leaf = x.clone().requires_grad_()
        return [m.tolist() for m in (*made, torch.autograd.grad(twice(leaf), leaf)[0])]
    for function in (lambda t, x: x ** 3, lambda t, x: x.exp(), lambda t, x: x.cumprod(0), lambda t, x: (x.tanh() * x).softmax(0) ** 2):
        np.testing.assert_allclose(found(subject, function), found(oracle, function), rtol=1e-9)


@same
def test_linearize_and_jvp(torch):
    F, x = torch.func, _data(torch, 3)
    f = lambda a, b: (a * b.sin(), {"s": a.sum()})  # noqa: E731
    out, push = F.linearize(f, x, x + 1)
    return out, push(x, x), push(x * 2, x), F.jvp(f, (x, x + 1), (x, x)), F.jvp(lambda a: (a, a * 2), (x,), (x,), has_aux=True)


def test_a_call_that_fails_leaves_the_rest_as_it_was():
    w = torchlike.tensor([1.0, 2.0])
    pending = w * 3

    def fails(a):
        w.add_(1)
        return (a * pending).sum().item()
    with pytest.raises(RuntimeError, match="calling .item"):
        torchlike.vmap(fails)(torchlike.ones(2, 2))
    assert pending.tolist() == [3.0, 6.0]
    assert w.tolist() == [1.0, 2.0]
    assert (w + pending).tolist() == [4.0, 8.0]


def test_an_escaped_example_says_so():
    kept = []
    torchlike.vmap(lambda a: (kept.append(a * 2), a)[1])(torchlike.ones(2))
    with pytest.raises(RuntimeError, match="vmap that is over"):
        kept[0].tolist()


def test_what_all_examples_share_may_be_kept(oracle):
    """A module's counter and its table of angles, made in the first call and read in later ones, with and without vmap; the table has a gradient."""
    def kept(torch):
        class Angles(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.table = torch.nn.Linear(4, 4), None
                self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

            def forward(self, x):
                self.calls = self.calls + 1
                if self.table is None:
                    self.table = (torch.arange(x.shape[0])[:, None] * torch.arange(4.0) * 0.5).cos() * self.layer.bias
                return (self.layer(x) * self.table).sum()
        torch.manual_seed(0)
        model = Angles()
        made = [torch.func.vmap(model)(torch.ones(2, 3, 4)), model(torch.ones(3, 4)), torch.func.vmap(model)(torch.ones(2, 3, 4))]
        model.table.sum().backward()
        inner = []
        torch.func.vmap(lambda a: torch.func.vmap(lambda b: (inner.append(model.calls * 3), a + b)[1])(torch.ones(2)))(torch.ones(3))
        return [t.tolist() for t in [*made, model.calls, model.layer.bias.grad, inner[0] + 1]]
    for ours, theirs in zip(kept(torchlike), kept(oracle)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_calls_leave_no_programs_behind():
    from torchlike._core import program_info
    f = torchlike.vmap(torchlike.func.grad(lambda x: x.sin().sum()))
    known = []
    for _ in range(6):
        f(torchlike.ones(3, 2)).tolist()
        known.append(len(program_info.infos))
    assert known[-1] == known[2]


def test_index_out_of_range_is_found():
    with pytest.raises((IndexError, RuntimeError)):
        torchlike.vmap(lambda a, i: a.index_select(0, i))(torchlike.ones(2, 3), torchlike.tensor([[1], [9]])).tolist()


def test_one_operation_for_calls_that_return():
    from torchlike._functorch import _mapped
    f = torchlike.vmap(lambda a: a.sin() * 2)
    f(torchlike.ones(3)).tolist()
    known = len(_mapped._known)
    for i in range(3):
        f(torchlike.ones(3) * i).tolist()
    assert len(_mapped._known) == known


def test_running_statistics_of_an_ensemble_carry_no_gradient(subject, oracle):
    found = []
    for torch in (subject, oracle):
        torch.manual_seed(0)
        layers = [torch.nn.BatchNorm1d(3) for _ in range(2)]
        weights, buffers = torch.func.stack_module_state(layers)
        x = torch.randn(4, 3)
        out = torch.func.vmap(lambda w, b: torch.func.functional_call(layers[0], (w, b), (x,)))(weights, buffers)  # noqa: B023
        assert out.requires_grad
        found.append([(name, b.requires_grad, b.tolist()) for name, b in buffers.items()])
    for mine, theirs in zip(*found):
        assert mine[:2] == theirs[:2]
        assert oracle.allclose(oracle.tensor(mine[2], dtype=oracle.float64), oracle.tensor(theirs[2], dtype=oracle.float64), atol=1e-6)


@same
def test_inputs_are_plain(torch):
    """Inside of a transformation an input is a Tensor: what its class knows of it is not there, nor is it a Parameter."""
    class Marked(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl
    F, seen = torch.func, []

    def f(x):
        seen.append((x.__class__.__name__, x.__class__ is torch.Tensor))
        return (x * 2).sum()
    for x in (torch.nn.Parameter(torch.ones(2, 3)), torch.ones(2, 3).as_subclass(Marked)):
        for transform in F.grad, F.jacrev, F.vmap:
            transform(f)(x)
        F.vjp(f, x)
    return seen


def test_what_an_input_becomes_may_be_replaced(monkeypatch):
    """pypose puts a function of its own there, which gives the tensor back its class."""
    class Marked(torchlike.Tensor):
        pass
    module = torchlike._functorch.eager_transforms
    plain = module._wrap_tensor_for_grad

    def marked(x, level):
        made = plain(x, level).as_subclass(Marked)
        made.mark = "here"
        return made
    monkeypatch.setattr(module, "_wrap_tensor_for_grad", marked)
    marks = []

    def f(x):
        marks.append(x.mark)
        return (x.as_subclass(torchlike.Tensor) ** 2).sum()
    x = torchlike.tensor([1.0, 2.0])
    assert torchlike.func.grad(f)(x).tolist() == [2.0, 4.0] and torchlike.func.jacrev(f)(x).tolist() == [2.0, 4.0] and marks == ["here"] * 2
    assert plain(3, None) == 3 and plain.__module__ == module.__name__
