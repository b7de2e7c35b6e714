"""torch.jit.save of traced modules: real torch's torch.jit.load runs the archives to the same numbers, and torchlike's reads them back."""
import io
import pickle
import warnings

import export_models as models
import numpy as np
import pytest
import torch

import torchlike

pytestmark = pytest.mark.filterwarnings("ignore")
BUILDERS = {"mlp": models.mlp, "cnn": models.cnn, "transformer": models.transformer, "block": models.block, "recurrent": models.recurrent}


def leaves(x):
    return [x] if hasattr(x, "detach") else [z for y in (x.values() if isinstance(x, dict) else x) for z in leaves(y)]


def across(x, to):
    if hasattr(x, "detach"):
        return to.from_numpy(x.detach().numpy())
    return type(x)(across(y, to) for y in x) if isinstance(x, (tuple, list)) else {k: across(y, to) for k, y in x.items()}


def saved(module, *args):
    stream = io.BytesIO()
    torchlike.jit.save(torchlike.jit.trace(module, args), stream)
    return stream


def agree(stream, module, *args):
    """Both torches load the file, and compute on these arguments what the module does."""
    want = leaves(module(*args))
    for reader in (torch, torchlike):
        stream.seek(0)
        got = leaves(reader.jit.load(stream)(*across(args, reader)))
        assert len(got) == len(want)
        for x, y in zip(got, want):
            assert str(x.dtype).rpartition(".")[2] == str(y.dtype).rpartition(".")[2]
            np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BUILDERS)
def test_models(name):
    m, args = BUILDERS[name](torchlike)
    stream = saved(m.eval(), *args)
    agree(stream, m, *args)
    agree(stream, m, torchlike.cat([args[0], args[0]]))
    stream.seek(0)
    loaded = torch.jit.load(stream)
    assert list(loaded.state_dict()) == list(m.state_dict())
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in m.named_parameters()]
    assert loaded.original_name == type(m).__name__ and not loaded.training


def test_both_sizes_of_a_sequence_stay_open():
    m, args = models.block(torchlike)
    agree(saved(m, *args), m, torchlike.linspace(-1, 1, 3 * 7 * 8).reshape(3, 7, 8))


def test_containers_constants_and_kinds_of_arguments():
    class Kinds(torchlike.nn.Module):
        def __init__(self):
            super().__init__()
            self.t, self.n = torchlike.tensor([1., 2.]), torchlike.nn.Parameter(torchlike.tensor(3.0))
            self.layers = torchlike.nn.Sequential(torchlike.nn.Linear(2, 2, bias=False), torchlike.nn.ReLU())

        def forward(self, x, pair):
            a, _ = x.max(1)
            c = torchlike.cat([pair[0], pair[1]["k"]]).view(-1, 2).split(1, 0)[0]
            return ({"o": self.layers(x) + self.t, "i": x[:, torchlike.tensor([0, 1])]},
                    [a, c, torchlike.where(x > 0, x, float("inf")), x.to(torchlike.float64), torchlike.zeros(x.shape[0], dtype=torchlike.int64),
                     x.clamp(None, 1.) * self.n, torchlike.einsum("ij,kj->ik", x, x), x.sum((0, 1)), x.std(), -x, 1 - x])

    m = Kinds()
    agree(saved(m, torchlike.arange(6.).reshape(3, 2), (torchlike.ones(2), {"k": torchlike.ones(2)})), m, torchlike.arange(8.).reshape(4, 2),
          (torchlike.ones(2), {"k": torchlike.zeros(2)}))


