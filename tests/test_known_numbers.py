"""Comparisons of numbers that are known (ops/known.py) are computed at once, and are what they are when they are recorded."""
import math
import operator

import numpy as np
import pytest
from same import caught, same

import torchlike
from torchlike._core import program

COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
OTHERS = (2, 2.0, 0.1, True, math.nan, math.inf, -1, 300, 2**40, 1j, None, "a")


def _numbers(torch):
    halves, parts = torch.tensor([1.5, 2.0], dtype=torch.bfloat16), torch.tensor([1 + 0j, 2 + 1j])
    return [torch.arange(5.0)[2], torch.arange(5)[3], torch.tensor(math.nan), halves[0], parts[0], torch.tensor(True), torch.tensor(200, dtype=torch.uint8),
            torch.tensor(0.1, dtype=torch.float64), torch.tensor(2.0, requires_grad=True), torch.ones(3, requires_grad=True)[1], torch.tensor([2.0])]


@pytest.mark.parametrize("compare", COMPARISONS)
@same
def test_with_numbers_and_with_each_other(torch, compare):
    return [[caught(compare, x, y) for y in (*OTHERS, *_numbers(torch))] for x in _numbers(torch)]


@same
def test_where_functions_are_traced_and_mapped(torch):
    limit, x = torch.tensor(2.0), torch.arange(4.0)
    above = torch.func.vmap(lambda v: v > limit)(x)
    _, moved = torch.func.jvp(lambda v: v * (v[1] > limit), (x,), (torch.ones(4),))

    def chosen(v):
        return v * 2 if v.sum() > limit else v * 3
    compiled = torch.compile(chosen, backend="eager") if not hasattr(torch, "explain") else torch.compile(chosen)
    made = [compiled(x), compiled(-x)]
    limit.add_(100)
    return above, moved, made, compiled(x), x[1] > limit


def test_they_are_not_recorded():
    x, best = torchlike.arange(100), 0
    x.sum().item()
    for i in range(50):
        if x[i] > best:
            best = x[i]
    assert best == 49
    assert all(v is None or v.aval.dtype is not torchlike.bool for v in program.state.program.results)


@pytest.mark.usefixtures("recorded")
def test_elements_of_known_tensors_are_read_where_nothing_is_pending():
    x, m = torchlike.rand(5), torchlike.rand(3, 4)
    for t, index in ((x, 2), (x, -1), (m, (1, 2)), (m, (-1, -4))):
        program.flush()
        element = t[index]
        assert element._value.array is not None and not program.state.program.results
        assert element.item() == np.array(t.tolist())[index] and element._base is t and element._chain
        later = x * 2
        assert t[index]._value.array is None  # recorded with the rest
        assert later.tolist() == [2 * number for number in x.tolist()]
    element += 1
    assert m[2, 0].item() == element.item() and m._version == 1
