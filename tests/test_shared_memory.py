"""Storages under several tensors: growing them, writing where elements repeat, switching requires_grad of what has views."""
import pytest
from same import error, same


@same
def test_out_grows_the_storage_under_its_views(torch):
    x = torch.arange(4.0).reshape(2, 2, 1)
    window, outside = x[::2], x.detach()
    torch.sin(torch.arange(8.0).reshape(2, 2, 2), out=x)
    seen = [x.clone(), window.clone(), outside.clone(), x._version, window._version]
    window.add_(1)
    x[1, 1, 1] = 7
    outside.mul_(2)
    return seen, x, window, outside, x._version


@same
def test_out_in_a_window_that_grows(torch):
    x = torch.arange(3.0)
    tail, data = x[1:], x[1:].data
    torch.exp(torch.ones(5), out=tail)
    x += 1
    torch.exp(torch.zeros(9), out=x)
    tail -= 3
    return x, tail, data, tail.storage_offset(), x.untyped_storage().nbytes()


@same
def test_smaller_out_keeps_the_memory(torch):
    x = torch.arange(3.0)
    data = x.data
    torch.sin(x.sum(), out=data)
    return x, data


@same(strides=True)
def test_out_takes_the_strides_of_its_inputs(torch):
    fresh, seen = torch.empty(0), torch.empty(2)
    first = seen[0]
    for out in (fresh, seen):
        torch.sin(torch.arange(6.0).reshape(2, 3).t(), out=out)
    return fresh, seen, first


@same
def test_memory_shared_with_numpy_does_not_grow(torch):
    x = torch.zeros(3)
    array = x.numpy()
    return error(torch.sin, torch.ones(4), out=x), error(x.resize_, 5), array


@same
def test_resize_grows_under_views(torch):
    x = torch.ones(2, 3)
    row = x[1]
    x.resize_(3, 3)
    x.fill_(5)
    grown = torch.ones(3, 3, requires_grad=True)
    x.copy_(grown * 2)
    return row, x, x._version, row.requires_grad


REPEATING = {
    "masked_fill_": lambda torch, x, mask: x.masked_fill_(mask, 9.0),
    "masked_fill_ by a tensor": lambda torch, x, mask: x.masked_fill_(mask, torch.tensor(9.0)),
    "index_fill_": lambda torch, x, mask: x.index_fill_(0, torch.tensor([0, -1]), 9.0),
    "index_put_": lambda torch, x, mask: x.index_put_((torch.tensor([0]),), torch.tensor(9.0)),
    "index_put_ adding": lambda torch, x, mask: x.index_put_((torch.tensor([0]),), torch.tensor(9.0), accumulate=True),
    "index_put_ mask": lambda torch, x, mask: x.index_put_((mask,), torch.arange(3.0)),
    "mask": lambda torch, x, mask: x.__setitem__(mask, 9.0),
    "mask of rows": lambda torch, x, mask: x.__setitem__(mask[:, 0], torch.ones(2, 2)),
    "mask of columns": lambda torch, x, mask: x.__setitem__((slice(None), mask[0]), 9.0),
    "list": lambda torch, x, mask: x.__setitem__([0], 9.0),
    "fill_diagonal_": lambda torch, x, mask: x.fill_diagonal_(4),
    "t_": lambda torch, x, mask: x.t_(),
    "squeeze_": lambda torch, x, mask: x.squeeze_(),
    "add_": lambda torch, x, mask: x.add_(1),
    "slice": lambda torch, x, mask: x.__setitem__(slice(0, 2), torch.ones(2, 2)),
    "slice of a number": lambda torch, x, mask: x.__setitem__(slice(0, 2), 9.0),
    "scatter_": lambda torch, x, mask: x.scatter_(0, torch.zeros(3, 2, dtype=torch.long), 0.4),
    "index_copy_": lambda torch, x, mask: x.index_copy_(0, torch.tensor([0]), torch.ones(1, 2)),
    "lerp_": lambda torch, x, mask: x.lerp_(torch.ones(3, 2), 0.3),
    "cumsum_": lambda torch, x, mask: x.cumsum_(0),
}


