"""Forward differentiation against real torch: no_grad, shared memory, views, writes in place, vmap, backward of tangents, nesting."""
from importlib import import_module

import pytest
from nn_models import said
from same import caught, same

from torchlike._core.program import tier


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def _tier(request):
    with tier(request.param):
        yield


def _ad(torch):
    return import_module(torch.__name__ + ".autograd.forward_ad")


@same
def test_no_grad_hands_tangents_on(torch):
    fa = _ad(torch)
    with fa.dual_level():
        d = fa.make_dual(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 3.0]))
        with torch.no_grad():
            some = [d * d, d.sort()[0], d.reshape(3, 1), torch.cat([d, d.detach()]), d.max()]
            changed = d.clone()
            changed[0] = 5
            d.mul_(2)
        with torch.inference_mode():
            nothing = d * d
        found = [fa.unpack_dual(t) for t in (*some, changed, d, nothing)]
        return found, d.requires_grad, (d * 2).requires_grad, d.is_leaf


def _now(fa, *tensors):
    """Primals and tangents as they are now: torch writes both in place later."""
    return [[None if t is None else t.clone() for t in fa.unpack_dual(x)] for x in tensors]


@same
def test_a_dual_tensor_is_a_view_of_its_primal(torch):
    fa, x, t = _ad(torch), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.5])
    with fa.dual_level():
        d = fa.make_dual(x, t)
        facts = [d.data_ptr() == x.data_ptr(), d._base is x, d.is_leaf, d._is_view(), fa.unpack_dual(d).tangent is t]
        x.mul_(2)
        after = d.clone(), _now(fa, d)
        d[:1].mul_(3)
        parts = x.clone(), _now(fa, d, x)
        primal = fa.unpack_dual(d).primal
        primal.add_(1)
        alone = d.detach()
        alone.mul_(10)
        rest = x.clone(), _now(fa, d, alone, primal)
        d.fill_(7.0)
        filled = _now(fa, d)
        d.copy_(fa.make_dual(torch.ones(2), torch.tensor([1.0, 0.5])))
        text = repr(d)
        return facts, after, parts, rest, filled, fa.unpack_dual(d), x, text, caught(fa.make_dual, d, t)


@same
def test_levels_that_there_are_not(torch):
    fa, x = _ad(torch), torch.ones(2)
    before = [fa.unpack_dual(x), caught(fa.make_dual, x, x), caught(fa.exit_dual_level)]
    with fa.dual_level():
        d = fa.make_dual(x, x, level=0)
        calls = [(fa.make_dual, x, x, 3), (fa.unpack_dual, d, 3), (fa.unpack_dual, d, 0), (fa.unpack_dual, d, -1), (fa.unpack_dual, 3, None), (fa.make_dual, x, x, -1)]
        found = [caught(f, *args, level=level) for f, *args, level in calls]
        return before, found, caught(fa.enter_dual_level), caught(fa.exit_dual_level, level=4)


@same
def test_writes_bring_tangents_along(torch):
    fa = _ad(torch)
    with fa.dual_level():
        d = fa.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        column = d.view(2, 1)
        d.mul_(2)
        y = torch.zeros(4)
        part = y[1:3]
        part.copy_(d)
        y[0] = d[1]
        for i in range(20):
            d[1] = i
        joined = torch.stack([d] * 40)
        window = d.as_strided((2, 2), (1, 0))
        known = fa.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])) * 1
        known.tolist()
        lists = torch.stack([known] * 40), torch.cat([known] * 40)
        return [fa.unpack_dual(t) for t in (column, column.T, y, part, d, joined, window, *lists)], y.requires_grad


@same
def test_forward_over_reverse(torch):
    fa, x = _ad(torch), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with fa.dual_level():
        d = fa.make_dual(x, torch.tensor([1.0, 0.0, 2.0]))
        y = (d.exp() * d).sum()
        g, = torch.autograd.grad(y, x, retain_graph=True)
        second = fa.unpack_dual(g)
        g, = torch.autograd.grad(y, x, create_graph=True)
        third = fa.unpack_dual(g).tangent
        third.sum().backward()
        refused = caught(d.mul_, 2)
    return second, third, x.grad, refused


@same
def test_vmap_of_dual_tensors(torch):
    fa, x = _ad(torch), torch.arange(6.0).reshape(3, 2)
    with fa.dual_level():
        d = fa.make_dual(x, x.cos())
        made = [torch.vmap(lambda a: a.sin() * a.sum())(d), torch.vmap(lambda a, b: a * b, (0, None))(d, d[0]), torch.vmap(torch.vmap(lambda a: a ** 3))(d),
                torch.vmap(lambda a: a * d[1], in_dims=0, out_dims=1)(x)]
        return [fa.unpack_dual(t) for t in made]


