"""torch.compile: replays equal eager runs of real torch, guards hold, and fallbacks say why."""
from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import torch as real

import torchlike
from torchlike._core import history, program_info
from torchlike._core.program import tier
from torchlike._replay import Replay
from torchlike._tracing import Before, CallCapture, objects_of, tensor_classes
from torchlike.utils._pytree import register_pytree_node


def net(t):
    t.manual_seed(0)
    return t.nn.Sequential(t.nn.Linear(6, 12), t.nn.Dropout(0.25), t.nn.GELU(), t.nn.BatchNorm1d(12), t.nn.Linear(12, 3))


def train(t, wrap_step=lambda f: f, wrap_model=lambda m: m, steps: int = 8):
    """Losses, running statistics and learning rates over some steps with dropout and a schedule."""
    model = net(t)
    optimizer = t.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = t.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    forward = wrap_model(model)

    def step(x, y):
        optimizer.zero_grad()
        loss = t.nn.functional.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
        return loss
    step = wrap_step(step)
    losses = []
    for _ in range(steps):
        losses.append(step(t.randn(5, 6), t.randint(0, 3, (5,))).item())
        schedule.step()
    return losses, model[3].running_mean.tolist(), [p.detach().sum().item() for p in model.parameters()]


@pytest.mark.parametrize("whole", [True, False])
def test_training_equals_real_torch(whole):
    want = train(real)
    history.fallbacks.clear()
    got = train(torchlike, torchlike.compile) if whole else train(torchlike, wrap_model=torchlike.compile)
    assert not history.fallbacks
    for a, b in zip(want, got):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=2e-6)


def calls_of(f, *calls):
    """Results of some calls, and how often the Python body ran."""
    replays = []

    class Counting(Replay):
        def __call__(self, leaves):
            replays.append(self)
            return super().__call__(leaves)
    compiled = torchlike.compile(f)
    results = []
    for args in calls:
        results.append(compiled(*args))
        for entry in compiled.compiled.entries.values():
            if entry.__class__ is Replay:
                entry.__class__ = Counting
    return results, len(calls) - len(replays)


def test_replay_skips_python_and_reads_new_arguments():
    ones = torchlike.ones(3)
    results, runs = calls_of(lambda x: (x * 2 + 1).sum(), *[(ones * k,) for k in range(6)])
    assert runs == 2 and [r.item() for r in results] == [3.0 + 6 * k for k in range(6)]


def test_guards_shape_dtype_number_and_flag():
    f = lambda x, n: x.sum() * n
    results, runs = calls_of(f, *[(torchlike.ones(k), n) for k in (2, 3) for n in (1, 2) for _ in range(3)])
    assert runs == 8 and [r.item() for r in results] == [2.0] * 3 + [4.0] * 3 + [3.0] * 3 + [6.0] * 3


def test_training_flag_is_a_guard():
    torchlike.manual_seed(0)
    model = torchlike.nn.Dropout(0.5)
    compiled = torchlike.compile(model)
    x = torchlike.ones(100)
    for _ in range(4):
        assert (compiled(x) == 0).any()
    model.eval()
    for _ in range(4):
        assert not (compiled(x) == 0).any()


def test_random_draws_are_drawn_again():
    compiled = torchlike.compile(lambda: torchlike.rand(4))
    torchlike.manual_seed(3)
    got = [compiled().tolist() for _ in range(4)]
    real.manual_seed(3)
    assert got == [real.rand(4).tolist() for _ in range(4)]


def test_gradients_flow_through_arguments_and_parameters():
    w = torchlike.nn.Parameter(torchlike.ones(3))
    compiled = torchlike.compile(lambda x: (x * w).sin().sum())
    for k in range(4):
        x = torchlike.full((3,), float(k), requires_grad=True)
        w.grad = None
        y = x * 2  # an argument with a graph of its own
        compiled(y).backward()
        np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(2.0 * k) * np.ones(3), rtol=1e-6)
        np.testing.assert_allclose(w.grad.numpy(), 2 * k * np.cos(2.0 * k) * np.ones(3), rtol=1e-6, atol=1e-6)


