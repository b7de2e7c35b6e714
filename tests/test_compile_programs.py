"""torch.compile on random functions with side effects: in-place edits of arguments and outside tensors, gradients, optimizer
steps. Compiled and plain calls must do the same, whatever arguments come next."""
import random

import numpy as np
import pytest

import torchlike as torch

LINES = ["t{k} = {x} * 2 + {y}", "t{k} = ({x} + {y}).sin()", "t{k} = {x}.t()", "t{k} = {x}[0]", "t{k} = {x}.view(-1)[:4].view(2, 2)",
         "t{k} = {x}.sum(0, keepdim=True) * {y}", "t{k} = {x} @ {y}", "t{k} = {x}.detach()", "t{k} = {x}.clone()", "t{k} = {x}[:, 1:]",
         "{o}.add_({y}.detach())", "{o}.mul_(0.5)", "{o}[0] = {y}[0].detach()", "{o}.t().add_(1)", "{w}.add_(1)", "{w}.mul_({y}.detach())",
         "{w}[1].zero_()", "{o}.copy_({y}.detach())", "({x} * p).sum().backward()", "(({x} @ q).relu() * p).sum().backward()", "opt.step()",
         "opt.zero_grad()", "t{k} = {x} * k", "p.data.mul_(0.9)", "t{k} = p * {x}", "t{k} = {x}.expand(2, 2) * 1"]


def written(seed):
    """The lines of a function of two tensors and a number, and what it returns."""
    r = random.Random(seed)
    names, body = ["a", "b", "o1", "o2", "p"], []
    for k in range(r.randint(2, 7)):
        line = r.choice(LINES)
        body.append(line.format(k=k, x=r.choice(names), y=r.choice(names), o=r.choice(["o1", "o2"]), w=r.choice(["a", "b", "o1", "o2"])))
        if line.startswith("t{k}") and not line.endswith(("[0]", "[:, 1:]")):
            names.append(f"t{k}")
    return body, r.sample(names, r.randint(1, 3))


def shown(tensors):
    return [None if t is None else (t.detach().numpy().copy(), t.requires_grad) for t in tensors]


def outcome(seed, wrap):
    """What nine calls return and leave behind, with arguments of several kinds."""
    body, returned = written(seed)
    r, g = random.Random(seed + 1), torch.Generator().manual_seed(0)
    base = torch.rand(4, 2, generator=g)
    o1, o2 = base[:2], base[1:3] if seed % 2 else torch.rand(2, 2, generator=g)
    p, q = (torch.nn.Parameter(torch.rand(2, 2, generator=g)) for _ in range(2))
    names = {"torch": torch, "o1": o1, "o2": o2, "p": p, "q": q, "opt": torch.optim.SGD([p, q], lr=0.1, momentum=0.9 if seed % 3 == 0 else 0)}
    exec("def f(a, b, k):\n" + "".join(f"    {line}\n" for line in body) + f"    return ({', '.join(returned)},)", names)
    f, log, given, kept = wrap(names["f"]), [], [], []
    for i in range(9):
        a, b, kind = torch.rand(2, 2, generator=g), torch.rand(2, 2, generator=g), r.randint(0, 4)
        if kind == 1:
            a = torch.rand(3, 2, generator=g)[1:]
        elif kind == 2:
            a = a.view(2, 2)
        elif kind == 3 and given:
            a = given[-1]
        elif kind == 4:
            a = a.clone().requires_grad_()
        given.append(a)
        try:
            out = f(a, b, 2.0 if seed % 5 else float(i % 2))
        except RuntimeError as error:
            log.append(str(error))
            continue
        kept.append(out)
        log += [shown(out), shown((a, b, o1, o2, base, p, q)), shown((p.grad, q.grad, a.grad if a.is_leaf else None))]
        if i == 6:  # a gradient that comes from elsewhere
            for t in out:
                if t.requires_grad and t.grad_fn is not None:
                    t.sum().backward(retain_graph=True)
            log.append(shown((p.grad,)))
    return log + [shown(out) for out in kept]


def same(x, y):
    if isinstance(x, (list, tuple)):
        return len(x) == len(y) and all(map(same, x, y))
    return np.allclose(x, y, 1e-4, 1e-5, equal_nan=True) if isinstance(x, np.ndarray) else x == y


@pytest.mark.parametrize("part", range(4))
def test_compiled_calls_do_what_plain_calls_do(part):
    for seed in range(part * 10, part * 10 + 10):
        assert same(outcome(seed, lambda f: f), outcome(seed, torch.compile)), (seed, *written(seed))


def test_what_lies_outside_may_be_another_object():
    """Weights, attributes and gradients that are exchanged between calls; gradients that somebody keeps."""
    def run(wrap):
        torch.manual_seed(0)
        model, log, saved = torch.nn.Linear(3, 2), [], []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.scale = torch.ones(2)

        @wrap
        def accumulate(x):
            loss = (model(x) * model.scale).pow(2).mean()
            loss.backward()
            return loss
        for i in range(12):
            log.append(accumulate(torch.full((2, 3), 0.1 * i)).item())
            if i % 3 == 2:
                saved.append(model.weight.grad)
                optimizer.step()
                optimizer.zero_grad()
            if i == 4:
                model.weight = torch.nn.Parameter(torch.ones(2, 3))
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            if i == 6:
                model.bias.data = torch.tensor([0.5, -0.5])
            if i == 7:
                model.scale = torch.tensor([2.0, 3.0])
        return log, [g.tolist() for g in saved]
    want, got = run(lambda f: f), run(torch.compile)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    np.testing.assert_allclose(np.array(got[1]), np.array(want[1]), rtol=1e-5)
