"""Strides of results whose inputs lie in memory in other orders than their dimensions."""
from itertools import permutations, product

from same import same


def inputs(torch):
    """Tensors of one shape in every order of memory, some expanded, some with gaps."""
    for order in permutations(range(3)):
        back = [order.index(d) for d in range(3)]
        x = torch.arange(12.0).reshape([(2, 3, 2)[d] for d in order]).permute(back)
        yield from (x, x[:1], x[:1].expand(2, 3, 2), torch.cat([x, x], 1)[:, ::2])


def steps(t):
    """Strides, but where there is one element: those mean nothing."""
    return [s for s, n in zip(t.stride(), t.shape) if n > 1]


@same
def test_of_one_input(torch):
    return [steps(f(x)) for x in inputs(torch) for f in (torch.sin, torch.clone, torch.zeros_like, lambda x: x.flip(0), lambda x: x.sort(1).values,
        lambda x: x.sort(1).indices, lambda x: x.masked_fill(x > 3, 0.0), lambda x: x.double(), lambda x: x.cumsum(0))]


@same
def test_of_two_inputs(torch):
    found = [steps(x + y) for x, y in product(inputs(torch), repeat=2)]
    return found + [steps(torch.where(x > 3, x[:, :1], y)) for x, y in product(inputs(torch), repeat=2)]


@same
def test_of_gathered_elements(torch):
    i = torch.tensor([[0, 1], [1, 0]])
    return [steps(x[index]) for x in inputs(torch) if x.shape[0] == 2 for index in ([0, 1], i, (slice(None), [0, 1]), (slice(None), i), (..., i),
        ([0, 1], slice(None), [0, 1]), (i, [0, 1]), (slice(None), [0, 1], i), x > 3)]