def test_gradients_reach_the_leaf_that_is_the_argument():
    weight = torchlike.tensor([1.0, 2.0], requires_grad=True)
    f = torchlike.compile(lambda a, b: (a.sin() * a * b * weight).sum())
    for i in range(5):
        a, b = torchlike.tensor([0.5, 1.0 + i], requires_grad=True), torchlike.tensor([2.0, float(i)], requires_grad=True)
        weight.grad = None
        f(a, b).backward()
        x, y, w = (real.tensor(t.detach().numpy(), requires_grad=True) for t in (a, b, weight))
        (x.sin() * x * y * w).sum().backward()
        for ours, theirs in ((a, x), (b, y), (weight, w)):
            np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-6)


def test_backward_twice_and_double_backward_raise():
    x = torchlike.ones(3, requires_grad=True)
    compiled = torchlike.compile(lambda a: (a * a).sum())
    for _ in range(3):
        y = compiled(x)
        y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="double backward"):
        torchlike.autograd.grad(compiled(x), x, create_graph=True)


def test_a_call_that_observes_stays_eager_and_says_so():
    history.fallbacks.clear()

    def f(x):
        return x * 2 if x.sum() > 0 else x * 3
    results, runs = calls_of(f, *[(torchlike.ones(2) * s,) for s in (1, 1, -1, 1)])
    assert runs == 4 and [r.tolist() for r in results] == [[2, 2], [2, 2], [-3, -3], [2, 2]]
    assert "test_compile.py" in history.fallbacks[0][1] and "stays eager" in str(torchlike.explain())
    g = torchlike.compile(f, fullgraph=True)
    g(torchlike.ones(2))
    for _ in range(3):  # each time
        with pytest.raises(RuntimeError, match="fullgraph"):
            g(torchlike.ones(2))


def test_a_rate_in_a_tensor_is_not_looked_at():
    """The optimizers of programs that compile them hold their numbers in tensors, so that another rate is no other program."""
    @torchlike.compile(fullgraph=True)
    def step(p, g, rate):
        p.add_(g, alpha=-rate).addcmul_(g, g, value=rate).addcdiv_(g, g + 2, value=rate)
    p, g, rate = torchlike.zeros(3), torchlike.ones(3), torchlike.tensor(0.0)
    history.fallbacks.clear()
    for i in range(4):
        rate.fill_(i)
        step(p, g, rate)
    assert not history.fallbacks and p.tolist() == [pytest.approx(2.0)] * 3


def test_fullgraph_takes_arguments_that_are_views():
    """PyTorch's graphs write through them; here such a call stays recorded."""
    @torchlike.compile(fullgraph=True)
    def double(x):
        x.mul_(2)
    whole = torchlike.ones(4)
    for _ in range(3):
        double(whole[:2])
    assert whole.tolist() == [8, 8, 1, 1]


def test_in_place_effects_reach_outside_tensors():
    total = torchlike.zeros(2)
    compiled = torchlike.compile(lambda x: total.add_(x))
    for k in range(5):
        compiled(torchlike.ones(2) * k)
    assert total.tolist() == [10, 10]


def test_a_trace_leaves_no_garbage():
    """What waits for the garbage collector keeps the step's tensors: they would be results of the program, as if somebody held them."""
    w = torchlike.nn.Parameter(torchlike.ones(3))
    optimizer = torchlike.optim.SGD([w], lr=0.1)

    def step():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        optimizer.step()
        return loss
    compiled = torchlike.compile(step)
    compiled().item()
    gc.collect()
    gc.disable()
    try:
        loss = compiled()
        kinds = [Before, CallCapture, *tensor_classes()]
        held = len(objects_of(kinds)[0])
        gc.collect()
        assert len(objects_of(kinds)[0]) == held and loss.requires_grad
    finally:
        gc.enable()


def test_module_wrapper():
    model = net(torchlike)
    compiled = torchlike.compile(model)
    assert list(compiled.state_dict()) == ["_orig_mod." + k for k in model.state_dict()]
    assert compiled[0] is model[0] if hasattr(type(compiled), "__getitem__") else compiled._orig_mod is model
    assert torchlike.compile(model, disable=True) is model
    with pytest.raises(AssertionError):
        torchlike.compile(3)


