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


@same
def test_of_channels_last(torch):
    """torch's functions keep channels_last where they ask for the memory format that their input suggests."""
    f, nn, found = torch.nn.functional, torch.nn, []
    for rank, form in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        x, n = torch.randn(2, 8, *(4,) * (rank - 2)).contiguous(memory_format=form), rank - 2
        conv, pool, adaptive = ((f.conv2d, f.max_pool2d, f.adaptive_avg_pool2d), (f.conv3d, f.max_pool3d, f.adaptive_avg_pool3d))[n - 2]
        unpool, average, largest = ((f.max_unpool2d, f.avg_pool2d, f.adaptive_max_pool2d), (f.max_unpool3d, f.avg_pool3d, f.adaptive_max_pool3d))[n - 2]
        made = [f.group_norm(x, 2), nn.GroupNorm(2, 8)(x), f.batch_norm(x, torch.zeros(8), torch.ones(8)), f.rms_norm(x, (4,)), f.channel_shuffle(x, 2),
            f.pad(x, (1, 1)), f.pad(x, (1, 1) * n, mode="replicate"), f.pad(x, (1, 1) * n, mode="circular"), f.pad(x, (-1, 0), value=2.0), f.glu(x, 1),
            conv(x, torch.randn(3, 8, *(2,) * n)), pool(x, 2), *pool(x, 2, return_indices=True), average(x, 2), largest(x, 3), largest(x, 2),
            adaptive(x, 1), adaptive(x, 3), unpool(*pool(x, 2, return_indices=True), 2), f.interpolate(x, scale_factor=2),
            f.mse_loss(x, x, reduction="none"), torch.complex(x, x), torch.full_like(x, 2), torch.ones_like(x, memory_format=torch.contiguous_format),
            torch.cat([x, x], 1), torch.stack([x, x]), torch.stack([x, x], 2), torch.stack([x, x], rank), x.roll(1, 1), x.index_fill(1, torch.tensor([0]), 1.0),
            x[:, :1].contiguous(memory_format=form), x[:, :1].clone(memory_format=form).clone()]
        if rank == 4:
            made += [f.pixel_shuffle(x, 2), f.pixel_unshuffle(x, 2)]
        found.append([t.stride() for t in made])
    return found


@same
def test_of_mapped_functions(torch):
    x = torch.arange(24.0).reshape(2, 3, 4)
    return [torch.vmap(f)(x).stride() for f in (lambda t: t.permute(1, 0), lambda t: t.t(), lambda t: t.t() + 1, lambda t: t.t().contiguous(), lambda t: t * 2)]


@same
def test_of_rolls(torch):
    x, y = torch.randn(2, 3, 4).permute(2, 0, 1), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    return [t.stride() for t in (x.roll(1, 0), x[0].t().roll(1, -1), x.diagonal().roll(1, -1), y.roll(1, 0), y.roll((1, 1), (0, 1)), y.roll(0, 1), y.roll(3, 1))]
