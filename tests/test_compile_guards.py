"""torch.compile replays a call only while everything that its Python went by is as it was: a compiled function and the plain one
print the same, whatever changes between the calls."""
import collections
import dataclasses
import itertools
import math
import random
import time
import types
import weakref

import numpy as np
import pytest

import torchlike as torch
from torchlike._core import history
from torchlike._watch import Watch

SCALE = 1
LOG = []


class Config:
    shared = 1
    __slots__ = ("n", "__dict__")

    def __init__(self):
        self.scale, self.n, self.sizes, self.table = 1, 1, [1, 2], {"k": 1}

    @property
    def twice(self):
        return 2 * self.scale


class Dynamic:
    """Attributes that a class looks up itself."""

    def __init__(self):
        self.values = {"scale": 1}

    def __getattr__(self, name):
        return self.values[name]


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.config, self.sizes, self.count, self.drop = Config(), [1], 0, torch.nn.Dropout(0.5)

    def forward(self, x):
        x = x * self.config.scale * self.sizes[0]
        return self.drop(x)


@dataclasses.dataclass
class Batch:
    scale: int


CONFIG, GATE, DYNAMIC, COUNTER = Config(), Gate().eval(), Dynamic(), itertools.count(1)
HOLDER = types.SimpleNamespace(config=Config(), layers=[Config(), Config()])
NUMBERS = np.ones(3, np.float32)
PARTS = torch.nn.ModuleDict()


def helper(x):
    return x * SCALE


def closure():
    n = 1

    def call(x):
        return x * n

    def change(k):
        nonlocal n
        n = k
    return call, change


def counting():
    n = 0

    def call(x):
        nonlocal n
        n += 1
        return x * n
    return call


def set_global(k):
    global SCALE
    SCALE = k


def through_alias(x):
    config = CONFIG
    return x * config.scale


def over_layers(x):
    for layer in HOLDER.layers:
        x = x * layer.scale
    return x


def over_sizes(x):
    for n in CONFIG.sizes:
        x = x * n
    return x


def appending(x):
    LOG.append(len(LOG))
    return x * len(LOG)


def own_containers(x):
    found, table = [], {}
    for k in range(3):
        found.append(x * k)
        table[k] = found[-1]
    return sum(table.values())


class Written:
    """A class whose methods are written anew."""

    def times(self, x):
        return x

    @property
    def scale(self):
        return 1

    def __call__(self, x):
        return x


class Layer(torch.nn.Module):
    def forward(self, x):
        return x


def by_default(x, k=1):
    return x * k


def by_name(x, *, k=1):
    return x * k


def exchanged(k):
    """A function of another module of the program, whose code is edited while it runs (as IPython's autoreload does)."""
    edited.__code__ = (lambda x: x, lambda x: x * 2, lambda x: x * 3)[k - 1].__code__


def edited(x):
    return x


