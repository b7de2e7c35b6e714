"""Loops over elements, x[i, j] = number, which are written straight into NumPy arrays (ops/element_writes.py): as in torch, whoever looks on."""
import copy

import numpy as np
import pytest
from same import caught, same

import torchlike
from torchlike._core import program


@same
def test_views_and_readers_in_between(torch):
    x = torch.zeros(4, 5)
    y, d, found, sums = x.view(20), x.detach(), [], []
    for r in range(3):
        for i in range(4):
            for j in range(5):
                x[i, j] = i * 10 + j + r
                if (i + j) % 7 == 3:
                    sums += [x.sum(), x[1]]
        s, z = x.clone(), x * 2
        x[0, 0], x[-1, -1] = -1, True
        found += [x.clone(), y[:3].clone(), d[0, :2].clone(), s, z, x._version]
    return found, sums, y, d


@same
def test_a_saved_value_is_not_written(torch):
    w, m = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3)
    loss = 0
    for k in range(40):
        m[k % 3, (k * 2) % 3] = k
        if k % 13 == 5:
            loss = loss + (w * m.clone()).sum()
    m[0, 0] = 100
    loss.backward()
    return w.grad, m


@same
def test_dtypes_and_errors(torch):
    t, b = torch.zeros(30, dtype=torch.int64), torch.zeros(2, 20, dtype=torch.bool)
    for k in range(60):
        t[k % 30] = k * 1.7
    for k in range(20):
        b[0, k] = k % 3
        b[1, k] = k % 2 == 0
    f = torch.zeros(20)
    for k in range(40):
        f[k % 20] = float("nan") if k == 39 else 2**60 + k
    return t, b, f, caught(t.__setitem__, 31, 1), caught(t.__setitem__, 3, 1e30), caught(f.__setitem__, 3, 1e300), t[3], f[3]


