"""Memory that what vmap returns shares with tensors from outside, writes inside of vmap, and where examples lie in memory."""
import pytest
from same import caught, error, same

import torchlike


def words(function, *args):
    """What a call says when it fails."""
    with pytest.raises(RuntimeError) as failed:
        function(*args)
    return str(failed.value)


def layouts(torch):
    """Batches of 3 matrices of 4 x 5 and the dimension of the batch, in several orders of memory, some parts of larger tensors."""
    def x(*shape):
        return torch.arange(1000.0)[:torch.Size(shape).numel()].reshape(shape)
    return [(x(3, 4, 5), 0), (x(4, 3, 5), 1), (x(4, 5, 3), 2), (x(3, 5, 4).mT, 0), (x(5, 4, 3).transpose(0, 2), 0), (x(4, 4, 5)[1:], 0), (x(3, 4, 12)[..., 1:11:2], -3)]


VIEWS = [lambda t: t, lambda t: t.T, lambda t: t[1:], lambda t: t[2], lambda t: t.diagonal(), lambda t: t[:, None], WINDOWS := (lambda t: t.unfold(1, 2, 1)),
         lambda t: t.expand(2, 4, 5), lambda t: t.detach(), lambda t: t.unbind()[2], lambda t: t.chunk(2, 1)[1], lambda t: t.detach()[:2].T]


@same
def test_views_of_arguments(torch):
    found = []
    for f in VIEWS:
        for out in (0, 1, -1):
            for x, dim in layouts(torch):
                y = torch.vmap(f, dim, out)(x)
                root = x if x._base is None else x._base
                found.append((y, y.shape, y.stride(), y.storage_offset(), y is x, y._base is root, y.data_ptr() - x.data_ptr()))
    return found


@same
def test_results_lie_as_their_arguments(torch):
    """In the order of memory of the whole batch."""
    found = []

    def new(t):
        found.append([u.stride() for u in (t * 2, t.T.sin(), t.clone(), t[1:] + t[:1], torch.zeros_like(t))])
        return t * 2, t.T.exp(), t.clone(), t[1:] + t[:1], t.T.contiguous(), t.sum(0)
    for x, dim in layouts(torch):
        found.append([t.stride() for t in torch.vmap(new, dim)(x)])
    for outer, inner in ((0, 0), (2, 1), (1, 2), (3, 0)):
        x = torch.zeros(3, 4, 5, 6)
        found.append([t.stride() for t in torch.vmap(torch.vmap(new, inner), outer)(x)])
    return found


@same
def test_writes_into_results_reach_the_argument(torch):
    found = []
    for f in VIEWS:
        for x, dim in layouts(torch) if f is not WINDOWS else ():  # windows overlap
            y = torch.vmap(f, dim, 1)(x)
            found += [caught(y.mul_, -1), x, x.add_(1), y]
    return found


@same
def test_writes_inside_reach_the_argument(torch):
    def whole(t):
        return t.mul_(2)

    def part(t):
        t[1].add_(7)
        t.T[2:].zero_()
        return t[:2]

    def several(t):
        t.diagonal().fill_(-1)
        return t, t.T, t * 1, t[0]
    found = []
    for f in (whole, part, several):
        for x, dim in layouts(torch):
            y = torch.vmap(f, dim)(x)
            found.append((y, x, [t.stride() for t in (y if isinstance(y, tuple) else [y])], y is x))
    return found


@same
def test_the_argument_takes_another_shape(torch):
    found = []
    for f in (lambda t: t.unsqueeze_(0), lambda t: t.t_(), lambda t: t.transpose_(0, 1).mul_(2), lambda t: t.unsqueeze_(-1), lambda t: t.t_()[0]):
        for x, dim in layouts(torch)[:3]:
            y = torch.vmap(f, dim)(x)
            found.append((x, x.stride(), y, y.stride(), y is x))
    return found


@same
def test_nested(torch):
    def write(t):
        t[1:].add_(1)
        return t[:2]
    found = []
    for outer, inner, out in ((0, 0, 0), (2, 1, -1), (1, 2, 1)):
        x = torch.zeros(3, 4, 5, 6)
        y = torch.vmap(torch.vmap(lambda t: t.T, inner, out), outer, out)(x)
        z = torch.vmap(torch.vmap(write, inner), outer)(x)
        found += [y, y.stride(), y._base is x, z, z.stride(), z._base is x, x.clone(), y.add_(1), x, z]
    return found


@same
def test_captured_tensors(torch):
    z, b = torch.arange(4.0), torch.zeros(3, 2)
    found = []
    for f, out in ((lambda t: z, 0), (lambda t: z, None), (lambda t: z[1:], 0), (lambda t: z[1:], None), (lambda t: z.add_(1), 0), (lambda t: z[2:].mul_(2), 0),
                   (lambda t: z.detach()[:1], None)):
        y = torch.vmap(f, out_dims=out)(b)
        found += [y, y is z, y._base is z, y.stride(), z.clone()]
    z.zero_()
    return found, y


