"""Strides of results whose inputs lie in memory in other orders than their dimensions."""
from itertools import permutations, product

import pytest
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


@same
def test_of_accumulated_gradients(torch):
    """`.grad` lies in memory as its tensor does, where that has no gaps."""
    found = []
    for x in inputs(torch):
        for f in (torch.sin, lambda x: x.sum(), lambda x: x.transpose(0, 2) * 2, lambda x: x.reshape(-1).cumsum(0)):
            leaf = x.detach().requires_grad_()
            for _ in range(3):
                f(leaf).sum().backward()
                found.append(steps(leaf.grad))
            leaf.grad = None
            f(leaf).sum().backward(create_graph=True)
            found.append(steps(leaf.grad))
    return found


@same
def test_of_gradients_of_elementwise_results(torch):
    found = []
    for x in inputs(torch):
        x = (x + 0.5).requires_grad_()
        for f in (torch.sin, torch.exp, lambda x: x * x, lambda x: x / 2 + x, torch.relu):
            for more in ({}, {"create_graph": True}):
                y = f(x)
                found.append(steps(torch.autograd.grad(y, [x], torch.ones_like(y), **more)[0]))
    return found


@same
def test_of_gradients_in_channels_last(torch):
    nn, found = torch.nn, []
    for rank, form in ((4, torch.channels_last), (5, torch.channels_last_3d)):
        n = rank - 2
        conv, norm, pool = ((nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d), (nn.Conv3d, nn.BatchNorm3d, nn.MaxPool3d))[n - 2]
        model = nn.Sequential(conv(3, 4, 3), norm(4), nn.ReLU(), pool(2), conv(4, 2, 2, bias=False)).to(memory_format=form)
        x = torch.randn(2, 3, *(9,) * n).contiguous(memory_format=form).requires_grad_()
        for _ in range(2):
            y = model(x)
            y.backward(torch.ones_like(y))
        y = model(x)
        found += [t.stride() for t in torch.autograd.grad(y, [x, *model.parameters()], torch.ones_like(y))]
        found += [x.grad.stride(), *(p.grad.stride() for p in model.parameters())]
    return found


@same
def test_of_nothing(torch):
    x = torch.zeros(2, 0, 3).permute(2, 0, 1)
    return [f(x).stride() for f in (torch.abs, lambda x: x + x, lambda x: torch.maximum(x, torch.zeros(3, 2, 0)), torch.clone)]


@same
def test_of_copies_with_a_part_replaced(torch):
    x = torch.randn(4, 3).t()
    made = (x.argsort(1), x.argsort(0, descending=True), x.select_scatter(torch.zeros(4), 0, 1), x.slice_scatter(torch.zeros(3, 2), 1, 0, 2),
        x.diagonal_scatter(torch.zeros(3)))
    return [t.stride() for t in made]


@same
def test_of_conversions_to_a_format(torch):
    """A conversion asks which format the strides stand for, so it copies where there is one channel, or one position, too."""
    last, plain, last_3d = torch.channels_last, torch.contiguous_format, torch.channels_last_3d
    tensors = (torch.randn(3, 4).t(), torch.randn(2, 3, 4, 5).transpose(1, 2), torch.randn(2, 3, 4, 5).contiguous(memory_format=last),
               torch.randn(4, 8, 1, 1), torch.randn(2, 1, 4, 5).to(memory_format=last), torch.randn(2, 1, 4, 5).expand(2, 3, 4, 5),
               torch.randn(2, 3, 4, 5, 6).to(memory_format=last_3d), torch.randn(0, 3, 4, 5), torch.randn(2, 3, 1, 1)[:, ::2])

    def shown(x, **how):
        try:
            made = [x.to(**how), x.float(**how), x.double(**how), x.to(torch.float64, **how), x.cpu(**how), x.to(copy=True, **how)]
        except RuntimeError as error:
            return str(error)
        return [(y.stride(), y is x) for y in made]

    convolution = torch.nn.Conv2d(8, 4, 1).to(memory_format=last)
    y = convolution(torch.randn(2, 8, 3, 3))
    y.sum().backward()
    return [shown(x, memory_format=f) for x in tensors for f in (last, plain, last_3d)], [convolution.weight.stride(), y.stride(), convolution.weight.grad.stride()]


