"""Checkpoints beside real torch: results of any kind, autocast, nesting, second backwards, how often what runs, and what is refused."""
import importlib
from contextlib import nullcontext

import pytest
from same import caught, same


def tensors(torch):
    torch.manual_seed(0)
    return torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True), importlib.import_module(f"{torch.__name__}.utils.checkpoint")


def structures(torch, reentrant):
    """Dictionaries in and out, numbers and None; for reentrant ones, tensors and None."""
    x, w, c = tensors(torch)
    if reentrant:
        a, none, n = c.checkpoint(lambda x, n: ((x @ w).tanh() * n, None, n), x, 3, use_reentrant=True)
        a.sum().backward()
        return a, none, n, x.grad, w.grad
    out = c.checkpoint(lambda d, scale: {"y": (d["x"] @ w).tanh() * scale, "n": 3, "none": None}, {"x": x}, scale=2.0, use_reentrant=False)
    out["y"].sum().backward()
    return sorted(out), out["y"], x.grad, w.grad


def mixed_precision(torch, reentrant):
    x, w, c = tensors(torch)
    seen = []

    def region(x):
        y = x @ w
        seen.append(y.dtype)
        return y.float().sin()
    with torch.autocast("cpu", torch.bfloat16):
        y = c.checkpoint(region, x, use_reentrant=reentrant)
    y.float().sum().backward()
    return seen, y, x.grad, w.grad


def random_numbers(torch, reentrant):
    """After a backward: those of the second run are drawn a second time, or go on."""
    found = []
    for preserve in (True, False):
        x, w, c = tensors(torch)
        y = c.checkpoint(lambda x, w=w: torch.nn.functional.dropout(x @ w, 0.5), x, use_reentrant=reentrant, preserve_rng_state=preserve)
        y.sum().backward()
        found.append(torch.rand(2))
    return found


def nested(torch, reentrant):
    x, w, c = tensors(torch)
    runs = []

    def inner(x):
        runs.append("inner")
        return (x @ w).sin()

    def outer(x):
        runs.append("outer")
        return c.checkpoint(inner, x.cos(), use_reentrant=reentrant).exp()
    y = c.checkpoint(outer, x, use_reentrant=reentrant)
    y.sum().backward()
    return runs, x.grad, w.grad


def dropped(torch, reentrant):
    x, w, c = tensors(torch)
    y = c.checkpoint(lambda x, w=w: torch.nn.functional.dropout(x @ w, 0.5).sin(), x, use_reentrant=reentrant)
    y.sum().backward()
    return y, x.grad, w.grad, torch.rand(2)


def in_no_grad(torch, reentrant):
    x, w, c = tensors(torch)
    with torch.no_grad():
        return c.checkpoint(lambda x: x @ w, x, use_reentrant=reentrant)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("case", [structures, mixed_precision, random_numbers, nested, dropped, in_no_grad])
@same(tol=4)
def test_both_kinds(torch, case, reentrant):
    return case(torch, reentrant)