CALL, CHANGE = closure()
WRITTEN, LAYER, LOOKUP = Written(), Layer(), collections.ChainMap({"k": 1}, {"other": 2})
CHANGES = {  # what a function reads, and how that changes
    "an attribute": (lambda x: x * CONFIG.scale, lambda k: setattr(CONFIG, "scale", k)),
    "an attribute's attribute": (lambda x: x * HOLDER.config.scale, lambda k: setattr(HOLDER.config, "scale", k)),
    "an object in an attribute": (lambda x: x * HOLDER.config.scale, lambda k: setattr(HOLDER, "config", Batch(k))),
    "a slot": (lambda x: x * CONFIG.n, lambda k: setattr(CONFIG, "n", k)),
    "an attribute of a class": (lambda x: x * CONFIG.shared, lambda k: setattr(Config, "shared", k)),
    "a property": (lambda x: x * CONFIG.twice, lambda k: setattr(CONFIG, "scale", k)),
    "what __getattr__ finds": (lambda x: x * DYNAMIC.scale, lambda k: DYNAMIC.values.update(scale=k)),
    "an alias": (through_alias, lambda k: setattr(CONFIG, "scale", k)),
    "objects of a list": (over_layers, lambda k: setattr(HOLDER.layers[1], "scale", k)),
    "a list": (over_sizes, lambda k: CONFIG.sizes.__setitem__(0, k)),
    "a list's length": (over_sizes, lambda k: CONFIG.sizes.append(k)),
    "a dictionary": (lambda x: x * CONFIG.table["k"], lambda k: CONFIG.table.update(k=k)),
    "a global of another function": (helper, set_global),
    "a helper": (lambda x: other(x), lambda k: globals().update(other=lambda x: x * k)),
    "a closure variable": (CALL, CHANGE),
    "a NumPy array": (lambda x: x * float(NUMBERS[0]), lambda k: NUMBERS.__setitem__(0, k)),
    "int and float": (lambda x: (x.int() * CONFIG.scale) / 2, lambda k: setattr(CONFIG, "scale", k if k % 2 else float(k - 1))),
    "a module's object": (GATE, lambda k: setattr(GATE.config, "scale", k)),
    "a module's list": (GATE, lambda k: GATE.sizes.__setitem__(0, k)),
    "a computed name": (lambda x: x * getattr(HOLDER.layers[0], "sc" + "ale"), lambda k: setattr(HOLDER.layers[0], "scale", k)),
    "objects in one line": (lambda x: sum([x * layer.scale for layer in HOLDER.layers]), lambda k: setattr(HOLDER.layers[0], "scale", k)),
    "a module in a dictionary of modules": (lambda x: PARTS["part"](x), lambda k: PARTS.update({"part": torch.nn.Threshold(0.5, 0.0) if k % 2 else torch.nn.Sigmoid()})),
    "a method": (lambda x: WRITTEN.times(x), lambda k: setattr(Written, "times", lambda self, x: x * k)),
    "a property of a class": (lambda x: x * WRITTEN.scale, lambda k: setattr(Written, "scale", property(lambda self: k))),
    "what a call does": (lambda x: WRITTEN(x), lambda k: setattr(Written, "__call__", lambda self, x: x * k)),
    "a class's forward": (lambda x: LAYER(x), lambda k: setattr(Layer, "forward", lambda self, x: x * k)),
    "a default": (lambda x: by_default(x), lambda k: setattr(by_default, "__defaults__", (k,))),
    "a named default": (lambda x: by_name(x), lambda k: setattr(by_name, "__kwdefaults__", {"k": k})),
    "a named default in place": (lambda x: by_name(x), lambda k: by_name.__kwdefaults__.update(k=k)),
    "code": (lambda x: edited(x), exchanged),
    "a mapping of the standard library": (lambda x: x * LOOKUP["k"], lambda k: LOOKUP.update(k=k)),
    "a module that is named": (lambda x: GATE(x), lambda k: GATE.train(k % 2 == 0)),
}


def other(x):
    return x


@pytest.mark.parametrize("name", CHANGES)
def test_changes_between_calls_reach_a_compiled_function(name):
    f, change = CHANGES[name]
    compiled, x = torch.compile(f), torch.ones(4)
    for k in (1, 1, 1, 2, 2, 2, 3, 1):
        change(k)
        torch.manual_seed(k)
        want = f(x)
        torch.manual_seed(k)
        got = compiled(x)
        assert (got.tolist(), got.dtype) == (want.tolist(), want.dtype)