def test_shared_modules_stay_shared():
    class Shared(torchlike.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torchlike.nn.Linear(3, 3)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    m = Shared()
    stream = saved(m, torchlike.ones(2, 3))
    agree(stream, m, torchlike.ones(2, 3))
    stream.seek(0)
    loaded = torch.jit.load(stream)
    assert loaded.a.weight.data_ptr() == loaded.b.weight.data_ptr()


def test_buffers_are_written_when_the_file_runs():
    m, args = models.cnn(torchlike, training=True)
    stream = saved(m, *args)
    assert m.bn.num_batches_tracked.item() == 1  # the trace's own call
    stream.seek(0)
    loaded = torch.jit.load(stream)
    loaded(*across(args, torch))
    assert loaded.bn.num_batches_tracked.item() == 2
    np.testing.assert_allclose(m(*args) is not None and loaded.bn.running_mean.numpy(), m.bn.running_mean.numpy(), rtol=1e-5)


def test_a_branch_is_taken_for_good():
    class Branch(torchlike.nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    m = torchlike.jit.trace(Branch(), torchlike.ones(3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = m.save_to_buffer()
    assert [w.category for w in caught] == [torchlike.jit.TracerWarning]
    assert torch.jit.load(io.BytesIO(data))(-torch.ones(2)).tolist() == [-2.0, -2.0]


def test_the_method_of_a_traced_module(tmp_path):
    m, args = models.mlp(torchlike)
    assert not hasattr(m, "save")
    traced = torchlike.jit.trace(m, args)
    traced.save(str(tmp_path / "m.pt"), _extra_files={"note": "hello"})
    extra = {"note": ""}
    loaded = torch.jit.load(str(tmp_path / "m.pt"), _extra_files=extra)
    assert extra["note"] == b"hello" and loaded(torch.ones(1, 4)).shape == (1, 2)
    assert pickle.loads(pickle.dumps(torchlike.nn.Linear(2, 2))) is not None and traced is m


def test_what_cannot_be_saved():
    stream = io.BytesIO()
    for m in (torchlike.nn.Linear(2, 2), lambda x: x):
        with pytest.raises(RuntimeError, match="torch.jit.save"):
            torchlike.jit.save(m, stream)
    assert not stream.getvalue()


def test_several_methods():
    class Net(torchlike.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torchlike.nn.Linear(2, 3)
            self.register_buffer("seen", torchlike.zeros(()))

        def forward(self, x):
            return self.layer(x) + torchlike.tensor([1., 2., 3.])

        def weighted(self, x, *, by):
            return {"y": x * self.layer.weight * by + torchlike.tensor([4., 5.])}

        def draw(self):
            self.seen += 1
            return torchlike.randn(3) + self.layer.bias

    m, x = Net(), torchlike.tensor([[1., -2.], [0.5, 3.]])
    assert torchlike.jit.trace_module(m, {"forward": x, "draw": ()}) is m
    torchlike.jit.trace_module(m, {"weighted": {"x": x[0], "by": x[1]}}, example_inputs_is_kwarg=True)
    only = m.save_to_buffer()
    torchlike.jit.trace_module(m, {"forward": x, "draw": ()}, check_trace=False)
    data, seen = m.save_to_buffer(), int(m.seen)
    for reader in (torch, torchlike):
        loaded = reader.jit.load(io.BytesIO(data))
        np.testing.assert_allclose(loaded(reader.ones(3, 2)).detach(), m(torchlike.ones(3, 2)).detach(), rtol=1e-6)
        torchlike.manual_seed(3)
        want = torchlike.randn(3) + m.layer.bias
        reader.manual_seed(3)
        np.testing.assert_array_equal(loaded.draw().detach(), want.detach())
        assert int(loaded.seen) == seen + 1
        loaded = reader.jit.load(io.BytesIO(only))
        got = loaded.weighted(reader.tensor([1., 2.]), reader.tensor([2., 4.]))["y"].detach()
        np.testing.assert_allclose(got, m.weighted(torchlike.tensor([1., 2.]), by=torchlike.tensor([2., 4.]))["y"].detach(), rtol=1e-6)
        assert not hasattr(loaded, "draw")


@pytest.mark.parametrize("lib", [torch, torchlike], ids=["torch", "torchlike"])
def test_what_is_traced(lib):
    class Net(lib.nn.Module):
        def forward(self, x):
            return x + 1

        def other(self, x):
            return x

    m = Net()
    assert isinstance(lib.jit.trace(m.forward, lib.ones(2)), lib.nn.Module)
    for call, message in ((lambda: lib.jit.trace(m.other, lib.ones(2)), "individual module's functions"),
                          (lambda: lib.jit.trace_module(3, {}), "expected torch.nn.Module as the first argument"),
                          (lambda: lib.jit.trace_module(m, 3), r"expected a dictionary of \(method_name, input\) pairs"),
                          (lambda: lib.jit.trace_module(m, {"third": ()}), "no attribute 'third'")):
        with pytest.raises(AttributeError, match=message):
            call()


@pytest.mark.parametrize("call", [lambda lib, x: x / 2, lambda lib, x: x / lib.tensor([4, 5]), lambda lib, x: lib.full((2,), 3) + x,
                                  lambda lib, x: lib.div(x, 2, rounding_mode="floor"), lambda lib, x: lib.nn.functional.gelu(x * 0.5, approximate="tanh"),
                                  lambda lib, x: lib.nn.functional.gelu(x * 0.5), lambda lib, x: lib.linspace(0, 1, 2) + x,
                                  lambda lib, x: lib.logspace(0, 1, 2) + x, lambda lib, x: lib.arange(0, 4, 2) + x])
def test_operators_are_read_as_they_are_today(call):
    class Net(torchlike.nn.Module):
        def forward(self, x):
            return call(torchlike, x)
    x = torchlike.tensor([-3, 5])
    agree(saved(Net(), x), Net(), x)
