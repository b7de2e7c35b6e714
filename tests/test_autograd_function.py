"""Autograd's extension points: hooks, Function, functional derivatives, gradient checks, checkpointing."""

import warnings

import pytest
from nn_models import said
from same import caught, error, outcomes, same


# ---------------------------------------------------------------------------------- hooks
@same
def test_tensor_hooks(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.clone()))
    handle = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    y.sum().backward()
    first = x.grad.clone()
    handle.remove()
    x.grad = None
    (x * 2).sum().backward()
    return seen, first, x.grad, error(torch.ones(1).register_hook, lambda g: g)


@same
def test_hook_errors_pass_through_and_engine_lives(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2

    def bad(g):
        raise KeyError("from the hook")
    handle = y.register_hook(bad)
    kind = error(y.sum().backward)
    handle.remove()
    (x * 3).sum().backward()
    z = x * 2
    z.register_hook(lambda g: torch.ones(5))
    return kind, x.grad, error(z.sum().backward)


@same
def test_post_accumulate_hook(torch):
    x = torch.ones(2, requires_grad=True)
    seen = []

    def step(p):
        seen.append(p.grad.clone())
        with torch.no_grad():
            p.sub_(p.grad)
        p.grad = None
    handle = x.register_post_accumulate_grad_hook(step)
    (x * 3).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    return seen, x, x.grad, error((x * 2).register_post_accumulate_grad_hook, step)


@same
def test_node_hooks(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_hook(lambda inputs,
        outputs: seen.append(("post", [i is not None for i in inputs], [o.clone() for o in outputs])))
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 5,))
    y.sum().backward()
    return seen, x.grad


@same
def test_multi_grad_hook(torch):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    seen = []
    torch.autograd.graph.register_multi_grad_hook([x, w], lambda grads: seen.append([g is not None for g in grads]))
    (x * w).sum().backward()
    return seen


def of_the_first_only(torch):
    """x * w whose backward gives w nothing."""
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g, None
    return lambda w: First.apply(torch.ones(2, requires_grad=True), w).sum()


@same
def test_hooks_where_no_gradient_came(torch):
    """They run with None, so that who waits for all gradients does not wait for ever."""
    w, log, loss = torch.ones(2, requires_grad=True), [], of_the_first_only(torch)
    w.register_hook(lambda g: log.append(("leaf", g)))
    w.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", p.grad)))
    end = w.view_as(w).grad_fn.next_functions[0][0]
    end.register_hook(lambda given, received: log.append(("end", given, received)))
    loss(w).backward()
    inner = w * 2
    inner.register_hook(lambda g: log.append(("inner", g)))
    inner.retain_grad()
    inner.grad_fn.register_prehook(lambda received: log.append(("before", received)))
    inner.grad_fn.register_hook(lambda given, received: log.append(("after", list(given), received)))
    loss(inner).backward()
    several = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook(several, lambda gs: log.append(("all", gs)))
    torch.autograd.graph.register_multi_grad_hook(several, lambda g: log.append(("any", g)), mode="any")
    (loss(several[0]) + several[1].sum()).backward()
    return log, w.grad, inner.grad


@same
def test_no_gradient_cannot_become_one(torch):
    loss = of_the_first_only(torch)
    leaf, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    leaf.register_hook(lambda g: torch.ones(2))
    inner = other * 2
    inner.grad_fn.register_hook(lambda given, received: (torch.ones(2), None))
    return error(loss(leaf).backward), error(loss(inner).backward), leaf.grad, other.grad


@same
def test_a_complex_gradient_of_what_is_real(torch):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.to(torch.complex64)
    x = torch.ones(2, requires_grad=True)
    return error(Wrong.apply(x).sum().backward), x.grad


def test_saved_tensors_hooks_are_called(subject, oracle):
    """What cannot be called is refused where the block begins, and changes nothing."""
    for torch in (subject, oracle):
        with pytest.raises(TypeError), torch.autograd.graph.saved_tensors_hooks(1, lambda t: t):
            pass
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()
        assert x.grad.tolist() == [2, 2]


@same
def test_module_hooks(torch):
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 2)
    log = []
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    layer.register_forward_hook(lambda m, args, out: out + 1)
    layer.register_full_backward_hook(lambda m, gin, gout: log.append((gin[0].clone(), gout[0].clone())))
    layer.register_full_backward_pre_hook(lambda m, gout: (gout[0] * 3,))
    x = torch.ones(1, 2, requires_grad=True)
    out = layer(x)
    out.sum().backward()
    return out, log, x.grad, layer.weight.grad


