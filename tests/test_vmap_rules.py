"""What vmap makes of functions that have a rule of their own: custom Functions, custom operations; and tensors printed under vmap."""
from importlib import import_module

import pytest
from same import caught, same

import torchlike


def _product(torch, seen):
    """A product that NumPy computes, in forward, backward and the rule, which notes the shapes that it gets."""
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return torch.tensor(x.detach().numpy() * y.detach().numpy())

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return Product.apply(g, y), Product.apply(g, x)

        @staticmethod
        def vmap(info, in_dims, x, y):
            seen.append((info.batch_size, info.randomness))
            x, y = (t.unsqueeze(-1) if d is None else t.movedim(d, -1) for t, d in zip((x, y), in_dims))
            made = Product.apply(x, y)
            return made, made.ndim - 1
    return Product.apply


X = [[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]]
CALLS = {
    "both": lambda t, f, x, y: t.vmap(f)(x, x + 1),
    "one": lambda t, f, x, y: t.vmap(f, (0, None))(x, y),
    "other dimensions": lambda t, f, x, y: t.vmap(f, (1, 0), 1)(x, t.ones(3, 2)),
    "of results": lambda t, f, x, y: t.vmap(lambda a: f(f(a.sin(), y).exp(), a).sum() * 2)(x),
    "nested": lambda t, f, x, y: t.vmap(lambda a: t.vmap(lambda b: f(b * 2, a))(a))(x),
    "of the call around": lambda t, f, x, y: t.vmap(t.vmap(lambda d, r: f(r, r * 2) + d, (0, None)))(t.ones(2, 4, 3), x),
    "gradient around a call": lambda t, f, x, y: t.vmap(t.func.grad(lambda r: t.vmap(lambda d: f(r, r * 2) * d)(t.ones(4, 3)).sum()))(x),
    "gradient around calls": lambda t, f, x, y: t.func.grad(lambda x: t.vmap(t.vmap(lambda d, r: f(r, r * 2) * d, (0, None)))(t.ones(2, 4, 3), x).sum())(x),
    "unmapped": lambda t, f, x, y: t.vmap(lambda a: a * f(t.ones(3) * 2, y))(x),
    "gradient outside": lambda t, f, x, y: t.func.grad(lambda a: t.vmap(lambda r: f(r.sin(), r))(a).sum())(x),
    "gradient inside": lambda t, f, x, y: t.vmap(t.func.grad(lambda r: f(r.sin(), r * 2).sum()))(x),
    "second gradient": lambda t, f, x, y: t.vmap(t.func.grad(lambda q: t.func.grad(lambda r: f(f(r, r), r).sum())(q).sum()))(x),
    "jacobian": lambda t, f, x, y: t.func.jacrev(lambda r: f(r, r))(y),
    "chunks": lambda t, f, x, y: t.vmap(lambda r: f(r.sin(), r), chunk_size=1)(x),
    "random": lambda t, f, x, y: t.vmap(lambda r: f(r, r) + t.rand(3) * 0, randomness="different")(x),
}


@pytest.mark.parametrize("name", CALLS)
@same
def test_a_function_s_own_rule(torch, name):
    seen = []
    made = CALLS[name](torch, _product(torch, seen), torch.tensor(X), torch.tensor([1.0, 2.0, 3.0]))
    return made, set(seen)


@same
def test_gradients_reach_leaves_outside(torch):
    f, x, w = _product(torch, []), torch.tensor(X, requires_grad=True), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    out = torch.vmap(lambda r: f(r.exp(), w))(x)
    out.pow(2).sum().backward()
    return out, x.grad, w.grad


@same
def test_writes_go_on(torch):
    """The function writes before and after the rule runs, which must see none of it twice."""
    f, held, total = _product(torch, []), torch.zeros(2, 3), torch.zeros(2)

    def step(row, kept):
        kept.add_(1)
        made = f(row, kept)
        kept.add_(made)
        return made.sum()
    return torch.vmap(step)(torch.tensor(X), held), held, total