@same
def test_writes_to_parts_of_captured_memory(torch):
    x, found = torch.ones(3, 2), []
    root = torch.zeros(6)
    z, y = root[2:].detach(), root[:3].detach()
    found += [torch.vmap(lambda a: (z.add_(1), y[1:].mul_(5).add_(2))[1], out_dims=None)(x), root.clone(), z.clone(), y.clone()]
    found += [torch.vmap(lambda a: (root.detach()[1:].add_(1), root[2:])[1], out_dims=None)(x), root.clone()]
    found += [torch.vmap(lambda a: (root[1:].add_(1), a + root.sum())[1])(x), root]
    p, w = torch.zeros(4).requires_grad_(), torch.ones(4).requires_grad_()
    q = p * 1
    q.unsqueeze_(0)
    found += [torch.vmap(lambda a: q.add_(w), out_dims=None)(x).shape, q, torch.autograd.grad(q.sum(), (p, w))]
    r = p * 1
    v = r[1:]
    r.unsqueeze_(0)
    return found, torch.vmap(lambda a: v.mul_(w[1:]), out_dims=None)(x), r, torch.autograd.grad(r.sum(), (p, w))


@same
def test_gradients(torch):
    def leaf():
        return torch.arange(12.0).reshape(3, 4).requires_grad_()
    found, weight = [], torch.ones(4).requires_grad_()

    def part(t):
        return t[1:].mul_(2)

    def captured(t):
        c.mul_(weight * 2)
        return t * c

    def quietly(t):
        with torch.no_grad():
            t.mul_(3)
        return t.sum()
    for f in (part, lambda t: t.mul_(weight), lambda t: t.zero_()):
        p = leaf()
        q = p * 1
        y = torch.vmap(f)(q)
        found += [y, q, torch.autograd.grad((q * torch.arange(4)).sum() + y.sum(), (p, weight), allow_unused=True)]
    c = torch.ones(4)
    y = torch.vmap(captured)(torch.ones(3, 4))
    found += [y, c, torch.autograd.grad(y.sum() + c.sum(), weight)]
    p = leaf()
    q = p * 1
    y = torch.vmap(lambda t: t[1:])(q)
    y.mul_(5)
    found += [torch.autograd.grad(q.pow(2).sum(), p)]
    p = leaf()
    found += [torch.vmap(quietly)(p), p, p.is_leaf, torch.vmap(lambda t: t)(p) is p, caught(lambda: torch.vmap(part)(p)), caught(lambda: y[0].detach().add_(1))]
    view = torch.vmap(lambda t: t[1:])(p)
    found += [caught(lambda: view.add_(1)), caught(lambda: torch.vmap(lambda t: t.unbind())(q)[0].add_(1))]
    with torch.no_grad():
        view = torch.vmap(lambda t: t[1:])(q)
    return found, view.requires_grad, caught(lambda: view.add_(1))


@same
def test_forward_derivatives(torch):
    x, direction, shared = torch.arange(12.0).reshape(3, 4), torch.ones(3, 4) * 2, torch.arange(4.0)
    jvp = torch.func.jvp

    def written(f, dim=0):
        def program(x):
            y = x * 1
            torch.vmap(f, dim)(y)
            return y * x, y
        return program

    def captured(z):
        y, total = z * 1, torch.zeros(3, 4)
        torch.vmap(lambda a, b: (y.mul_(2), b.copy_(z), a.mul_(3)))(x * 1, total)
        return y * z, total
    found = [jvp(written(f, dim), (x,), (direction,)) for dim in (0, 1) for f in (
        lambda a: a.mul_(3), lambda a: a[1:].mul_(a[:1]), lambda a: a.zero_(), lambda a: a.copy_(torch.ones_like(a) * 5))]
    found += [jvp(captured, (shared,), (shared * 3,))]
    found += [jvp(lambda x: jvp(written(lambda a: a.mul_(a * 1)), (x,), (direction,))[1], (x,), (direction,))]
    found += [torch.func.grad(lambda x: jvp(written(lambda a: a.mul_(a * 1)), (x,), (direction,))[1][0].sum())(x)]
    return found, jvp(torch.vmap(lambda a: a[1:]), (x,), (direction,)), torch.vmap(lambda a, b: jvp(lambda u: u[1:] * u[0], (a,), (b,)))(x, direction)


