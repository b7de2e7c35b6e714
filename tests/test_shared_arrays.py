"""Tensors and NumPy arrays over one memory, written from both sides: random programs beside torch, and memory too large to read whole."""
import copy
import random
from functools import partial

import numpy as np
import pytest
import torch
from same import caught, error, same

import torchlike


def _arrays(rng, r):
    array = rng.standard_normal((r.choice([4, 300]), r.choice([5, 300]))).astype(r.choice([np.float32, np.float64, np.int64]))
    return r.choice([array, array, np.asfortranarray(array), array[::2]])


def _program(torch, seed):
    """What a random program sees: views, writes through tensors, views and arrays, looks, gradients, arrays that go."""
    r, rng, seen = random.Random(seed), np.random.default_rng(seed), []
    arrays = [_arrays(rng, r)]
    tensors = [torch.from_numpy(arrays[0])]

    def see(t):
        seen.append(t.detach().numpy().copy() if r.random() < 0.5 else np.array(t.tolist()) if t.numel() < 40 else np.array(t.double().sum().item()))

    def derive(t):
        w = torch.ones((), dtype=t.dtype, requires_grad=True)
        loss = (t.reshape(-1)[:6] * w).sum()
        if r.random() < 0.5:
            see(loss)
        loss.backward()
        see(w.grad)

    def write_array(t):
        a = r.choice(arrays)
        a[r.randrange(a.shape[0])] = r.randrange(9)

    def rows(t):
        a = r.randrange(t.shape[0])
        tensors.append(t[a:a + r.randrange(1, 5)])

    def pick(t):
        i = torch.tensor([r.randrange(t.shape[0]) for _ in range(3)])
        see(t[i])
        see(t.index_select(0, i))

    def write(t):
        t[r.randrange(t.shape[0])] = r.randrange(9)
    steps = [lambda t: tensors.append(t[r.randrange(t.shape[0])]), rows, lambda t: tensors.append(t.t() if t.dim() == 2 else t),
             lambda t: tensors.append(t.reshape(-1) if t.is_contiguous() else t.unsqueeze(0)), see, write_array, lambda t: t.add_(r.randrange(3)), write, pick,
             lambda t: tensors.append(t.clone()), lambda t: arrays.append(t.detach().numpy()), lambda t: tensors.append(t * 2),
             lambda t: tensors.append(t.detach()), lambda t: t.copy_(r.choice(tensors).reshape(-1)[:1].sum()), lambda t: see(r.choice(tensors).sum()),
             lambda t: tensors.append(t[t.reshape(-1)[:t.shape[0]].argmax()]), lambda t: tensors.append(t.expand(2, *t.shape) if t.dim() < 3 else t),
             lambda t: t.index_add_(0, torch.tensor([0, 0]), torch.ones((2, *t.shape[1:]), dtype=t.dtype)), lambda t: arrays.pop(0) if arrays[1:] else None, derive]
    for _ in range(40):
        step, t = r.choice(steps), r.choice(tensors)
        if not t.dim() or (step is derive and not t.is_floating_point()):
            continue
        try:
            step(t)
        except (RuntimeError, ValueError, IndexError) as e:
            seen.append(type(e))
        if len(tensors) > 8:
            tensors.pop(r.randrange(len(tensors)))
    return [*seen, *[np.array(t.double().sum().item()) for t in tensors], *[a.copy() for a in arrays]]


@pytest.mark.parametrize("block", range(4))
def test_random_programs_see_what_torchs_do(block):
    for seed in range(100 * block, 100 * block + 100):
        ours, real = _program(torchlike, seed), _program(torch, seed)
        assert len(ours) == len(real), seed
        for a, b in zip(ours, real):
            if isinstance(b, np.ndarray):
                assert a.shape == b.shape and a.dtype == b.dtype, seed
                np.testing.assert_allclose(a, b, 1e-3, 1e-3, err_msg=str(seed))
            else:
                assert a is b, seed


