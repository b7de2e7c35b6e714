"""torch.onnx: files that ONNX Runtime computes the same with as the model; names and dimensions as in real torch's files."""
import inspect
import io
import sys
import warnings
from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx_functions import DYNAMIC, FUNCTIONS

import torchlike
from torchlike import nn
from torchlike.nn import functional as F
from torchlike.onnx.errors import OnnxExporterError, UnsupportedOperatorError


class Called(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return self.f(torchlike, *args)


def exported(model, args, **how):
    program = torchlike.onnx.export(model, args, verbose=False, **how)
    onnx.checker.check_model(program.model_proto, full_check=True)
    return program.model_proto


def run(proto, *arrays):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: np.asarray(a) for i, a in zip(proto.graph.input, arrays)})


def agree(got, wanted):
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def as_model(proto, model, *tensors):
    """ONNX Runtime's results are the model's."""
    with torchlike.no_grad():
        wanted = torchlike.utils._pytree.tree_leaves(model(*tensors))
    agree(run(proto, *[t.numpy() for t in tensors]), [t.numpy() for t in wanted])


def ends(proto):
    """Names and dimensions of inputs and outputs."""
    return [(v.name, [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]) for v in [*proto.graph.input, *proto.graph.output]]


def kinds(proto):
    return [n.op_type for n in proto.graph.node]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(oracle, name):
    f, arrays = FUNCTIONS[name]
    proto = exported(Called(f).eval(), tuple(map(torchlike.from_numpy, arrays)))
    wanted = f(oracle, *map(oracle.from_numpy, arrays))
    agree(run(proto, *arrays), [t.numpy() for t in wanted])


@pytest.mark.parametrize("name", DYNAMIC)
def test_functions_of_dynamic_sizes(oracle, name):
    f, arrays, others, dims = DYNAMIC[name]
    proto = exported(Called(f).eval(), tuple(map(torchlike.from_numpy, arrays)), dynamic_shapes=tuple(dims))
    for given in (arrays, others):
        agree(run(proto, *given), [t.numpy() for t in f(oracle, *map(oracle.from_numpy, given))])


def test_masks_choose_by_data():
    proto = exported(Called(lambda torch, x: (x[x > 0] * 2, x.nonzero())).eval(), (torchlike.ones(2, 4),))
    assert ends(proto)[1:] == [("mul", ["u0"]), ("nonzero", ["u1", 2])]
    x = torchlike.tensor([[1.0, -2.0, 0.0, 3.0]] * 2)
    agree(run(proto, x), [(x[x > 0] * 2).numpy(), x.nonzero().numpy()])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.conv, self.ln = nn.Linear(4, 8), nn.Conv1d(1, 2, 3), nn.LayerNorm(8)

    def forward(self, x):
        x = F.gelu(torchlike.relu(self.ln(self.fc1(x))))
        return self.conv(x[:, None]).reshape(x.shape[0], -1), x.softmax(-1)


def test_one_node_for_each_layer():
    model = Net().eval()
    proto = exported(model, (torchlike.randn(2, 4),), dynamic_axes={"x": {0: "batch"}}, output_names=["y", "z"])
    assert kinds(proto) == ["Gemm", "LayerNormalization", "Relu", "Gelu", "Unsqueeze", "Conv", "Reshape", "Softmax"]
    assert ends(proto) == [("x", ["batch", 4]), ("y", ["batch", 12]), ("z", ["batch", 8])]
    assert [n.output[0] for n in proto.graph.node] == ["linear", "layer_norm", "relu", "gelu", "unsqueeze", "conv1d", "y", "z"]
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer}
    for key, value in model.state_dict().items():
        np.testing.assert_array_equal(weights[key], value.numpy())
    as_model(proto, model, torchlike.randn(5, 4))


def test_normalization_goes_into_the_convolution():
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(8, 10)).eval()
    for m in (model[1], model[5]):
        m.running_mean.normal_()
        m.running_var.uniform_(0.5, 2)
    proto = exported(model, (torchlike.randn(1, 1, 28, 28),), dynamic_shapes={"input": {0: "batch"}})
    assert kinds(proto) == ["Conv", "Relu", "MaxPool", "Conv", "Relu", "ReduceMean", "Reshape", "Gemm"]
    as_model(proto, model, torchlike.randn(3, 1, 28, 28))
    apart = exported(model, (torchlike.randn(1, 1, 28, 28),), optimize=False)
    assert Counter(kinds(apart))["BatchNormalization"] == 2


