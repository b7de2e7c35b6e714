"""torch.autograd.graph, forward_ad, profilers, against real torch."""
import warnings
from importlib import import_module

import pytest
from nn_models import said
from same import caught, error, same

import torchlike


@same
def test_saved_tensors_hooks(torch):
    G, log = torch.autograd.graph, []

    def pack(t):
        log.append((tuple(t.shape), t.requires_grad, t.is_leaf))
        return t * 1

    x = torch.tensor([0.1, 0.2], requires_grad=True)
    with G.saved_tensors_hooks(pack, lambda t: (log.append("unpack"), t * 2)[1]):
        y = x * x
        z = y.exp()
        with torch.no_grad():
            x * x
    (z * 3).sum().backward()
    with G.saved_tensors_hooks(lambda t: t, lambda t: 3):
        bad = x * x
    with G.disable_saved_tensors_hooks("not here"):
        refused = caught(G.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__)
    with G.save_on_cpu():
        kept = (x * x).exp()
    g, = torch.autograd.grad(kept.sum(), x, create_graph=True)
    return x.grad, log, caught(bad.sum().backward), refused, g, torch.autograd.grad(g.sum(), x)


@same
def test_the_order_in_which_operands_are_packed(torch):
    """PyTorch's tutorial of these hooks prints the tensors as they come."""
    F = torch.nn.functional
    a, b, c = (torch.full((3, 3), n, requires_grad=True) for n in (0.5, 0.25, 2.0))
    v, image, grid = torch.ones(3, requires_grad=True), torch.ones(1, 1, 3, 3, requires_grad=True), torch.zeros(1, 2, 2, 2, requires_grad=True)
    calls = {
        "mul": lambda: a * b, "div": lambda: a / b, "pow": lambda: a ** b, "mm": lambda: a @ b, "bmm": lambda: torch.bmm(a[None], b[None]), "maximum": lambda: torch.maximum(a, b),
        "atan2": lambda: torch.atan2(a, b), "lerp": lambda: torch.lerp(a, b, c), "addcmul": lambda: torch.addcmul(a, b, c), "mv": lambda: a @ v, "dot": lambda: v @ v.exp(),
        "linear": lambda: F.linear(a, b, v), "linear alone": lambda: F.linear(a, b), "mse": lambda: F.mse_loss(a, b), "conv": lambda: F.conv2d(image, c[None, None]),
        "cross": lambda: torch.linalg.cross(a, b), "grid": lambda: F.grid_sample(image, grid, align_corners=False), "xlogy": lambda: torch.xlogy(a, b),
    }
    packed = {}
    for name, call in calls.items():
        log = packed[name] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, log=log: log.append((tuple(t.shape), t.detach().flatten()[:3].tolist())) or t, lambda t: t):
            made = call()
        made.sum().backward()
    return packed, a.grad, b.grad, c.grad


@same
def test_pack_hook_may_not_write(torch):
    x = torch.ones(2, requires_grad=True)

    def run():
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
            return x * x
    return caught(run)


@same
def test_gradient_edges(torch):
    G = torch.autograd.graph
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    edge = G.get_gradient_edge(y)
    g = torch.autograd.grad(y * 3, G.get_gradient_edge(x), torch.ones(2), retain_graph=True)
    at = torch.autograd.grad((y * 3).sum(), [edge, x], retain_graph=True)
    torch.autograd.backward([edge], torch.ones(2))
    v = torch.ones(2)
    G.increment_version([v, v])
    return (edge.node.name(), edge.output_nr, G.get_gradient_edge(x).node.name(), g, at, x.grad, caught(G.get_gradient_edge, v), v._version)


@same
def test_multi_grad_hooks(torch):
    G, log = torch.autograd.graph, []
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    every = G.register_multi_grad_hook((a, b), lambda gs: log.append(("all", [None if g is None else g.tolist() for g in gs])))
    (a * 2 + b).sum().backward()
    (a * 2).sum().backward()
    every.remove()
    first = G.register_multi_grad_hook((a, b), lambda g: log.append(("any", g.tolist())), mode="any")
    (a + b).sum().backward()
    (b * 5).sum().backward()
    first.remove()
    (a * b).sum().backward()
    return log, caught(G.register_multi_grad_hook, (a,), print, mode="some")


