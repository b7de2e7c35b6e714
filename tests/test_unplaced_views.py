"""An element at a position that no one has looked at yet (`x[x.argmax()]`) is a view, as at any other."""
from functools import partial

import pytest
from same import caught
from same import same as same_program

same = partial(same_program, strides=True)


def _base(torch):
    """A tensor, the row and the column of its largest element; none of which is known yet in recorded mode."""
    x = torch.arange(12.0).reshape(3, 4).roll(1) * 2
    return x, x.sum(1).argmax(), (x[1] * 1).argmax().int()


VIEWS = {
    "row": lambda x, r, c: x[r], "column": lambda x, r, c: x[:, c], "element": lambda x, r, c: x[r, c], "flat": lambda x, r, c: x.view(-1)[r * 4 + c],
    "row of several": lambda x, r, c: x[r, None, 1:], "two dimensions": lambda x, r, c: x.view(3, 2, 2)[r, :, c % 2], "negative": lambda x, r, c: x[r - 3],
    "part of a row": lambda x, r, c: x[r][1:3], "reshaped row": lambda x, r, c: x[r].view(2, 2).t(), "detached": lambda x, r, c: x[r].detach(),
    "half of a row": lambda x, r, c: x[r].view(2, 2)[c % 2]}


@pytest.mark.parametrize("name", VIEWS)
@same
def test_it_sees_what_is_written(torch, name):
    x, r, c = _base(torch)
    view = VIEWS[name](x, r, c)
    before = view.clone()
    x.mul_(-1)
    after = view.clone()
    view.add_(100)
    x[0] += 0.5
    return before, after, x, view, view.numpy(), view.tolist()


@pytest.mark.parametrize("name", VIEWS)
@same
def test_where_it_lies(torch, name):
    x, r, c = _base(torch)
    view = VIEWS[name](x, r, c)
    shown = view.stride(), view.is_contiguous(), view._is_view(), view._version
    numpy = VIEWS[name](x, r, c).numpy()
    x.add_(1)
    return (*shown, view.storage_offset(), view.data_ptr() - x.data_ptr(), view.untyped_storage().data_ptr() == x.data_ptr(), numpy, view._version,
            view.as_strided((1,), (1,)), view.is_set_to(VIEWS[name](x, r, c)))


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "detached"])
@same
def test_gradients(torch, name):
    x, r, c = _base(torch)
    w = x.clone().requires_grad_()
    y = w * 2
    found = [torch.autograd.grad((VIEWS[name](y, r, c) ** 2).sum(), w, retain_graph=True)[0]]
    view = VIEWS[name](y, r, c)
    y.mul_(3)
    found += torch.autograd.grad((view ** 2).sum(), w, retain_graph=True)
    y = w * 2
    view = VIEWS[name](y, r, c)
    view.mul_(5)
    found += torch.autograd.grad((y ** 2).sum(), w, retain_graph=True)
    found += torch.autograd.grad((view ** 2).sum(), w, retain_graph=True)
    return found


@same
def test_a_parameter_that_is_trained(torch):
    w = torch.nn.Parameter(torch.arange(12.0).reshape(4, 3))
    row = w[w.sum(1).argmin() + 1]
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(3):
        loss = (w[w.detach().sum(1).argmax()] ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return row.detach(), w.detach(), w.grad


@same
def test_out_of_range(torch):
    x, r, _ = _base(torch)

    def beyond():
        return x[r + 7].tolist()
    return caught(beyond), x


@same
def test_taking_another_place(torch):
    x, r, _ = _base(torch)
    row, other = x[r], x[r]
    row.unsqueeze_(0)
    x.add_(1)
    first = row.clone()
    other.data = torch.ones(2)
    x.add_(1)
    row.resize_(1, 2)
    return first, row, other, other.storage_offset()


@same
def test_as_an_argument_of_a_compiled_function(torch):
    def f(row):
        row.mul_(2)
        return row + 1

    compiled = torch.compile(f, backend="eager") if torch.__name__ == "torch" and not hasattr(torch, "explain") else torch.compile(f)
    x, r, _ = _base(torch)
    made = [compiled(x[r]), compiled(x[r])]
    return made, x


@same
def test_augmented_assignment(torch):
    x, r, c = _base(torch)
    before = x._version
    x[r] += 1
    x[r, c] *= 3
    x[:, c] -= 2
    x[r][c] += 5
    counted = x._version - before
    y = x.view(4, 3)
    y[r] = x[r].clone()[:3]
    index = (r, c)
    element = x[index]
    other = x.flip(0)
    other[index] = element
    places = torch.tensor([2, 0, 1, 3])
    first = places[:1].view(()) * 1
    places[places[first]] += 1
    return x, counted, y, other, places


@same
def test_what_it_is_given_to(torch):
    x, r, c = _base(torch)
    square = x[:, :3].clone()
    index = (r, c % 3)
    element = square[index]
    square.t()[index] = element
    rows = x.clone()
    taken = rows[r]
    rows[r] = taken
    rows[r] = taken * 2
    rows[r] = taken.flip(0)
    return square, rows