@same
def test_of_a_file_larger_than_memory_only_what_is_looked_at_is_read(torch, tmp_path):
    file = np.memmap(tmp_path / "large", np.float32, "w+", shape=(1 << 20, 1 << 16))  # 256 gigabytes, of which the disk has what is written
    x = torch.from_numpy(file)
    x[5, :3] = torch.tensor([1.0, 2, 3])
    file[9, 1] = 4
    i = torch.tensor([5, 9, 1_000_000])
    x[7].add_(2)
    w = torch.ones(8, requires_grad=True)
    (x[5:8, :8] @ w).sum().backward()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:, :2]), 8)
    return (x[4:10, :4], x[i, 1], x[i].sum(1), x[5, 1].item(), x.view(-1, 2, 1 << 15)[5, 0, :3], x.t()[:2, 5:7], x.detach()[i, :2], x.data[5, :2], x.is_leaf,
            x.index_select(0, i).shape, torch.nn.functional.embedding(i, x)[:, :3], file[7, :3].tolist(), w.grad, next(iter(loader)), x.is_contiguous(),
            [c.tolist() for c in x[5:8, :2].split(2)], [row.tolist() for row in x[5:8, :2]], x[5:6, :2].numpy().tolist())


@same
def test_a_view_sees_what_was_written_after_it_was_made(torch):
    array = np.arange(12.0).reshape(3, 4)
    x = torch.from_numpy(array)
    view, twice = x[1], x[1] * 2
    array[1, 0] = 50
    first = view.sum().item()
    array[1, 1] = 60
    kept = view * 1
    del array
    return first, view, twice, kept, x, (x.t()[1:], x[:, ::2].numpy().strides)


@same
def test_views_at_places_that_are_not_known_yet(torch):
    array = np.arange(24.0).reshape(2, 3, 4)
    x = torch.from_numpy(array)
    last = x[x[:, 0, 0].argmax()]
    seen = last[1], last[1, 2].item(), last.t()[0]
    array[1, 1] = 7
    return *seen, last[1], last.sum().item()


@same
def test_transformations_see_what_was_written_after_a_view_was_looked_at(torch):
    array = np.arange(24.0).reshape(2, 3, 4)
    view = torch.from_numpy(array)[0:1]
    before, one = view.sum().item(), torch.ones((), dtype=torch.float64)
    array[0] = 7
    seen = before, torch.vmap(lambda i: (view * i).sum())(one.expand(2)), torch.func.jvp(lambda i: (view * i).sum(), (one,), (one,))
    array[0] = 8
    return seen, view.sum().item(), torch.autograd.functional.jacobian(lambda i: (view * i).sum(), one)


@same
def test_modes_are_told_of_views_and_picks(torch):
    class Told(torch.utils._python_dispatch.TorchDispatchMode):
        seen: list = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen.append(str(function).removesuffix(".default"))
            return function(*args, **(kwargs or {}))
    array = np.zeros((1000, 300), np.float32)
    x, i = torch.from_numpy(array), torch.tensor([1, 2])
    with Told() as told:
        x[2:5], x[i], x.t(), x[5]
    return told.seen


@same
def test_an_expanded_array_is_not_copied(torch):
    array = np.arange(3.0)
    x = torch.from_numpy(array).expand(1 << 40, 3)
    array[1] = 5
    return x[7], x[:2].sum().item(), x.shape, x.numpy()[9].tolist()


@same
def test_deep_copies_hold_what_the_memory_holds(torch):
    """A view that was not looked at since somebody wrote, in a copy of what shares its memory; and the copy does not follow."""
    array, ints = np.arange(12.0).reshape(3, 4), torch.ones(3, 2, dtype=torch.int64)
    whole = torch.from_numpy(array)
    row, bytes_, shown = whole[1], torch.empty(0, dtype=torch.uint8).set_(ints.untyped_storage()), ints.numpy()
    seen = row.sum().item(), bytes_.sum().item()
    array[1] = 7
    ints[0] = 5
    copies = copy.deepcopy([row, whole, bytes_, whole[2:]])
    array[:] = 0
    shown[:] = 0
    seen += copies[0].clone(), copies[2].clone()
    copies[3][0] = copies[0][0] = -1
    return *seen, *copies, row, bytes_