@same
def test_views_of_other_types(torch):
    c = torch.complex(torch.arange(12.0), torch.ones(12)).reshape(3, 4)
    y = torch.vmap(lambda t: t.conj())(c)
    found = [y.is_conj(), y.clone(), y.mul_(2), c.clone()]
    y = torch.vmap(torch.view_as_real, 1)(c)
    found += [y.stride(), y.zero_(), c]
    for kind in (torch.int32, torch.int16, torch.uint8):
        x = torch.arange(20.0).reshape(5, 4)[1:]
        y = torch.vmap(lambda t, kind: t.view(kind)[1:], (0, None))(x, kind)
        found += [y.stride(), y.storage_offset(), y.clone(), y.zero_(), x]
    return found


@same
def test_where_examples_lie(torch):
    found = []

    def look(t):
        found.append((t.stride(), t.storage_offset(), t.is_contiguous(), t[1:].T.stride(), t.reshape(-1).stride()))
        found.append(error(t.view, -1))
        found.append(words(lambda: t.is_contiguous(memory_format=torch.channels_last)))
        found.append(words(lambda: t.clone(memory_format=torch.channels_last)))
        found.append(words(lambda: t.as_strided((2, 2), (1,))))
        found.append(words(lambda: t.as_strided((99,), (1,), t.storage_offset())))
        return t.as_strided((2, 2), (t.stride(1), t.stride(0)), t.storage_offset() + t.stride(0))
    for x, dim in layouts(torch):
        y = torch.vmap(look, dim)(x)
        found += [y, y.stride(), y.mul_(2), x]
    return found


@same
def test_data_is_refused(torch):
    x, c = torch.ones(3, 4), torch.ones(4)

    def exchange(t):
        u = torch.ones(4)
        u.data = t

    def into(t):
        t.data = torch.ones(4)
    return [words(torch.vmap(f), x) for f in (lambda t: t.data, exchange, into, lambda t: (t * 2).data)] + [
        torch.vmap(lambda t: t * c.data)(x), torch.vmap(torch.func.grad(lambda t: (t * t.data).sum()))(x)]


@same
def test_dimensions_out_of_range(torch):
    return [error(torch.vmap(f, out_dims=out), torch.ones(3, 4)) for f in (lambda t: t, lambda t: t * 2) for out in (2, 3, -3, -4)]


def test_views_between_examples_are_refused():
    """Here torch shows the elements of other examples."""
    x = torchlike.arange(60.0).reshape(4, 5, 3)
    with pytest.raises(RuntimeError, match="other examples"):
        torchlike.vmap(lambda t: t.as_strided((2,), (1,)), in_dims=2)(x)


@same
def test_compiled(torch):
    """A call that is traced and replayed does what it does at first."""
    found = []
    for f in (lambda x: torch.vmap(lambda a: a[1:])(x), lambda x: torch.vmap(lambda a: a.mul_(2))(x), lambda x: torch.vmap(lambda a: a.T, in_dims=1)(x[None]) * 2,
              lambda x: torch.vmap(lambda a: (a[1:].add_(1), a * 2))(x)):
        compiled, x = torch.compile(f, backend="eager"), torch.arange(12.0).reshape(3, 4) + 0
        for _ in range(4):
            y = compiled(x)
            found.append((y, x.clone(), y is x))
    return found


@same
def test_written_again_and_again(torch):
    state, step = torch.zeros(3, 4), torch.vmap(lambda s, a: (s.add_(a), s[0]))
    found = []
    for k in range(5):
        after, first = step(state, torch.ones(3, 4) * k)
        found.append((after is state, first.clone()))
    return found, state, first


@same
def test_without_data(torch):
    x = torch.empty(3, 4, 5, device="meta")
    y = torch.vmap(lambda t: t[1:], 1)(x)
    return y.shape, y.stride(), torch.vmap(lambda t: t)(x) is x, torch.vmap(lambda t: t.mul_(2))(x) is x, torch.vmap(lambda t: t.T * 2, 1)(x).stride()


@same
def test_factories_after_an_example_are_written_apart(torch):
    """What is made of an example's shape, and written there, has memory for each; what the function makes by itself is one for all."""
    x, c, found = torch.randn(3, 4), torch.ones(4), []
    for f in (torch.zeros_like, torch.ones_like, lambda x: torch.zeros_like(x).fill_(2.0).diag(), lambda x: torch.zeros_like(x) * 2, lambda x: torch.full_like(x, 3.0),
              lambda x: x.new_zeros(2), lambda x: x.new_ones(2) + 1, lambda x: x.new_full((2,), 1), lambda x: torch.empty_like(x).zero_(),
              lambda x: torch.zeros_like(x).copy_(c), lambda x: torch.zeros(2), lambda x: torch.zeros(2) + 1, lambda x: torch.arange(2), lambda x: c, lambda x: c + 1,
              lambda x: torch.zeros_like(c)):
        made = torch.vmap(f)(x)
        found.append((made.clone(), made.stride(), caught(made.mul_, 2)))
    return found