@same
def test_dtypes_of_tangents(torch):
    fa = _ad(torch)
    with fa.dual_level():
        return [fa.unpack_dual(fa.make_dual(torch.ones(2), torch.ones(2, dtype=d))) for d in (torch.float64, torch.complex64, torch.float16)]


@same
def test_functions_of_no_grad_under_transforms(torch):
    F, x = torch.func, torch.tensor([1.0, 2.0])

    @torch.no_grad()
    def whole(a):
        return a.sin() * a

    def part(a):
        with torch.no_grad():
            c = a ** 2
        return a * c
    with torch.no_grad():
        outside = F.jvp(part, (x,), (x,)), F.hessian(lambda a: (a ** 3).sum())(x)
    return (F.jvp(whole, (x,), (x,)), F.jacfwd(whole)(x), F.jvp(part, (x,), (x,)), F.jacfwd(part)(x), F.jacrev(part)(x), F.hessian(lambda a: part(a).sum())(x),
            F.linearize(part, x)[1](x + 1), outside)


@same
def test_transforms_nest_around_vmap(torch):
    F, x, p = torch.func, torch.tensor([1.0, 2.0, 3.0]), torch.tensor(2.0)
    rows = torch.arange(6.0).reshape(2, 3)

    def f(a):
        return torch.vmap(lambda r: (r * a).sin().sum())(rows)

    def mixed(p):
        return F.grad(lambda s: torch.vmap(lambda a: (a * s * p).sin())(x).sum())(torch.tensor(1.5))
    cube = lambda a: (a ** 3).sum()  # noqa: E731
    return (F.jvp(f, (x,), (x,)), F.jacfwd(f)(x), F.hessian(lambda a: f(a).sum())(x), F.linearize(f, x)[1](x), F.jvp(mixed, (p,), (p,)),
            F.jacfwd(F.jacfwd(F.jacfwd(cube)))(x), F.jacrev(F.jacfwd(cube))(x), F.jvp(lambda a: F.jvp(lambda b: b ** 3 * a, (a,), (x,))[1], (x,), (x,)),
            F.grad(lambda a: F.jvp(lambda b: b ** 3, (a,), (a,))[1].sum())(x))


@same
def test_tangents_that_require_gradients(torch):
    F = torch.func
    x, t = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([0.5, 1.0], requires_grad=True)
    w = torch.nn.Parameter(torch.tensor([2.0, -1.0]))
    out, pushed = F.jvp(lambda a: a.sin() * a * w, (x,), (t,))
    pushed.sum().backward()
    F.hessian(lambda a: (a ** 4 * w).sum())(x).sum().backward()
    return out, pushed, x.grad, t.grad, w.grad


@same
def test_derivatives_that_look_at_the_sign_of_gradients(torch):
    F, x = torch.func, torch.tensor([1.0, -2.0, 3.0, 0.5])

    def f(a):
        return a.logcumsumexp(0)

    def g(a):
        return a.sigmoid().logit(0.3)
    return [(F.jvp(h, (x,), (x,)), F.jacfwd(h)(x), F.hessian(lambda a: h(a).sum())(x), F.jacrev(F.jacrev(h))(x), F.jacfwd(F.jacfwd(h))(x))  # noqa: B023
            for h in (f, g)]


def _function(torch, forward, jvp, **more):
    return type("Made", (torch.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp), "backward": staticmethod(lambda ctx, *g: None),
                                                     **more})


def _says(function, *args):
    try:
        return function(*args)
    except RuntimeError as error:
        return str(error)


@same
def test_functions_with_a_jvp(torch):
    fa, x = _ad(torch), torch.tensor([1.0, -2.0])

    def twice(ctx, a):
        ctx.mark_dirty(a)
        return a.mul_(2)

    def product(ctx, a, b):
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(a, b)
        positive = a > 0
        ctx.mark_non_differentiable(positive)
        return a * b, positive

    def product_jvp(ctx, s, t):
        a, b = ctx.saved_tensors
        return (0 if s is None else s * b) + (0 if t is None else t * a), None
    wrong = [lambda ctx, s: (s, s), lambda ctx, s: torch.ones(3), lambda ctx, s: 3]
    views = [lambda ctx, s: s * 1, lambda ctx, s: s.view_as(s)]
    with fa.dual_level():
        d = fa.make_dual(x.clone(), torch.ones(2))
        found = [_now(fa, *_function(torch, product, product_jvp).apply(d, x)), _now(fa, *_function(torch, product, product_jvp).apply(x, x))]
        with torch.no_grad():
            found.append(_now(fa, *_function(torch, product, product_jvp).apply(x, d)))
        errors = [_says(lambda j=j: _now(fa, _function(torch, lambda ctx, a: a * 2, j).apply(d))) for j in wrong]
        errors += [_says(lambda j=j: _now(fa, _function(torch, lambda ctx, a: a.view_as(a), j).apply(d))) for j in views]
        o = _function(torch, twice, lambda ctx, s: s.mul_(2)).apply(d)
        return found, errors, _now(fa, o, d)