@pytest.mark.parametrize("name", REPEATING)
@same
def test_writing_where_elements_repeat(torch, name):
    base = torch.arange(3.0).reshape(3, 1)
    mask = torch.tensor([[True, False], [False, False], [True, True]])
    expanded = base.expand(3, 2)
    outcome = error(REPEATING[name], torch, expanded, mask)
    return outcome, base, expanded, expanded._version


@same
def test_no_elements_do_not_overlap(torch):
    x = torch.zeros(0, 1)
    y = x.expand(2, 0, 1)
    y.add_(1)
    y[[0]] = 0.7
    y.copy_(torch.ones(2, 0, 1))
    return y._version, x._version, torch.zeros(0, 2, dtype=torch.bool).cumsum_(0)


@same
def test_views_follow_requires_grad_of_their_base(torch):
    x, later = torch.ones(3), torch.ones(2, requires_grad=True)
    view = x[1:]
    with torch.no_grad():
        seen = later[:1]
    x.requires_grad_()
    double = view * 2
    found = [view.requires_grad, view.is_leaf, double.requires_grad, seen.requires_grad]
    double.sum().backward()
    x.requires_grad_(False)
    later.detach_()
    return found, x.grad is None, view.requires_grad, seen.requires_grad


@same
def test_a_copy_is_a_node_of_its_own(torch):
    source, y = torch.ones(3, requires_grad=True), torch.zeros(3)
    y.copy_(source)
    z = y * source
    return y.is_leaf, *torch.autograd.grad(z.sum(), [y, source]), type(y.grad_fn).__name__


@pytest.mark.parametrize("shape", [(1, 3, 2), (2, 3), (3, 2)])
@same
def test_shape_edits_outside_the_graph_keep_the_place_in_it(torch, shape):
    x = torch.arange(6.0).reshape(3, 2).clone().requires_grad_()
    y, view = x * 2, x.t()
    edit = {(1, 3, 2): lambda t: t.unsqueeze_(0), (2, 3): lambda t: t.t_(), (3, 2): lambda t: t.squeeze_()}[shape]
    with torch.no_grad():
        edit(y)
        view.t_()
    outcome = error((y * 1).backward, torch.arange(6.0).reshape(shape))
    facts = [y.requires_grad, y.is_leaf, y._version, view.requires_grad, view.is_leaf]
    (view * torch.arange(6.0).reshape(3, 2)).sum().backward()
    return outcome, facts, x.grad