# ---------------------------------------------------------------------------------- Function
def _functions(torch):
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * factor

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.factor + 0 * x, None

    class TwoOut(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y, (x > y)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def backward(ctx, g, _):
            x, y = ctx.saved_tensors
            return g * y, g * x
    return Scale, TwoOut


@same
def test_function(torch):
    Scale, TwoOut = _functions(torch)
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([2.0, 1.0], requires_grad=True)
    z = Scale.apply(x, 3.0)
    a, b = TwoOut.apply(x, y)
    (z.sum() + (a ** 2).sum()).backward()
    return z, a, b.requires_grad, x.grad, y.grad, type(z.grad_fn).__name__, Scale.apply(x.detach(), 2).requires_grad


@same
def test_function_twice(torch):
    Scale, TwoOut = _functions(torch)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, _ = TwoOut.apply(x, x * 2)
    (g,) = torch.autograd.grad((a ** 2).sum(), x, create_graph=True)
    return torch.autograd.grad(g.sum(), x), g


@same
def test_function_facts(torch):
    seen = {}

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, flag):
            seen["needs"] = ctx.needs_input_grad
            seen["grad enabled"] = torch.is_grad_enabled()
            seen["requires"] = x.requires_grad
            return x.clone(), y + 1

        @staticmethod
        def backward(ctx, gx, gy):
            seen["gy"] = gy
            seen["in backward"] = torch.is_grad_enabled()
            return gx, None, None
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    a, b = F.apply(x, y, True)
    a.sum().backward()
    return seen, a.requires_grad, b.requires_grad, x.grad