class Sequence(nn.Module):
    def __init__(self, layer, **how):
        super().__init__()
        self.table, self.layer = nn.Embedding(7, 4), layer(4, 5, **how)

    def forward(self, ids):
        return self.layer(self.table(ids))


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("how", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}], ids=["plain", "both ways"])
def test_recurrent_layers(layer, how):
    model = Sequence(getattr(nn, layer), **how).eval()
    proto = exported(model, (torchlike.randint(0, 7, (2, 3)),), dynamic_shapes={"ids": {0: "b", 1: "t"}})
    assert Counter(kinds(proto))[layer] == (2 if how else 1)
    as_model(proto, model, torchlike.randint(0, 7, (4, 6)))


@pytest.mark.parametrize("how", [{}, {"num_layers": 2, "bidirectional": True, "bias": False}], ids=["plain", "both ways"])
def test_a_recurrent_layer_with_a_projection_is_its_steps(how):
    model = nn.LSTM(4, 5, proj_size=3, **how).eval()
    x = torchlike.randn(3, 2, 4)
    proto = exported(model, (x,))
    assert not Counter(kinds(proto))["LSTM"] and Counter(kinds(proto))["Tanh"] >= 6
    as_model(proto, model, x)


def test_both_directions_with_first_states():
    model = nn.GRU(4, 5, num_layers=2, bidirectional=True).eval()
    x, h = torchlike.randn(3, 2, 4), torchlike.randn(4, 2, 5)
    proto = exported(model, (x, h))
    assert Counter(kinds(proto))["GRU"] == 2
    as_model(proto, model, x, h)


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.ln, self.qkv, self.out, self.heads = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.register_buffer("mask", torchlike.tril(torchlike.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = [y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.ln(x)).split(c, dim=2)]
        scores = (q @ k.transpose(-2, -1)) / k.size(-1) ** 0.5
        weights = F.softmax(scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)
        return x + self.out((weights @ v).transpose(1, 2).contiguous().view(b, t, c))


class GPT(nn.Module):
    def __init__(self, length=16):
        super().__init__()
        self.wte, self.wpe, self.length = nn.Embedding(20, 16), nn.Embedding(length, 16), length
        self.blocks, self.head = nn.ModuleList([Block(16, 4, length) for _ in range(2)]), nn.Linear(16, 20, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        t = ids.shape[1]
        assert t <= self.length
        x = self.wte(ids) + self.wpe(torchlike.arange(0, t, device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@pytest.mark.parametrize("length", [8, 16])  # 16 is as much as the model takes
def test_gpt_of_any_length(length):
    model = GPT().eval()
    proto = exported(model, (torchlike.randint(0, 20, (1, length)),), dynamic_shapes={"ids": {0: "batch", 1: torchlike.export.Dim("time", max=16)}})
    assert ends(proto) == [("ids", ["batch", "time"]), ("linear_4", ["batch", "time", 20])]
    as_model(proto, model, torchlike.randint(0, 20, (3, 15)))


def test_transformer_encoder():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    proto = exported(model, (torchlike.randn(2, 5, 8),), dynamic_shapes=({0: "b", 1: "t"},))
    as_model(proto, model, torchlike.randn(3, 7, 8))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.up, self.out = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1), nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        up = self.up(F.relu(self.b(F.max_pool2d(a, 2))))
        rest = a.shape[2] - up.shape[2]
        return torchlike.sigmoid(self.out(torchlike.cat([a, F.pad(up, (0, 0, rest // 2, rest - rest // 2))], 1)))


def test_sizes_that_a_model_refuses_are_not_tried_further():
    model = UNet().eval()
    proto = exported(model, (torchlike.randn(1, 3, 16, 16),), dynamic_shapes={"x": {0: "b", 2: "h", 3: "w"}})
    assert ends(proto) == [("x", ["b", 3, "h", "w"]), ("sigmoid", ["b", 1, "h", "w"])]
    as_model(proto, model, torchlike.randn(2, 3, 24, 32))


def test_outputs_dimensions_are_expressions():
    model = nn.Sequential(nn.Conv2d(1, 1, 3), nn.Upsample(scale_factor=2))
    proto = exported(model.eval(), (torchlike.randn(1, 1, 8, 8),), dynamic_shapes={"input": {2: "h", 3: torchlike.export.Dim.DYNAMIC}})
    assert ends(proto)[1][1] == [1, 1, "2*h - 4", "2*s1 - 4"]


class Nest(nn.Module):
    def forward(self, x, n, y=None, d=None, *, flag=True, z=None):
        r = x * n
        if y is not None:
            r = r + y
        if d is not None:
            r = r + d["a"] * d["b"][0]
        return {"r": r if z is None else r * z, "t": (r + 1, [r + 2])}


def test_nests_of_arguments_and_results():
    x, y = torchlike.randn(2, 4), torchlike.randn(2, 4)
    proto = exported(Nest().eval(), (x, 3, None, {"a": x, "b": [y, x]}), kwargs={"z": y, "flag": False})
    assert [n for n, _ in ends(proto)] == ["x", "d_a", "d_b_0", "d_b_1", "z", "mul_2", "add_1", "add_2"]
    agree(run(proto, x, x, y, x, y), [v.numpy() for v in ((x * 3 + x * y) * y, x * 3 + x * y + 1, x * 3 + x * y + 2)])
    named = exported(Nest().eval(), (x, 3, y), input_names=["a"], output_names=["o"])
    assert [n for n, _ in ends(named)] == ["a", "y", "o", "add_1", "add_2"]


def _legacy(torch, model, args, **how):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.onnx.export(model, args, file, dynamo=False, **how) is None
    proto = onnx.load_from_string(file.getvalue())
    onnx.checker.check_model(proto, full_check=True)
    return proto


def _convolutions(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 5, padding=2), torch.nn.ReLU(), torch.nn.Conv2d(4, 9, 3, padding=1), torch.nn.PixelShuffle(3))


@pytest.mark.parametrize("how", [{}, {"dynamic_axes": {"in": {0: "batch"}, "out": {0: "batch"}}}, {"dynamic_axes": {"in": [0], "out": [0]}},
                                 {"export_params": False}, {"keep_initializers_as_inputs": True}, {"opset_version": 13}], ids=str)
def test_older_exporter_is_as_torchs(oracle, how):
    files = [_legacy(torch, _convolutions(torch), torch.ones(1, 1, 6, 6), input_names=["in"], output_names=["out"], **how) for torch in (oracle, torchlike)]
    theirs, ours = [(ends(p), kinds(p), [t.name for t in p.graph.initializer], p.ir_version, p.opset_import[0].version, p.producer_name) for p in files]
    assert ours == theirs
    if not how:
        x = np.ones((1, 1, 6, 6), np.float32)
        agree(run(files[1], x), run(files[0], x))


@pytest.mark.parametrize("opset", range(11, 24))
def test_opsets(opset):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(),
                          nn.Hardswish(), nn.Mish(), nn.Softmax(1)).eval()
    x = torchlike.randn(2, 1, 8, 8)
    proto = _legacy(torchlike, model, x, opset_version=opset)
    assert proto.opset_import[0].version == opset
    as_model(proto, model, x)


def test_modes():
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(), nn.BatchNorm1d(2))
    x = torchlike.randn(5, 3)
    assert kinds(_legacy(torchlike, model, x)) == ["Gemm", "BatchNormalization"] and model.training
    before = model[2].running_mean.clone()
    assert kinds(_legacy(torchlike, model, x, training=torchlike.onnx.TrainingMode.TRAINING)) == ["Gemm", "Dropout", "BatchNormalization"]
    assert torchlike.equal(model[2].running_mean, before)
    with pytest.warns(UserWarning, match="training mode"):
        torchlike.onnx.export(model, (x,), verbose=False)
    with torchlike.onnx.select_model_mode_for_export(model, torchlike.onnx.TrainingMode.EVAL):
        assert not model.training
    assert model.training


def test_files(tmp_path):
    model, path = nn.Linear(100, 100).eval(), tmp_path / "model.onnx"
    x = torchlike.randn(1, 100)
    for _ in range(2):  # the second replaces the first
        program = torchlike.onnx.export(model, (x,), path, verbose=False)
    assert path.stat().st_size < 1000 and (tmp_path / "model.onnx.data").stat().st_size < 41000
    agree(onnxruntime.InferenceSession(path).run(None, {"input": x.numpy()}), [model(x).detach().numpy()])
    torchlike.onnx.export(model, (x,), str(tmp_path / "one.onnx"), verbose=False, external_data=False)
    assert not (tmp_path / "one.onnx.data").exists()
    program.save(tmp_path / "bare.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    assert [v.name for v in onnx.load(tmp_path / "bare.onnx").graph.input] == ["input", "weight", "bias"]
    with pytest.warns(DeprecationWarning, match="BytesIO"):
        torchlike.onnx.export(model, (x,), file := io.BytesIO(), verbose=False)
    assert onnx.load_from_string(file.getvalue()).graph.name == "main_graph"


def test_a_program_runs():
    model = Net().eval()
    x = torchlike.randn(2, 4)
    program = torchlike.onnx.export(model, (x,), verbose=False, verify=True)
    wanted = [t.detach().numpy() for t in model(x)]
    agree([t.numpy() for t in program(x)], wanted)
    agree([t.numpy() for t in program.call_reference(x)], wanted)
    agree([program.compute_values(["linear"], (x,))[0].numpy()], [model.fc1(x).detach().numpy()])
    program.apply_weights({"fc1.bias": torchlike.zeros(8)})
    agree([program.compute_values(["linear"], (x,))[0].numpy()], [(x @ model.fc1.weight.T).detach().numpy()])
    assert "Gemm" in repr(program)


def test_reports_are_not_written_in_silence():
    with pytest.warns(UserWarning, match="report, profile has no effect"):
        torchlike.onnx.export(nn.Linear(2, 1).eval(), (torchlike.ones(1, 2),), report=True, profile=True, verbose=False)


def test_messages(capsys, oracle):
    torchlike.onnx.export(nn.Linear(2, 1).eval(), (torchlike.ones(1, 2),))
    first, second = capsys.readouterr().out.splitlines()
    assert first == "[torch.onnx] Run `Linear(in_features=2, out_features=1, bias=True)` on the example and translate it into ONNX..."
    assert second == first + " ✅"
    assert (torchlike.onnx.producer_name, torchlike.onnx.producer_version) == (oracle.onnx.producer_name, oracle.onnx.producer_version)
    assert list(inspect.signature(torchlike.onnx.export).parameters) == list(inspect.signature(oracle.onnx.export).parameters)
    for name, p in inspect.signature(oracle.onnx.export).parameters.items():
        ours = inspect.signature(torchlike.onnx.export).parameters[name]
        assert (ours.kind, str(ours.default)) == (p.kind, str(p.default)) or name in ("training", "operator_export_type")


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match="onnx is not installed"):
        torchlike.onnx.export(nn.Linear(2, 1), (torchlike.ones(1, 2),))
    with pytest.raises(OnnxExporterError, match="onnx is not installed"), pytest.warns(DeprecationWarning, match="legacy"):
        torchlike.onnx.export(nn.Linear(2, 1), (torchlike.ones(1, 2),), io.BytesIO(), dynamo=False)


class Asks(nn.Module):
    def forward(self, x):
        assert torchlike.onnx.is_in_onnx_export()
        return x if x.sum() > 0 else x + 1


class Loops(nn.Module):
    def forward(self, x):
        return sum(x[:, t] for t in range(x.shape[1]))


def test_what_cannot_be_exported():
    x = torchlike.ones(2, 4)
    decomposed = Called(lambda torch, x: torch.linalg.svd(x)[1]).eval()
    with pytest.raises(OnnxExporterError, match="looks at a value"):
        exported(Asks().eval(), (x,))
    assert not torchlike.onnx.is_in_onnx_export()
    with pytest.warns(torchlike.jit.TracerWarning, match="constant"), pytest.warns(DeprecationWarning, match="legacy"):
        torchlike.onnx.export(Asks().eval(), (x,), io.BytesIO(), dynamo=False)
    with pytest.raises(OnnxExporterError, match="aten::linalg_svd"):
        exported(decomposed, (x,))
    with pytest.raises(UnsupportedOperatorError, match="Exporting the operator 'aten::linalg_svd' to ONNX opset version 20 is not supported"):
        _legacy(torchlike, decomposed, (x,))
    with pytest.raises(OnnxExporterError, match="how many operations"):
        exported(Loops().eval(), (x,), dynamic_shapes={"x": {1: "t"}})
    with pytest.raises(OnnxExporterError, match="mat1 and mat2"):
        exported(nn.Linear(4, 2).eval(), (x,), dynamic_shapes={"input": {1: "k"}})
    with pytest.raises(OnnxExporterError, match="give the export an example"):
        exported(Called(lambda torch, x: x[x == x]).eval(), (x,))
    with pytest.raises(RuntimeError, match="Failed to convert 'dynamic_axes'"):
        exported(nn.Linear(4, 2).eval(), (x,), dynamic_axes={"wrong": {0: "b"}})


def test_sizes_as_tensors(oracle):
    def shown(torch):
        import importlib
        operators, x = importlib.import_module(f"{torch.__name__}.onnx.operators"), torch.ones(2, 3)
        return str(operators.shape_as_tensor(x)), list(operators.reshape_from_tensor_shape(x, torch.tensor([3, 2])).shape)
    assert shown(torchlike) == shown(oracle)
    model = Called(lambda torch, x: x * torch._shape_as_tensor(x)[1]).eval()
    proto = exported(model, (torchlike.ones(2, 3),), dynamic_shapes=({1: "t"},))
    as_model(proto, model, torchlike.ones(2, 5))


def test_dim(oracle):
    def shown(torch):
        d = torch.export.Dim("b")
        return repr(d), d.__name__, repr(2 * d + 1), repr(d - 1), repr(torch.export.Dim("x", min=3, max=5)), repr(torch.export.dims("a", "b")), repr(torch.export.Dim.AUTO)
    assert shown(torchlike) == shown(oracle)


class Translates(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

    def forward(self, a, b, hidden):
        return self.model(a, b, tgt_mask=nn.Transformer.generate_square_subsequent_mask(b.shape[1]), src_key_padding_mask=hidden)


def test_masks_of_sequences():
    def arguments(n, s, t):
        return torchlike.randn(n, s, 8), torchlike.randn(n, t, 8), torchlike.arange(s).expand(n, s) >= s - 2
    model = Translates().eval()
    dims = {"a": {0: "b", 1: "s"}, "b": {0: "b", 1: "t"}, "hidden": {0: "b", 1: "s"}}
    proto = exported(model, arguments(2, 5, 4), dynamic_shapes=dims)
    as_model(proto, model, *arguments(3, 7, 6))


def test_own_operations():
    @torchlike.library.custom_op("onnx_test::scaled", mutates_args=())
    def scaled(x: torchlike.Tensor, by: float) -> torchlike.Tensor:
        return torchlike.from_numpy(x.numpy() * by)

    @torchlike.onnx.symbolic_helper.parse_args("v", "f")
    def nodes(g, x, by):
        return g.op("onnx_test::Scaled", x, by_f=by) if by > 3 else g.op("Mul", x, g.op("Constant", value_t=torchlike.tensor(by)))

    x, model = torchlike.randn(2, 3), Called(lambda torch, x: torch.ops.onnx_test.scaled(x, 2.0) + 1).eval()
    with pytest.raises(OnnxExporterError, match="onnx_test::scaled"):
        exported(model, (x,))
    torchlike.onnx.register_custom_op_symbolic("onnx_test::scaled", nodes, 11)
    try:
        as_model(exported(model, (x,)), model, x)
        proto = torchlike.onnx.export(Called(lambda torch, x: scaled(x, 4.0)).eval(), (x,), verbose=False).model_proto
        assert [(n.domain, n.op_type) for n in proto.graph.node] == [("onnx_test", "Scaled")] and proto.opset_import[1].domain == "onnx_test"
    finally:
        torchlike.onnx.unregister_custom_op_symbolic("onnx_test::scaled", 11)


def test_arguments_of_any_number():
    model = Called(lambda torch, *xs: sum(xs)).eval()
    proto = exported(model, (torchlike.ones(2, 3), torchlike.ones(2, 3)), dynamic_shapes={"args": ({0: "b"}, {0: "b"})})
    assert ends(proto)[:2] == [("args_0", ["b", 3]), ("args_1", ["b", 3])]
    as_model(proto, model, torchlike.ones(4, 3), torchlike.ones(4, 3))


def test_the_model_is_left_as_it_was():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torchlike.zeros(()))
            self.layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))

        def forward(self, x):
            self.n += 1
            return self.layer(x) + self.n
    model, x = Counts().eval(), torchlike.randn(2, 3)
    before = torchlike.get_rng_state()
    proto = exported(torchlike.compile(model), (x,), dynamic_shapes=({0: "b"},))
    assert model.n.item() == 0 and torchlike.equal(before, torchlike.get_rng_state())
    agree(run(proto, x), [(model.layer(x) + 1).detach().numpy()])
