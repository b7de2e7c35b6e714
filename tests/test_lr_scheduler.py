"""Schedules give real torch's learning rates to the last digit, its state dicts, warnings and errors."""

import math
import warnings

import pytest
from same import same
from test_optim import says

SCHEDULES = {
    "step": lambda s, o, **k: s.StepLR(o, 7, 0.5, **k),
    "multistep": lambda s, o, **k: s.MultiStepLR(o, [3, 3, 20, 31], 0.3, **k),
    "constant": lambda s, o, **k: s.ConstantLR(o, 0.25, 9, **k),
    "linear": lambda s, o, **k: s.LinearLR(o, 0.2, 0.9, 13, **k),
    "exponential": lambda s, o, **k: s.ExponentialLR(o, 0.93, **k),
    "polynomial": lambda s, o, **k: s.PolynomialLR(o, 33, 2.0, **k),
    "cosine": lambda s, o, **k: s.CosineAnnealingLR(o, 17, 0.001, **k),
    "lambda": lambda s, o, **k: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)], **k),
    "multiplicative": lambda s, o, **k: s.MultiplicativeLR(o, lambda e: 0.95, **k),
    "restarts": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.001, **k),
    "equal restarts": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 5, **k),
    "cyclic": lambda s, o, **k: s.CyclicLR(o, 0.01, 0.2, 5, 8, **k),
    "triangular2": lambda s, o, **k: s.CyclicLR(o, [0.01, 0.02], [0.2, 0.3], 5, mode="triangular2", **k),
    "exp_range": lambda s, o, **k: s.CyclicLR(o, 0.01, 0.2, 5, mode="exp_range", gamma=0.97, cycle_momentum=False, **k),
    "scale_fn": lambda s, o, **k: s.CyclicLR(o, 0.01, 0.2, 5, scale_fn=lambda x: 0.9**x, scale_mode="iterations", **k),
    "one cycle": lambda s, o, **k: s.OneCycleLR(o, 0.2, 61, **k),
    "three phases": lambda s, o, **k: s.OneCycleLR(
        o, [0.2, 0.3], epochs=10, steps_per_epoch=7, three_phase=True, anneal_strategy="linear", pct_start=0.25, **k
    ),
    "one cycle, rates alone": lambda s, o, **k: s.OneCycleLR(o, 0.2, 70, cycle_momentum=False, **k),
}
COMPOSITES = {
    "sequence": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 10)], [4, 20]
    ),
    "sequence with restarts": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1, 5), s.StepLR(o, 3), s.CosineAnnealingWarmRestarts(o, 4)], [5, 20]
    ),
    "sequence after one cycle": lambda s, o: s.SequentialLR(
        o, [s.OneCycleLR(o, 0.1, 40), s.MultiStepLR(o, [3, 5])], [30]
    ),
    "chain": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)]),
    "chain in sequence": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)]), s.PolynomialLR(o, 20)], [7]
    ),
}
PLATEAUS = [
    {},
    {"mode": "max", "factor": 0.5, "patience": 2, "cooldown": 3},
    {"threshold_mode": "abs", "threshold": 0.01, "min_lr": [0.01, 0.02], "patience": 1},
    {"mode": "max", "threshold_mode": "abs"},
]


def optimizer(torch, name="SGD", tensor=False, groups=2):
    rate = torch.tensor if tensor else float
    params = [{"params": [torch.zeros(1, requires_grad=True)], "lr": rate(0.1 / (i + 1))} for i in range(groups)]
    return (
        torch.optim.SGD(params, lr=rate(0.1), momentum=0.9) if name == "SGD" else torch.optim.Adam(params, lr=rate(0.1))
    )