@same
def test_view_made_outside_the_graph_and_written(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        of_leaf, of_result, itself = x[:2], y[:2], y[1:]
        x.mul_(2)
        y.mul_(2)
        itself.unsqueeze_(0)
    found = []
    for view in (of_leaf, of_result, itself):
        found += [view.requires_grad, error(getattr, view, "is_leaf"), error(getattr, view, "grad_fn"), error(torch.mul, view, 2), view.detach(), repr(view)]
        with torch.no_grad():
            found += [(view * 2).requires_grad, view.sum()]
    return found


@same
def test_second_backward_goes_by_what_was_saved(torch):
    x = torch.ones(3, requires_grad=True)
    written = torch.cat([x, x])
    written[0] += 2
    one = (x + x)[0]
    one.view(-1)[0] = 3
    results = {"add": torch.add(x, x, alpha=2), "sub": torch.sub(x, x, alpha=2), "lerp": torch.lerp(x, x, 0.3), "mul": x * 2, "div": x / 2,
        "tensor lerp": torch.lerp(x, x, torch.full((3,), 0.3)), "written": written, "one": one, "view": x[1:]}
    outcomes = {}
    for name, y in results.items():
        y.sum().backward()
        outcomes[name] = error(y.sum().backward)
    return outcomes, x.grad


@same
def test_one_of_several_views_after_a_write(torch):
    x = torch.zeros(3, requires_grad=True)
    y = x * 2
    first, second, third = y.split(1)
    inner, early = first.view(-1), third * 3
    found = [error(inner.add_, 1), error(inner.__setitem__, slice(0, 1), 2.0)]
    third.data.add_(1)
    found.append(third.is_leaf)
    with torch.no_grad():
        second.add_(1)
    found += [error(torch.mul, t, 2) for t in (first, second, inner)]
    early.sum().backward()
    return found, x.grad, y, repr(second)


@same
def test_views_of_a_view_made_outside_the_graph(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    with torch.no_grad():
        outside = y[:1]
    inner = outside.view(-1)
    (inner * 2).sum().backward()
    y.data.mul_(3)
    return inner.requires_grad, inner.is_leaf, outside.is_leaf, error(inner.add_, 1), x.grad


WINDOWS = {
    "column": lambda x: x.narrow(1, 0, 1).as_strided((2,), (1,)),
    "transposed": lambda x: x.t().as_strided((3,), (1,)),
    "row, from the start": lambda x: x[1].as_strided((3,), (1,), 0),
    "expanded": lambda x: x[0:1].expand(3, 2).as_strided((3,), (1,)),
    "steps": lambda x: x.view(-1)[::2].as_strided((3,), (1,)),
    "overlapping": lambda x: x.view(-1).unfold(0, 2, 1).as_strided((3, 2), (1, 1)),
    "result": lambda x: (x * 2).t()[0].as_strided((3,), (1,), 1),
}


@pytest.mark.parametrize("name", WINDOWS)
@same
def test_windows_of_views_give_gradients_to_the_view_alone(torch, name):
    x = torch.arange(4.0).reshape(2, 2).clone().requires_grad_()
    y = WINDOWS[name](x)
    weight = torch.arange(1.0, 1.0 + y.numel()).reshape(y.shape)
    g, = torch.autograd.grad((y ** 2 * weight).sum(), [x], create_graph=True)
    twice, = torch.autograd.grad(g.sum(), [x])
    return g, twice, type(y.grad_fn).__name__


@same
def test_writing_into_a_window_of_a_view(torch):
    x = torch.arange(4.0).reshape(2, 2).clone().requires_grad_()
    y = x * 2
    y.narrow(1, 0, 1).as_strided((2,), (1,)).mul_(torch.tensor([3.0, 5.0]))
    y.backward(torch.ones(2, 2))
    return x.grad, y


@same
def test_out_that_is_part_of_a_graph(torch):
    x = torch.ones(2, requires_grad=True)
    total, pair, leaf = x.sum() * 1, x * 1, torch.ones(2, requires_grad=True)
    for out in (total, pair, leaf):
        with torch.no_grad():
            torch.sin(torch.ones(3), out=out)
    outcomes = [error((t * 1).sum().backward) for t in (total, pair, leaf)]
    return outcomes, x.grad, leaf.grad, total.requires_grad


@same
def test_a_shape_edit_makes_no_view(torch):
    x = torch.ones(1, 3)
    alias = x.view(-1)
    x.squeeze_()
    x.detach_()
    x.add_(1)
    return alias, error(alias.detach_)


@same
def test_index_arrays_write_one_dtype_only(torch):
    results = []
    for index in ([0], torch.tensor([True, False, True]), torch.tensor([0, 1]), slice(0, 2), (None, torch.tensor([True, False, True]))):
        for value in (torch.tensor(1.5, dtype=torch.float64), torch.tensor(2), torch.tensor([2, 3]), torch.tensor([1.5], dtype=torch.float64), 2):
            for dtype in (torch.float32, torch.int64):
                x = torch.zeros(3, dtype=dtype)
                results += [error(x.__setitem__, index, value), x]
    leaf = torch.ones(0, requires_grad=True)
    return results, error(leaf[0:, None].__setitem__, [0], 0.5)


@same
def test_gradients_of_nothing(torch):
    x = torch.ones(0, requires_grad=True)
    y = torch.log_softmax(x, 0)
    g, = torch.autograd.grad(y, [x], torch.ones(0), create_graph=True)
    g.backward(torch.ones(0))
    return g.requires_grad, x.grad, error(y.backward, torch.ones(0))


@same
def test_data_and_its_views_count_writes_together(torch):
    x = torch.zeros(3)
    data = x.data
    part = data[:2]
    part.add_(1)
    data.unsqueeze_(0)
    return data._version, part._version, x._version, x.data._version


@same
def test_views_made_outside_the_graph_are_not_written_within(torch):
    x, w = torch.zeros(3), torch.ones(3, requires_grad=True)
    with torch.no_grad():
        view = x.view(3)
    view.add_(1)
    refused = error(view.mul_, w)
    x.mul_(w)
    return refused, x, view.requires_grad, error(lambda: view.is_leaf)


@same
def test_a_view_made_before_its_base_became_a_leaf(torch):
    x = torch.ones(3)
    view = x[:2]
    x.requires_grad_()
    with torch.no_grad():
        x.mul_(2)
    (view * 3).sum().backward()
    return view.requires_grad, view.is_leaf, x.grad


@same
def test_out_in_a_view_that_is_part_of_a_graph(torch):
    x = torch.arange(6.0).reshape(2, 3).clone().requires_grad_()
    view = x[:, 1:]
    with torch.no_grad():
        torch.sin(torch.ones(3), out=view)
    view.backward(torch.tensor([1.0, 2.0, 3.0]))
    return x.grad, x, view.is_leaf


@same
def test_base_that_becomes_smaller_than_its_views(torch):
    x = torch.ones(2, 3)
    view = x.view(6)
    torch.sin(torch.tensor(1.0), out=x)
    x.mul_(torch.tensor(2.0, requires_grad=True))
    return x, view.detach(), view.shape


@same
def test_ravel_of_a_copy_is_a_view(torch):
    x = torch.ones(2, 3, requires_grad=True)
    y = x.t().ravel()
    return error(y.detach_), y.requires_grad, error(torch.ones(2, 3).t().reshape(-1).detach_)


@same
def test_writes_through_data_leave_views_in_their_graph(torch):
    x = torch.ones(2, 3, requires_grad=True)
    view = x[None]
    y = view * 2
    view.data.mul_(3)
    x.data.add_(1)
    g, = torch.autograd.grad(y.sum(), [view])
    return g, view, view.is_leaf, view._version


@same
def test_index_select_of_one_element_or_none(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x.index_select(0, torch.tensor([0]))
    y.backward()
    return error(y.backward), x.grad, error(torch.zeros(0, 2).index_select, 0, torch.tensor([0])), torch.zeros(0, 2).index_select(0,
        torch.tensor([], dtype=torch.int64)), torch.tensor(True).cumsum_(0)


@same
def test_results_of_one_element_are_no_views(torch):
    zero, x = torch.tensor(0), torch.tensor(2.0, requires_grad=True)
    made = [x.gather(0, zero), x.scatter(0, zero, x * 2), x.index_add(0, torch.tensor([0]), x), x.index_fill(0, torch.tensor([0]), 1.0),
        x.softmax(0), x.log_softmax(0), x.logsumexp(0)]
    found = []
    for y in made:
        y.backward()
        found += [error(y.backward), error(y.detach_), y]
    return found, x.grad


@same
def test_linear_of_nothing(torch):
    x = torch.ones(0, requires_grad=True)
    torch.nn.functional.linear(x, x.expand(2, 0)).sum().backward()
    return x.grad, torch.log_softmax(torch.zeros(0, 2, dtype=torch.int64), 0).shape


@same
def test_graphs_made_through_data(torch):
    x, w = torch.ones(2, 3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    data = x.data
    row = data[0]
    row.mul_(w)
    (data * 3).sum().backward()
    with torch.no_grad():
        outside = x[1:]
        x.data.detach().add_(1)
    return data, row, row.is_leaf, w.grad, x.grad, x, outside.is_leaf, x._version


@same
def test_assigning_all_of_a_tensor_is_a_copy(torch):
    x = torch.ones(2, 3, requires_grad=True)
    found = []
    for index in (slice(None), slice(0, 2), (slice(0, 2), slice(None)), ..., (..., slice(0, 3)), None, slice(0, 1)):
        y = x + 1
        y[index] = x if index is not None and index != slice(0, 1) else 2.0
        y.sum().backward()
        found += [error(y.sum().backward), y, y._version]
    return found, x.grad


@same
def test_indexing_nothing(torch):
    x = torch.ones(2, 0, requires_grad=True)
    x[torch.tensor([0, 1])].sum().backward()
    return x.grad, error(torch.zeros(0).index_select, 0, torch.tensor([0]))


@same
def test_out_where_elements_repeat_is_not_resized(torch):
    x = torch.ones(1).expand(2)
    return error(torch.sin, torch.tensor(1.0), out=x), x.shape