EFFECTS = {
    "printing": (lambda x: print("called") or x * 1, "print"),
    "a clock": (lambda x: x * (time.perf_counter() % 1), "perf_counter"),
    "random": (lambda x: x * random.random(), "random"),
    "random choices": (lambda x: x * random.choice([1, 2, 3]), "random"),
    "NumPy's random numbers": (lambda x: x * float(np.random.rand()), "random"),
    "an iterator": (lambda x: x * next(COUNTER), "iterator"),
    "appending": (appending, "list"),
    "a count in a closure": (counting(), "variable"),
    "an argument's attribute": (lambda x, c=CONFIG: setattr(c, "n", c.n + 1) or x * c.n, "'n'"),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_calls_with_effects_in_python_stay_as_they_are(name, capsys):
    f, reason = EFFECTS[name]
    history.fallbacks.clear()
    compiled, x = torch.compile(f), torch.ones(2)
    values = [compiled(x)[0].item() for _ in range(5)]
    if name not in ("printing", "random choices"):
        assert len(set(values)) == 5
    assert capsys.readouterr().out.count("called") == 5 * (name == "printing")
    assert reason in history.fallbacks[0][1]
    with pytest.raises(RuntimeError, match="fullgraph"):
        g = torch.compile(f, fullgraph=True)
        for _ in range(2):
            g(x)


def test_a_scheduler_inside_a_compiled_step_goes_on():
    def run(wrap):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        opt = torch.optim.SGD(model.parameters(), lr=1.0)
        schedule, x = torch.optim.lr_scheduler.StepLR(opt, 1, 0.5), torch.ones(3, 2)

        @wrap
        def step():
            opt.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            opt.step()
            schedule.step()
            return loss
        return [(step().item(), opt.param_groups[0]["lr"]) for _ in range(6)]
    assert run(torch.compile) == run(lambda f: f)


def replays(compiled):
    return [entry for entry in compiled.compiled.entries.values() if entry not in ("seen", "eager")]


@pytest.mark.parametrize("f", [own_containers, through_alias, over_layers, helper, lambda x: GATE(x), lambda x: x * math.sin(SCALE),
                               lambda x: x * collections.OrderedDict(a=2)["a"]])
def test_what_only_reads_is_replayed(f):
    compiled, x = torch.compile(f), torch.ones(4)
    for _ in range(4):
        assert compiled(x).tolist() == f(x).tolist()
    assert len(replays(compiled)) == 1


def test_what_a_later_trace_reads_leaves_earlier_ones_in_use():
    config = Config()
    compiled = torch.compile(lambda x: x * config.scale if x.ndim == 1 else x * config.n)
    one, two = torch.ones(2), torch.ones(1, 2)
    for x in (one, one, two, two, one, two):
        assert compiled(x).sum().item() == 2
    assert len(replays(compiled)) == 2
    config.n = 5
    assert [compiled(x).sum().item() for x in (one, two)] == [2, 10]


OBSERVERS = {
    "item": lambda x, i: x * i.item(),
    "a branch": lambda x, i: x if i > 2 else x * 2,
    "a mask": lambda x, i: x[x > i].sum(),
    "a slice": lambda x, i: x[:i],
    "one_hot": lambda x, i: torch.nn.functional.one_hot(i),
    "repeats": lambda x, i: x.repeat_interleave(i),
    "numpy": lambda x, i: x * torch.from_numpy(i.numpy()),
    "tolist": lambda x, i: x * i.tolist(),
    "a drawn number": lambda x, i: x * torch.rand(()).item() + i,
}


@pytest.mark.parametrize("name", OBSERVERS)
def test_values_of_arguments_are_not_taken_for_constants(name):
    f, x = OBSERVERS[name], torch.arange(6.0)
    compiled = torch.compile(f)
    for k in (1, 1, 2, 3, 4, 5):
        i = torch.tensor(k)
        torch.manual_seed(k)
        want = f(x, i)
        torch.manual_seed(k)
        assert compiled(x, i).tolist() == want.tolist()


TABLE = torch.arange(5.0)
class Counting(torch.overrides.TorchFunctionMode):
    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        Counting.calls += 1
        return func(*args, **(kwargs or {}))


MODES = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "another device": lambda: torch.device("meta"),
    "a mode that sees calls": Counting,
    "packed values": lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t),
}


@pytest.mark.parametrize("name", MODES)
def test_modes_around_a_call_hold_for_it(name):
    w, ones = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)

    def f(x):
        return x @ (w * w), torch.zeros(2)

    def run(call):
        Counting.calls, shown = 0, []
        for i in range(9):
            with MODES[name]() if i in (3, 4, 5, 8) else torch.enable_grad():
                y, made = call(ones)
            if y.requires_grad:
                y.sum().backward()
            shown.append((y.dtype, y.requires_grad, y.is_inference(), y.tolist(), made.device.type, w.grad.tolist(), Counting.calls))
            w.grad.zero_()
        return shown
    want = run(f)
    assert run(torch.compile(f)) == want and want[3] != want[2]