@same
def test_what_a_rule_must_not_do(torch):
    def made(result, **attributes):
        return type("Made", (torch.autograd.Function,), {
            "forward": staticmethod(lambda x: x.clone()), "setup_context": staticmethod(lambda ctx, inputs, output: None),
            "vmap": staticmethod(lambda info, in_dims, x: result(x)), **attributes}).apply
    x = torch.ones(2, 3)
    return [caught(torch.vmap(made(*case[:1], **dict(case[1:]))), x) for case in (
        (lambda x: x,), (lambda x: (x, 0, 0),), (lambda x: (x, (0, 0)),), (lambda x: (x, 0), ("generate_vmap_rule", True)))]


def test_a_gradient_through_an_inner_gradient_says_so():
    """torch can; here the outer gradient is not known yet when the inner derivative is written down."""
    f = _product(torchlike, [])
    inner = torchlike.vmap(torchlike.func.grad(lambda r: (f(r, r) * r).sum()))
    with pytest.raises(NotImplementedError, match="gradients from outside of vmap"):
        torchlike.func.grad(lambda a: inner(a).sum())(torchlike.tensor(X))
    assert torchlike.vmap(lambda r: f(r, r))(torchlike.tensor(X)).tolist() == [[0.25, 1.0, 4.0], [9.0, 16.0, 25.0]]


@same
def test_an_operation_s_own_rule(torch):
    library, space = import_module(f"{torch.__name__}.library"), f"{torch.__name__}_rules"
    import numpy as np

    def cube(x, scale):
        a = x.detach().numpy()
        return torch.tensor((scale * a**3).astype(np.float32)), torch.tensor((3 * scale * a**2).astype(np.float32))
    cube.__annotations__ = {"x": torch.Tensor, "scale": float, "return": tuple[torch.Tensor, torch.Tensor]}
    op = library.custom_op(f"{space}::cube", cube, mutates_args=())
    op.register_vmap(lambda info, in_dims, x, scale: (op(x, scale), (in_dims[0], in_dims[0])))
    twice = library.custom_op(f"{space}::twice", lambda x: torch.tensor(x.numpy() * 2), mutates_args=(), schema="(Tensor x) -> Tensor")
    library.register_vmap(f"{space}::twice", lambda info, in_dims, x: (twice(x), in_dims[0]))
    x = torch.tensor(X)
    return (torch.vmap(lambda a: op(a, 2.0))(x), torch.vmap(lambda a: op(a.sin(), 0.5)[0] + 1, 1)(x), torch.vmap(torch.vmap(twice))(x),
            torch.vmap(getattr(torch.ops, space).twice)(x))


@same
def test_tensors_are_printed_under_vmap(torch):
    said = []

    def note(a):
        said.append([repr(a), str(a.sin()), repr(a.sum() > 2), repr(torch.ones(2))])
        return a
    x = torch.tensor(X)
    torch.vmap(note)(x)
    torch.vmap(torch.vmap(lambda a: (said.append(repr(a)), a * 2)[1]))(x)
    torch.vmap(lambda a: (said.append(repr(a)), a)[1], 1)(x)
    return said


P = [[0.25, 0.5, 0.875], [0.125, 0.75, 0.5], [0.875, 0.25, 0.625], [0.5, 0.5, 0.25]]
DRAWS = {
    "bernoulli": lambda t, a: t.bernoulli(a),
    "bernoulli of a result": lambda t, a: t.bernoulli(a * a),
    "bernoulli_": lambda t, a: a.clone().bernoulli_(a),
    "bernoulli_ of what all share": lambda t, a: t.zeros_like(a).bernoulli_(t.ones(3) * 0.5),
    "normal of means": lambda t, a: t.normal(a, 1.0),
    "normal of both": lambda t, a: t.normal(a * 2, t.ones(3)),
    "normal of fewer dimensions": lambda t, a: t.normal(t.zeros(2, 3), a),
    "normal of what all share": lambda t, a: a * 0 + t.normal(t.zeros(3) + 1, t.ones(3) * 2),
    "poisson": lambda t, a: t.poisson(a * 5),
    "binomial": lambda t, a: t.binomial(t.full((3,), 5.0) + 0 * a, a),
    "gamma": lambda t, a: t._standard_gamma(a * 3),
    "dirichlet": lambda t, a: t._sample_dirichlet(a * 3),
    "gradient of gamma": lambda t, a: (t.func.grad(lambda b: t._standard_gamma(b * 3).sum())(a) * 10).round(),  # torch approximates it
    "multinomial": lambda t, a: t.multinomial(a, 2),
    "multinomial of rows": lambda t, a: t.multinomial(t.stack([a, 1 - a]), 2),
    "multinomial of what all share": lambda t, a: a.sum() + t.multinomial(t.ones(5) * 2, 2),
}