@same
def test_other_holders(torch):
    """NumPy's arrays, copies, parameters, tensors behind `.data`."""
    t = torch.arange(20.0)
    shared, deep, clone, data = t.numpy(), copy.deepcopy(t), t.clone(), t.data
    for k in range(40):
        t[k % 20] = -k
    shared[1] = 5.0
    t[2] = 4
    layer = torch.nn.Linear(3, 3)
    torch.nn.init.ones_(layer.weight)
    with torch.no_grad():
        for k in range(40):
            layer.weight[k % 3, 0] = k
            layer.weight.data[0, k % 3] = -k
    v = torch.zeros(6, 6)
    row = v[2]
    for k in range(36):
        v[k // 6, k % 6] = k
        row[0] = 7
    return t, shared.tolist(), deep, clone, data, layer.weight, v, row


@same
def test_inside_functions(torch):
    """A compiled function and vmap record the writes."""
    def table(x):
        out = torch.zeros(20)
        for k in range(20):
            out[k] = k
        return out * x
    compiled = torch.compile(table, backend="eager")
    return [compiled(torch.full((20,), float(k))) for k in range(4)], torch.func.vmap(table)(torch.ones(2, 20))


@pytest.mark.usefixtures("recorded")
def test_nothing_is_recorded():
    x = torchlike.zeros(10, 10)
    for k in range(100):
        x[k // 10, k % 10] = k
        if k == 50:
            before = len(program.state.program.results)
    assert len(program.state.program.results) == before == 0
    assert x.tolist() == torchlike.arange(100.0).view(10, 10).tolist()


@pytest.mark.usefixtures("recorded")
def test_few_writes_end_no_program():
    y = torchlike.ones(3) * 2
    x = torchlike.zeros(10)
    for k in range(10):
        x[k] = k
    assert y._value.array is None and x._value.array is None
    assert (x[:3] + y).tolist() == [2.0, 3.0, 4.0]


def test_exported_writes():
    class Table(torchlike.nn.Module):
        def forward(self, x):
            out = torchlike.zeros(20)
            for k in range(20):
                out[k] = k
            return out + x
    made = torchlike.export.export(Table(), (torchlike.ones(20),))
    assert made.module()(torchlike.zeros(20)).tolist() == list(map(float, range(20)))


@same
def test_adding_to_elements(torch):
    """x[i, j] += number in a loop; views, sums, versions and held elements on the way, other dtypes, errors."""
    found = []
    for dtype in (torch.int32, torch.int64, torch.float32, torch.float64, torch.uint8, torch.float16):
        x = torch.zeros(5, 6, dtype=dtype)
        flat, first = x.view(-1), x[0]
        for k in range(90):
            i, j = k * 7 % 5, k * 3 % 6 - 6
            x[i, j] += 3
            x[i, j] -= 1
            if k % 30 == 29:
                held = x[i, j]
                before = held.clone()
                x[i, j] += 2
                found += [held, before, flat.clone(), first.clone(), x.sum(), x._version]
        found.append(caught(lambda x=x: x[9, 0].__iadd__(1)))
        found += [x, flat[3], x * 2, caught(lambda x=x: x[0, 0].__iadd__(1.5))]
    x = torch.full((4,), 250, dtype=torch.uint8)
    for k in range(60):
        x[k % 4] += 7
    y = torch.full((4,), 3e38)
    for k in range(60):
        y[k % 4] += 1e38
    return found, x, y


@same
def test_adding_to_elements_elsewhere(torch):
    """Of views, leaves, results with a graph, under no_grad, in NumPy's memory, and with the whole read in each round."""
    rows, leaf = torch.zeros(4, 6), torch.zeros(3, 3, requires_grad=True)
    row, totals = rows[1], []
    for k in range(50):
        row[k % 6] += 1
        rows[k % 4][k % 6] += 1
        with torch.no_grad():
            leaf[k % 3, k % 2] += 1
        totals.append((rows * 2).sum())
    graph = leaf * 1
    for k in range(40):
        graph[k % 3, 0] += 2.5
    (graph * graph).sum().backward()
    array = np.zeros((3, 3))
    shared = torch.from_numpy(array)
    for k in range(40):
        shared[k % 3, 1] += k
    array[0, 0] = 5
    with torch.no_grad():
        z = torch.zeros(3, 3)
        for k in range(40):
            z[k % 3, 1] += k
            if k == 30:
                e = z[0, 1]
    e += 1
    return rows, row, totals, leaf, leaf.grad, graph, shared, array[0, 1], z, e, rows.tolist()


@same
def test_elements_of_tensors_as_numbers_and_places(torch):
    source, places = torch.arange(60.0).sin(), (torch.arange(60) * 7) % 5
    e, counts, table, seen = torch.zeros(5), torch.zeros(5, dtype=torch.int64), torch.zeros(5, 3), []
    for k in range(60):
        e[places[k]] += source[k]
        counts[places[k]] += torch.tensor(1)
        table[places[k], k % 3] = source[k]
        table[k % 5][places[k] % 3] -= source[-k]
        e[k % 5] -= source[places[k]]
        e[k % 4] = e[k % 3]
        if k % 17 == 3:
            seen += [e.sum(), e.clone(), e._version, table[1]]
    return e, counts, table, seen, counts._version


@same
def test_elements_that_are_no_numbers(torch):
    w, e, halves = torch.arange(40.0, requires_grad=True), torch.zeros(5), torch.arange(40.0).double()
    e[0] = 1
    base = e.clone()
    for k in range(40):
        base[k % 5] += w[k] * k
        e[k % 5] = halves[k]
        e[torch.tensor(k % 5, dtype=torch.int32)] += halves[k].int()
        e[-1] += torch.tensor([2.0])[0]
    base.sum().backward()
    bad = [caught(e.__setitem__, torch.tensor(5), source) for source in (halves[1].float(), 1.0)]
    return w.grad, e, bad, caught(e.__setitem__, torch.tensor(1), halves[:2])


@same
def test_each_element_of_a_long_vector(torch):
    x = torch.arange(1500.0)
    x.sum().item()
    found = [all(x[1:] > 0), all(x > 0), max(x), sum(x), [float(v) for v in x][-3:], [v.item() for v in x if v % 7 == 3][:5]]
    kept = []
    for i, v in enumerate(x):  # views: writes go either way
        if i % 3 == 0:
            v.mul_(2)
        elif i % 3 == 1:
            v += 1
        if i == 5:
            x[700] = -1.5
        if i == 9:
            x.add_(1)
        if i % 400 == 0:
            kept.append((v, v._base is x, v.storage_offset(), v.is_leaf, v._version))
    x.sub_(0.5)
    found += [x.clone(), [k[1:-1] for k in kept], torch.stack([k[0] for k in kept])]
    w = torch.ones((), requires_grad=True)
    total = 0
    for v in x[:1200].clone():
        total = total + v * w
    total.backward()
    with torch.no_grad():
        for v in x:
            v.fill_(3)
    y = torch.zeros(1200, dtype=torch.bfloat16)
    for v in y:
        v += 1
    z = torch.zeros(1100, requires_grad=True)
    sum(v * i for i, v in enumerate(z)).backward()
    labels = torch.arange(1100) % 3
    counts = [0, 0, 0]
    for v in labels:
        counts[v] += 1
    return found, w.grad, x, y, z.grad, counts


def test_elements_are_not_recorded():
    x = torchlike.arange(3000)
    x.sum().item()
    kept = list(x)
    assert len(program.state.program.results) == 0 and len(kept) == 3000


@same
def test_numbers_computed_of_elements(torch):
    """Products by hand; an element that is held over writes to what it was read from; overflows; gradients and large results in between."""
    a, b = torch.arange(30.0).view(5, 6) / 7, torch.arange(24.0).view(6, 4) / 3
    c, sums, held = torch.zeros(5, 4), torch.zeros(5), []
    for i in range(5):
        for j in range(4):
            for k in range(6):
                c[i, j] += a[i, k] * b[k, j]
            sums[i] = sums[i] + (c[i, j] - 1).abs().sqrt()
            if (i + j) % 3 == 0:
                held += [c[i, j], a[i, 0], c[i, j] * 2]
        a[i, 0] = -sums[i]
    whole, w = torch.zeros(40), torch.ones(3, requires_grad=True)
    for k in range(40):
        whole[k] = (a * k).sum() if k < 20 else a[k % 5, 1] * w.detach()[k % 3]
    graph = [(w[k % 3] * whole[k] * a[0, 1]) for k in range(20)]
    sum(graph).backward()
    n, big = torch.full((20,), 200, dtype=torch.uint8), torch.full((20,), 3e38)
    for k in range(19):
        n[k] = n[k + 1] + n[k] * 2
        big[k] = big[k] * big[k + 1]
    return c, sums, held, a, whole, w.grad, n, big, c._version, caught(lambda: a[0, 9] * b[0, 0]), caught(lambda: c.__setitem__((5, 0), a[0, 0] + a[0, 1]))


@pytest.mark.usefixtures("recorded")
def test_numbers_of_elements_are_not_recorded():
    program.state.whole = False
    a, b, c = torchlike.arange(100.0), torchlike.arange(100.0) * 2, torchlike.zeros(100)
    for k in range(100):
        c[k] = a[k] + b[k]
        c[k] += a[k] * b[k]
    assert not program.state.program.results
    assert c.tolist() == [3.0 * k + 2 * k * k for k in range(100)]


@same
def test_numbers_computed_beside_operations_that_fail(torch):
    a, b, c = torch.arange(40.0), torch.arange(40.0) / 7, torch.zeros(40)
    for k in range(40):
        product = a[k] * b[k]
        three, four = torch.tensor([1.0] * 3), torch.tensor([1.0] * 4)
        caught(lambda three=three, four=four: three + four)
        c[k] = product
    return c


@same
def test_few_numbers_computed_of_elements(torch):
    """A distribution moved to other places (Bellemare, Dabney and Munos, 2017), distances between words, advantages from the last step back."""
    p, reward, moved = torch.arange(44.0).view(4, 11).softmax(1), torch.arange(4.0).view(4, 1), torch.zeros(4, 11)
    for j in range(11):
        b = ((reward.squeeze(1) + 0.9 * (j - 5)).clamp(-5, 5) + 5) / 1.0001
        low, high = b.floor().long(), b.ceil().long()
        for i in range(4):
            moved[i, low[i]] += p[i, j] * (high[i].float() - b[i])
            moved[i, high[i]] += p[i, j] * (b[i] - low[i].float())
    one, other, d = torch.tensor([0, 1, 2, 1, 0]), torch.tensor([1, 1, 2, 0]), torch.zeros(6, 5)
    d[:, 0], d[0] = torch.arange(6), torch.arange(5)
    for i in range(1, 6):
        for j in range(1, 5):
            d[i, j] = torch.min(torch.stack([d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (one[i - 1] != other[j - 1]).float()]))
    values, last = torch.arange(120.0).view(30, 4) / 9, 0
    gains, kept = torch.zeros_like(values), torch.zeros(30, 4, dtype=torch.float64)
    for k in reversed(range(29)):
        delta = values[k] * 2 + 0.9 * (values[k + 1] if k % 2 else values[k + 1].reshape(1, -1)) - values[k]
        gains[k] = last = delta + 0.8 * last
        kept[k] = gains[k]
    with_grad = torch.zeros(20)
    w = torch.ones(3, requires_grad=True)
    for k in range(20):
        with_grad[k] = (w * values[k, :3]).sum()
    with_grad.sum().backward()
    return moved, d, gains, kept, with_grad, w.grad


@pytest.mark.usefixtures("recorded")
def test_few_numbers_of_elements_are_not_recorded():
    program.state.whole = False
    x, out, rows = torchlike.ones(3), torchlike.zeros(100), torchlike.zeros(100, 3)
    for k in range(100):
        out[k] = torchlike.stack([x[0] * k, x[1] + k]).min()
        rows[k] = (x * k + out[k]).reshape(1, 3)
        assert k < 20 or not program.state.program.results
    assert out.tolist() == [float(k) for k in range(100)]
    assert rows.tolist() == [[2.0 * k] * 3 for k in range(100)]


@pytest.mark.usefixtures("recorded")
def test_rows_that_were_just_computed_are_waited_for():
    program.state.whole = False
    x, rows = torchlike.ones(3), torchlike.zeros(100, 3)
    for k in range(100):
        rows[k] = x * k + 1
        assert k < 20 or not program.state.program.results
    assert rows.tolist() == [[k + 1.0] * 3 for k in range(100)]


@same
def test_rows_of_other_shapes(torch):
    x, errors = torch.zeros(40, 2, 3), []
    for k in range(40):
        x[k] = torch.full((1, 1, 2, 1), float(k)) * torch.ones(3)
        x[k, 1] = torch.full((1, 3), float(k)) + 1
        for shape in ((2, 2, 3), (3, 2), (2, 1, 3), (4,)):
            errors += [caught(x.__setitem__, k, torch.ones(shape) * 2)]
    return x, errors


@pytest.mark.usefixtures("recorded")
def test_what_is_computed_of_more_is_waited_for_once():
    x, losses = torchlike.ones(1 << 14), torchlike.zeros(100)
    ended = 0
    for k in range(100):
        before = program.state.program
        losses[k] = (x * k).sum() + 1
        ended += program.state.program is not before
    assert ended == 1
    assert losses.tolist() == [float(k << 14) + 1 for k in range(100)]
