"""Autograd: what is recorded, what comes back, and what is refused."""
from __future__ import annotations

import pytest

from same import caught, error, same


# ------------------------------------------------------------------------------------------------- backward and grad
@same
def test_backward_accumulates(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        (x ** 2).sum().backward()
    first = x.grad.clone()
    x.grad.zero_()
    (x.exp() * x.detach()).sum().backward()
    return first, x.grad


@same
def test_backward_with_gradient_and_inputs(torch):
    x = torch.ones(3, requires_grad=True)
    w = torch.full((3,), 2.0, requires_grad=True)
    y = x * w
    y.backward(torch.tensor([1.0, 2.0, 3.0]), inputs=[x])
    return x.grad, w.grad, error(y.backward, torch.ones(2)), error((x * w).backward, torch.ones(2)), error((x * 1).backward, "a")


@same
def test_refusals_of_backward(torch):
    x = torch.ones(3, requires_grad=True)
    z = (x ** 2).sum()
    z.backward()
    return [error(z.backward), error((x * 2).backward), error(torch.ones(1).backward), error(torch.autograd.grad, x.sum(), torch.ones(1)),
            error(torch.autograd.grad, x.sum(), torch.ones(3, requires_grad=True)), error(torch.autograd.grad, x * 2, x), error((x > 0).sum().backward),
            error(torch.tensor, [1], requires_grad=True), error(torch.ones(2, dtype=torch.int64).requires_grad_), error(x.numpy), error(lambda: (x * 2).requires_grad_(False)),
            error(setattr, x * 2, "requires_grad", False), error(setattr, x, "grad", torch.ones(2)), error(setattr, x, "grad", 3), error(x.detach().backward)]


@same
def test_retain_graph(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x ** 3
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, error(y.backward)


@same
def test_linear_graph_can_go_twice(torch):
    """torch keeps nothing for a sum or an addition, so a second backward is not refused."""
    x = torch.ones(2, requires_grad=True)
    y = (x + 1).sum()
    y.backward()
    return caught(y.backward), x.grad


@same
def test_grad_function(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    unused = torch.ones(1, requires_grad=True)
    y = (x * w).sum()
    return (torch.autograd.grad(y, [x, w], retain_graph=True), torch.autograd.grad(y, (x, unused), allow_unused=True, retain_graph=True),
            torch.autograd.grad(y, (x, unused), materialize_grads=True, retain_graph=True), error(torch.autograd.grad, y, unused, retain_graph=True),
            torch.autograd.grad([y, x.sum()], x, [torch.tensor(2.0), torch.tensor(3.0)]), x.grad)


@same
def test_grad_of_intermediate_and_of_self(torch):
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2
    z = y ** 2
    return torch.autograd.grad(z, y, retain_graph=True), torch.autograd.grad(y, y), torch.autograd.grad(z, [y, x])


@same
def test_batched_grad(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    return torch.autograd.grad(x ** 2, x, torch.eye(3), is_grads_batched=True)


@pytest.mark.parametrize("order", [2, 3, 4])
@same
def test_higher_derivatives(torch, order):
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    y = (torch.sin(x) * torch.exp(x * x)).sum()
    seen = []
    for _ in range(order):
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        seen.append(g.detach())
        y = (g * g.detach()).sum() + g.prod()
    return seen


@same
def test_create_graph_in_backward(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x ** 3
    y.backward(create_graph=True)
    g = x.grad
    x.grad = None
    (g * g).backward()
    return g, x.grad, g.requires_grad


@same
def test_gradient_penalty(torch):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.randn(5, 3, requires_grad=True)
    (g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    ((g.norm(dim=1) - 1) ** 2).mean().backward()
    return [p.grad for p in net.parameters()], x.grad


@same
def test_shared_subgraphs_and_broadcasting(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x + x
    z = (y * y.unsqueeze(1) + y.mean()).sum() + y[0] * x[1]
    z.backward()
    return x.grad


@same
def test_long_chain_and_recursion_limit(torch):
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(3000):
        y = y * 1.0001
    y.backward()
    return x.grad


@same
def test_dtypes_of_gradients(torch):
    x = torch.ones(2, dtype=torch.float16, requires_grad=True)
    w = torch.ones(2, dtype=torch.float64, requires_grad=True)
    c = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    ((x * w) * 2).sum().backward()
    (c * c.conj() * 1j * x.float()).sum().real.backward()
    return x.grad, w.grad, c.grad


@same
def test_complex_gradient_convention(torch):
    z = torch.tensor([1 + 2j, -0.5j], requires_grad=True)
    (z.abs() ** 2 + (z ** 2).real + z.imag).sum().backward()
    return z.grad


# ------------------------------------------------------------------------------------------------- facts of the graph
@same
def test_leaves_and_flags(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    i = torch.arange(2)
    return [x.is_leaf, y.is_leaf, i.is_leaf, y.requires_grad, (i * 2).requires_grad, y.detach().requires_grad, (x > 1).requires_grad, x.grad_fn is None, y.grad_fn is not None,
            y.retains_grad, x.argmax().requires_grad, (x * i).requires_grad, x.clone().is_leaf, x.long().requires_grad, x.to(torch.float64).requires_grad]


@pytest.mark.parametrize("expression", ["x + 1", "x * x", "x.sum()", "x.exp()", "x.view(1, 2)", "x[0]", "x.unbind()[0]", "torch.cat([x, x])", "x @ x", "x.relu()", "x.clone()", "-x", "x / 2", "x ** 2",
                                        "x.mean()", "torch.nn.functional.linear(x, x.view(1, 2))", "x.t()", "x.softmax(0)", "x.max()", "x.detach().requires_grad_() + x"])
@same
def test_names_of_nodes(torch, expression):
    x = torch.ones(2, requires_grad=True)
    y = eval(expression, {"torch": torch, "x": x})
    return type(y.grad_fn).__name__, y.grad_fn.name(), len(y.grad_fn.next_functions), repr(y).split("grad_fn=")[-1]


@same
def test_walk_of_graph(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    node = y.grad_fn.next_functions[0][0]
    leaf = node.next_functions[0][0]
    return leaf.variable is x, type(leaf).__name__, node.next_functions[1], y.output_nr


@same
def test_retain_grad(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.retain_grad()
    (y ** 2).sum().backward()
    return y.grad, y.retains_grad, x.grad, error(torch.ones(2).retain_grad)


@same
def test_grad_attribute(torch):
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.full((2,), 5.0)
    (x * 2).sum().backward()
    first = x.grad
    x.grad = None
    return first, x.grad, error(setattr, x, "grad", torch.ones(2, dtype=torch.float64))


@same
def test_gradient_is_not_shared_between_leaves(torch):
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (x + y).sum().backward()
    x.grad.mul_(5)
    return x.grad, y.grad


@same
def test_zeroed_gradient_keeps_object(torch):
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    held = x.grad
    (x * 3).sum().backward()
    return held is x.grad, held


# ------------------------------------------------------------------------------------------------- modes
@same
def test_grad_modes(torch):
    x = torch.ones(2, requires_grad=True)
    log = []
    with torch.no_grad():
        log += [torch.is_grad_enabled(), (x * 2).requires_grad]
        with torch.enable_grad():
            log += [torch.is_grad_enabled(), (x * 2).requires_grad]
        log.append(torch.ones(1, requires_grad=True).requires_grad)
        y = x * 2
    with torch.set_grad_enabled(False):
        log.append((x * 2).requires_grad)
    torch.set_grad_enabled(False)
    log.append((x * 2).requires_grad)
    torch.set_grad_enabled(True)

    @torch.no_grad()
    def plain(v):
        return (v * 2).requires_grad, torch.is_grad_enabled()

    @torch.no_grad
    def bare(v):
        return (v * 2).requires_grad

    @torch.no_grad()
    def generator():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()
    each = []
    for inside in generator():
        each.append((inside, torch.is_grad_enabled()))
    return log, y.requires_grad, plain(x), bare(x), each, torch.is_grad_enabled()


@same
def test_no_grad_survives_exceptions(torch):
    with pytest.raises(KeyError):
        with torch.no_grad():
            raise KeyError("x")
    return torch.is_grad_enabled()


@same
def test_inference_mode(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = x * 2
        log = [y.requires_grad, y.is_inference(), torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
        y.add_(1)
    with torch.inference_mode(False):
        log.append((x * 2).requires_grad)
    return log, y, error(lambda: (y * x).sum().backward()), error(y.requires_grad_), (y * 2).is_inference(), y.clone().requires_grad_().requires_grad, error(y.add_, 1), error(lambda: x * y)


@same
def test_modes_are_per_thread(torch):
    import threading
    seen = []
    with torch.no_grad():
        worker = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        worker.start()
        worker.join()
    return seen


@same
def test_backward_inside_threads(torch):
    import threading
    x = torch.ones(3, requires_grad=True)
    results = [None] * 4

    def work(i):
        (g,) = torch.autograd.grad((x * i).sum() ** 2, x)
        results[i] = g
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


# ------------------------------------------------------------------------------------------------- hooks
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
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(("post", [i is not None for i in inputs], [o.clone() for o in outputs])))
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


# ------------------------------------------------------------------------------------------------- Function
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
    return [error(lambda: WrongCount.apply(x, x).sum().backward()), error(lambda: WrongShape.apply(x).backward()), error(lambda: NoBackward.apply(x).sum().backward()),
            error(lambda: Raises.apply(x)), error(WrongCount), error(lambda: WrongCount()(x, x))]


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
    return z is y, y, x.grad


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


# ------------------------------------------------------------------------------------------------- functional, checks
def _cubic(torch):
    return lambda x: (x ** 3).sum() + x.prod()


@same(tol=5)
def test_functional(torch):
    A = torch.autograd.functional
    x = torch.tensor([1.0, 2.0, 3.0])
    v = torch.tensor([0.5, -1.0, 2.0])
    f = _cubic(torch)
    both = lambda a, b: (a * b, a.sum() * b)
    return (A.jacobian(lambda a: a ** 2 + a.sum(), x), A.hessian(f, x), A.vjp(lambda a: a ** 2, x, v), A.jvp(lambda a: a ** 2, x, v), A.hvp(f, x, v), A.vhp(f, x, v),
            A.jacobian(both, (x, v)), A.hessian(lambda a, b: (a * b).sum() ** 2, (x, v)), A.jacobian(lambda a: a ** 2, x, create_graph=True).requires_grad,
            A.jacobian(lambda a: a.sin(), x, vectorize=True), A.jacobian(lambda a: a.sin(), x, strategy="forward-mode", vectorize=True))


@same
def test_functional_errors(torch):
    A = torch.autograd.functional
    x = torch.ones(2)
    return [error(A.hessian, lambda a: a, x), error(A.jacobian, lambda a: 3, x), error(A.vjp, lambda a: a ** 2, x), error(A.vjp, lambda a: a ** 2, x, torch.ones(3)), error(A.jacobian, lambda a: a.detach(), x, strict=True)]


@same(tol=5)
def test_func_transforms(torch):
    F = torch.func
    x = torch.tensor([1.0, 2.0, 3.0])
    f = _cubic(torch)
    value = F.grad_and_value(f)(x)
    out, pull = F.vjp(lambda a: a ** 2, x)
    return (F.grad(f)(x), value, F.jacrev(lambda a: a ** 2)(x), F.jacfwd(lambda a: a ** 2)(x), F.hessian(f)(x), pull(torch.ones(3)), out, F.jvp(torch.sin, (x,), (torch.ones(3),)),
            F.vmap(F.grad(f))(torch.stack([x, x + 1])), F.vmap(lambda a, b: a @ b, in_dims=(0, None))(torch.ones(2, 3), x), F.vmap(torch.sum, in_dims=1, out_dims=0)(torch.ones(2, 3)), F.grad(F.grad(lambda a: a ** 3))(torch.tensor(2.0)))


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
    return [gc(torch.sin, x), gc(lambda a: Scale.apply(a, 2.0), (x,)), ggc(torch.exp, (x,)), error(gc, Wrong.apply, x), gc(Wrong.apply, x, raise_exception=False), gc(lambda a, b: a @ b, (x, x.detach().clone().requires_grad_()))]


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


@same
def test_anomaly_mode(torch):
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=True):
        kind = error((torch.sqrt(x) * 0).sum().backward)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        quiet = error((torch.sqrt(x) * 0).sum().backward)
    return kind, quiet, torch.is_anomaly_enabled()


@same
def test_nan_and_inf_gradients(torch):
    x = torch.tensor([0.0, 1.0, -1.0, float("inf")], requires_grad=True)
    (x.sqrt() + x.log() + x / x + x.clamp(0, 1)).sum().backward()
    y = torch.tensor([0.0, 2.0], requires_grad=True)
    torch.where(y > 1, y.log(), y).sum().backward()
    z = torch.zeros(3, requires_grad=True)
    z.norm().backward()
    return x.grad, y.grad, z.grad


@same
def test_subgradients_at_kinks(torch):
    kinks = torch.tensor([0.0, 1.0, -1.0, 0.5, 6.0, 3.0, -3.0])
    functions = [torch.abs, torch.relu, torch.nn.functional.relu6, torch.nn.functional.hardtanh, lambda x: x.clamp(-1, 1), lambda x: x.clamp_min(0), torch.nn.functional.leaky_relu, torch.sign, torch.nn.functional.hardsigmoid,
                 torch.nn.functional.hardswish, torch.nn.functional.softshrink, torch.nn.functional.hardshrink, torch.nn.functional.elu, lambda x: torch.maximum(x, torch.zeros(7)), lambda x: torch.minimum(x, torch.ones(7)), lambda x: x ** 0, lambda x: x ** 2,
                 lambda x: torch.max(x, torch.zeros(())), lambda x: x.max(), lambda x: torch.stack([x, x]).amax(0), lambda x: torch.stack([x, x]).max(0).values, lambda x: x.prod(), lambda x: torch.fmax(x, torch.zeros(7)), lambda x: x.remainder(0.5), torch.frac, lambda x: x.median(), torch.sgn,
                 lambda x: torch.nn.functional.smooth_l1_loss(x, torch.zeros(7)), lambda x: torch.nn.functional.l1_loss(x, torch.zeros(7)), lambda x: torch.norm(x - x), lambda x: x.floor()]
    seen = []
    for f in functions:
        x = kinks.clone().requires_grad_()
        f(x).sum().backward()
        seen.append(x.grad)
    return seen


@same
def test_training_loop_by_hand(torch):
    torch.manual_seed(0)
    w, b = torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    losses = []
    for _ in range(5):
        loss = ((x @ w + b - y) ** 2).mean()
        losses.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
                p.grad.zero_()
    return losses, w, b


@same
def test_data_dependent_control_flow(torch):
    x = torch.tensor(0.7, requires_grad=True)
    y, steps = x, 0
    while y < 10:
        y = y * 1.5 if steps % 2 else y + x
        steps += 1
    y.backward()
    return y, steps, x.grad


@same
def test_deepcopy_and_pickle_of_graph_tensors(torch):
    import copy
    import pickle
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.full((2,), 3.0)
    y = copy.deepcopy(x)
    y.data.add_(1)
    again = pickle.loads(pickle.dumps(x))
    return y, y.grad, x, again, again.requires_grad, error(copy.deepcopy, x * 2)


@same
def test_freed_memory_of_loop(torch):
    """Graphs of earlier steps are not kept: a running sum of detached values has no history."""
    x = torch.ones(1, requires_grad=True)
    running = 0
    for _ in range(4):
        loss = (x ** 2).sum()
        running = running + loss.detach()
    return running, running.requires_grad