@same
def test_forward_ad(torch):
    fw = import_module(torch.__name__ + ".autograd.forward_ad")
    x, t = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.5])
    outside = caught(fw.make_dual, x, t)
    w = torch.tensor(3.0, requires_grad=True)
    with fw.dual_level():
        d = fw.make_dual(x, t)
        o = d.sin() * d
        both = fw.unpack_dual(o * fw.make_dual(t, x) * 2)
        plain = fw.unpack_dual(torch.ones(2)).tangent is None
        errors = [caught(fw.make_dual, x, torch.ones(3)), caught(fw.make_dual, torch.tensor([1]), torch.tensor([1])), caught(fw.enter_dual_level)]
        primal, tangent = fw.unpack_dual(o)
        through = fw.unpack_dual(d * w).tangent
    through.sum().backward()
    return outside, both.primal, both.tangent, plain, errors, primal, tangent, primal.requires_grad, w.grad, caught(fw.exit_dual_level)


def test_profilers_time_ranges(tmp_path):
    import json

    import torchlike as torch
    from torchlike import profiler
    with torch.autograd.profiler.profile() as p, torch.autograd.profiler.record_function("work"):
        torch.ones(3).sin().tolist()
    row, = [r for r in p.key_averages() if r.key == "work"]
    assert row.count == 1 and row.cpu_time_total > 0
    assert "work" in p.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    p.export_chrome_trace(str(tmp_path / "trace.json"))
    assert any(e["name"] == "work" for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"])
    ready = []
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with profiler.profile(schedule=plan, on_trace_ready=lambda prof: ready.append(len([e for e in prof.events() if e.name == "step"]))) as prof:
        for _ in range(6):
            with profiler.record_function("step"):
                torch.ones(2) + 1
            prof.step()
    assert ready == [2]


@same
def test_operands_that_a_node_saved(torch):
    """A leaf comes back as itself, another tensor with its place in the graph."""
    a, b, c = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True), torch.ones(2)
    e = a * a
    y, z = a * b, e * c
    w = e * b
    saved = w.grad_fn._saved_self
    got = [y.grad_fn._saved_self is a, y.grad_fn._saved_other is b, (a / b).grad_fn._saved_other is b, a.sin().grad_fn._saved_self is a,
           str(z.grad_fn._saved_other), str(saved), *(str(g) for g in torch.autograd.grad(saved.sum(), a, retain_graph=True))]
    w.sum().backward()
    for name in ("_saved_self", "_saved_bogus"):
        try:
            getattr(w.grad_fn, name)
        except (RuntimeError, AttributeError) as error:
            got.append(type(error).__name__)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (t.detach(),), lambda packed: packed[0] + 1):
        y = a.pow(2)
    return *got, str(y.grad_fn._saved_self)


@same
def test_hooks_on_views_that_are_written(torch):
    def run(write):
        x, log = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), []
        y = x * 2
        v = y[:2]
        w = v.view(2, 1)
        before = v * 5
        for name, t in (("y", y), ("v", v), ("w", w)):
            t.register_hook(lambda g, name=name: log.append((name, g.tolist())))
        v.grad_fn.register_prehook(lambda g: log.append("node"))
        v.retain_grad()
        y.retain_grad()
        write(v, y, w)
        (v.sum() + y.sum() + w.sum() + before.sum()).backward()
        return sorted(map(str, log)), x.grad, v.grad, y.grad, v.retains_grad
    return [run(f) for f in (lambda v, y, w: v.mul_(3), lambda v, y, w: y.mul_(3), lambda v, y, w: w.mul_(3), lambda v, y, w: v.copy_(y[1:] * 2), lambda v, y, w: None)]


@same
def test_hooks_of_a_leaf_that_is_frozen_for_a_while(torch):
    log, p = [], torch.ones(3, requires_grad=True)
    first = p.register_hook(lambda g: g * 2)
    p.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.tolist()))
    for k in range(3):
        p.requires_grad_(False)
        if k == 2:
            first.remove()
        p.requires_grad, p.grad = True, None
        (p * p).sum().backward()
    layer = torch.nn.Linear(2, 1)
    layer.weight.register_hook(lambda g: g * 0)
    layer.requires_grad_(False).double().requires_grad_()
    layer(torch.ones(1, 2).double()).sum().backward()
    return log, layer.weight.grad