def test_hooks_parameters_and_flags_that_change():
    def run(wrap):
        torch.manual_seed(0)
        model, found = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), []
        call, x = wrap(model), torch.ones(2, 3)
        layer = model[0]
        changes = {3: lambda: setattr(layer, "weight", torch.nn.Parameter(torch.ones(3, 3))),
                   6: lambda: found.append(layer.register_forward_hook(lambda m, a, y: y * 2)),
                   9: lambda: found.pop(-1).remove(),
                   12: lambda: layer.weight.requires_grad_(False),
                   15: lambda: layer.weight.requires_grad_(True).register_hook(lambda g: g * 10),
                   18: lambda: setattr(layer.weight, "data", torch.ones(5, 3)) or setattr(layer, "bias", None),
                   19: lambda: layer.weight.register_hook(lambda g: g + 1) and None,
                   20: lambda: layer.weight.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", p.grad * 2)) and None,
                   21: lambda: torch.nn.modules.module.register_module_forward_pre_hook(lambda m, a: (a[0] + 1,) if m is layer else None)}
        shown, everywhere = [], None
        for i in range(24):
            made = changes.get(i, lambda: None)()
            everywhere = made if i == 21 else everywhere
            y = call(x)
            y.sum().backward()
            shown.append((tuple(y.shape), round(y.sum().item(), 4), None if layer.weight.grad is None else round(layer.weight.grad.sum().item(), 4)))
            layer.weight.grad = None
        everywhere.remove()
        return shown
    want = run(lambda model: model)
    assert run(torch.compile) == want and len(set(want)) == 9


