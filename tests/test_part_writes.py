"""x[1:-1, 2] = value: what is written without making a view of x (ops/part_writes.py), and whoever looks on, as in torch."""
import pytest
from same import caught, same

import torchlike
from torchlike._core import program

INDICES = (1, -1, slice(1, 3), slice(None, -1), slice(2, None), slice(1, 1), slice(0, 4, 2), slice(1, 100), (1, 2), (slice(1, -1), slice(1, -1)), (slice(None), 0),
           (0, slice(2)), (slice(3, 1), 1), (-2, slice(None), 1), (slice(1, 3), 1, slice(None)), (1, 1, 1), (slice(None), slice(None), -1), (0, slice(0, 3, 2)))


@same
def test_all_kinds_of_parts_and_values(torch):
    found = []
    for dtype in (torch.float32, torch.int64, torch.bool):
        x = torch.zeros(4, 5, 3, dtype=dtype)
        turned, rows = torch.zeros(3, 5, 4, dtype=dtype).transpose(0, 2).contiguous().mT.clone(), x.unbind()
        for k, index in enumerate(INDICES):
            for t in (x, turned.mT.clone()):
                part = t[index]
                t[index] = torch.arange(part.numel(), dtype=torch.int64).reshape(part.shape).to(dtype) + k if dtype is not torch.bool else torch.ones_like(part)
                t[index] = k
                t[index] = k + 0.5 if dtype is torch.float32 else True
                t[index] = torch.ones((), dtype=dtype)
                t[index] = torch.full(part.shape, k)
                found += [t.clone(), t._version, t.stride(), part]
        found += rows
    return found


@same
def test_aliases_and_readers_see_the_write(torch):
    x = torch.arange(12.0).reshape(3, 4)
    whole, row, early = x.view(-1), x[1], x * 2
    x[1, 1:3] = torch.tensor([-1.0, -2.0])
    between = x + row.sum()
    x[1:] = whole[4:12].clone().reshape(2, 4) * 10
    x[0] = x[1]  # of its own memory
    x[:, 0] = x.sum(1)
    y = x.detach()
    y[2, :2] = 7
    a = torch.zeros(5)
    for k in range(100):
        a[k % 5:k % 5 + 1] = a[(k + 1) % 5] + k
    return x, whole, row, early, between, y, x._version, a


@same
def test_gradients_go_through_parts(torch):
    w = torch.ones(3, requires_grad=True)
    x, leaf = torch.zeros(3, 3), torch.zeros(2, 2, requires_grad=True)
    x[0] = 5
    x[1] = w * 2  # from here on x has a place in the graph
    x[0, 1:] = 3
    x[:, 2] = w.detach()
    x.sum().backward()
    with torch.no_grad():
        leaf[0] = 1
    with torch.inference_mode():
        kept = torch.zeros(2)
        kept[0] = 1
    return w.grad, x, leaf, leaf._version, kept


WRONG = ((5, 1.0), (slice(0, 2, -1), 1.0), ((0, 0, 0, 0), 1.0), ((0, 7), 2), (0, 1 << 70), (slice(0, 1), [1]), (slice(0, 2), "a"), (0, 1j), (slice(0, 2), None))


@pytest.mark.parametrize("index, value", WRONG, ids=str)
def test_errors(oracle, index, value):
    def write(torch):
        x = torch.zeros(2, 3)
        x[index] = value
    assert caught(lambda: write(oracle)) == caught(lambda: write(torchlike))


@pytest.mark.parametrize("shape", [(2,), (3, 3), (2, 2, 3), (0, 3)], ids=str)
def test_shapes_that_do_not_fit(oracle, shape):
    def write(torch):
        x = torch.zeros(2, 3)
        x[:, :3] = torch.zeros(3)  # of fewer dimensions
        x[0:2] = torch.zeros(shape)
    assert caught(lambda: write(oracle)) == caught(lambda: write(torchlike))


def test_a_write_is_one_operation(recorded):
    from torchlike._core import program
    x, values = torchlike.zeros(4, 5), [torchlike.ones(n) for n in ((3,), (3,), (2, 3), (5,))]
    str(x + sum(v.sum() for v in values))
    before = len(program.state.program.results)
    for index, value in zip(((slice(1, 4), 0), (0, slice(1, 4)), (slice(2), slice(1, 4)), 1), values):
        x[index] = value
    assert len(program.state.program.results) == before + 4
    assert x.tolist() == [[0, 1, 1, 1, 0], [1] * 5, [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]]


@pytest.mark.parametrize("index", [1, slice(1, 3), (slice(1, -1), 2), (0, slice(2))])
def test_adding_to_a_part_makes_one_view(index):
    """x[i] += 1 reads a view, writes it and assigns it to x, where it is already."""
    x = torchlike.zeros(4, 5) + 1
    version = x._version
    with program.immediate(False):
        before = len(program.state.program.results)
        x[index] += 1
        assert len(program.state.program.results) - before <= 3  # the view (unless it was computed at once), the sum, the write
    assert x._version == version + 2 and x.sum().item() == 20 + x[index].numel()


@same
def test_slices_of_all_kinds(torch):
    """Bounds that are no ints, and what torch refuses, beside the usual ones that are parsed in one go."""
    x = torch.arange(60.0).reshape(4, 5, 3).mT
    indices = (*INDICES, slice(torch.tensor(1), None), slice(True, 3), (slice(None), slice(-2, None), slice(1, None, 2)), slice(4, 1), slice(None, None, 3), slice(0, 3),
               slice(None, None, -1), slice(None, None, 0), slice(1.5, None), (slice(None, None, 2), slice("a")), 4, (0, -4), (0, 0, 0, 0), (slice(0, 0), 1))
    return [caught(lambda i=i: (x[i], x[i].stride(), x[i].storage_offset(), (x[i] + x[i]).stride())) for i in indices]
