"""Objects with tensors in them that PyTorch pickled (`pickle.dump`, not torch.save), loaded by Python's pickle with torchlike for torch."""
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch as oracle

import torchlike as subject

pytestmark = pytest.mark.filterwarnings("ignore")


class Ours(pickle.Unpickler):
    """Finds torchlike where the pickle says torch."""

    def find_class(self, module, name):
        root, _, rest = module.partition(".")
        return super().find_class(f"torchlike.{rest}".rstrip(".") if root == "torch" else module, name)


def again(x, protocol):
    return Ours(io.BytesIO(pickle.dumps(x, protocol))).load()


DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool", "complex64", "complex128", "float8_e4m3fn", "uint16"]


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype, protocol):
    x = oracle.arange(6).reshape(2, 3).to(getattr(oracle, dtype))
    y = again(x, protocol)
    assert (y.dtype, tuple(y.shape), y.stride()) == (getattr(subject, dtype), (2, 3), (3, 1))
    wide = (lambda t: t.to(t.dtype if "complex" in dtype else t.float().dtype))
    np.testing.assert_array_equal(wide(y).numpy(), wide(x).numpy())


def made(t):
    x = t.arange(24.0).reshape(2, 3, 2, 2)
    marked, p = t.ones(3), t.nn.Parameter(t.ones(2))
    marked.note, p.tag = "n", "x"
    t.manual_seed(1)
    return {"view": x[1, :, 0], "turned": x.transpose(0, 1), "channels_last": x.to(memory_format=t.channels_last), "scalar": t.tensor(2.5), "empty": t.empty(0, 3),
            "conj": t.tensor([1 + 2j]).conj(), "grad": t.ones(2, requires_grad=True), "marked": marked, "parameter": p, "plain parameter": t.nn.Parameter(t.ones(2)),
            "meta": t.empty(2, 3, device="meta"), "coo": t.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2)), "csr": t.eye(2).to_sparse_csr(),
            "bsr": t.eye(4).to_sparse_bsr((2, 2)), "nested": t.nested.nested_tensor([t.ones(2), t.ones(3)]),
            "jagged": t.nested.nested_tensor([t.ones(2, 2), t.ones(3, 2)], layout=t.jagged), "storage": t.arange(3.0).storage(), "bytes": t.arange(3.0).untyped_storage(),
            "layer": t.nn.Linear(2, 3), "packed": t.nn.utils.rnn.pack_sequence([t.ones(3), t.ones(2)]), "state": t.optim.Adam([p]).state_dict(),
            "normal": t.distributions.Normal(0.0, 2.0), "quantized": t.quantize_per_tensor(t.tensor([0.5, 1.0]), 0.1, 2, t.qint8),
            "things": [t.float32, t.device("cpu"), t.Size([1, 2]), t.sparse_coo, t.relu]}


def facts(x, t):
    """What to compare of an object."""
    if isinstance(x, t.Tensor):
        more = (str(x.dtype), str(x.layout), x.requires_grad, str(x.device), getattr(x, "note", None), getattr(x, "tag", None), isinstance(x, t.nn.Parameter))
        if x.is_nested:
            return *more, [facts(p.detach().clone(), t) for p in x.unbind()]
        if x.layout is not t.strided:
            return *more, x.to_dense().tolist()
        return *more, tuple(x.shape), x.stride(), None if x.is_meta else x.dequantize().tolist() if x.is_quantized else x.tolist()
    if isinstance(x, t.nn.Module):
        return type(x).__name__, [facts(p, t) for p in x.parameters()]
    if isinstance(x, t.distributions.Distribution):
        return type(x).__name__, facts(x.loc, t), facts(x.scale, t)
    if isinstance(x, t.nn.utils.rnn.PackedSequence):
        return [facts(p, t) for p in x if p is not None]
    if type(x).__name__ in ("TypedStorage", "UntypedStorage"):
        return type(x).__name__, x.tolist()
    if isinstance(x, (list, tuple)):
        return [facts(y, t) for y in x]
    return getattr(x, "__name__", str(x))


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", list(made(subject)))
def test_objects(name, protocol):
    x = made(oracle)[name]
    assert facts(again(x, protocol), subject) == facts(x, oracle)