BAD = {
    "index": (lambda i: TABLE[i] * 2, 9, IndexError, "index 9 is out of bounds for dimension 0 with size 5"),
    "a part of an argument": (lambda i: TABLE[i[:1]] * 2, 9, IndexError, "index 9 is out of bounds for dimension 0 with size 5"),
    "computed": (lambda i: TABLE[i + 1] * 2, 9, IndexError, "index 10 is out of bounds for dimension 0 with size 5"),
    "gather": (lambda i: TABLE.gather(0, i), -1, RuntimeError, "index -1 is out of bounds for dimension 0 with size 5"),
    "embedding": (lambda i: torch.nn.functional.embedding(i, TABLE.view(5, 1)), -1, IndexError, "index out of range in self"),
    "cross_entropy": (lambda i: torch.nn.functional.cross_entropy(TABLE.expand(2, 5), i), 7, IndexError, "Target 7 is out of bounds."),
    "division": (lambda i: 7 // i, 0, RuntimeError, "ZeroDivisionError"),
    "masked_scatter": (lambda i: TABLE.masked_scatter(TABLE < i[0], torch.ones(2)), 4, RuntimeError, "Number of elements of source < number of ones in mask"),
}


@pytest.mark.parametrize("name", BAD)
def test_replays_check_what_the_call_checks(name):
    f, bad, error, message = BAD[name]
    compiled, good = torch.compile(f), torch.tensor([2, 1])
    for _ in range(3):
        compiled(good).tolist()
    assert len(replays(compiled)) == 1
    for wrong in (torch.tensor([bad, 1]), torch.tensor([bad - 1, 0]) + 1):  # known, and pending
        with pytest.raises(error) as found:
            compiled(wrong).tolist()
        assert str(found.value) == message
    assert compiled(good).tolist() == f(good).tolist()


def test_a_training_step_names_the_wrong_target_and_changes_nothing():
    model = torch.nn.Linear(3, 4)
    opt = torch.optim.Adam(model.parameters(), lr=0.1)

    @torch.compile
    def step(x, y):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss
    x, y = torch.ones(2, 3), torch.tensor([0, 1])
    for _ in range(4):
        step(x, y).item()
    before = model.weight.tolist()
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        step(x, torch.tensor([4, 0]))
    assert model.weight.tolist() == before
    assert step(x, y).item() > 0 and model.weight.tolist() != before


def added(wrap):
    def f(x, y):
        x.add_(y)
        return x * 2, y + 1
    f, other = wrap(f), lambda: torch.full((3,), 2.)
    yield from (lambda a: f(a, other()), lambda a: f(a, a), lambda a: f(a, a.view(3)), lambda a: f(a.detach(), a), lambda a: f(a[:], a[:]))


def state_written(wrap):
    state = torch.zeros(3)

    def f(x):
        state.add_(x)
        return x + 1
    f = wrap(f)
    yield from (f, lambda a: f(state), lambda a: f(state[:]), lambda a: (f(a), state.tolist()))


def state_read(wrap):
    state = torch.ones(3)

    def f(x):
        x.mul_(2)
        return state + 1
    f = wrap(f)
    yield from (f, lambda a: f(state), lambda a: f(state.view(3)), lambda a: (f(a), state.tolist()))


def gradient_written(wrap):
    w = torch.ones(3, requires_grad=True)
    (w * 2).sum().backward()

    def f(x):
        w.grad.mul_(2)
        return x + 1
    f = wrap(f)
    yield from (f, lambda a: f(w.grad), lambda a: (f(a), w.grad.tolist()))


@pytest.mark.parametrize("program", [added, state_written, state_read, gradient_written])
def test_arguments_that_share_memory(program):
    def run(wrap):
        first, *others = program(wrap)
        shown = []
        for call in (first, first, first, *others, *others, *others, first):
            a = torch.ones(3)
            shown.append((str(call(a)), a.tolist()))
        return shown
    assert run(torch.compile) == run(lambda f: f)


@pytest.mark.parametrize("of", ["closure", "attribute", "container", "parameter"])
def test_a_trace_with_a_tensor_from_outside_as_argument(of):
    """Both are one input then; later calls give another argument."""
    own = torch.nn.Linear(3, 3, bias=False)
    w = own.weight.detach() if of != "parameter" else own.weight
    config, table = types.SimpleNamespace(w=w), [w]
    f = {"closure": lambda x: x * 2 + w, "attribute": lambda x: x * 2 + config.w, "container": lambda x: x * 2 + table[0], "parameter": own}[of]
    compiled = torch.compile(f)
    with torch.no_grad():
        for x in (w, w, w, torch.full((3, 3), 5.), torch.ones(3, 3), w):
            assert compiled(x).tolist() == f(x).tolist()


def test_new_objects_in_the_place_of_old_ones():
    """They have the addresses, and so the ids, of what was there before."""
    old = [iter(()) for _ in range(100)]
    places = set(map(id, old))

    def go():
        found = [iter([k]) for k in range(50)]
        for it in found:
            next(it)
        return any(id(it) in places for it in found)
    with Watch((), []) as watch:
        old.clear()
        assert go()
    assert watch.reason is None


def test_dead_weak_proxies_beside_it():
    """They refuse to tell their class."""
    class Thing:
        pass
    dead = weakref.proxy(Thing())
    f = torch.compile(lambda x: x * 2)
    made = [f(torch.ones(2)).tolist() for _ in range(3)]
    assert made == [[2, 2]] * 3
    del dead


def test_an_old_iterator_is_outside():
    it = iter([1, 2])

    def go():
        return next(it)
    with Watch((), []) as watch:
        go()
    assert watch.reason.startswith("it goes on with an iterator from outside")


def test_what_is_kept_from_a_replayed_step_stays():
    """A step's parameters and gradients take the place of the last ones where nobody holds these."""
    def train(compile):
        torch.manual_seed(0)
        layer = torch.nn.Linear(2, 2)
        optimizer, x = torch.optim.SGD(layer.parameters(), lr=0.5), torch.ones(3, 2)

        def step():
            optimizer.zero_grad()
            loss = layer(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss
        step, seen = compile(step), []
        for k in range(8):
            if k in (3, 6):
                kept = layer.weight.grad, layer.bias.detach().clone(), layer.weight.detach(), layer.bias._version
                version, array = layer.weight._version, layer.bias.detach().numpy()
            seen.append(step().item())
            if k in (3, 6):
                seen += [kept[0].tolist(), kept[1].tolist(), kept[2].tolist(), layer.bias._version - kept[3], layer.weight._version - version,
                         array.tolist(), layer.weight.grad is kept[0]]
        return seen
    for found, expected in zip(train(torch.compile), train(lambda f: f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_equal_numbers_of_another_kind_are_another_call():
    class Scale(torch.nn.Module):
        by = 2

        def __init__(self):
            super().__init__()
            self.added = 1

        def forward(self, x):
            return x * self.by + self.added
    module, x = Scale(), torch.arange(3)
    compiled = torch.compile(module)
    kinds = []
    for by, added in [(2, 1)] * 4 + [(2, 1.0)] * 4 + [(2.0, 1)] * 4 + [(2, 1), (2, True), (2, 1.0)]:
        Scale.by, module.added = by, added
        kinds.append(compiled(x).dtype)
    whole, single = torch.int64, torch.float32
    assert kinds == [whole] * 4 + [single] * 8 + [whole, whole, single]