def test_a_step_whose_loss_saves_nothing_and_an_optimizer_that_changes():
    model, data = torchlike.nn.Linear(3, 2), torchlike.ones(4, 3)
    optimizer = torchlike.optim.SGD(model.parameters(), lr=0.1)

    @torchlike.compile
    def step():
        optimizer.zero_grad()
        loss = model(data).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss
    for _ in range(4):
        loss = step()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_an_optimizer_that_changes_is_traced_again():
    """Momentum, decay, a switch or a group that was not there: the step then records other operations, also where two are taken and where
    random numbers are drawn."""
    def losses(t, wrap):
        t.manual_seed(0)
        model, data, free = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Dropout(0.2), t.nn.Linear(4, 2)), t.ones(4, 3), t.ones(2, requires_grad=True)
        first, second = t.optim.Adam(model[0].parameters(), lr=0.1), t.optim.SGD(model[2].parameters(), lr=0.1)

        def step():
            for optimizer in (first, second):
                optimizer.zero_grad()
            loss = (model(data) * free).pow(2).sum()
            loss.backward()
            for optimizer in (first, second):
                optimizer.step()
            return loss
        step, shown = wrap(step), []
        for k in range(20):
            if k == 5:
                first.param_groups[0]["weight_decay"] = 0.5
            elif k == 10:
                second.param_groups[0]["momentum"] = 0.9
            elif k == 15:
                second.add_param_group({"params": [free], "maximize": True})
            shown.append(step().item())
        return [*shown, first.state[model[0].weight]["step"].item(), *free.tolist()]
    np.testing.assert_allclose(losses(torchlike, torchlike.compile), losses(real, lambda f: f), rtol=2e-4)


def test_parameters_that_come_to_lie_in_one_vector():
    """Two optimizers write parts of it, and neither shows all of it; then another vector, and one that begins with a parameter alone."""
    def states(t, wrap):
        t.manual_seed(0)
        model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2))
        parameters, (x, y) = list(model.parameters()), (t.randn(5, 3), t.randn(5, 2))
        optimizers = [t.optim.Adam(parameters[:2], lr=0.1), t.optim.SGD(parameters[2:], lr=0.1)]

        def step():
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            return loss
        step, shown = wrap(step), []
        for k in range(16):
            if k in (4, 8):
                with t.no_grad():
                    t.nn.utils.vector_to_parameters(t.nn.utils.parameters_to_vector(parameters) * 0.9, parameters)
            elif k == 12:
                for p in parameters:
                    p.data = t.cat([p.detach().flatten(), t.ones(3)])[:-3].view(p.shape)
            shown += [step().item(), *(p.sum().item() for p in parameters)]
        return shown
    np.testing.assert_allclose(states(torchlike, torchlike.compile), states(real, lambda f: f), rtol=2e-4, atol=1e-6)