@same
def test_inference_mode_around_a_transform(torch):
    F, x = torch.func, torch.tensor([1.0, -2.0])
    with torch.inference_mode():
        return F.jvp(torch.sin, (x,), (x,)), F.jacfwd(torch.sin)(x)


def test_running_statistics_have_no_tangents(subject, oracle):
    """Nothing derives by them; asked of the tangent the program would fail only when it runs."""
    errors = []
    for torch in (subject, oracle):
        fa, norm = _ad(torch), torch.nn.functional.batch_norm
        with fa.dual_level():
            def dual(*size):
                return fa.make_dual(torch.ones(*size), torch.ones(*size))  # noqa: B023
            norm(dual(2, 3, 4), dual(3), torch.ones(3), training=True)  # there they are only written
            with pytest.raises(RuntimeError) as error:
                norm(dual(2, 3, 4), torch.ones(3), dual(3))
            errors.append(str(error.value))
    assert errors[0] == errors[1]


WAYS = {
    "dirty": lambda t: t.mul_(2), "dirty, a new one": lambda t: t * 2, "dirty, unchanged": lambda t: t,
    "view": lambda t: t.narrow(0, 0, 2), "view, a copy": lambda t: t.narrow(0, 0, 2).clone(), "view, of a copy": lambda t: t.narrow(0, 0, 2).clone().view(2),
    "plain": lambda t: (t * 1, None), "plain, with one": lambda t: (t * 1, t * 1), "whole": lambda t: (t * 1, None), "whole, with one": lambda t: (t * 1, t * 1)}


@pytest.mark.parametrize("way", WAYS)
@same
def test_what_a_jvp_has_to_return(torch, way):
    fa = _ad(torch)

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, whole):
            ctx.save_for_backward(x)
            if way.startswith("dirty"):
                x.mul_(2)
                ctx.mark_dirty(x)
                return x
            if way.startswith("view"):
                return x.narrow(0, 0, 2)
            other = x * 3 if way.startswith("plain") else whole.clone()
            ctx.mark_non_differentiable(other)
            return x.clone(), other

        @staticmethod
        def backward(ctx, *grads):
            return grads[0], None

        @staticmethod
        def jvp(ctx, t, whole):
            seen.append((whole, len(ctx.saved_tensors)))
            return WAYS[way](t)
    seen, found = [], []
    for requires in (False, True):
        with fa.dual_level():
            tangent = torch.ones(4)
            dual = fa.make_dual(torch.ones(4, requires_grad=requires) * 1, tangent)
            made = said(F.apply, dual, torch.arange(2))
            if isinstance(made, str):
                found.append(made.replace("  ", " ").replace(".You", ". You"))
            else:
                made = made if isinstance(made, tuple) else (made,)
                found.append(([fa.unpack_dual(x).tangent for x in made], made[0] is dual))
    return found, seen


@same
def test_out_takes_no_dual_tensors(torch):
    fa = _ad(torch)
    with fa.dual_level():
        d, x = fa.make_dual(torch.ones(2), torch.ones(2)), torch.ones(2)
        refused = [caught(lambda: torch.add(d, x, out=x)), caught(lambda: torch.add(x, x, out=d)), caught(lambda: torch.sin(d, out=x))]
        y = torch.ones(2)
        return refused, torch.add(y, y, out=torch.empty(2))


@same
def test_what_is_drawn_does_not_change(torch):
    """Draws by a tensor's numbers have tangents of zero."""
    fa = _ad(torch)
    with fa.dual_level():
        d = fa.make_dual(torch.tensor([0.5, 0.25, 1.0]), torch.tensor([1.0, 2.0, 3.0]))
        drawn = [torch.normal(d, 1.0), torch.normal(d, d.detach()), torch.normal(1.0, d), torch.normal(d, d), torch.bernoulli(d), torch.bernoulli(d.detach())]
        return [fa.unpack_dual(t) for t in drawn]