@same
def test_hooks_see_the_results_that_are_differentiated(torch):
    """Neither indices nor the statistics that a batch norm keeps."""
    F, found = torch.nn.functional, []
    image, square = torch.randn(2, 3, 4, 4), torch.randn(3, 3)
    calls = ((image, lambda x: F.batch_norm(x, None, None, None, None, True)), (image, lambda x: F.max_pool2d(x, 2, return_indices=True)[0]), (square, lambda x: x.max(1)[0]),
             (square, lambda x: x.sort(1)[0]), (square, lambda x: x.topk(2)[0]), (square, lambda x: x.kthvalue(2)[0]), (square, lambda x: torch.linalg.lu_factor(x)[0]),
             (square, lambda x: torch.linalg.inv(x)), (square, lambda x: torch.linalg.cholesky(x @ x.T + 3 * torch.eye(3))))
    for data, f in calls:
        x = data.clone().requires_grad_()
        y = f(x)
        y.grad_fn.register_prehook(lambda outs: (found.append([o is None or tuple(o.shape) for o in outs]), (outs[0] * 2, *outs[1:]))[1])
        y.grad_fn.register_hook(lambda ins, outs: found.append([None if g is None else tuple(g.shape) for g in (*ins, *outs)]))
        y.sum().backward()
        found.append(x.grad.shape)
    return found


@same
def test_saved_tensors_are_unpacked_in_the_order_in_which_they_were_packed(torch):
    log: list = []

    def noted(word):
        return lambda t: (log.append((word, t.flatten()[0].item())), t)[1]
    a, b = torch.full((3,), 2.0, requires_grad=True), torch.full((3,), 3.0, requires_grad=True)
    for f in (lambda: a * b, lambda: a / b, lambda: a ** b, lambda: torch.addcmul(a, b, a), lambda: a[None] @ b[:, None]):
        with torch.autograd.graph.saved_tensors_hooks(noted("pack"), noted("unpack")):
            y = f()
        y.sum().backward()
    return log


@same
def test_hooks_on_one_saved_tensor(torch):
    x, log = torch.tensor([1.0, 2.0], requires_grad=True), []
    y = x * x.exp()
    saved = y.grad_fn._raw_saved_self
    refused = [error(saved.register_hooks, lambda t: t, None), said(type(saved))]
    saved.register_hooks(lambda t: (log.append("packed"), t * 2)[1], lambda t: (log.append("unpacked"), t / 2)[1])
    refused.append(said(saved.register_hooks, lambda t: t, lambda t: t))
    shown = y.grad_fn._saved_self.tolist(), y.grad_fn._saved_other.tolist()
    y.sum().backward()
    refused.append(said(saved.register_hooks, lambda t: t, lambda t: t))
    z = x.exp()
    refused.append(said(z.grad_fn._raw_saved_result.register_hooks, lambda t: t.add_(1), lambda t: t))
    z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: 1)
    refused.append(said(z.sum().backward))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        kept = x * x
    refused.append(said(kept.grad_fn._raw_saved_self.register_hooks, lambda t: t, lambda t: t))
    once = x * 2
    refused.append(said(once.grad_fn._raw_saved_self.register_hooks, lambda t: t, lambda t: t))
    names = [[name for name in ("_saved_self", "_saved_other", "_saved_result") if name in dir(t.grad_fn)] for t in (kept, x.exp())]
    return refused, shown, log, x.grad, names, once.grad_fn._saved_self, x.sigmoid().grad_fn._saved_result