def test_a_step_that_runs_at_once_keeps_what_others_hold():
    """After the first replays a step is started without a program, and donates the parameters: unless somebody else holds them."""
    kept = []
    for t, wrap in ((real, lambda f: f), (torchlike, torchlike.compile)):
        t.manual_seed(0)
        model, data = t.nn.Linear(3, 2), t.ones(4, 3)
        optimizer = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)

        def step(x):
            optimizer.zero_grad()  # noqa: B023
            out = model(x)  # noqa: B023
            loss = out.pow(2).sum()
            loss.backward()
            optimizer.step()  # noqa: B023
            return loss, model.weight.detach()  # noqa: B023
        step, seen = wrap(step), []
        for i in range(14):
            if i == 8:
                held, alias = model.weight.detach().clone(), model.weight.detach()
                whole, array = model.weight.detach().numpy().copy(), model.weight.detach().numpy()
                state = {k: v.clone() for k, v in model.state_dict().items()}
            if i == 10:
                seen += [held, alias, t.from_numpy(whole), t.from_numpy(array.copy())]
            if i == 11:
                model.load_state_dict(state)
            if i == 12:
                data = data * 2
            loss, weight = step(data)
            seen += [loss.detach(), weight.clone(), model.bias.grad.clone(), t.tensor(model.weight._version)]
        kept.append(seen)
    for mine, right in zip(kept[1], kept[0]):
        np.testing.assert_allclose(mine.numpy(), right.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("grad", [False, True])
def test_results_that_are_views_are_compiled(grad):
    """Of a new tensor that only they hold, also written before or through the view (timm's Kron optimizer asks for fullgraph)."""
    def late(x):
        y = x * 2
        v = y.t()
        y.add_(1)
        return v

    def through(x):
        v = (x * 2)[1:].t()
        v.mul_(3)
        return v, x + 1
    for f in (lambda x: (x * 2).t(), lambda x: (x @ x).view(-1), lambda x: (x * 2).chunk(3)[1], lambda x: x.sum().expand(3), late, through):
        compiled, found = torchlike.compile(f, fullgraph=True), []
        for t, call in ((torchlike, compiled), (real, f)):
            x = t.arange(9.0).reshape(3, 3).requires_grad_(grad)
            outs = [call(x + i) for i in range(4)]
            flat = [o for out in outs for o in (out if isinstance(out, tuple) else (out,))]
            if grad:
                sum(o.sum() for o in flat).backward()
            found.append([o.detach().numpy() for o in flat] + ([x.grad.numpy()] if grad else []))
        for mine, right in zip(*found, strict=True):
            np.testing.assert_array_equal(mine, right)


def test_classes_of_dictionaries_stay_what_they_are():
    """transformers' outputs are ordered dictionaries with attributes, which pytree knows; a class that it does not know runs eager."""
    class Output(OrderedDict):
        loss = property(lambda self: self["loss"])

    class Unknown(dict):
        pass
    register_pytree_node(Output, lambda d: (list(d.values()), list(d)), lambda values, keys: Output(zip(keys, values)))
    seen = []
    for kind in (dict, OrderedDict, Output, lambda d: defaultdict(list, d), Unknown):
        def f(given, kind=kind):
            return kind({"loss": (given["x"] * 2).t(), "more": [type(given).__name__, None]})
        compiled = torchlike.compile(f, fullgraph=kind is not Unknown)
        for n in range(4):
            out = compiled(kind({"x": torchlike.full((2, 3), float(n))}))
        seen.append(type(out).__name__)
        assert out["loss"].shape == (3, 2) and out["loss"][0, 0] == 6 and out["more"] == [seen[-1], None]
    assert seen == ["dict", "OrderedDict", "Output", "defaultdict", "Unknown"]


def test_a_new_tensor_that_is_kept_is_not_compiled():
    kept = []

    def keeps(x):
        kept.append(x * 2)
        return kept[-1].t()
    compiled = torchlike.compile(keeps)
    for _ in range(4):
        compiled(torchlike.ones(2, 3))
    assert len(kept) == 4


def test_a_step_does_not_take_its_argument():
    """Steps on arguments that nobody keeps may use their memory; one on an argument that is kept may not."""
    model = torchlike.nn.Linear(3, 2)  # whose gradient has the argument's shape
    optimizer = torchlike.optim.SGD(model.parameters(), lr=0.01)

    @torchlike.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss
    for i in range(8):
        step(torchlike.ones(2, 3) * 2.0 + i).item()
    x = torchlike.ones(2, 3) * 2
    x.sum().item()
    for _ in range(4):
        step(x).item()
    assert x.tolist() == [[2.0] * 3] * 2


def recurrent(t, wrap, length: int = 9):
    """A cell over a sequence: each call's argument comes of earlier calls with the same parameters. Gradients, of the states too."""
    t.manual_seed(0)
    cell = t.nn.GRUCell(3, 4)
    call = wrap(lambda x, h: cell(x, h) * 1.1)
    x, h, states = t.randn(length, 2, 3), t.zeros(2, 4), []
    for k in range(length):
        h = call(x[k], h)
        h.retain_grad()
        states.append(h)
    h.square().sum().backward()
    return [g.tolist() for g in (*(p.grad for p in cell.parameters()), *(s.grad for s in states))]


def test_a_cell_called_on_its_own_results():
    """The traced call's argument has a graph that leads to the parameters as well, which is not the call's."""
    history.fallbacks.clear()
    got = recurrent(torchlike, torchlike.compile)
    assert not history.fallbacks
    for a, b in zip(recurrent(real, lambda f: f), got):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_slices_of_a_tensor_are_one_kind_of_argument():
    """Where in its memory an argument begins is no guard, unless the call asks."""
    x = torchlike.arange(60.0).reshape(20, 3)
    history.fallbacks.clear()
    f = torchlike.compile(lambda a: a * 2 + a[0, 1])
    for k in range(19):
        assert f(x[k:k + 2]).tolist() == (x[k:k + 2] * 2 + x[k, 1]).tolist()
    assert len(f.compiled.entries) == 1 and not history.fallbacks
    assert [f(x.t()[:, k:k + 2]).stride() for k in range(4)] == [(1, 3)] * 4 and len(f.compiled.entries) == 2
    g = torchlike.compile(lambda a: a + a.storage_offset())
    for _ in range(3):
        for k in range(3):
            assert g(x[k]).tolist() == (x[k] + 3 * k).tolist()


@pytest.mark.parametrize("make", [lambda t: t.zeros(2), lambda t: t.zeros(3)[:2], lambda t: t.zeros(3)[1:], lambda t: t.zeros(2, 2)[:, 1],
                                  lambda t: t.zeros(4).view(2, 2).view(4)])
def test_in_place_writes_to_arguments_that_share_memory(make):
    compiled = torchlike.compile(lambda x, y: x.mul_(2).add_(y))
    for i in range(6):
        x = make(torchlike) if i % 2 else make(torchlike).view(-1)  # seldom the form that was traced
        base, alias = x if x._base is None else x._base, x.detach()
        compiled(x, torchlike.full(x.shape, float(i)))
        right = make(real)
        right.add_(i)
        right = right if right._base is None else right._base
        assert base.flatten().tolist() == right.flatten().tolist() and alias.tolist() == [float(i)] * len(alias), i


def optimizers(t):
    """Optimizers whose numbers change in their own ways; each with what the user does after step i."""
    class Warm(t.optim.SGD):
        count = 0

        def step(self, closure=None):
            self.count += 1
            self.param_groups[0]["lr"] = 0.01 * self.count
            return super().step(closure)

    class Own(t.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.05})

        @t.no_grad()
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.sub_(p.grad, alpha=self.param_groups[0]["lr"])

    class Plain(Own):
        @t.no_grad()
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.sub_(p.grad * p.new_full((), 0.05))

    def slower(optimizer, i):
        if i == 4:
            optimizer.param_groups[0]["lr"] = 0.001

    def hooked(optimizer, i):
        if i == 0:
            optimizer.register_step_pre_hook(lambda o, *_: o.param_groups[0].update(lr=o.param_groups[0]["lr"] * 0.9))

    def nothing(optimizer, i):
        pass
    sgd = lambda params: t.optim.SGD(params, lr=0.05)
    by_tensor = lambda params: t.optim.SGD(params, lr=t.tensor(0.05), foreach=False)
    return {"lr": (sgd, slower), "lr in place": (by_tensor, lambda o, i: o.param_groups[0]["lr"].mul_(0.8)), "hook": (sgd, hooked),
            "subclass": (lambda params: Warm(params, lr=0.1), nothing), "own": (Own, slower), "own without numbers": (Plain, nothing)}


