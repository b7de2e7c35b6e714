"""Optimizers do what real torch's do: long runs in every tier, states, options, errors, hooks and saved files."""

import contextlib
import copy
import importlib
import io
import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from compare import differences, observe
from same import error, same

RUNS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("AdamW", {"weight_decay": 0.1}),
    ("AdamW", {"amsgrad": True, "eps": 1e-4}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.01}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("Adadelta", {"lr": 0.5, "weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {"t0": 20, "lambd": 0.01, "weight_decay": 0.1}),
    ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.1)}),
    ("Adafactor", {"weight_decay": 0.1, "d": 1.5}),
]
NAMES = sorted({name for name, _ in RUNS})


def in_tier(torch, name):
    """torchlike's programs run in that tier (None: as they come); real torch has none."""
    if torch.__name__ != "torchlike":
        return contextlib.nullcontext()
    return importlib.import_module("torchlike._core.program").tier(name)


def parameters(torch, dtype="float32", seed=0, shapes=((5, 3), (3,), (2, 3), ())):
    rng = np.random.default_rng(seed)
    kind = getattr(torch, dtype)
    values = [rng.normal(size=s) + (1j * rng.normal(size=s) if dtype == "complex64" else 0) for s in shapes]
    return [torch.tensor(np.asarray(v)).to(kind).requires_grad_() for v in values]


