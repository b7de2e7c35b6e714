"""torch.nn.parallel._functions, from which libraries write synchronized batch norms."""
import importlib

from nn_models import said
from same import same

import torchlike
from torchlike.nn.parallel._functions import Broadcast, ReduceAddCoalesced, _copies, _sums


@same
def test_tensors_on_the_cpu_are_refused(torch):
    f = importlib.import_module(torch.__name__ + ".nn.parallel._functions")
    ones = torch.ones(2)
    return [said(f.Broadcast.apply, [0, 1], ones), said(f.ReduceAddCoalesced.apply, 0, 2, ones, ones, ones, ones),
            said(f.ReduceAddCoalesced.apply, 0, 1, ones), said(f.Broadcast.apply, [0])]


def test_copies_and_sums_are_each_others_gradients():
    a, b = torchlike.arange(3.0, requires_grad=True), torchlike.ones(2, requires_grad=True)
    a0, b0, a1, b1 = copies = _copies(["cpu", "cpu"], (a, b))
    assert a0.data_ptr() != a.data_ptr() != a1.data_ptr()
    first, second = _sums("cpu", 2, copies)
    assert first.tolist() == [0, 2, 4] and second.tolist() == [2, 2]
    (a0.sum() + 3 * a1.sum() + b1.sum()).backward()
    assert a.grad.tolist() == [4, 4, 4] and b.grad.tolist() == [1, 1]


def test_shapes_through_the_functions():
    x, y = (torchlike.ones(*shape, device="meta", requires_grad=True) for shape in ((2, 3), (4,)))
    out = Broadcast.apply(["meta", "meta"], x, y)
    assert [tuple(t.shape) for t in out] == [(2, 3), (4,)] * 2
    sums = ReduceAddCoalesced.apply("meta", 2, *out)
    sum(t.sum() for t in sums).backward()
    assert x.grad.shape == x.shape and y.grad.shape == y.shape