@same
def test_nodes_that_are_called(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp() * x
    ones = torch.ones(2)
    values, indices = x.reshape(2, 1).max(0)
    called = [y.grad_fn(ones), y.grad_fn(ones), x.exp().grad_fn(ones), values.grad_fn(ones[:1]), (x * 2).grad_fn.next_functions[0][0](ones), x.grad]
    with torch.no_grad():
        called.append(y.grad_fn(None))
    refused = [said(y.grad_fn), said(y.grad_fn, ones, ones), said(y.grad_fn, grad=ones)]
    y.sum().backward()
    return called, refused, x.grad, said(y.grad_fn, ones)


@same
def test_blocks_that_exclude_each_other(torch):
    G = torch.autograd.graph
    found = []
    with G.allow_mutation_on_saved_tensors():
        found.append(said(G.allow_mutation_on_saved_tensors().__enter__))
    with G.saved_tensors_hooks(lambda t: t, lambda t: t):
        found.append(said(G.disable_saved_tensors_hooks("not now").__enter__))
    with G.allow_mutation_on_saved_tensors():
        return found


@same
def test_the_slices_of_unbind_have_one_node(torch):
    x = torch.tensor([[1.0, 2], [3, 4], [5, 6]], requires_grad=True)
    log = []
    a, b, c = (x * 2).unbind()
    a.grad_fn.register_prehook(lambda grads: log.append([g is None for g in grads]))
    (a * c).sum().backward()
    first = x.grad.clone()
    rows = torch.unbind(x.t() * 3, 1)
    g, = torch.autograd.grad([r.sum() for r in rows], x, create_graph=True)
    return (a.grad_fn is b.grad_fn is c.grad_fn, [t.output_nr for t in (a, b, c)], log, first, g, [r.stride() for r in rows], [r._base is rows[0]._base for r in rows],
            error(b.mul_, 2), torch.autograd.grad(torch.unbind((x * x).sum(1)), x))


@same
def test_backward_into_what_retains_its_gradient(torch):
    """It is added once, and what made the tensor has run."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    found = []
    for retains, hooked, inputs in ((True, False, "y"), (False, False, "y"), (True, False, "yx"), (True, True, "y"), (True, False, "")):
        y = x.exp()
        if retains:
            y.retain_grad()
        if hooked:
            y.register_hook(lambda g: g * 10)
        (y ** 2).sum().backward(inputs=[{"x": x, "y": y}[c] for c in inputs] or None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found += [y.grad, x.grad]
        found.append(error(torch.autograd.grad, y.sum(), x))
    return found


INPUTS = {
    "where": lambda torch, x: torch.where(x > 1, x, torch.tensor(0.0)),
    "clamp": lambda torch, x: x.clamp(0, 1),
    "gather": lambda torch, x: x.gather(1, torch.zeros(2, 1, dtype=torch.long)),
    "index": lambda torch, x: x[torch.tensor([0]), :],
    "index_select": lambda torch, x: x.index_select(0, torch.tensor([1])),
    "lerp": lambda torch, x: torch.lerp(x, x * 2, 0.5),
    "masked_fill": lambda torch, x: x.masked_fill(x > 2, 0),
    "embedding": lambda torch, x: torch.nn.functional.embedding(torch.tensor([0, 1]), x),
    "pow": lambda torch, x: x ** 2,
    "add": lambda torch, x: x + 1,
}


@pytest.mark.parametrize("name", list(INPUTS))
@same
def test_hooks_see_the_inputs_of_torchs_function(torch, name):
    """Positions, masks and numbers are inputs of operations here, but none of torch's derivatives."""
    x, seen = torch.arange(6.0).view(2, 3).requires_grad_(), []
    y = INPUTS[name](torch, x)

    def hook(made, given):
        seen.extend((len(made), [g if g is None else g.clone() for g in made], len(given)))
        return tuple(None if g is None else g * 3 for g in made)
    y.grad_fn.register_hook(hook)
    y.sum().backward()
    return x.grad, seen


@same
def test_hooks_see_the_input_of_an_element_taken_in_a_loop(torch):
    x, seen = torch.ones(100, requires_grad=True), []
    for k in range(80):  # from some on, positions are data
        y = (x * 2)[k]
        y.grad_fn.register_hook(lambda made, given: seen.append((len(made), len(given))))
        y.backward()
    return x.grad, seen


def test_zeros_for_slices_that_nothing_reached_are_made_once(monkeypatch):
    """A loop over a result's elements made as many for each of them: 256 derivatives took 1.3 s instead of 0.1."""
    from torchlike.autograd import engine
    made = []
    filled = engine._filled
    monkeypatch.setattr(engine, "_filled", lambda a, number: made.append(a) or filled(a, number))
    x = torchlike.arange(5.0, requires_grad=True)
    slices = (x ** 2).unbind()
    made.clear()
    assert [torchlike.autograd.grad(e, x, torchlike.ones(()), retain_graph=True)[0].tolist() for e in slices[1:3]] == [[0, 2, 0, 0, 0], [0, 0, 4, 0, 0]]
    assert len(made) == 2
    pieces = (x * x).split([2, 1, 2])
    made.clear()
    assert torchlike.autograd.grad(pieces[1].sum(), x, create_graph=True)[0].tolist() == [0, 0, 4, 0, 0]
    assert len([a for a in made if a.shape]) == 1
    made.clear()
    jacobian = torchlike.autograd.functional.jacobian(lambda x: x ** 2, x.detach())
    assert jacobian.diagonal().tolist() == [0, 2, 4, 6, 8] and not made