@pytest.mark.parametrize("name", list(optimizers(real)))
def test_numbers_of_a_compiled_step(name):
    found = []
    for t, wrap in ((real, lambda f: f), (torchlike, torchlike.compile)):
        make, between = optimizers(t)[name]
        t.manual_seed(0)
        model, data = t.nn.Linear(3, 1, dtype=t.float64), t.ones(2, 3, dtype=t.float64)
        optimizer = make(model.parameters())

        def step(model=model, data=data, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(data).pow(2).sum()
            loss.backward()
            optimizer.step()
            return loss
        step, losses = wrap(step), []
        for i in range(8):
            losses.append(step().item())
            between(optimizer, i)
        found.append(losses)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-7)


@pytest.mark.parametrize("f", [lambda x: x, lambda x: (x, 3), lambda x: x.view(3), lambda x: x.detach(), lambda x: None, lambda x: x.shape])
def test_functions_that_record_nothing(f):
    compiled = torchlike.compile(f)
    for _ in range(3):
        assert repr(compiled(torchlike.ones(3))) == repr(f(torchlike.ones(3)))


def test_a_kept_view_of_what_vmap_lost_stops_no_other_function():
    kept = []

    def one(x):
        y = x * 2
        kept.append(y[0])
        y.mul_(3)
        return x
    torchlike.func.vmap(one)(torchlike.ones(3, 4))
    compiled = torchlike.compile(lambda x: x * 2)
    assert [compiled(torchlike.ones(2)).tolist() for _ in range(4)] == [[2, 2]] * 4
    with pytest.raises(RuntimeError, match="call of vmap that is over"):
        kept[0].tolist()