@same
def test_what_lies_between_the_elements_of_an_array(torch):
    """The storage of a tensor over an array with gaps is the memory from its first element to its last."""
    array = np.arange(24.0).reshape(4, 6)
    x = torch.from_numpy(array[1:3, 1:6:2])
    seen = x.untyped_storage().nbytes(), x.storage().tolist(), x.storage_offset(), x.stride(), x.clone(), (x + 1).sum().item(), x.is_contiguous()
    whole = torch.empty(0, dtype=torch.float64).set_(x.untyped_storage())
    x.storage().fill_(3)
    whole[1] = 9
    x[1].mul_(2)
    x.requires_grad_()
    (x * x).sum().backward()
    array[1, 1] = 6
    return *seen, array, whole, x, x.grad, x.as_strided((2, 2), (1, 2), 1), torch.from_numpy(np.broadcast_to(array[0], (2, 6))).untyped_storage().nbytes()


@same
def test_one_window_of_an_array_whose_owner_goes(torch):
    x = torch.from_numpy(np.arange(24.0).reshape(4, 6)[:, 1:3])
    x.add_(1)
    y = torch.from_numpy(np.arange(24.0).reshape(4, 6)[:, 1:3])
    return x * 2, x.t_(), y.sum(), y[1], y.requires_grad_().sum()


@same
def test_copies_of_arrays_lie_as_these_do(torch):
    columns, gaps, point = np.arange(6.0).reshape(3, 2).T, np.arange(24.0).reshape(4, 6)[::2, ::3], np.array(3.0)
    made = [f(x) for x in (columns, gaps, columns[:0]) for f in (torch.tensor, partial(torch.asarray, copy=True), partial(torch.as_tensor, dtype=torch.int32),
                                                                torch.ones(2).new_tensor, partial(torch.tensor, dtype=torch.float16))]
    shared = torch.asarray(point, copy=False), torch.as_tensor(point)
    point[...] = 4
    return *[(x, x.stride()) for x in made], torch.tensor(torch.from_numpy(columns)).stride(), *shared, \
        *[caught(lambda f=f: f(columns[::-1])) for f in (torch.tensor, torch.asarray, torch.as_tensor)]


@same
def test_tensors_of_storages_share_them(torch):
    x, five = torch.arange(4.0), torch.arange(5, dtype=torch.int16)
    made = [torch.asarray(x.untyped_storage(), dtype=torch.uint8), torch.as_tensor(x.storage()), torch.tensor(x.untyped_storage()),
            torch.empty(0, dtype=torch.int64).set_(five.untyped_storage()), torch.tensor(five.untyped_storage(), dtype=torch.int32)]
    for y in made:
        y[-1] = 1
    return x, five, *made, caught(lambda: torch.asarray(x.storage(), dtype=torch.int32))


@same
def test_tensors_that_need_no_broadcasting_come_back(torch):
    x = torch.ones(2, 3)
    same_one, wider = torch.broadcast_tensors(x, torch.ones(3))
    return same_one is x, wider.stride()


@same
def test_capsules_of_tensors_that_require_gradients(torch):
    x = torch.ones(3, requires_grad=True)
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x * 2))
    return y, error(x.__dlpack__)


@same
def test_arrays_of_what_a_transformation_hands_on(torch):
    """A view with gaps is a tensor of its own there, with the same strides: its memory holds the gaps, too."""
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(x):
            parts = [x.numpy(), x[1:, ::2].numpy(), x.t().numpy()]
            seen.extend((part.strides, part.copy()) for part in parts)
            if torch is torchlike:
                for part in parts:
                    owner = part
                    while isinstance(owner.base, np.ndarray):
                        owner = owner.base
                    (first, end), (least, most) = np.lib.array_utils.byte_bounds(part), np.lib.array_utils.byte_bounds(owner)
                    assert least <= first and end <= most and owner.flags.owndata
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2
    x = torch.arange(24.).view(3, 4, 2)[..., 1]
    return torch.func.grad(lambda x: Double.apply(x).sum())(x), torch.func.grad(lambda x: Double.apply(x[:, 1:]).sum())(x), seen