@same
def test_function_without_materialized_grads(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 if b is None else b * 1000
    x = torch.ones(2, requires_grad=True)
    F.apply(x)[0].sum().backward()
    return x.grad


@same
def test_function_errors(torch):
    class WrongCount(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    class WrongShape(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return torch.ones(7)

    class NoBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("mine")

        @staticmethod
        def backward(ctx, g):
            return g
    x = torch.ones(2, requires_grad=True)
    return [error(lambda: WrongCount.apply(x, x).sum().backward()), error(lambda: WrongShape.apply(x).backward()),
        error(lambda: NoBackward.apply(x).sum().backward()), error(lambda: Raises.apply(x)), error(WrongCount),
        error(lambda: WrongCount()(x, x))]


@same
def test_once_differentiable(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g
    x = torch.tensor(3.0, requires_grad=True)
    y = F.apply(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g.detach(), error(g.backward)


FORWARDS = {"as it is": lambda x: x, "a view": lambda x: x.view(-1), "detached": lambda x: x.detach(), "two": lambda x: (x, x.view(6)),
            "a view of something new": lambda x: x.clone().view(6), "in place": lambda x: x.mul_(2)}
WRITES = {"none": lambda base, out: None, "to it": lambda base, out: out.mul_(3), "to the input": lambda base, out: base.mul_(3),
          "to its data": lambda base, out: out.detach().mul_(3), "to a part": lambda base, out: out[:1].mul_(3), "detach_": lambda base, out: out.detach_()}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("forward", FORWARDS)
@same
def test_function_returns_views(torch, forward, write):
    """An input that comes back as it is, is a view of that input, and no view that a Function returns may be written where gradients flow."""
    def program(requires_grad, under_no_grad):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                if forward == "in place":
                    ctx.mark_dirty(x)
                return FORWARDS[forward](x)

            @staticmethod
            def backward(ctx, g, *_):
                return g.reshape(2, 3) * 10
        x = torch.arange(6.0).reshape(2, 3).clone().requires_grad_(requires_grad)
        base = x * 2
        out = F.apply(base)
        out = out[0] if isinstance(out, tuple) else out
        facts = [out is base, out._base is base, out._is_view(), out.data_ptr() == base.data_ptr(), out.stride(), out.requires_grad]

        def rest():
            with torch.set_grad_enabled(not under_no_grad):
                WRITES[write](base, out)
            if out.requires_grad and forward != "two":
                (out * out).sum().backward()
            facts.extend([out, base, x.grad])
        return said(rest), facts
    return [program(*how) for how in ((True, False), (True, True), (False, False))]


@same(strides=None)
def test_function_returns_inputs_apart(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, plain):
            if plain:
                ctx.mark_non_differentiable(y)
            return x, y

        @staticmethod
        def backward(ctx, g, h):
            return g, None, None
    x, y, i, p = torch.ones(2, requires_grad=True), torch.ones(2), torch.arange(2), torch.nn.Parameter(torch.ones(2))
    facts = []
    for other, plain in ((y, True), (y * 2, True), (x * 2, True), (y, False), (i, False)):
        a, b = Both.apply(x, other, plain)
        facts += [a is x, a._base is x, b is other, b._is_view(), b.requires_grad, other.requires_grad, b.data_ptr() == other.data_ptr()]
    with torch.no_grad():
        a, b = Both.apply(p, y, False)
    return facts, a is p, a.requires_grad, b is y, type(Both.apply(p, y, False)[0]).__name__


@same
def test_views_of_views_that_may_not_be_written(torch):
    x = torch.ones(4, requires_grad=True) * 2
    with torch.no_grad():
        outside = x.view(2, 2)
    return [said(v[:1].mul_, 2) for v in (outside, x.split(2)[1])] + [said(torch.ones(3).view(3).requires_grad_().mul_, 2)]


@same
def test_function_marks_dirty(torch):
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = AddOne.apply(y)
    z.sum().backward()
    versions = []
    for make in (lambda: torch.ones(2), lambda: x * 1, lambda: torch.ones(2, 2)[0], lambda: (torch.ones(2, 2) * x)[0]):
        t = make()
        alias = t.detach()
        AddOne.apply(t)
        versions.append((t._version, alias.tolist(), alias._version))
    return z is y, y, x.grad, versions


@same
def test_saved_tensor_hooks(torch):
    seen = []

    def pack(t):
        seen.append(tuple(t.shape))
        return t.numpy() if not t.requires_grad else t.detach()

    def unpack(v):
        return v if hasattr(v, "dim") else torch.from_numpy(v)
    x = torch.ones(2, requires_grad=True)
    Scale, _ = _functions(torch)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = Scale.apply(x, 2.0)
    y.sum().backward()
    return x.grad, len(seen) > 0


@same
def test_straight_through_estimator(torch):
    x = torch.tensor([0.3, 0.8], requires_grad=True)
    y = x + (x.round() - x).detach()
    (y * torch.tensor([1.0, 2.0])).sum().backward()
    return y, x.grad


# ---------------------------------------------------------------------------------- functional, checks
def _cubic(torch):
    return lambda x: (x ** 3).sum() + x.prod()


@same(tol=5)
def test_functional(torch):
    A = torch.autograd.functional
    x = torch.tensor([1.0, 2.0, 3.0])
    v = torch.tensor([0.5, -1.0, 2.0])
    f = _cubic(torch)

    def both(a, b):
        return a * b, a.sum() * b
    return outcomes(locals(), [
        "A.jacobian(lambda a: a ** 2 + a.sum(), x)", "A.hessian(f, x)", "A.vjp(lambda a: a ** 2, x, v)",
        "A.jvp(lambda a: a ** 2, x, v)", "A.hvp(f, x, v)", "A.vhp(f, x, v)", "A.jacobian(both, (x, v))",
        "A.hessian(lambda a, b: (a * b).sum() ** 2, (x, v))",
        "A.jacobian(lambda a: a ** 2, x, create_graph=True).requires_grad",
        "A.jacobian(lambda a: a.sin(), x, vectorize=True)",
        "A.jacobian(lambda a: a.sin(), x, strategy='forward-mode', vectorize=True)",
        "A.hessian(lambda a: a, x)", "A.jacobian(lambda a: 3, x)", "A.vjp(lambda a: a ** 2, x)",
        "A.vjp(lambda a: a ** 2, x, torch.ones(2))", "A.jacobian(lambda a: a.detach(), x, strict=True)"])


@same(tol=5)
def test_func_transforms(torch):
    F = torch.func
    x = torch.tensor([1.0, 2.0, 3.0])
    f = _cubic(torch)
    return outcomes(locals(), [
        "F.grad(f)(x)", "F.grad_and_value(f)(x)", "F.vjp(lambda a: a ** 2, x)[1](torch.ones(3))",
        "F.jacrev(lambda a: a ** 2)(x)", "F.jacfwd(lambda a: a ** 2)(x)", "F.hessian(f)(x)",
        "F.jvp(torch.sin, (x,), (torch.ones(3),))", "F.vmap(F.grad(f))(torch.stack([x, x + 1]))",
        "F.vmap(lambda a, b: a @ b, in_dims=(0, None))(torch.ones(2, 3), x)",
        "F.vmap(torch.sum, in_dims=1, out_dims=0)(torch.ones(2, 3))",
        "F.grad(F.grad(lambda a: a ** 3))(torch.tensor(2.0))", "F.grad(f, argnums=1)(x)", "F.grad(lambda a: a)(x)",
        "F.vmap(torch.sin)(torch.tensor(1.0))", "F.vmap(torch.add, in_dims=(0, 1))(torch.ones(2, 3), torch.ones(3, 4))",
        "F.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x + 1)",
        "F.grad(lambda a: (a.sum(), a), has_aux=True)(x)",
        "F.vmap(lambda a: a.item())(x)", "F.linearize(torch.sin, x)[1](torch.ones(3))",
        "F.vmap(torch.dot, randomness='same')(torch.ones(2, 3), torch.ones(2, 3))"])


@same
def test_gradcheck(torch):
    x = torch.tensor([0.3, 0.9], dtype=torch.float64, requires_grad=True)
    Scale, _ = _functions(torch)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3
    gc, ggc = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    return [gc(torch.sin, x), gc(lambda a: Scale.apply(a, 2.0), (x,)), ggc(torch.exp, (x,)),
        error(gc, Wrong.apply, x), gc(Wrong.apply, x, raise_exception=False),
        gc(lambda a, b: a @ b, (x, x.detach().clone().requires_grad_()))]


@pytest.mark.parametrize("reentrant", [True, False])
@same
def test_checkpoint(torch, reentrant):
    from importlib import import_module
    checkpoint = import_module(torch.__name__ + ".utils.checkpoint").checkpoint
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
    x = torch.ones(2, 3, requires_grad=True)
    calls = []

    def block(v):
        calls.append(1)
        return net(v)
    y = checkpoint(block, x, use_reentrant=reentrant)
    y.sum().backward()
    return y, x.grad, [p.grad for p in net.parameters()], len(calls)


def test_arguments_left_out(subject, oracle):
    """setup_context is told of defaults; backward and vjp exclude each other."""
    def found(torch):
        class Power(torch.autograd.Function):
            @staticmethod
            def forward(x, y=3):
                return x ** y

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, ctx.y = inputs
                ctx.save_for_backward(x)

            @staticmethod
            def backward(ctx, g):
                x, = ctx.saved_tensors
                return g * ctx.y * x ** (ctx.y - 1), None

        class Both(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                return g

            @staticmethod
            def vjp(ctx, g):
                return g
        x = torch.tensor(2.0, requires_grad=True)
        Power.apply(x).backward()
        try:
            Both.apply(x).backward()
        except RuntimeError as error:
            return x.grad.item(), str(error).partition("'Both'")[0].partition(" for")[0]
    assert found(subject) == found(oracle)


@same
def test_inplace_function(torch):
    class Doubled(torch.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x, inplace):
            ctx.inplace = inplace
            if inplace:
                ctx.mark_dirty(x)
            return x.mul_(2) if inplace else x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    z = Doubled.apply(y, True)
    (z * Doubled.apply(x, False)).sum().backward()
    with pytest.warns(DeprecationWarning):
        made = Doubled(True)
    return z is y, z, x.grad, made.inplace, issubclass(Doubled, torch.autograd.Function)


@pytest.mark.parametrize("saved", ["input", "output", "a view", "nothing"])
@pytest.mark.parametrize("dirty", [False, True])
@pytest.mark.parametrize("forward", [False, True])
@same
def test_saving_an_input_that_is_the_result(torch, saved, dirty, forward):
    """setup_context cannot know which of the two it is; what forward changed is only the result."""
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            if dirty:
                ctx.mark_dirty(inputs[0])
            save = ctx.save_for_forward if forward else ctx.save_for_backward
            save(*{"input": inputs, "output": (output,), "a view": (output.view_as(output),), "nothing": ()}[saved])

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    return [caught(lambda t: Same.apply(t).detach(), t) for t in (x * 3, x.detach() * 3)]


@same
def test_a_saved_input_that_is_handed_back_stays_the_input(torch):
    """Its second derivative does not go through the function again, and what needs no gradient stays so."""
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x, y

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            seen.append((x.is_leaf, x.requires_grad, y.requires_grad))
            return 3 * g * x, h * y
    seen = []
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(5.0)
    a, b = Scaled.apply(x, y)
    g, = torch.autograd.grad(a * a * b, x, create_graph=True)
    return g.detach(), torch.autograd.grad(g, x), seen


def test_a_rule_for_vmap_and_one_generated(subject, oracle):
    """Which of both is meant is asked before either is tried."""
    said = []
    for torch in (subject, oracle):
        class Both(torch.autograd.Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(x):
                return x * 2

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

            @staticmethod
            def vmap(info, in_dims, x):
                raise AssertionError("asked for")

        with pytest.raises(RuntimeError) as found:
            torch.func.vmap(Both.apply)(torch.ones(2))
        said.append(str(found.value))
    assert said[0].split(",")[0] == said[1].split(",")[0]


@same
def test_transforms_of_functions_without_what_they_need(torch):
    """A forward that keeps for backward itself is under no transform; without a rule there is no vmap. Batched gradients need neither."""
    def gradient(ctx, g):
        return g * ctx.saved_tensors[0].cos()

    def old_forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    base = (torch.autograd.Function,)
    old = type("Old", base, {"forward": staticmethod(old_forward), "backward": staticmethod(gradient)}).apply
    new = type("New", base, {"forward": staticmethod(lambda x: x.sin()), "setup_context": staticmethod(setup), "backward": staticmethod(gradient)}).apply
    func, x = torch.func, torch.ones(2)

    def found(f):
        return [caught(call) for call in (
            lambda: func.vmap(f)(x), lambda: func.grad(lambda x: f(x).sum())(x), lambda: func.vmap(func.grad(f))(x), lambda: func.jacrev(f)(x),
            lambda: func.vjp(f, x)[1](x), lambda: func.grad(lambda x: func.vmap(f)(x).sum())(x),
            lambda: torch.autograd.functional.jacobian(f, x, vectorize=True))]
    return found(old), found(new), f_values(old, x), f_values(new, x)


def f_values(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    y.sum().backward()
    return y.detach(), x.grad


@same
def test_what_a_function_says_of_its_inputs(torch):
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, several, marked):
            a.add_(b)
            c = a * 1
            ctx.mark_dirty(a if marked else c)
            return (a, a + b) if several else a if marked else c

        @staticmethod
        def backward(ctx, *grads):
            return sum(grads), sum(grads), None, None
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Sum.apply(a.clone(), b, False, False)
    words = [str(w.message).split(" (Trig")[0] for w in seen]
    text = said(Sum.apply, a.clone().view(2), b, True, True)
    return words, text.split(" You can ask")[0], Sum.apply(a.clone().view(2), b, False, True), Sum.apply(a.clone(), b, True, True)


@same
def test_a_node_is_the_context(torch):
    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x, None)
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.k, None
    y = Times.apply(torch.ones(2, requires_grad=True), 3)
    node = y.grad_fn
    shown = node.saved_tensors, node.k, node.needs_input_grad, said(lambda: node.missing)
    y.sum().backward()
    return shown, said(lambda: node.saved_tensors)


@same
def test_an_input_that_comes_back_keeps_its_class(torch):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Mine(torch.Tensor):
        pass
    made = [Same.apply(x) for x in (torch.ones(2).as_subclass(Mine), torch.ones(2, requires_grad=True).as_subclass(Mine), torch.nn.Parameter(torch.ones(2)))]
    return [type(x).__name__ for x in made], [x.requires_grad for x in made]


@same
def test_why_a_view_may_not_be_written(torch):
    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return grad
    words = []
    for requires in (True, False):
        base = torch.ones(1, 2, requires_grad=requires).clone()
        grad = torch.ones(1, 2, requires_grad=True)
        with torch.inference_mode():
            inside = [base.view(2), base.unbind()[0]]
        with torch.no_grad():
            quiet = [base.view(2), base.unbind()[0]]
        views = [*inside, *quiet, *[v.view(1, 2) for v in (*inside, *quiet)], base.unbind()[0], base.unbind()[0].view(1, 2), View.apply(base),
                 base.unbind()[0].detach(), base.view(2)]
        words += [said(v.add_, grad.view(v.shape)) for v in views]
        stale = base.clone()
        with torch.inference_mode():
            view = stale.view(2)
        stale.add_(grad)
        words.append(said(getattr, view, "grad_fn"))
    return words


@same
def test_backward_that_saves_nothing_may_run_again(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, keeps):
            if keeps:
                ctx.save_for_backward(x)
            ctx.keeps = keeps
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] if ctx.keeps else g, None

    x = torch.ones(2, requires_grad=True)
    found = []
    for keeps in (False, True):
        y = Both.apply(x, keeps)
        first, second = (y * 2).sum(), (y * 3).sum()
        first.backward()
        found.append(error(second.backward))
    return found, x.grad


@same
def test_what_is_no_tensor_is_refused_only_where_there_is_a_graph_to_save_it_for(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, saved):
            ctx.save_for_backward(x, saved)
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g, None
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        unrecorded = Twice.apply(x, "a variable of another library")
    return Twice.apply(x.detach(), 3), unrecorded, caught(Twice.apply, x, 3)
