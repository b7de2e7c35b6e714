"""Autograd: what is recorded, what comes back, and what is refused."""
import warnings

import jax
import pytest
from same import caught, error, outcomes, same


# ---------------------------------------------------------------------------------- backward and grad
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
    return (x.grad, w.grad, error(y.backward, torch.ones(2)), error((x * w).backward, torch.ones(2)),
            error((x * 1).backward, "a"))


@same
def test_refusals_of_backward(torch):
    x = torch.ones(3, requires_grad=True)
    z = (x ** 2).sum()
    z.backward()
    y, i = x * 2, torch.tensor([1])
    return outcomes(locals(), [
        "z.backward()", "y.backward()", "torch.ones(1).backward()", "torch.autograd.grad(x.sum(), torch.ones(1))",
        "torch.autograd.grad(x.sum(), torch.ones(3, requires_grad=True))", "torch.autograd.grad(y, x)",
        "(x > 0).sum().backward()", "torch.tensor([1], requires_grad=True)", "i.requires_grad_()", "x.numpy()",
        "y.requires_grad_(False)", "setattr(y, 'requires_grad', False)", "setattr(x, 'grad', torch.ones(2))",
        "setattr(x, 'grad', 3)", "x.detach().backward()", "torch.autograd.backward([y], [None])",
        "torch.autograd.backward([y.sum(), x.sum()])", "torch.autograd.grad([y], [x], [torch.ones(2)])",
        "torch.autograd.grad(y.sum(), [])", "torch.autograd.grad(y.sum(), x, is_grads_batched=True)", "x.grad"])


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
    return (torch.autograd.grad(y, [x, w], retain_graph=True),
        torch.autograd.grad(y, (x, unused), allow_unused=True, retain_graph=True),
        torch.autograd.grad(y, (x, unused), materialize_grads=True, retain_graph=True),
        error(torch.autograd.grad, y, unused, retain_graph=True),
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


# ---------------------------------------------------------------------------------- facts of the graph
@same
def test_leaves_and_flags(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    i = torch.arange(2)
    return [x.is_leaf, y.is_leaf, i.is_leaf, y.requires_grad, (i * 2).requires_grad, y.detach().requires_grad,
        (x > 1).requires_grad, x.grad_fn is None, y.grad_fn is not None, y.retains_grad, x.argmax().requires_grad,
        (x * i).requires_grad, x.clone().is_leaf, x.long().requires_grad, x.to(torch.float64).requires_grad]


@pytest.mark.parametrize("expression", ["x + 1", "x * x", "x.sum()", "x.exp()", "x.view(1, 2)", "x[0]",
    "x.unbind()[0]", "torch.cat([x, x])", "x @ x", "x.relu()", "x.clone()", "-x", "x / 2", "x ** 2", "x.mean()",
    "torch.nn.functional.linear(x.view(1, 2), x.view(1, 2))", "x.t()", "x.softmax(0)", "x.max()",
    "x.detach().requires_grad_() + x"])
@same
def test_names_of_nodes(torch, expression):
    x = torch.ones(2, requires_grad=True)
    y = eval(expression, {"torch": torch, "x": x})
    return type(y.grad_fn).__name__, y.grad_fn.name(), len(y.grad_fn.next_functions), repr(y).split("grad_fn=")[-1]


@same
def test_views_made_without_gradients(torch):
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        v = x[:2]
        others = [x.view(3, 1), x.expand(2, 3), x.unbind()[0], x.detach(), x * 1, x.data[:1], x.clone()]
    y = v * 2
    y.sum().backward()
    outside = [v.grad, x.grad, torch.autograd.grad((v * 2).sum(), [v], allow_unused=True), y.grad_fn.next_functions]
    refused = error(v.mul_, 2)
    (v.requires_grad_() * 3).sum().backward()
    w = torch.nn.Parameter(torch.ones(2, 3))
    with torch.no_grad():
        w.t_()
        w[0].zero_()
    (w * 2).sum().backward()
    return [o.requires_grad for o in others], outside, refused, v.grad, x.grad, w, w.is_leaf, w.grad


@same
def test_nothing_is_saved_for_views_made_without_gradients(torch):
    """What such a view takes part in may run backward again, unless another gradient reads what was saved."""
    x, z, found = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True), []
    with torch.no_grad():
        v = x[:]
    products = (lambda: v * torch.ones(3), lambda: torch.addcmul(z, v, v), lambda: v * z, lambda: v.sin(), lambda: z + v * v,
        lambda: torch.stack(torch.nn.functional.normalize(v, dim=0).split(1)), lambda: v.double() * 2.0)
    for f in products:
        y = f().sum()
        y.backward()
        found += [error(y.backward), x.grad, z.grad]
    return found


@same
def test_scattering_nothing(torch):
    x, s, i, found = torch.ones(2, 3, requires_grad=True), torch.ones(0, 3, requires_grad=True), torch.zeros(0, 3, dtype=torch.long), []
    for f in (lambda: x.scatter(0, i, s), lambda: x.scatter_add(0, i, s), lambda: x.scatter_reduce(0, i, s, "prod"), lambda: x.gather(0, i)):
        y = f().sum()
        found += [torch.autograd.grad(y, [x, s], allow_unused=True), error(y.backward)]
    return found


@same
def test_positions_are_not_freed(torch):
    x = torch.ones(3, requires_grad=True)
    y = x[1:][0]
    y.backward()
    y.backward()
    return x.grad


@same
def test_gradient_of_a_resized_leaf(torch):
    x = torch.ones(2, requires_grad=True)
    y, z = x * 3, torch.ones(2, 2, requires_grad=True)
    u = z * 3
    with torch.no_grad():
        torch.sin(torch.ones(3, 2), out=x)
        torch.sin(torch.ones(2), out=z)
    y.sum().backward()
    return x.grad, x._version, error(u.sum().backward)


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


# ---------------------------------------------------------------------------------- modes
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
    value = y.clone()  # now: torch's refused edit below has written already when it is refused
    return (log, value, error(lambda: (y * x).sum().backward()), error(y.requires_grad_), (y * 2).is_inference(),
            y.clone().requires_grad_().requires_grad, error(y.add_, 1), error(lambda: x * y))


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


# ---------------------------------------------------------------------------------- special points
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
    functions = [torch.abs, torch.relu, torch.nn.functional.relu6, torch.nn.functional.hardtanh,
        lambda x: x.clamp(-1, 1), lambda x: x.clamp_min(0), torch.nn.functional.leaky_relu, torch.sign,
        torch.nn.functional.hardsigmoid, torch.nn.functional.hardswish, torch.nn.functional.softshrink,
        torch.nn.functional.hardshrink, torch.nn.functional.elu, lambda x: torch.maximum(x, torch.zeros(7)),
        lambda x: torch.minimum(x, torch.ones(7)), lambda x: x ** 0, lambda x: x ** 2,
        lambda x: torch.max(x, torch.zeros(())), lambda x: x.max(), lambda x: torch.stack([x, x]).amax(0),
        lambda x: torch.stack([x, x]).max(0).values, lambda x: x.prod(), lambda x: torch.fmax(x, torch.zeros(7)),
        lambda x: x.remainder(0.5), torch.frac, lambda x: x.median(), torch.sgn,
        lambda x: torch.nn.functional.smooth_l1_loss(x, torch.zeros(7)),
        lambda x: torch.nn.functional.l1_loss(x, torch.zeros(7)), lambda x: torch.norm(x - x), lambda x: x.floor()]
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


def test_numbers_are_read_without_a_warning_where_nothing_is_recorded(subject, monkeypatch):
    from torchlike._core import history
    monkeypatch.setattr(history, "_said", set())
    x = subject.ones((), requires_grad=True) * 2
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with subject.no_grad():
            float(x)
        assert not said
        float(x)
    assert [str(w.message).startswith("Converting a tensor with requires_grad=True") for w in said] == [True]


def test_what_cannot_require_a_gradient(oracle, subject):
    def said(torch, expression):
        with pytest.raises(RuntimeError) as info:
            eval(expression, {"torch": torch})
        return str(info.value)
    for expression in ("torch.zeros(2, dtype=torch.int64).requires_grad_()", "torch.tensor([1], requires_grad=True)", "torch.arange(3, requires_grad=True)",
                       "torch.randint(3, (2,), requires_grad=True)", "torch.nn.Parameter(torch.tensor([1]))", "setattr(torch.tensor([1]), 'requires_grad', True)"):
        assert said(subject, expression) == said(oracle, expression), expression


@pytest.mark.parametrize("view, factor", [(lambda x: x.t().reshape(2, 3, 4)[:, 1:, ::2].permute(2, 0, 1).unsqueeze(1).diagonal(dim1=2, dim2=3), 1.0),
                                          (lambda x: x.conj().t()[1:], 1 + 2j), (lambda x: x.split([2, 4], 1)[1].chunk(2)[0].unbind(1)[3], 1.0)])
def test_second_derivatives_of_views_need_no_trace(subject, monkeypatch, view, factor):
    """The derivative of a view's derivative is the view, which NumPy has: each new shape would cost a trace otherwise."""
    x = (subject.arange(24.0).reshape(4, 6) * factor).requires_grad_()
    seen = view(x)
    weight = subject.ones_like(seen).requires_grad_()
    monkeypatch.setattr(jax, "make_jaxpr", None)
    first, = subject.autograd.grad(seen, x, weight, create_graph=True)
    second, = subject.autograd.grad(first, weight, x.detach())
    assert second.tolist() == seen.tolist()


@same
def test_pieces_come_from_one_node(torch):
    x = torch.arange(24.0).reshape(4, 6).requires_grad_()
    cuts = x.split(2), x.split([1, 5], 1), x.chunk(3, 1), x.unbind(1)
    a, b, c = x.chunk(3, 1)
    return [(pieces[0].grad_fn is pieces[1].grad_fn, pieces[0].grad_fn.name()) for pieces in cuts], torch.autograd.grad((a * c).sum(), x), b
