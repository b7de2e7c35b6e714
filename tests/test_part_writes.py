"""x[1:-1, 2] = value: what is written without making a view of x (ops/part_writes.py), and whoever looks on, as in torch."""
import pytest
from same import caught, same

import torchlike
from torchlike._core import program

INDICES = (1, -1, slice(1, 3), slice(None, -1), slice(2, None), slice(1, 1), slice(0, 4, 2), slice(1, 100), (1, 2), (slice(1, -1), slice(1, -1)), (slice(None), 0),
           (0, slice(2)), (slice(3, 1), 1), (-2, slice(None), 1), (slice(1, 3), 1, slice(None)), (1, 1, 1), (slice(None), slice(None), -1), (0, slice(0, 3, 2)),
           (..., 1), (..., slice(1, 3)), (0, ..., -1), (slice(1, 3), ..., slice(None)), (1, 2, ..., 0), (1, ..., slice(0, 2), 2), (..., -1, slice(None, None, 2)))


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
    values = [torchlike.ones(n) for n in ((3,), (3,), (2, 3), (5,))]
    str(sum(v.sum() for v in values))
    x = torchlike.zeros(4, 5) * values[0][0]
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
               slice(None, None, -1), slice(None, None, 0), slice(1.5, None), (slice(None, None, 2), slice("a")), 4, (0, -4), (0, 0, 0, 0), (slice(0, 0), 1),
               (..., ...), (0, 0, 0, ..., 0), ...)
    return [caught(lambda i=i: (x[i], x[i].stride(), x[i].storage_offset(), (x[i] + x[i]).stride())) for i in indices]


# -- loops over parts: known values go straight into NumPy's arrays ---------------------------------------------------------


@same
def test_batches_that_are_put_together(torch):
    """Sequences of other lengths each time, as a collate function joins them; who reads in between and what is held sees what it should."""
    generator, found = torch.Generator().manual_seed(3), []
    for round in range(12):
        sequences = [torch.arange(n) + 1 for n in torch.randint(1, 9, (20,), generator=generator).tolist()]
        batch, mask, weights = torch.zeros(20, 9, dtype=torch.int64), torch.zeros(20, 9, dtype=torch.bool), torch.zeros(20, 9)
        held, early = batch[3], batch.sum()
        for i, s in enumerate(sequences):
            n = len(s)
            batch[i, :n] = s
            mask[i, :n] = True
            weights[i, n // 2:n] = 1.5
            weights[-1 - i, :1] = torch.tensor([float(i)])
            if i == round:
                found += [batch.clone(), mask.sum(), weights[:, 0], weights[i] * 2]
        found += [batch, mask, weights, held, early, batch._version]
    return found


@same
def test_what_is_saved_or_shared_is_not_written(torch):
    w, m = torch.ones(3, requires_grad=True), torch.ones(4, 3)
    shared = torch.ones(4, 3)
    array, alias, data = shared.numpy(), m.view(12), m.detach()
    loss, before, rows = 0, [], []
    for k in range(40):
        m[k % 4] = torch.full((3,), float(k))
        m[:2, k % 3] = k
        shared[k % 4] = torch.arange(3.0)
        if k % 13 == 5:
            loss = loss + (w * m[k % 4].clone()).sum()
            before += [m[1], m.clone(), alias[3:7].clone(), data * 1]
            rows.append(m[2])
        array[0] = -k
    m[0] = 100
    loss.backward()
    return w.grad, m, before, rows, shared, array.tolist(), alias, m._version


@same
def test_adding_to_rows(torch):
    """Rows and columns by numbers and known positions, of several tensors in turns, of other dtypes, held, broadcast, read by what is recorded."""
    source, places = ((torch.arange(240.0) * 37) % 19 / 7).view(60, 4), (torch.arange(60) * 7) % 5
    found = []
    for dtype in (torch.float32, torch.float64, torch.int32, torch.uint8, torch.bfloat16):
        sums, counts, columns = torch.zeros(5, 4, dtype=dtype), torch.zeros(5, 1, dtype=torch.int64), torch.zeros(4, 5, dtype=dtype)
        other = (source * 9).to(dtype)
        for k in range(60):
            sums[places[k]] += other[k]
            counts[k % 5] += 1
            columns[:, k % 5] -= other[-k]
            columns[1:3, k % 4] += 2
            sums[k % 5, 1:3] += other[k, :2]
            if k % 19 == 7:
                held = sums[k % 5]
                sums[k % 5] += other[k]
                found += [held, held.clone(), sums.clone(), (sums * 2).sum(), sums._version, columns[2]]
        found += [sums, counts, columns, held, caught(sums[0].__iadd__, other[0] + 1j), caught(sums[0].__iadd__, torch.ones(3))]
    x, wide = torch.zeros(3, 4), torch.arange(4.0, dtype=torch.float64)
    for k in range(40):
        x[k % 3] += wide  # of another type
        x[k % 3] += x[(k + 1) % 3]  # of its own memory
        x[k % 2] += wide[k % 4]
    small, large, wrong = torch.zeros(3, 2, dtype=torch.int8), torch.zeros(3, 2), []
    for k in range(40):
        small[k % 3] += 100
        small[k % 3] -= 300 if k % 13 == 5 else 1
        large[k % 3] += 1e300 if k % 17 == 16 else 2**60 + 1
        wrong.append(caught(small[0].__iadd__, 1.5))
    return found, x, small, large, wrong


@same
def test_adding_to_rows_elsewhere(torch):
    """Of a leaf under no_grad, of what has a graph, with a term that has one, in inference mode, in threads' and NumPy's memory."""
    leaf, term, array = torch.zeros(3, 4, requires_grad=True), torch.ones(4, requires_grad=True), torch.zeros(3, 4)
    graph, memory = leaf * 1, array.numpy()
    sums = torch.zeros(3, 4)
    for k in range(40):
        with torch.no_grad():
            leaf[k % 3] += 0.5
            sums[k % 3] += term
        graph[k % 3] += torch.full((4,), float(k))
        array[k % 3] += 1
    sums[1] += term * 2
    memory[0] = 7
    (graph.sum() + (sums * graph.detach()).sum()).backward()
    with torch.inference_mode():
        kept = torch.zeros(3, 4)
        for k in range(40):
            kept[k % 3] += torch.arange(4.0)
    return leaf, leaf.grad, term.grad, graph, array, sums, kept.clone(), memory.tolist()


@pytest.mark.usefixtures("recorded")
def test_known_parts_are_not_recorded():
    rows = [torchlike.full((n,), float(n)) for n in range(1, 6)]
    str(rows)
    for _ in range(2):  # the second time the line is known to be in a loop
        x, total = torchlike.zeros(40, 5), torchlike.zeros(4, 5)
        for k in range(40):
            x[k, :k % 5 + 1] = rows[k % 5]
            assert k < 20 or not program.state.program.results
        for k in range(40):
            total[k % 4] += rows[4]
            assert k < 20 or not program.state.program.results
        assert x.sum(1).tolist()[:5] == [1, 4, 9, 16, 25] and total.tolist() == [[50.0] * 5] * 4


@pytest.mark.usefixtures("recorded")
def test_few_known_parts_end_no_program():
    y = torchlike.ones(3) * 2
    x = torchlike.zeros(4, 3) + y
    for k in range(4):
        x[k] = torchlike.tensor([1.0, 2.0, 3.0])
    assert y._value.array is None and x._value.array is None
    assert (x + y).tolist() == [[3.0, 4.0, 5.0]] * 4
