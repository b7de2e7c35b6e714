"""torch.cond, torch.while_loop and associative_scan against real torch, which compiles them: few and small calls."""
from importlib import import_module

import pytest
from same import caught, same

import torchlike


@same
def test_a_branch_and_its_gradients(torch):
    x, y, found = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(2, requires_grad=True), []
    for pred in (torch.tensor(True), x.sum() > 5):
        out = torch.cond(pred, lambda x, y: x.sin(), lambda x, y: (x * y).exp(), (x, y))
        found.append((out.detach(), type(out.grad_fn).__name__, *torch.autograd.grad(out.sum(), (x, y))))
    return found


@same
def test_a_branch_without_its_operands(torch):
    x = torch.ones(2, requires_grad=True)
    out = torch.cond(torch.tensor(True), lambda x: torch.zeros(2), lambda x: x * 2, (x,))
    with torch.no_grad():
        plain = torch.cond(torch.tensor([1]), lambda x: x * 3, lambda x: x + 2, (x,))
    return out.detach(), out.requires_grad, torch.autograd.grad(out.sum(), x), plain


@same
def test_numbers_choose_too(torch):
    x = torch.ones(2)
    return [torch.cond(p, lambda x: x + 1, lambda x: x - 1, (x,)) for p in (True, 0, 2.0)]


@same
def test_each_example_has_its_branch(torch):
    return torch.vmap(lambda p, x: torch.cond(p, lambda x: x + 1, lambda x: x * 10, (x,)))(torch.tensor([True, False]), torch.ones(2, 3))


@same
def test_arguments_of_cond(torch):
    x, yes = torch.ones(2), torch.tensor(True)

    def f(x):
        return x + 1
    return [caught(lambda a=arguments: torch.cond(*a)) for arguments in (
        (torch.tensor([True, False]), f, f, (x,)), (yes, 3, f, (x,)), (yes, f, f, x), (yes, f, f, ("s",)))]


@same
def test_a_loop_and_its_gradients(torch):
    x = torch.ones(2, requires_grad=True)
    i, out = torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2 + x.sin()), (torch.tensor(0), x))
    same_as_before = torch.while_loop(lambda i: i < 0, lambda i: (i + 1,), (torch.tensor(5),))
    return i, out.detach(), torch.autograd.grad(out.sum(), x), same_as_before, caught(lambda: torch.while_loop(3, lambda i: (i,), (x,)))


def test_what_a_loop_refuses():
    x, i = torchlike.ones(2), torchlike.tensor(0)
    with pytest.raises(RuntimeError, match=r"pair\[1\] differ in 'shape: torch.Size\(\[4\]\) vs torch.Size\(\[2\]\)'"):
        torchlike.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, torchlike.cat([x, x])), (i, x))
    with pytest.raises(RuntimeError, match="Expected cond_fn to return a scalar tensor or a bool"):
        torchlike.while_loop(lambda i: 3 - i, lambda i: (i + 1,), (i,))
    with pytest.raises(RuntimeError, match="Expect carried_inputs to be a tuple"):
        torchlike.while_loop(lambda i: i < 3, lambda i: (i + 1,), i)


def test_under_compile():
    f = torchlike.compile(lambda x: torchlike.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,)))
    for _ in range(3):
        assert f(torchlike.ones(2)).tolist() == [2, 2] and f(-torchlike.ones(2)).tolist() == [-2, -2]


@same
def test_associative_scans(torch):
    """Products, Mamba's recurrence (with gradients), backwards, along other dimensions, of every length."""
    scan = import_module(torch.__name__ + "._higher_order_ops.associative_scan").associative_scan

    def recurrence(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]
    found = [scan(torch.mul, torch.arange(1.0, 1.0 + n), 0, combine_mode="generic") for n in range(1, 8)]
    a, b = torch.rand(2, 3, 9, requires_grad=True), torch.randn(2, 3, 9, requires_grad=True)
    out = scan(recurrence, (a, b), -1, combine_mode="generic")
    found += [*out, *torch.autograd.grad(out[1].sum(), (a, b))]
    found.append(scan(lambda x, y: {"m": x["m"] @ y["m"]}, {"m": torch.randn(2, 5, 3, 3)}, 1, reverse=True, combine_mode="generic"))
    x = torch.ones(3)
    return found, [caught(scan, *args, **kwargs) for args, kwargs in (
        ((torch.add, x, 0), {}), ((torch.add, x, 0), {"combine_mode": "fast"}), ((3, x, 0), {"combine_mode": "generic"}),
        ((torch.add, torch.ones(0), 0), {"combine_mode": "generic"}), ((torch.add, [x, 2], 0), {"combine_mode": "generic"}),
        ((torch.add, x, 0, 1), {"combine_mode": "generic"}))]