def twice(torch):
    """A second backward, and a derivative of the gradient."""
    x, w, c = tensors(torch)
    runs = []
    y = c.checkpoint(lambda x: (runs.append(1), (x @ w).sin())[1], x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    g, = torch.autograd.grad(y, x, create_graph=True)
    g.pow(2).sum().backward()
    return len(runs), x.grad, w.grad


def hooks(torch):
    """A hook on a parameter used in and outside a region runs once, and hooks inside run."""
    x, w, c = tensors(torch)
    calls = []
    w.register_hook(lambda g: calls.append("w"))

    def region(h):
        y = h @ w
        if y.requires_grad:
            y.register_hook(lambda g: calls.append("y"))
        return y * y
    out = c.checkpoint(region, x @ w, use_reentrant=False)
    out.sum().backward()
    return calls, x.grad, w.grad


def in_place(torch):
    """A region that writes into a view of its argument's product."""
    x, w, c = tensors(torch)
    y = c.checkpoint(lambda h: (h * 3)[1:].mul_(2).sin() @ w, x * 1, use_reentrant=False)
    y.sum().backward()
    return x.grad, w.grad


def detached(torch):
    x, w, c = tensors(torch)
    out = c.checkpoint(lambda x: (x @ w).detach(), x, use_reentrant=False) + x
    out.sum().backward()
    return x.grad, w.grad


def function(torch):
    """A Function inside, whose backward reads what it saved."""
    x, w, c = tensors(torch)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x * x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[1]
    y = c.checkpoint(lambda x: Cube.apply(x @ w).sin(), x, use_reentrant=False)
    y.sum().backward()
    return x.grad, w.grad


def stops_early(torch):
    """How much of a region runs again."""
    x, w, c = tensors(torch)
    seen = []

    def region(x):
        y = (x @ w).sin()
        seen.append("saved")
        z = y + 1
        seen.append("after")
        return z
    for early in (True, False):
        c.checkpoint(region, x, use_reentrant=False, early_stop=early).sum().backward()
    with c.set_checkpoint_early_stop(False):
        c.checkpoint(region, x, use_reentrant=False).sum().backward()
    return seen, x.grad


def differs(torch, first, again, **options):
    """What is said of a region that does not do the same again."""
    x, w, c = tensors(torch)
    todo = [first, again]
    try:
        c.checkpoint(lambda x: todo.pop(0)(x, w), x, use_reentrant=False, **options).sum().backward()
    except Exception as error:
        return type(error).__name__, str(error)
    return "nothing"


@pytest.mark.parametrize("case", [twice, hooks, in_place, detached, function, stops_early])
@same(tol=4)
def test_without_reentrance(torch, case):
    return case(torch)


def test_a_region_that_does_something_else_is_told(subject, oracle):
    def told(torch):
        fewer, more, smaller = lambda x, w: (x @ w).sin(), lambda x, w: (x @ w).sin().cos(), lambda x, w: (x[:2] @ w).sin()
        found = [differs(torch, more, fewer), differs(torch, fewer, more, early_stop=False), differs(torch, fewer, smaller),
                 differs(torch, fewer, fewer, determinism_check="abc")]
        return [(kind, text.split("\n")[0]) for kind, text in found]
    assert told(subject) == told(oracle)


@same
def test_gradients_asked_for_inside_of_a_region_that_runs_to_its_end(torch):
    c = torch.utils.checkpoint

    def gradient(f):
        return lambda x: torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]

    def inner(x):
        return x.sin().exp().sin()

    def kept(f):
        return lambda x: c.checkpoint(f, x, use_reentrant=False)
    x = torch.linspace(0.1, 1, 4).requires_grad_()
    found = []
    for stops in (True, False):
        with c.set_checkpoint_early_stop(stops):
            found += [gradient(kept(gradient(kept(inner))))(x), gradient(gradient(kept(kept(inner))))(x)]
    return found


@same
def test_whether_it_stops_early_is_settled_where_it_is_made(torch):
    c, seen = torch.utils.checkpoint, []

    def region(x):
        y = x.sin()
        seen.append(x.shape)
        return y + 1
    x = torch.ones(2, requires_grad=True)
    with c.set_checkpoint_early_stop(True), c.set_checkpoint_early_stop(False):
        made = c.checkpoint(region, x, use_reentrant=False)
    made.sum().backward()
    made = c.checkpoint(region, x, use_reentrant=False)
    with c.set_checkpoint_early_stop(False):
        made.sum().backward()
    return seen, x.grad


def test_an_error_that_lists_what_ran(subject, oracle):
    def told(torch, block, **options):
        with block(torch):
            return differs(torch, lambda x, w: (x @ w).sin(), lambda x, w: (x[:2] @ w).sin(), **options)

    def switch(torch, on):
        return torch.utils.checkpoint.set_checkpoint_debug_enabled(on)
    for block, options in [(nullcontext, {"debug": True}), (lambda torch: switch(torch, True), {}), (lambda torch: switch(torch, None), {"debug": True}),
                           (lambda torch: switch(torch, False), {"debug": True})]:
        (kind, text), (want, said) = told(subject, block, **options), told(oracle, block, **options)
        listed = "passed `debug=True`" in said
        assert kind == want and ("passed `debug=True`" in text) is listed
        assert ("SliceBackward0, MmBackward0" in text) is listed


@same
def test_reentrant_blocks_give_all_their_gradients_or_none(torch):
    x = torch.ones(2, requires_grad=True)

    def block(outer=False):
        made = torch.utils.checkpoint.checkpoint(lambda x: (x * x).sin(), x, use_reentrant=True)
        return (torch.utils.checkpoint.checkpoint(torch.exp, made, use_reentrant=True) if outer else made).sum()
    found = [caught(torch.autograd.grad, block(), x), caught(block().backward, inputs=[x]), x.grad]
    block(outer=True).backward()
    return found, x.grad


@same
def test_jacobians_of_a_region_are_refused(torch):
    x, w, c = tensors(torch)
    return caught(torch.func.jacrev(lambda v: c.checkpoint(lambda v: (v @ w).tanh(), v * 2, use_reentrant=False)), x.detach()[0])