@pytest.mark.parametrize("layer", ["GroupNorm(1, 6)", "GroupNorm(3, 6)", "GroupNorm(3, 6, affine=False)", "AdaptiveMaxPool2d(2)", "AdaptiveMaxPool2d((3, 1))",
                                   "AdaptiveMaxPool2d((3, None))", "AdaptiveAvgPool2d(1)", "AdaptiveAvgPool2d(2)", "AdaptiveAvgPool2d(3)", "AdaptiveAvgPool2d((3, 1))",
                                   "AdaptiveAvgPool2d((1, 3))"])
@same(strides=True)
def test_gradients_of_layers_that_keep_channels_last(torch, layer):
    """The gradient lies as the input, whichever way the layer computes."""
    found = []
    for order in (torch.channels_last, torch.contiguous_format):
        x = torch.arange(192.0).reshape(2, 6, 4, 4).sin().to(memory_format=order).requires_grad_()
        y = eval("torch.nn." + layer, {"torch": torch})(x)
        found += [y, *torch.autograd.grad(y, x, torch.ones_like(y, memory_format=torch.contiguous_format))]
    return found


@same
def test_of_channels_last_images_with_sizes_of_one(torch):
    for shape in ((1, 2, 3, 1), (2, 2, 1, 1), (1, 3, 2, 2), (2, 1, 3, 2)):
        for order in permutations(range(4)):
            x = torch.rand([shape[i] for i in order]).permute([order.index(d) for d in range(4)])
            y = torch.rand(shape).contiguous(memory_format=torch.channels_last)
            yield [z.stride() for z in (x.relu(), x.exp(), x + y, y * x, torch.addcmul(x, x, y), x > y)]


@same
def test_of_batch_norm_of_channels_last_images_with_sizes_of_one(torch):
    for train in (True, False):
        layer = torch.nn.BatchNorm2d(2).train(train)
        x = torch.arange(6.).reshape(1, 3, 2, 1).permute(0, 2, 1, 3)
        yield layer(x).stride(), layer(x.contiguous()).stride(), layer(torch.rand(2, 2, 3, 4).contiguous(memory_format=torch.channels_last)).stride()


@same
def test_of_a_volume_without_a_batch(torch):
    """Max pools look at it as a batch of one, average pools do not."""
    x = torch.arange(840.0).reshape(1, 4, 5, 6, 7).contiguous(memory_format=torch.channels_last_3d).squeeze(0)
    made = torch.nn.functional.max_pool3d(x, 3, return_indices=True)
    return [t.stride() for t in (*made, torch.nn.functional.max_pool3d(x, 2), torch.nn.functional.avg_pool3d(x, 3), torch.nn.functional.max_pool3d(x.contiguous(), 2))]


@same
def test_of_lines_whose_channels_are_innermost(torch):
    """A batch of lines is one of planes of height 1 to pools, which keep that format; convolutions put it in order, unless there is one channel only. A
    model that permutes to pool and back (darts' DLinear) then looks at the result by view()."""
    f, found = torch.nn.functional, []
    for shape, requires in product(((3, 8, 2), (1, 8, 2), (2, 4, 4), (3, 8, 1)), (False, True)):
        for x in (torch.arange(64.0)[:shape[0] * shape[1] * shape[2]].reshape(shape).permute(0, 2, 1), torch.ones(shape[0], shape[2], shape[1])):
            x, w = x.requires_grad_(requires), torch.ones(5, shape[2], 3)
            made = [f.avg_pool1d(x, 3, 1), f.avg_pool1d(x, 2, 2, 1), f.max_pool1d(x, 3, 1), *f.max_pool1d(x, 3, 1, return_indices=True), f.lp_pool1d(x, 2, 2),
                f.adaptive_avg_pool1d(x, 2), f.adaptive_avg_pool1d(x, 3), f.adaptive_avg_pool1d(x, 1), f.adaptive_max_pool1d(x, 2),
                *f.adaptive_max_pool1d(x, 3, return_indices=True), f.conv1d(x, w), f.conv_transpose1d(x, w.transpose(0, 1))]
            found += [steps(t) for t in made]
            found += [steps(torch.autograd.grad(t.sum(), x)[0]) for k, t in enumerate(made) if t.requires_grad and k != 5]
    return found, f.avg_pool1d(torch.ones(3, 8, 2).permute(0, 2, 1), 3, 1).permute(0, 2, 1).view(3, -1)
