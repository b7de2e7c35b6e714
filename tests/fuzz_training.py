"""Random lives of a model, by real torch and by torchlike: trained, and changed between the steps in whatever way programs change them.

    python tests/fuzz_training.py --lives 200 --seed 0 [--mode compile]

All is computed in doubles, so that a difference is none of rounding.
"""
import argparse
import copy
import importlib
import io
import math
import random
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

STEPS, WIDTH, CLASSES = 12, 4, 3
RTOL = 1e-6  # of a dozen steps in doubles


def _block(torch: Any, kind: str) -> Any:
    """A layer from and to rows of WIDTH numbers, which does what `kind` says."""
    nn, F, checkpoint = torch.nn, torch.nn.functional, importlib.import_module(f"{torch.__name__}.utils.checkpoint")

    class Squared(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x * scale

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * 2 * x * ctx.scale, None

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.gate = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.zeros(WIDTH))
            self.register_buffer("mean", torch.zeros(WIDTH))
            self.register_buffer("calls", torch.tensor(0), persistent=False)
            made = {"attention": lambda: nn.MultiheadAttention(WIDTH, 2, bias=False, batch_first=True), "recurrent": lambda: nn.GRUCell(WIDTH, WIDTH),
                    # a bias before it would have gradients of rounding alone
                    "normalized": lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.BatchNorm1d(WIDTH)),
                    "dropped": lambda: nn.Dropout(0.3), "bilinear": lambda: nn.Bilinear(WIDTH, WIDTH, WIDTH)}
            self.inner = made.get(kind, nn.Identity)()

        def extra_repr(self):
            return kind

        def middle(self, x):
            return torch.relu(self.b(torch.tanh(self.a(x))))

        def forward(self, x):
            return x + getattr(self, kind)(x) * torch.sigmoid(self.gate)

        def plain(self, x):
            return self.middle(x)

        def checkpointed(self, x):
            return checkpoint.checkpoint(self.middle, x, use_reentrant=False)

        def custom(self, x):
            return Squared.apply(self.a(x).tanh(), 0.5)

        def attention(self, x):
            return self.inner(x[None], x[None], x[None], need_weights=False)[0][0]

        def recurrent(self, x):
            h = torch.zeros_like(x)
            for _ in range(3):
                h = self.inner(x, h)
            return h

        def normalized(self, x):
            return self.inner(x)

        def dropped(self, x):
            return self.b(self.inner(self.a(x).sigmoid()))

        def bilinear(self, x):
            return self.inner(x, x.tanh())

        def in_place(self, x):
            y = self.a(x)
            y[:, 0] = y[:, 1] * 2
            y.mul_(0.5).clamp_(-2, 2)
            y[:, 2:].add_(x[:, :2])
            return y

        def masked(self, x):
            y = self.a(x)
            return torch.where(y > 0, y, self.b(y)).masked_fill(y > 1.5, 1.5)

        def sorted(self, x):
            y = self.a(x).sort(-1).values
            return torch.cat([y[:, ::2], y[:, 1::2]], 1).roll(1, -1)

        def mapped(self, x):
            return torch.vmap(lambda v: self.a(v).sin() * v)(x)

        def derived(self, x):
            return torch.func.vmap(torch.func.grad(lambda v: (self.a(v).tanh() ** 2).sum()))(x)

        def counting(self, x):
            if self.training:
                with torch.no_grad():
                    self.mean.lerp_(x.mean(0), 0.1)
                    self.calls += 1
            return self.a(x - self.mean)

        def contracted(self, x):
            return torch.einsum("bi,ij,bj->bj", x, self.b.weight, F.normalize(self.a(x), dim=-1))
    return Block()


KINDS = ("plain", "checkpointed", "custom", "attention", "recurrent", "normalized", "dropped", "bilinear", "in_place", "masked", "sorted", "mapped", "derived",
         "counting", "contracted")
OPTIMIZERS: dict[str, Callable] = {
    "SGD": lambda r: {"momentum": r.choice([0, 0.9])}, "Adam": lambda r: {"amsgrad": r.random() < 0.3}, "AdamW": lambda r: {"betas": (0.8, 0.95)},
    "RMSprop": lambda r: {"momentum": r.choice([0, 0.9]), "centered": r.random() < 0.4}, "Adagrad": lambda r: {"lr_decay": 0.1}, "Adadelta": lambda r: {},
    "NAdam": lambda r: {}, "RAdam": lambda r: {}, "Adamax": lambda r: {}, "ASGD": lambda r: {},
}