@pytest.mark.parametrize("randomness", ["different", "same", "error"])
@pytest.mark.parametrize("name", DRAWS)
@same
def test_draws_that_depend_on_values(torch, name, randomness):
    torch.manual_seed(3)
    return caught(torch.vmap(lambda a: DRAWS[name](torch, a), randomness=randomness), torch.tensor(P)), torch.rand(2)


@same
def test_draws_of_nested_calls(torch):
    torch.manual_seed(3)
    inner = torch.vmap(lambda a: torch.bernoulli(a.reshape(1)), randomness="different")
    return torch.vmap(inner, randomness="different")(torch.tensor(P)), torch.vmap(inner, 1, 1, randomness="different")(torch.tensor(P))


@same
def test_writing_what_all_examples_share_along_another_dimension(torch):
    x = torch.tensor(P)
    seen = [torch.vmap(lambda a: a.fill_(2.0).sum(), 1)(x[:, :2]), x.clone(), torch.vmap(lambda a: a.zero_(), 1, 1)(x[:, 1:]).clone(), x.clone()]
    return seen, torch.vmap(lambda a: a.copy_(torch.arange(4.0)), 1)(x).clone(), x


LOOKS = {
    "a number from outside, not computed yet": lambda t, a, w: a * w.sum().item(),
    "a choice": lambda t, a, w: a if (w * 2).sum() > 3 else -a,
    "a number made inside": lambda t, a, w: a * t.ones(3).sum().item(),
    "a list": lambda t, a, w: a + len(t.arange(4).tolist()),
    "an array": lambda t, a, w: a + t.tensor((w + 1).numpy()),
    "positions": lambda t, a, w: a[(w > 1).nonzero().flatten()],
    "a mask": lambda t, a, w: a[w > 1],
    "a count": lambda t, a, w: a[:w.round().unique().numel()],
    "text": lambda t, a, w: a + len(repr(w + 1)),
    "twice": lambda t, a, w: sum((a * k.item() for k in w * 2), a.sin()),
    "an example's own": lambda t, a, w: a * a.sum().item(),
    "a choice by an example": lambda t, a, w: a if a.sum() > 3 else -a,
}


@pytest.mark.parametrize("name", LOOKS)
@same
def test_what_all_examples_share_may_be_looked_at(torch, name):
    w = torch.arange(3.0) + 1  # pending when the call begins
    return caught(torch.vmap(lambda a: LOOKS[name](torch, a, w)), torch.tensor(X)), w


@same
def test_looking_in_nested_calls(torch):
    """What the inner call's examples share may still differ between the outer one's."""
    w = torch.arange(3.0) + 1
    inner = torch.vmap(lambda a: a * (w + 1).sum().item())
    return (torch.vmap(inner)(torch.tensor(X)),
            caught(torch.vmap(lambda row: torch.vmap(lambda a: a * row.sum().item())(row)), torch.tensor(X)))


@same
def test_gradients_of_tensors_from_outside(torch):
    leaf = torch.arange(3.0).requires_grad_()
    result = leaf * 2
    return (torch.vmap(lambda v: torch.autograd.grad([leaf * leaf], [leaf], grad_outputs=[v])[0])(torch.eye(3)),
            torch.vmap(lambda v: torch.autograd.grad(result * 3, result, v)[0])(torch.eye(3)))