def test_explained():
    """`torch._dynamo.explain`: one graph, or the reason; the function runs once."""
    calls = []

    def whole(x):
        return (x * 2).sin()

    def looks(x):
        calls.append(1)
        return x * 2 if x.sum() > 0 else x
    x = torchlike.ones(3, requires_grad=True)
    made = torchlike._dynamo.explain(whole)(x)
    assert (made.graph_count, made.graph_break_count, made.op_count, made.break_reasons) == (1, 0, 2, []) and "sin" in made.ops_per_graph[0]
    assert str(made).startswith("Graph Count: 1\nGraph Break Count: 0\nOp Count: 2\nBreak Reasons:\nOps per Graph:\n  Ops 1:\n    mul")
    made = torchlike._dynamo.explain(looks)(x)
    assert (made.graph_count, made.graph_break_count, len(calls)) == (0, 1, 1) and made.break_reasons[0].reason in str(made)
    module = torchlike.nn.Sequential(torchlike.nn.Linear(3, 2), torchlike.nn.ReLU())
    assert torchlike._dynamo.explain(module)(torchlike.ones(4, 3)).graph_break_count == 0
    assert isinstance(made, torchlike._dynamo.backends.debugging.ExplainOutput)  # litgpt's tests ask
    assert torchlike._dynamo.backends.registry.list_backends() == torchlike._dynamo.list_backends()
    with pytest.warns(FutureWarning, match="deprecated"):
        assert torchlike._dynamo.explain(whole, x).graph_count == 1


def test_what_is_gone_leaves_no_executables():
    """A notebook's cell that builds a model and compiles its step, run again and again."""
    def cell():
        layer = torchlike.nn.Linear(3, 2)
        optimizer = torchlike.optim.Adam(layer.parameters())

        @torchlike.compile
        def step():
            optimizer.zero_grad()
            loss = layer(torchlike.ones(4, 3)).sum()
            loss.backward()
            optimizer.step()
            return loss
        return [step().item() for _ in range(4)]
    counts = []
    with tier("compiled"):
        for _ in range(5):
            cell()
            gc.collect()
            counts.append((len(program_info.infos), sum(len(info.executables) for info in program_info.infos)))
    assert counts[-1] == counts[2]


@pytest.mark.parametrize("variable", ["TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE"])
def test_switched_off_by_the_environment(variable):
    program = """if True:
    import sys
    if sys.argv[1] == "torchlike":
        import torchlike
        torchlike.install()
    import torch
    calls = []
    def f(x):
        calls.append(torch.compiler.is_compiling())
        return x + 1
    compiled, module = torch.compile(f, mode="max-autotune"), torch.nn.Linear(2, 2)
    print(compiled is f, torch.compile(module) is module, torch.compile()(f) is f, getattr(torch.compile(lambda x: x), "_torchdynamo_orig_callable", None) is None)
    for _ in range(4):
        compiled(torch.ones(2))
    module.compile()
    print(calls, module(torch.ones(2)).shape, list(torch.compile(module).state_dict()), torch._dynamo.config.disable)
    for wrong in ({"mode": "nope"}, {"backend": "nope"}, {"fullgraph": True}):
        try:
            print(torch.compile(f, **wrong)(torch.ones(1)))
        except Exception as e:
            print(type(e).__name__)
    """
    said = [subprocess.run([sys.executable, "-c", program, which], env={**os.environ, variable: "1"}, capture_output=True, text=True, check=True).stdout
            for which in ("torch", "torchlike")]
    assert said[0] == said[1] and len(said[0].splitlines()) == 5


def test_switched_off_for_a_block(monkeypatch):
    replays, call = [], Replay.__call__
    monkeypatch.setattr(Replay, "__call__", lambda self, leaves: replays.append(1) or call(self, leaves))

    @torchlike.compile
    def f(x):
        return x * 2
    for _ in range(4):
        f(torchlike.ones(2))
    before = len(replays)
    with torchlike._dynamo.config.patch(disable=True):
        assert f(torchlike.ones(2)).tolist() == [2, 2] and len(replays) == before > 0
    f(torchlike.ones(2))
    assert len(replays) == before + 1 and not torchlike._dynamo.config.disable