class Life:
    """One model and what happens to it; `log` is all that shows. Choices are the generator's, so both libraries make the same."""

    def __init__(self, torch: Any, seed: int, wrap: Callable):
        self.torch, self.r, self.log, self.saved, self.hooks = torch, random.Random(seed), [], None, []
        torch.manual_seed(seed)
        nn, r = torch.nn, self.r
        self.model = nn.Sequential(*[_block(torch, r.choice(KINDS)) for _ in range(r.choice([1, 2, 3]))], nn.Linear(WIDTH, CLASSES)).double()
        first = self.model[0].a
        self.form = r.choice(["plain", "plain", "plain", "weight_norm", "spectral_norm", "pruned"])
        if self.form == "pruned":
            self.prune.random_unstructured(first, "weight", amount=0.4)
        elif self.form != "plain":
            getattr(nn.utils.parametrizations, self.form)(first)
        elif r.random() < 0.2:
            self.model[0].b.weight = first.weight
        self.held = []
        self.optimizers = self._optimizers(list(self.model.parameters()))
        self.schedule = self._schedule()
        self.size, self.scale, self.twice, self.clip, self.set_to_none = 5, 1.0, r.random() < 0.15, r.choice([None, None, 0.5]), r.random() < 0.8
        self.average = copy.deepcopy(self.model) if self.form == "plain" and r.random() < 0.3 else None
        self.step, self.evaluated = wrap(self._step), wrap(lambda x: self.model(x).softmax(-1))

    @property
    def prune(self):
        return importlib.import_module(f"{self.torch.__name__}.nn.utils.prune")

    def _optimizer(self, parameters: list) -> Any:
        name = self.r.choice(list(OPTIMIZERS))
        options = OPTIMIZERS[name](self.r)
        return getattr(self.torch.optim, name)(parameters, lr=self.r.choice([0.05, 0.01]), weight_decay=self.r.choice([0, 0, 0.01]),
                                               maximize=self.r.random() < 0.1, **options)

    def _optimizers(self, parameters: list) -> list:
        how, cut = self.r.choice(["one", "one", "groups", "two", "held"]), self.r.randrange(1, len(parameters))
        if how == "groups":
            return [self._optimizer([{"params": parameters[:cut], "lr": 0.02}, {"params": parameters[cut:]}])]
        if how == "two":
            return [self._optimizer(parameters[:cut]), self._optimizer(parameters[cut:])]
        if how == "held":
            self.held = parameters[-1:]
        return [self._optimizer(parameters[:-1] if self.held else parameters)]

    def _schedule(self) -> Any:
        S, optimizer = self.torch.optim.lr_scheduler, self.optimizers[0]
        return self.r.choice([lambda: None, lambda: S.StepLR(optimizer, 2, 0.5), lambda: S.CosineAnnealingLR(optimizer, 5), lambda: S.ExponentialLR(optimizer, 0.9),
                              lambda: S.MultiStepLR(optimizer, [2, 4], 0.3), lambda: S.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)])()

    def _step(self, x, y):
        for optimizer in self.optimizers:
            optimizer.zero_grad(self.set_to_none)
        loss = self.torch.nn.functional.cross_entropy(self.model(x), y, label_smoothing=0.1) * self.scale
        loss.backward(retain_graph=self.twice)
        if self.twice:
            (loss * 0.5).backward()
        if self.clip is not None:
            self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        for optimizer in self.optimizers:
            optimizer.step()
        if self.average is not None:
            with self.torch.no_grad():
                for mean, p in zip(self.average.parameters(), self.model.parameters()):
                    mean.lerp_(p, 0.1)
        return loss.detach()

    def batch(self) -> tuple:
        return self.torch.randn(self.size, WIDTH, dtype=self.torch.float64), self.torch.randint(0, CLASSES, (self.size,))

    def live(self) -> list:
        events = [getattr(self, name) for name in sorted(vars(type(self))) if name.startswith("event_")]
        for _ in range(STEPS):
            x, y = self.batch()
            loss = self.step(x, y).item()
            self.log.append(("loss", loss, [group["lr"] for optimizer in self.optimizers for group in optimizer.param_groups]))
            if isinstance(self.schedule, self.torch.optim.lr_scheduler.ReduceLROnPlateau):
                self.schedule.step(loss)
            elif self.schedule is not None:
                self.schedule.step()
            if self.r.random() < 0.7:
                event = self.r.choice(events)
                self.log.append((event.__name__, event(x)))
        self.log.append(("end", *map(self.totals, (self.model, self.average) if self.average is not None else (self.model,)), sorted(self.model.state_dict())))
        self.log += [("state", [sorted((k, float(v.sum()) if self.torch.is_tensor(v) else v) for k, v in state.items()) for state in o.state.values()])
                     for o in self.optimizers]
        return self.log

    @staticmethod
    def totals(model: Any) -> list:
        """What the parameters, gradients and buffers come to."""
        parameters = [[p.detach().sum().item(), None if p.grad is None else p.grad.abs().sum().item()] for p in model.parameters()]
        return [*parameters, *(b.sum().item() for b in model.buffers())]

    # -- what may happen between two steps -----------------------------------------------------------------------------------

    def some_parameter(self) -> Any:
        return self.r.choice(list(self.model.parameters()))

    def event_slower(self, x):
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] *= 0.5

    def event_decay(self, x):
        self.optimizers[-1].param_groups[-1]["weight_decay"] = self.r.choice([0, 0.05])

    def event_another_group(self, x):
        if self.held and self.schedule is None:  # torch's schedules refuse a group that was not there, some of them at some steps
            self.optimizers[0].add_param_group({"params": self.held, "lr": 0.01})
            self.held = []

    def event_freeze(self, x):
        self.some_parameter().requires_grad_(False)
        if not any(p.requires_grad for p in self.model.parameters()):
            self.event_thaw(x)

    def event_thaw(self, x):
        self.model.requires_grad_(True)

    def event_save(self, x):
        file = io.BytesIO()
        self.torch.save({"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}, file)
        self.saved = file.getvalue()

    def event_load(self, x):
        if self.saved is not None:
            found = self.torch.load(io.BytesIO(self.saved))
            if all(len(a.param_groups) == len(b["param_groups"]) for a, b in zip(self.optimizers, found["optimizers"])):
                for optimizer, state in zip(self.optimizers, found["optimizers"]):
                    optimizer.load_state_dict(state)
                return str(self.model.load_state_dict(found["model"], strict=False))
        return None

    def event_evaluate(self, x):
        self.model.eval()
        with self.torch.no_grad() if self.r.random() < 0.5 else nullcontext():
            found = self.evaluated(x).sum(0).tolist()
        self.model.train()
        return found

    def event_stay_in_evaluation(self, x):
        self.model.eval()

    def event_train(self, x):
        self.model.train()

    def event_another_batch_size(self, x):
        self.size = self.r.choice([3, 4, 6])

    def event_scale(self, x):
        self.scale = self.r.choice([0.5, 1.0, 2.0])

    def event_write(self, x):
        with self.torch.no_grad():
            self.some_parameter().mul_(0.9)

    def event_write_data(self, x):
        self.some_parameter().data.add_(0.01)

    def event_one_vector(self, x):
        utils, parameters = self.torch.nn.utils, list(self.model.parameters())
        with self.torch.no_grad():
            utils.vector_to_parameters(utils.parameters_to_vector(parameters) * 0.98, parameters)

    def event_exchange_data(self, x):
        p = self.some_parameter()
        p.data = p.detach().clone() * 0.95

    def event_halve_gradients(self, x):
        for p in self.model.parameters():
            if p.grad is not None:
                p.grad.mul_(0.5)

    def event_drop_gradients(self, x):
        for p in self.model.parameters():
            p.grad = None

    def event_hook(self, x):
        if self.hooks:
            self.hooks.pop().remove()
        elif (p := self.some_parameter()).requires_grad:
            self.hooks.append(p.register_hook(lambda g: g * 0.5))

    def event_module_hook(self, x):
        if self.hooks:
            self.hooks.pop().remove()
        else:
            self.hooks.append(self.model[0].register_forward_pre_hook(lambda module, args: (args[0] * 0.9,)))

    def event_gradients(self, x):
        wanted = [p for p in self.model.parameters() if p.requires_grad]
        found = self.torch.autograd.grad(self.model(x).square().sum(), wanted, allow_unused=True)
        return [None if g is None else g.abs().sum().item() for g in found]

    def event_jacobian(self, x):
        return self.torch.autograd.functional.jacobian(lambda v: self.model(v).sum(0), x).abs().sum().item()

    def event_copy(self, x):
        if self.form == "plain":
            return copy.deepcopy(self.model)(x).sum().item()
        return None

    def event_call_with_others(self, x):
        if self.form == "plain":
            given = {name: p * 1.1 for name, p in self.model.named_parameters()}
            return self.torch.func.functional_call(self.model, given, (x,)).sum().item()
        return None

    def event_make_plain(self, x):
        if self.form == "pruned":
            self.prune.remove(self.model[0].a, "weight")
        elif self.form != "plain":
            self.torch.nn.utils.parametrize.remove_parametrizations(self.model[0].a, "weight")
        self.form = "plain"


def close(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RTOL, abs_tol=RTOL) or math.isnan(a) and math.isnan(b)
    return a == b


def check(oracle: Any, subject: Any, seed: int, compiled: bool = False) -> str | None:
    """The first difference of a life, in words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = Life(oracle, seed, lambda f: f).live()
        got = Life(subject, seed, subject.compile if compiled else lambda f: f).live()
    for k, (a, b) in enumerate(zip(want, got, strict=True)):
        if not close(a, b):
            return f"seed {seed}, after {[x[0] for x in want[:k] if x[0] != 'loss']}:\n  {a}\n  {b}"
    return None


def main() -> None:
    import torch

    import torchlike
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=("recorded", "compile"), default="recorded")
    options = parser.parse_args()
    start, differ = time.time(), 0
    for seed in range(options.seed, options.seed + options.lives):
        try:
            found = check(torch, torchlike, seed, options.mode == "compile")
        except Exception as error:
            found = f"seed {seed}: {type(error).__name__}: {error}"
        if found:
            differ += 1
            print(found, flush=True)
    print(f"{options.lives} lives, {differ} differ, {time.time() - start:.0f} seconds")


if __name__ == "__main__":
    main()