def train(torch, make, steps, schedule=None):
    """Losses, parameters and the optimizer of a small regression."""
    rng = np.random.default_rng(1)
    w1, b1, w2, b2 = params = parameters(torch)
    optimizer = make(params)
    scheduler = schedule(optimizer) if schedule else None
    losses = []
    for _ in range(steps):
        x, y = (torch.tensor(rng.normal(size=(8, n)).astype("float32")) for n in (5, 2))
        optimizer.zero_grad()
        loss = (((x @ w1 + b1).tanh() @ w2.T + b2 - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    return losses, params, optimizer


def drive(torch, optimizer, params, steps=3, seed=5):
    """Steps with gradients from a random generator."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        for p in params:
            g = rng.normal(size=tuple(p.shape)) + (1j * rng.normal(size=tuple(p.shape)) if p.is_complex() else 0)
            p.grad = torch.tensor(np.asarray(g)).to(p.dtype)
        optimizer.step()
    return [p.detach() for p in params]


# ---------------------------------------------------------------------------------------------------------- numbers
@pytest.mark.parametrize(
    ("tier", "steps", "name", "options"),
    [
        *(("numpy", 40, *run) for run in RUNS),
        *((None, 200, *run) for run in RUNS),
        *(("compiled", 30, *RUNS[i]) for i in (1, 4)),
    ],
    ids=str,
)
@same(tol=30.0, strides=None)
def test_long_run(torch, tier, steps, name, options):
    with in_tier(torch, tier):
        losses, params, optimizer = train(
            torch, lambda ps: getattr(torch.optim, name)(ps, **{"lr": 0.01, **options}), steps
        )
    return losses, params, optimizer.state_dict(), repr(optimizer)


@pytest.mark.parametrize(
    ("tier", "dtype"), [("numpy", "bfloat16"), ("numpy", "float64"), ("numpy", "complex64"), ("compiled", "bfloat16")]
)
@pytest.mark.parametrize("name", NAMES)
@same(strides=None)
def test_dtypes(torch, name, tier, dtype):
    if name == "Adafactor" and dtype != "float64":
        return (
            error(drive, torch, torch.optim.Adafactor(ps := parameters(torch, dtype)), ps)
            if dtype == "complex64"
            else None
        )
    with in_tier(torch, tier):
        params = parameters(torch, dtype)
        return drive(torch, getattr(torch.optim, name)(params, lr=0.02), params)


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}], ids=str)
@same(tol=20.0, strides=None)
def test_muon(torch, options, tier):
    with in_tier(torch, tier):
        params = parameters(torch, shapes=((4, 6), (6, 4), (3, 3)))
        return drive(torch, torch.optim.Muon(params, lr=0.02, **options), params)


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.05},
        {"line_search_fn": "strong_wolfe"},
        {"lr": 0.1, "history_size": 2, "max_iter": 8},
        {"line_search_fn": "strong_wolfe", "lr": 5.0, "history_size": 3},
    ],
    ids=str,
)
@same(tol=1e4, strides=None)
def test_lbfgs(torch, options):
    x, y, unused = parameters(torch, "float64", shapes=((3, 4), (5,), (2,)))
    a, b = (p.detach() for p in parameters(torch, "float64", 1, ((6, 3), (4, 5))))
    optimizer, losses = torch.optim.LBFGS([x, y, unused], **options), []

    def closure():
        optimizer.zero_grad()
        loss = ((a @ x @ b - 1) ** 2).mean() + ((y - 1) ** 4).sum()
        loss.backward()
        losses.append(loss.item())
        return loss

    first = [optimizer.step(closure).item() for _ in range(3)]
    state = optimizer.state_dict()["state"][0]
    return losses, first, x, y, state["n_iter"], state["func_evals"]


@same(tol=1e4, strides=None)
def test_lbfgs_of_complex_parameters(torch):
    """They move as pairs of real numbers."""
    x, unused = parameters(torch, "complex64", shapes=((3, 4), (2,)))
    optimizer = torch.optim.LBFGS([x, unused], lr=0.3, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (x - (1 + 2j)).abs().pow(2).sum()
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(2)], x


@same
def test_lbfgs_without_a_gradient(torch):
    """A step of infinite length along zero is none."""
    x = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], tolerance_grad=-1.0)
    return optimizer.step(lambda: torch.tensor([10.0])), x


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
@same
def test_fused_parameters(torch, name):
    """Where `fused=True` cannot be, each step says so."""
    make, found = getattr(torch.optim, name), []
    for options in ({"device": "meta"}, {"dtype": torch.int32}, {"dtype": torch.float64}):
        optimizer = make([p := torch.zeros(3, **options)], lr=0.1, fused=True)
        p.grad = torch.ones(3, **options)
        found += [says(optimizer.step), says(optimizer.step)]
    return found, p


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Rprop"])
@same
def test_maximize(torch, name):
    params = parameters(torch)
    return drive(torch, getattr(torch.optim, name)(params, lr=0.02, maximize=True), params)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "NAdam"])
@same
def test_learning_rate_tensor(torch, name):
    params = parameters(torch)
    rate = torch.tensor(0.1)
    optimizer = getattr(torch.optim, name)(params, lr=rate)
    drive(torch, optimizer, params)
    rate.mul_(0.5)
    return drive(torch, optimizer, params), optimizer.param_groups[0]["lr"] is rate


@same
def test_betas_as_tensors(torch):
    params = parameters(torch)
    return drive(torch, torch.optim.Adam(params, betas=(torch.tensor(0.8), torch.tensor(0.95))), params)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@same(tol=10.0)
def test_gradients_flow_through_a_differentiable_step(torch, name):
    start, rate = torch.tensor([1.0, -2.0], requires_grad=True), torch.tensor(0.1, requires_grad=True)
    p = start.clone()
    optimizer = getattr(torch.optim, name)([p], lr=rate, differentiable=True)
    for g in ([0.5, 1.0], [-0.25, 2.0]):
        p.grad = torch.tensor(g)
        optimizer.step()
    (p**2).sum().backward()
    return start.grad, rate.grad if name == "SGD" else None


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "ASGD"])
@same
def test_parameters_that_join_later_count_their_own_steps(torch, name):
    params = parameters(torch)
    options = {"momentum": 0.9, "dampening": 0.5} if name == "SGD" else {}
    optimizer = getattr(torch.optim, name)(params, lr=0.1, **options)
    drive(torch, optimizer, params[:2])
    for p in params[:2]:
        p.grad = p.grad * 2
    drive(torch, optimizer, params)
    return params, optimizer.state_dict()["state"]


@same
def test_writes_reach_aliases_and_keep_identity(torch):
    w = torch.zeros(4, requires_grad=True)
    view, alias = w.detach()[1:3], w.data
    optimizer = torch.optim.SGD([w], lr=1.0)
    w.grad = torch.arange(4.0)
    version = w._version
    optimizer.step()
    return w, view, alias, w.is_leaf, w.grad_fn, w._version - version


# ---------------------------------------------------------------------------------------------------- options and groups
@same
def test_sgd_steps_by_a_class_s_own_add(torch):
    class OnSphere(torch.nn.Parameter):
        def add_(self, other, *, alpha=1):
            moved = torch.Tensor.as_subclass(self, torch.Tensor) + alpha * other
            return self.copy_(moved / moved.norm())
    x, y = OnSphere(torch.tensor([0.6, 0.8])), torch.nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([x, y], lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
    path = []
    for _ in range(3):
        opt.zero_grad()
        (x * y * torch.tensor([1.0, -2.0])).sum().backward()
        opt.step()
        path.append((x.detach().tolist(), y.detach().tolist()))
    return path, [s["momentum_buffer"].tolist() for s in opt.state.values()]


@same(tol=16)
def test_steps_by_a_class_s_own_arithmetic(torch):
    """Every rule ends in add_, mul_, addcdiv_ or addcmul_ of the parameter, which a class may have its own of."""
    class Own(torch.nn.Parameter):
        def add_(self, other, *, alpha=1):
            return self.copy_(plain(self) + 2 * alpha * other)

        def addcdiv_(self, a, b, *, value=1):
            return self.copy_(plain(self) + 3 * value * a / b)

        def addcmul_(self, a, b, *, value=1):
            return self.copy_(plain(self) + 4 * value * a * b)

        def mul_(self, a):
            return self.copy_(plain(self) * a * 1.01)

    def plain(p):
        return torch.Tensor.as_subclass(p.detach(), torch.Tensor)
    found = []
    for name in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "ASGD", "Adadelta", "RAdam", "Rprop", "NAdam", "Adamax"):
        for options in ({}, {} if name == "Rprop" else {"weight_decay": 0.1}):
            p, q = Own(torch.tensor([1.0, 2.0], dtype=torch.float64)), torch.nn.Parameter(torch.ones(2))
            opt = getattr(torch.optim, name)([p, q], lr=0.1, **options)
            for i in range(7):
                p.grad, q.grad = torch.tensor([1.0, -2.0], dtype=torch.float64) * (-1) ** (i // 2), torch.ones(2)
                opt.step()
            found.append((name, plain(p).float(), q.detach().clone(), type(p).__name__))
    return found


@same
def test_groups(torch):
    a, b, c, d = parameters(torch)
    optimizer = torch.optim.SGD([{"params": [a], "lr": 0.5}, {"params": [b], "momentum": 0.9, "label": "mine"}], lr=0.1)
    optimizer.add_param_group({"params": c, "weight_decay": 0.1})
    drive(torch, optimizer, [a, b, c])
    return a, b, c, repr(optimizer), [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]


@same
def test_named_parameters(torch):
    a, b, c, _ = parameters(torch)
    optimizer = torch.optim.Adam([("a", a), ("b", b)])
    optimizer.add_param_group({"params": [("c", c)]})
    drive(torch, optimizer, [a, b, c])
    return a, optimizer.state_dict(), repr(optimizer)


@same
def test_zero_grad(torch):
    a, b, c, d = parameters(torch)
    optimizer = torch.optim.SGD([a, b])
    a.grad, kept = torch.ones_like(a), torch.ones_like(b)
    b.grad = kept
    optimizer.zero_grad(set_to_none=False)
    first = a.grad, b.grad is kept, kept.sum().item()
    optimizer.zero_grad()
    return first, a.grad, b.grad


def says(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "no error"


BAD = [
    ("SGD", {"lr": -1}),
    ("SGD", {"momentum": -1}),
    ("SGD", {"weight_decay": -1}),
    ("SGD", {"nesterov": True}),
    ("SGD", {"fused": True, "foreach": True}),
    ("SGD", {"fused": True, "differentiable": True}),
    ("Adam", {"eps": -1}),
    ("Adam", {"betas": (1, 0)}),
    ("Adam", {"betas": (0, -1)}),
    ("AdamW", {"betas": (0, 0.9)}),
    ("AdamW", {"weight_decay": -1}),
    ("RMSprop", {"alpha": -1}),
    ("RMSprop", {"momentum": -1}),
    ("Adagrad", {"lr_decay": -1}),
    ("Adagrad", {"initial_accumulator_value": -1}),
    ("Adadelta", {"rho": 2}),
    ("Adamax", {"eps": -1}),
    ("NAdam", {"momentum_decay": -1}),
    ("RAdam", {"betas": (0.9, 1.0)}),
    ("ASGD", {"weight_decay": -1}),
    ("Rprop", {"etas": (2, 3)}),
    ("Adafactor", {"d": 0.5}),
    ("Adafactor", {"beta2_decay": 1}),
    ("Adafactor", {"eps": (1, -1)}),
    ("Muon", {"adjust_lr_fn": "other"}),
    ("LBFGS", {"lr": -1}),
]


@pytest.mark.parametrize(("name", "options"), BAD, ids=str)
@same
def test_bad_options(torch, name, options):
    return says(getattr(torch.optim, name), [torch.zeros(2, 3, requires_grad=True)], **options)


@same
def test_bad_parameters(torch):
    x, y = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    sgd, optim = torch.optim.SGD, torch.optim
    return [
        says(sgd, p)
        for p in (
            x,
            [],
            ["a"],
            [None],
            [x * 2],
            [{"params": {x}}],
            [{"params": [x]}, {"params": [x]}],
            [("a", x), y],
            3,
        )
    ] + [
        says(sgd([x]).add_param_group, {"params": [x]}),
        says(sgd([x]).add_param_group, 3),
        says(sgd([("a", x)]).add_param_group, {"params": [y]}),
        says(sgd([x]).add_param_group, {"params": [("a", y)]}),
        says(sgd([x]).load_state_dict, sgd([{"params": x}, {"params": y}]).state_dict()),
        says(sgd([x]).load_state_dict, sgd([x, y]).state_dict()),
        says(optim.LBFGS, [{"params": [x]}, {"params": [y]}]),
        says(optim.Muon, [x]),
        says(sgd, [x], lr=torch.tensor([0.1, 0.2])),
        says(optim.Optimizer([x], {}).step),
        says(drive, torch, optim.Adam([x], capturable=True), [x]),
    ]


# ------------------------------------------------------------------------------------------------------------ states
@pytest.mark.parametrize("name", [*NAMES, "LBFGS"])
def test_files_of_states_are_torch_s(oracle, subject, name):
    """A state saved by either library continues in the other as in itself."""

    def continued(torch, blob):
        params = parameters(torch, seed=3)
        optimizer = getattr(torch.optim, name)(params, lr=0.7)
        optimizer.load_state_dict(torch.load(io.BytesIO(blob), weights_only=False))
        if name == "LBFGS":

            def closure():
                optimizer.zero_grad()
                loss = sum((p**2).sum() for p in params)
                loss.backward()
                return loss

            optimizer.step(closure)
        else:
            drive(torch, optimizer, params)
        return observe([p.detach() for p in params])

    for saver in (oracle, subject):
        params = parameters(saver)
        optimizer = getattr(saver.optim, name)(params, lr=0.01)
        if name == "LBFGS":

            def closure(params=params, optimizer=optimizer):
                optimizer.zero_grad()
                loss = sum(((p - 1) ** 4).sum() for p in params)
                loss.backward()
                return loss

            optimizer.step(closure)
        else:
            drive(saver, optimizer, params)
        file = io.BytesIO()
        saver.save(optimizer.state_dict(), file)
        assert not differences(
            continued(oracle, file.getvalue()), continued(subject, file.getvalue()), strides=None, tol=10.0
        )


@same(tol=1e5)
def test_loaded_states_take_the_parameters_dtype(torch):
    p, q = torch.zeros(3, requires_grad=True), torch.zeros(3, dtype=torch.float64, requires_grad=True)
    first, second = torch.optim.Adam([p]), torch.optim.Adam([q])
    drive(torch, first, [p])
    second.load_state_dict(first.state_dict())
    return (
        second.state[q],
        drive(torch, second, [q]),
        first.state_dict()["state"][0]["exp_avg"] is first.state[p]["exp_avg"],
    )


@same
def test_a_parameter_named_several_times_is_updated_as_often(torch):
    found = []
    for name, options in (("SGD", {}), ("SGD", {"momentum": 0.9, "dampening": 0.3}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("RMSprop", {"momentum": 0.5}),
                          ("Adagrad", {}), ("NAdam", {}), ("RAdam", {}), ("Adadelta", {}), ("Adamax", {}), ("ASGD", {}), ("Rprop", {})):
        p, q = torch.nn.Parameter(torch.tensor([1.0, 2.0])), torch.nn.Parameter(torch.tensor([3.0]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer = getattr(torch.optim, name)([p, q, p, p], lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            ((p**2).sum() + q.sum()).backward()
            optimizer.step()
        found.append((name, p, q, optimizer.state[p]))
    return found


@same
def test_copies_and_pickles(torch):
    params = parameters(torch)
    optimizer = torch.optim.Adam(params, lr=0.1)
    drive(torch, optimizer, params)
    results = []
    for twin in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        own = twin.param_groups[0]["params"]
        drive(torch, twin, own)
        results.append((own, len(twin.state), own[0] is params[0], list(twin.__dict__)[:3]))
    return results, params


@same
def test_hooks(torch):
    module = importlib.import_module(f"{torch.__name__}.optim.optimizer")
    p = torch.ones(2, requires_grad=True)
    optimizer, seen = torch.optim.SGD([p], lr=0.5), []
    handles = [
        module.register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("global pre")),
        module.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("global post")),
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", args[1:], kwargs))),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post")),
        optimizer.register_state_dict_pre_hook(lambda o: seen.append("state pre")),
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append(sorted(s))),
        optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded")),
    ]
    replaced = optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: seen.append("closure")), {}))
    drive(torch, optimizer, [p], 1)
    replaced.remove()
    optimizer.load_state_dict(optimizer.state_dict())
    for handle in handles:
        handle.remove()
    drive(torch, optimizer, [p], 1)
    bad = optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    seen.append(error(optimizer.step))
    bad.remove()
    return seen, p


@same
def test_closure(torch):
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([p])

    @torch.no_grad()
    def outer():
        def closure():
            optimizer.zero_grad()
            loss = (p**2).sum()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return outer().item(), p, p.grad


@same
def test_users_optimizer(torch):
    """A subclass written in tensor operations gets hooks, states and groups."""

    class Sign(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    mean = state.setdefault("mean", torch.zeros_like(p))
                    mean.mul_(0.9).add_(p.grad, alpha=0.1)
                    p.add_(mean.sign(), alpha=-group["lr"])

    params = parameters(torch)
    optimizer, seen = Sign(params, 0.1), []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    drive(torch, optimizer, params)
    return params, optimizer.state_dict(), repr(optimizer), seen


# -------------------------------------------------------------------------------------------------------- averaging
AVERAGES = {
    "default": lambda s: {},
    "ema": lambda s: {"avg_fn": s.get_ema_avg_fn(0.9)},
    "swa": lambda s: {"avg_fn": s.get_swa_avg_fn()},
    "ema lists": lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.9)},
    "buffers": lambda s: {"use_buffers": True},
}


@pytest.mark.parametrize("kind", AVERAGES)
@same(tol=10.0, strides=None)
def test_averaged_model(torch, kind):
    utils, rng = torch.optim.swa_utils, np.random.default_rng(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    average = utils.AveragedModel(model, **AVERAGES[kind](utils))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rates, scheduler = (
        [],
        utils.SWALR(optimizer, 0.02, anneal_epochs=3, anneal_strategy="cos" if kind == "default" else "linear"),
    )
    batches = [torch.tensor(rng.normal(size=(8, 3)).astype("float32")) for _ in range(6)]
    for x in batches:
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
        average.update_parameters(model)
        scheduler.step()
        rates += scheduler.get_last_lr()
    utils.update_bn(batches, average)
    return dict(average.state_dict()), rates, average(batches[0])


# ------------------------------------------------------------------------------------------------------------- optax
@pytest.mark.parametrize("tier", ["numpy", "compiled", None])
def test_optax_adam_is_adam(subject, tier):
    with in_tier(subject, tier):
        ours = train(subject, lambda ps: subject.optim.Adam(ps, lr=0.01), 12)[0]
        theirs = train(subject, lambda ps: subject.optim.OptaxOptimizer(ps, optax.adam(0.01)), 12)[0]
    np.testing.assert_allclose(theirs, ours, rtol=1e-5)


def test_optax_learning_rate_follows_a_schedule(subject):
    make = subject.optim.from_optax(optax.inject_hyperparams(optax.sgd)(learning_rate=0.1, momentum=0.9))

    def run(make):
        return train(subject, make, 8, lambda o: subject.optim.lr_scheduler.StepLR(o, 2, 0.5))

    theirs, params, optimizer = run(lambda ps: make([(f"p{i}", p) for i, p in enumerate(ps)]))
    np.testing.assert_allclose(theirs, run(lambda ps: subject.optim.SGD(ps, lr=0.1, momentum=0.9))[0], rtol=1e-5)
    again = make([(f"p{i}", p.detach().clone().requires_grad_()) for i, p in enumerate(params)])
    again.load_state_dict(optimizer.state_dict())
    twins = again.param_groups[0]["params"]
    for a, b in zip(drive(subject, optimizer, params), drive(subject, again, twins)):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def _quartic(tree):
    return (tree[0] ** 4).sum() + (tree[0] * tree[0][::-1]).sum()


@pytest.mark.parametrize("make, asks", [
    (lambda: optax.lbfgs(), ("value", "grad", "value_fn")), (lambda: optax.chain(optax.sgd(0.01), optax.contrib.reduce_on_plateau(patience=1)), ("value",)),
    (lambda: optax.noisy_sgd(0.01, key=jax.random.key(5)), ()), (lambda: optax.contrib.schedule_free_adamw(0.01), ())], ids=["search", "plateau", "key", "free"])
def test_optax_steps_are_optax_s(subject, make, asks):
    """Values, gradients and functions that a transformation asks for, keys in its state."""
    w = subject.tensor([1.0, -2.0, 3.0], requires_grad=True)
    optimizer, transformation, tree = subject.optim.from_optax(make())([w]), make(), [jnp.array([1.0, -2.0, 3.0])]
    state = transformation.init(tree)
    for _ in range(4):
        optimizer.zero_grad()
        loss = (w ** 4).sum() + (w * w.flip(0)).sum()
        loss.backward()
        optimizer.step(**{k: v for k, v in {"value": loss, "grad": [w.grad], "value_fn": _quartic}.items() if k in asks})
        value, slope = jax.value_and_grad(_quartic)(tree)
        updates, state = transformation.update(slope, state, tree, **{k: v for k, v in {"value": value, "grad": slope, "value_fn": _quartic}.items() if k in asks})
        tree = optax.apply_updates(tree, updates)
    np.testing.assert_allclose(w.detach().numpy(), tree[0], rtol=1e-4)


def test_optax_refuses_what_is_no_transformation(subject):
    with pytest.raises(TypeError, match="optax gradient transformation"):
        subject.optim.OptaxOptimizer(parameters(subject), 3)
    a, b = (subject.ones(1, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match=r"group 1 has \['lr'\], which an optax transformation does not read"):
        subject.optim.OptaxOptimizer([{"params": [a]}, {"params": [b], "lr": 0.5}], optax.sgd(0.1))


@same
def test_groups_added_later(torch):
    """They start their own state; LBFGS refuses them at its next step."""
    found = []
    for make in (lambda p: torch.optim.Adagrad(p, 0.1, initial_accumulator_value=0.2), lambda p: torch.optim.Adam(p, 0.1), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)):
        a, b = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
        optimizer = make([a])
        for step in range(4):
            if step == 2:
                optimizer.add_param_group({"params": [b], "lr": 0.3})
            optimizer.zero_grad()
            ((a ** 3).sum() + (b ** 2).sum()).backward()
            optimizer.step()
        found += [a, b, len(optimizer.state_dict()["state"])]
    lbfgs = torch.optim.LBFGS([a])
    lbfgs.add_param_group({"params": [b]})
    return found, error(lbfgs.step, lambda: (a * a).sum())


@same
def test_parameters_that_lie_in_the_same_memory(torch):
    """Tied by `.data`, or loaded from a checkpoint in which they share memory: each update finds what the one before it left. Parts of one buffer do not meet."""
    found = []
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.AdamW):
        buffer, p = torch.ones(8), torch.nn.Parameter(torch.ones(3))
        q, r = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(buffer[1:4])
        q.data = p.data
        s, t = torch.nn.Parameter(buffer[4:7]), torch.nn.Parameter(buffer[3:5])
        optimizer = make([p, q, r, s, t], lr=0.1)
        for _ in range(3):
            (p * 2 + q * q + r * s).sum().add(t.pow(2).sum()).backward()
            optimizer.step()
            optimizer.zero_grad()
        found += [p, q, r, s, t, buffer]
    a, b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    b.weight = a.weight
    model = torch.nn.Sequential(a, b)
    model.load_state_dict(model.state_dict(), assign=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        model(torch.ones(2, 3)).pow(2).sum().mul(0.1).backward()
        optimizer.step()
        optimizer.zero_grad()
    return *found, *model.parameters()


@same
def test_counts_of_steps_that_a_program_made_itself(torch):
    """As the shared Adam of asynchronous training has them: of one element, `torch.zeros(1)`, in shared memory. Numbers and longer tensors are refused."""
    found = []
    for name in ("Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "RAdam", "NAdam", "Rprop", "ASGD"):
        params = [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)]
        optimizer = getattr(torch.optim, name)(params, lr=0.1, foreach=False)
        for turn in range(4):
            optimizer.zero_grad()
            sum((p**2).sum() for p in params).backward()
            optimizer.step()
            if turn == 1:
                optimizer.state[params[0]]["step"] = torch.full((1,), 2.0).share_memory_()
            if turn == 2:
                optimizer.state[params[1]]["step"] = optimizer.state[params[1]]["step"].reshape(1)
        found.append((name, params, [optimizer.state[p]["step"] for p in params]))
    optimizer = torch.optim.Adam(params, lr=0.1)
    optimizer.step()
    for count in (0, torch.zeros(2)):
        optimizer.state[params[0]]["step"] = count
        found.append(error(optimizer.step))
    return found