def programs_objects(t):
    nn, data = t.nn, t.utils.data
    t.manual_seed(2)
    p = [nn.Parameter(t.ones(2))]
    optimizer, pairs = t.optim.SGD(p, lr=0.1, momentum=0.9), data.TensorDataset(t.ones(4, 2), t.zeros(4))
    return [nn.utils.spectral_norm(nn.Linear(2, 2)).eval(), nn.utils.weight_norm(nn.Linear(2, 2)), nn.LazyLinear(3), nn.LSTM(2, 2), nn.TransformerEncoderLayer(2, 1).eval(),
            nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.GELU()).eval(), nn.ModuleDict({"a": nn.Linear(1, 1)}), optimizer, t.optim.AdamW(p),
            t.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 10), t.optim.lr_scheduler.ReduceLROnPlateau(optimizer), pairs, data.Subset(pairs, [0, 2]),
            data.ConcatDataset([pairs, pairs]), data.DataLoader(pairs, batch_size=2, shuffle=True, generator=t.Generator()), t.ones(3).topk(2),
            t.distributions.Independent(t.distributions.Normal(t.zeros(2), t.ones(2)), 1), t.distributions.MultivariateNormal(t.zeros(2), t.eye(2)),
            t.tanh, nn.functional.gelu, nn.functional.cross_entropy, t.Tensor.relu, t.nn.init.xavier_uniform_, t.utils.data.default_collate, t.Tensor, t.float16]


@pytest.mark.parametrize("k", range(len(programs_objects(subject))))
def test_what_programs_keep(k):
    x = programs_objects(oracle)[k]
    y, mine = again(x, 4), programs_objects(subject)[k]
    if isinstance(x, (oracle.dtype, type)) or callable(x) and not isinstance(x, oracle.nn.Module):
        assert y is mine
        return
    assert type(y) is type(mine)
    if isinstance(x, oracle.nn.Module) and not isinstance(x, (oracle.nn.ModuleDict, oracle.nn.LazyLinear)):
        found, wanted = (m(t.ones(1, 2)) for m, t in ((y, subject), (x, oracle)))
        first = (lambda r: r[0] if isinstance(r, tuple) else r)
        np.testing.assert_allclose(first(found).detach().numpy(), first(wanted).detach().numpy(), rtol=1e-5, atol=1e-6)
    if isinstance(x, oracle.optim.Optimizer):
        y.param_groups[0]["params"][0].grad = subject.ones(2)
        y.step()
    if isinstance(x, oracle.utils.data.Dataset):
        assert len(y) == len(x) and [v.tolist() for v in y[1]] == [v.tolist() for v in x[1]]
    if isinstance(x, oracle.utils.data.DataLoader):
        assert len(list(y)) == 2
    if isinstance(x, oracle.nn.LazyLinear):
        assert tuple(y(subject.ones(1, 2)).shape) == (1, 3)


def test_memory_is_shared_as_in_torch():
    x = oracle.zeros(2, 3)
    def written(loaded):
        a, b, c = loaded
        a[0] = 7
        return b.tolist(), a is c
    given = [x, x[0], x]
    assert written(again(given, 4)) == written(pickle.loads(pickle.dumps(given, 4)))


def test_generators_go_on():
    g = oracle.Generator()
    g.manual_seed(5)
    oracle.rand(3, generator=g)
    mine = again(g, 4)
    assert subject.rand(2, generator=mine).tolist() == oracle.rand(2, generator=g).tolist() and mine.initial_seed() == 5


def test_attributes_of_subclasses_with_slots_and_state():
    class Marked(subject.Tensor):
        def __setstate__(self, state):
            self.got = state
    from torchlike._pickled import _rebuild_from_type_v2
    x = _rebuild_from_type_v2(lambda: subject.ones(2), Marked, (), {"a": 1})
    assert type(x) is Marked and x.got == {"a": 1}
    y = _rebuild_from_type_v2(lambda: subject.ones(2), subject.Tensor, (), ({"a": 1}, {"b": 2}))
    assert (y.a, y.b) == (1, 2)


def test_a_program_loads_a_pickle(tmp_path):
    with open(tmp_path / "data.pkl", "wb") as f:
        pickle.dump({"x": oracle.arange(3.0), "layer": oracle.nn.Linear(3, 1), "mf": oracle.channels_last}, f)
    script = tmp_path / "script.py"
    script.write_text("import pickle, torch\nd = pickle.load(open('data.pkl', 'rb'))\nprint(type(d['x']).__module__, d['layer'](d['x']).shape, d['mf'])\n")
    found = subprocess.run([sys.executable, "-m", "torchlike.run", str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert found.stdout.split("\n")[0] == "torch torch.Size([1]) torch.channels_last", found.stderr[-2000:]