def exact(x):
    """Floats by their digits: the comparison must not be tolerant."""
    if isinstance(x, dict):
        return {k: exact(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [exact(v) for v in x]
    return repr(x) if isinstance(x, float) else x


def rates(o, scheduler, steps, arguments=lambda i: ()):
    seen = []
    for i in range(steps):
        o.step()
        scheduler.step(*arguments(i))
        seen.append([[float(g["lr"]), g.get("momentum"), g.get("betas")] for g in o.param_groups])
        seen.append([float(lr) for lr in scheduler.get_last_lr()])
    return seen


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", [*SCHEDULES, *COMPOSITES])
@same
def test_rates(torch, name, kind):
    o = optimizer(torch, kind)
    scheduler = {**SCHEDULES, **COMPOSITES}[name](torch.optim.lr_scheduler, o)
    return exact([rates(o, scheduler, 60), scheduler.state_dict()])


@pytest.mark.parametrize("name", [*SCHEDULES, *COMPOSITES])
@same
def test_rates_as_tensors(torch, name):
    o = optimizer(torch, tensor=True)
    before = [g["lr"] for g in o.param_groups]
    seen = rates(o, {**SCHEDULES, **COMPOSITES}[name](torch.optim.lr_scheduler, o), 60)
    return seen, [g["lr"] is b for g, b in zip(o.param_groups, before)]


@pytest.mark.parametrize("name", SCHEDULES)
@same
def test_given_epochs(torch, name):
    o = optimizer(torch)
    return exact(rates(o, SCHEDULES[name](torch.optim.lr_scheduler, o), 6, lambda i: ([0, 3, 1, 20, 7, 50][i],)))


@pytest.mark.parametrize(
    "name",
    [n for n in SCHEDULES if "cycl" not in n and n not in ("triangular2", "exp_range", "scale_fn", "three phases")],
)
@same
def test_resuming_at_an_epoch(torch, name):
    o = optimizer(torch)
    for g in o.param_groups:
        g["initial_lr"] = g["lr"]
    return exact(rates(o, SCHEDULES[name](torch.optim.lr_scheduler, o, last_epoch=4), 30))


@pytest.mark.parametrize("options", PLATEAUS, ids=str)
@same
def test_plateau(torch, options):
    o = optimizer(torch)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(o, **options)
    return exact([rates(o, scheduler, 80, lambda i: (abs(math.sin(i / 7)) + 1 / (1 + i / 5),)), scheduler.state_dict()])


@pytest.mark.parametrize("name", [*SCHEDULES, *COMPOSITES])
@same
def test_a_loaded_schedule_goes_on(torch, name):
    make = {**SCHEDULES, **COMPOSITES}[name]
    first, second = optimizer(torch), optimizer(torch)
    a, b = make(torch.optim.lr_scheduler, first), make(torch.optim.lr_scheduler, second)
    rates(first, a, 25)
    second.load_state_dict(first.state_dict())
    b.load_state_dict(a.state_dict())
    return exact([rates(first, a, 10), rates(second, b, 10)])


@same
def test_callable_objects_are_saved(torch):
    class Slope:
        def __init__(self, k):
            self.k = k

        def __call__(self, epoch):
            return 1 / (1 + self.k * epoch)

    schedules = torch.optim.lr_scheduler
    a = schedules.LambdaLR(optimizer(torch), [Slope(1), lambda e: 1])
    b = schedules.LambdaLR(optimizer(torch), [Slope(7), lambda e: 1])
    b.load_state_dict(a.state_dict())
    return a.state_dict()["lr_lambdas"], b.lr_lambdas[0].k


def warned(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = says(function)
    return outcome, [(w.category.__name__, str(w.message)) for w in caught]


@same
def test_warnings(torch):
    schedules, o = torch.optim.lr_scheduler, optimizer(torch)
    early = schedules.StepLR(o, 3)
    seen = [warned(early.step), warned(early.step), warned(early.get_lr), warned(lambda: early.step(5))]
    o = optimizer(torch)
    late = schedules.StepLR(o, 3)
    o.step()
    seen.append(warned(late.step))
    o = optimizer(torch)
    replaced = schedules.StepLR(o, 3)
    o.step = lambda: None
    return seen, warned(replaced.step), warned(lambda: schedules.ReduceLROnPlateau(optimizer(torch)).step(1.0, 2))


BAD = [
    lambda s, o: s.LRScheduler(3),
    lambda s, o: s.LRScheduler(o),
    lambda s, o: s.StepLR(o, 3, last_epoch=2),
    lambda s, o: s.LambdaLR(o, [lambda e: 1]),
    lambda s, o: s.MultiplicativeLR(o, [1, 2]),
    lambda s, o: s.ConstantLR(o, 2),
    lambda s, o: s.LinearLR(o, 0),
    lambda s, o: s.LinearLR(o, 0.5, 2),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 0),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 3).step(-1),
    lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="other"),
    lambda s, o: s.CyclicLR(o, [0.1], 0.2),
    lambda s, o: s.OneCycleLR(o, 0.1),
    lambda s, o: s.OneCycleLR(o, 0.1, 0),
    lambda s, o: s.OneCycleLR(o, 0.1, 1.5),
    lambda s, o: s.OneCycleLR(o, 0.1, epochs=3, steps_per_epoch=0),
    lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=3),
    lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="other"),
    lambda s, o: s.OneCycleLR(o, [0.1], 10),
    lambda s, o: s.ReduceLROnPlateau(o, factor=1),
    lambda s, o: s.ReduceLROnPlateau(3),
    lambda s, o: s.ReduceLROnPlateau(o, "other"),
    lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="other"),
    lambda s, o: s.ReduceLROnPlateau(o, min_lr=[1]),
    lambda s, o: s.SequentialLR(o, [], []),
    lambda s, o: s.SequentialLR(o, [s.StepLR(o, 3)], [3]),
    lambda s, o: s.ChainedScheduler([]),
    lambda s, o: s.SequentialLR(o, [s.StepLR(o, 3), s.ReduceLROnPlateau(o)], [3]),
    lambda s, o: s.ChainedScheduler([s.StepLR(o, 3), 3]),
]


@pytest.mark.parametrize("make", BAD, ids=range(len(BAD)))
@same
def test_bad_arguments(torch, make):
    return says(make, torch.optim.lr_scheduler, optimizer(torch))


@same
def test_past_the_last_step(torch):
    o = optimizer(torch)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(o, 0.1, 3)
    return [says(scheduler.step) for _ in range(5)]


@same
def test_the_state_of_an_old_checkpoint(torch):
    """It holds the annealing function instead of its name."""
    one = torch.optim.lr_scheduler.OneCycleLR
    o = torch.optim.SGD([torch.zeros(1)], lr=0.1, momentum=0.9)
    found = [one._annealing_cos(1.0, 3.0, 0.25), one._annealing_linear(1.0, 3.0, 0.25)]
    for function in one._annealing_cos, one._annealing_linear:
        schedule = one(o, 0.2, 10)
        state = schedule.state_dict()
        del state["_anneal_func_type"], schedule._anneal_func_type
        schedule.load_state_dict({**state, "anneal_func": function})
        for _ in range(5):
            o.step()
            schedule.step()
            found.append(schedule.get_last_lr())
    return found