@same
def test_one_hot(torch):
    one_hot, x = torch.nn.functional.one_hot, torch.tensor([[0, 1, 2], [2, 1, 0]])
    return torch.vmap(lambda a: one_hot(a, 3))(x), torch.vmap(lambda a: a[:2, None] + one_hot(torch.tensor([1, 0]) + 0))(x), caught(torch.vmap(one_hot), x)


@same
def test_forward_derivatives_of_functions_with_a_rule(torch):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(x, w):
            return torch.tensor(x.detach().numpy() * w.detach().numpy())

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def vmap(info, in_dims, x, w):
            x, w = (t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0) for t, d in zip((x, w), in_dims))
            return Scaled.apply(x, w), 0

        @staticmethod
        def jvp(ctx, dx, dw):
            x, w = ctx.saved_tensors
            return Scaled.apply(dx, w) + Scaled.apply(x, dw)
    x, w, dx, dw = (torch.arange(6.0).reshape(2, 3) * k + 1 for k in (1, 2, 3, 5))
    jvp, vmap = torch.func.jvp, torch.func.vmap
    return (jvp(vmap(Scaled.apply), (x, w), (dx, dw)), jvp(vmap(lambda a, b: Scaled.apply(a * 2, b.sin()) * a, in_dims=1), (x, w), (dx, dw)),
            jvp(vmap(vmap(lambda a, b: Scaled.apply(a.exp(), b) + a)), (x, w), (dx, dw)),
            jvp(lambda a, b: vmap(lambda c: Scaled.apply(c, b[0] * 2))(a), (x, w), (dx, dw)),
            jvp(lambda a, b: vmap(lambda c: Scaled.apply(a[0], c))(b), (x, w), (dx, dw)),
            vmap(lambda a, b, da, db: jvp(Scaled.apply, (a, b), (da, db)))(x, w, dx, dw))


@same
def test_rules_that_write_in_place(torch):
    import numpy as np

    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(x):
            array = x.detach().numpy()
            np.exp(array, array)
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(*inputs)
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        @staticmethod
        def vmap(info, in_dims, x):
            Exp.apply(x)
            return x, in_dims[0]

        @staticmethod
        def jvp(ctx, t):
            t.mul_(ctx.saved_tensors[0])
            return t
    x, t = torch.arange(6.0).reshape(1, 2, 3) / 5, torch.arange(6.0).reshape(1, 2, 3) + 1
    jvp, vjp, vmap = torch.func.jvp, torch.func.vjp, torch.func.vmap
    f, g = (lambda x: Exp.apply(x.clone())), (lambda x: Exp.apply(x * 1) + x)
    return ([h(x) for h in (f, vmap(f), vmap(vmap(f)))], [vjp(h, x)[1](t) for h in (f, vmap(f), vmap(vmap(f)), vmap(vmap(g)))],
            [jvp(h, (x,), (t.clone(),)) for h in (f, vmap(f), vmap(vmap(f)))], vmap(lambda x, c: vjp(f, x)[1](c))(x, t),
            vmap(lambda x, c: jvp(f, (x,), (c.clone(),)))(x, t))


@same
def test_looking_at_what_all_examples_share_after_a_check(torch):
    """lstsq looks at the rank once its factorization waits to be checked."""
    a, b = torch.arange(12.0).reshape(4, 3).sin() + torch.eye(4, 3) * 3, torch.arange(8.0).reshape(4, 2)

    def solve(x, y):
        return tuple(torch.linalg.lstsq(x, y, driver="gelsd")[:2])

    def push(x, y):
        return torch.func.jvp(solve, (a, b), (x, y))
    return torch.vmap(push)(torch.stack([a, a + 1]), torch.stack([b, b * 2])), torch.vmap(lambda y: torch.linalg.cholesky(a.T @ a) @ y[:3])(torch.stack([b, b * 2]))
