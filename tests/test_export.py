"""torch.export: the graphs that real torch makes, programs that compute what their module does, and files that both read."""
import io
import zipfile

import export_models as models
import numpy as np
import pytest
import torch
from export_functions import SAME
from same import same

import torchlike

pytestmark = pytest.mark.filterwarnings("ignore")


def described(program):
    nodes = [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in program.graph.nodes if "_assert_tensor_metadata" not in n.name]
    return {"nodes": nodes, "signature": str(program.graph_signature), "ranges": str(program.range_constraints), "state": list(program.state_dict),
            "constants": sorted(program.constants), "specs": str(program.graph_signature.input_specs) + str(program.graph_signature.output_specs)}


def modules_of(program):
    """What PyTorch says of each call: the modules it is made in."""
    return [str(n.meta.get("nn_module_stack")).replace("torchlike", "torch") for n in program.graph.nodes
            if n.op == "call_function" and "_assert_tensor_metadata" not in n.name and "sym_size" not in n.name]


def grouped(expressions, size=20):
    return [expressions[i:i + size] for i in range(0, len(expressions), size)]


# -- graphs ------------------------------------------------------------------------------------------------------------------------


@same
def test_a_perceptron(torch):
    m, args = models.mlp(torch)
    program = torch.export.export(m, args, dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    shown = [line for line in str(program).splitlines() if "# File" not in line]
    got = program.module()(torch.ones(5, 4))
    return described(program), shown, torch.allclose(got, m(torch.ones(5, 4))), [p is q for p, q in zip(program.parameters(), m.parameters())]


@same
def test_a_cnn(torch):
    m, args = models.cnn(torch)
    program = torch.export.export(m, args)
    return described(program), torch.allclose(program.module()(*args), m(*args), atol=1e-6), program.module().code.replace("torchlike", "torch")


@same
def test_a_cnn_that_trains_writes_to_its_buffers_where_it_is_run(torch):
    m, args = models.cnn(torch, training=True)
    program = torch.export.export(m, args)
    before = m.bn.num_batches_tracked.item(), m.bn.running_mean.sum().item()
    program.module()(*args)
    return described(program), before, m.bn.num_batches_tracked, m.bn.running_mean


@same
def test_attention(torch):
    m, args = models.block(torch)
    Dim = torch.export.Dim
    program = torch.export.export(m, args, dynamic_shapes={"x": {0: Dim("b"), 1: Dim("t", max=64)}})
    x = torch.linspace(-1, 1, 3 * 9 * 8).reshape(3, 9, 8)
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function" and "sym_size" not in str(n.target)]
    return targets, torch.allclose(program.module()(x), m(x), atol=1e-6), str(program.range_constraints)


@same
def test_writes_in_place(torch):
    m, args = models.mutable(torch)
    program = torch.export.export(m, args, {"z": {"q": torch.ones(1)}})
    x = torch.linspace(-2, 1, 12).reshape(4, 3)
    return described(program), program.module()(x, z={"q": torch.ones(1)}), x, m.n


@same
def test_arguments_that_are_no_tensors(torch):
    class Kinds(torch.nn.Module):
        def forward(self, x, pair, k=3, *rest, flag=True, **named):
            return (x + pair[0]["u"] * k, None, k) if flag else x

    m, one = Kinds(), torch.ones(2)
    program = torch.export.export(m, (one, [{"u": one * 2}], 4, one * 3), {"z": one * 5, "flag": True})
    module = program.module()
    return described(program), module(one, [{"u": one}], 4, one, z=one, flag=True), module.code.replace("torchlike", "torch")


@same
def test_modules_that_calls_are_made_in(torch):
    """Modules called twice, of two names, in a list, and one that is no part of the model."""
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(), torch.nn.Dropout(0.1))
            self.again, self.layers = self.net[0], torch.nn.ModuleList([torch.nn.Linear(4, 6)])

        def forward(self, x):
            x = self.layers[0](self.net(x.view(-1, 6)))
            return self.again(x) + torch.nn.Flatten()(self.net(x))
    program = torch.export.export(Model(), (torch.ones(2, 6),))
    return modules_of(program)


@same
def test_tied_parameters(torch):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.a = torch.nn.Parameter(torch.ones(3)), torch.nn.Linear(3, 3)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x)) + self.w, x
    return described(torch.export.export(Tied(), (torch.ones(2, 3),)))


@same
def test_writes_through_an_index(torch):
    class Puts(torch.nn.Module):
        def forward(self, x, y):
            x = x.clone()
            x[:, 1] = y[:, 0]
            x[0] = y.sum()
            x[y > 0] = x[y > 0] * 2
            x += 1
            return x

    x, y = torch.arange(6.).reshape(3, 2), torch.linspace(-1, 1, 6).reshape(3, 2)
    m = Puts()
    return m(x, y), torch.export.export(m, (x, y)).module()(x, y)


@pytest.mark.parametrize("expressions", grouped(SAME), ids=lambda e: e[0])
def test_functions(expressions):
    def seen(torch):
        class Called(torch.nn.Module):
            def forward(self, x, y):
                names = {"torch": torch, "F": torch.nn.functional, "x": x, "y": y}
                return [eval(e, names) for e in expressions]

        torch.manual_seed(0)
        x, y = torch.linspace(-1, 2, 12).reshape(4, 3), torch.linspace(2, -1, 12).reshape(4, 3)
        m = Called()
        program = torch.export.export(m, (x, y))
        return described(program)["nodes"], program.module()(x, y), m(x, y)

    (want, _, _), (got, ran, eager) = seen(torch), seen(torchlike)
    assert [n[2:] for n in got if n[0] == "call_function"] == [n[2:] for n in want if n[0] == "call_function"]
    for e, a, b in zip(expressions, ran, eager):
        for x, y in zip(a if isinstance(a, (tuple, list)) else [a], b if isinstance(b, (tuple, list)) else [b]):
            assert not isinstance(x, torchlike.Tensor) or torchlike.equal(torchlike.nan_to_num(x), torchlike.nan_to_num(y)), e


def test_numbers_that_a_function_draws_itself_are_no_constants():
    class Draws(torchlike.nn.Module):
        def forward(self, x):
            return torchlike.nn.functional.gumbel_softmax(x) + torchlike.normal(x, 1.0)

    x = torchlike.zeros(3, 4)
    try:
        module = torchlike.export.export(Draws(), (x,)).module()
    except torchlike._dynamo.exc.UserError as e:
        assert "drawn" in str(e)
    else:
        assert not torchlike.equal(module(x), module(x))


@same
def test_constants_that_were_not_looked_at_before(torch):
    """Held where no module finds them, and still to be computed when the export begins."""
    class Held(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.flags = {"mean": torch.full((3,), 0.5) * 2}

        def forward(self, x):
            assert not torch.onnx.is_in_onnx_export()
            return x - self.flags["mean"].view(1, -1)

    return torch.export.export(Held(), (torch.ones(2, 3),)).module()(torch.ones(4, 3)[:2] * 3)


def test_samples_of_distributions_are_drawn_when_the_program_runs():
    class Noisy(torchlike.nn.Module):
        def forward(self, x):
            d = torchlike.distributions
            return x + d.Uniform(x, x + 1).rsample() + d.Normal(x, 1.0).sample() + d.Bernoulli(x + 0.5).sample()

    x = torchlike.zeros(3, 4)
    module = torchlike.export.export(Noisy(), (x,)).module()
    torchlike.manual_seed(0)
    first, second = module(x), module(x)
    torchlike.manual_seed(0)
    assert torchlike.equal(Noisy()(x), first) and not torchlike.equal(first, second)


def test_dropout_inside_of_attention_is_drawn_when_the_program_runs():
    m, args = models.transformer(torchlike, training=True)
    program = torchlike.export.export(m, args)
    assert not program.constants
    module = program.module()
    assert not torchlike.equal(module(*args), module(*args))


# -- sizes --------------------------------------------------------------------------------------------------------------------------


@same
def test_sizes_that_are_calculated(torch):
    Dim = torch.export.Dim

    class Sizes(torch.nn.Module):
        def forward(self, x, y):
            n = x.shape[0] * x.shape[1]
            return x.reshape(-1) + 1, y @ x.transpose(0, 1), x.view(n // 2, 2), torch.cat([x, y]), torch.zeros(2 * x.shape[0], n)

    m = Sizes()
    program = torch.export.export(m, (torch.ones(4, 6), torch.ones(5, 6)),
                                  dynamic_shapes={"x": {0: Dim("a"), 1: Dim.AUTO}, "y": {0: Dim("b"), 1: Dim.AUTO}})
    text = str(program)
    return program.module()(torch.ones(3, 8), torch.ones(7, 8)), "f32[s27*s77]" in text, 'mul: "Sym(s27*s77)" = ' in text, "f32[s17 + s77, s27]" in text


@pytest.mark.parametrize("sizes", [(5, 5), (1, 4), (30, 4), (4, 3)])
def test_arguments_are_checked(sizes):
    def checked(torch):
        class Two(torch.nn.Module):
            def forward(self, x, y):
                return x + y.sum(), x * y[:, :1]

        program = torch.export.export(Two(), (torch.ones(4, 4), torch.ones(4, 4)), dynamic_shapes=({0: torch.export.Dim("b", min=2, max=9)},) * 2)
        try:
            return str(program.module()(torch.ones(*sizes), torch.ones(5, 4))[0].shape)
        except AssertionError as e:
            return str(e)
    assert checked(torch) == checked(torchlike)


@same(raises="ValueError")
def test_another_number_of_arguments(torch):
    m, args = models.mlp(torch)
    return torch.export.export(m, args).module()(*args, 3)


@same(raises="RuntimeError")
def test_a_program_is_not_called_itself(torch):
    m, args = models.mlp(torch)
    return torch.export.export(m, args)(*args)


@same(raises="NotImplementedError")
def test_a_program_has_no_other_mode(torch):
    m, args = models.mlp(torch)
    return torch.export.export(m, args).module().eval()


@same(raises="UserError")
def test_a_size_that_the_model_fixes(torch):
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x + torch.ones(3)
    return torch.export.export(Fixed(), (torch.ones(3),), dynamic_shapes={"x": {0: torch.export.Dim("b")}})


def test_sizes_that_data_decide_are_asked_of_the_tensor():
    class Masked(torchlike.nn.Module):
        def forward(self, x):
            y = x[x > 0]
            return y.view(y.shape[0], 1) * 2

    program = torchlike.export.export(Masked(), (torchlike.linspace(-1, 1, 5),))
    assert program.module()(torchlike.tensor([1., -1., 2., 3., 4.])).tolist() == [[2.0], [4.0], [6.0], [8.0]]


@pytest.mark.parametrize("form", ["if x.sum() > 0:", "if x.sum().item() > 0:", "if int(x[0]):"])
def test_a_branch_on_data(form, tmp_path):
    source = f"def forward(self, x):\n    {form}\n        return x\n    return -x\n"
    path = tmp_path / "branch.py"
    path.write_text(source)

    def error(torch):
        names = {}
        exec(compile(source, str(path), "exec"), names)
        try:
            torch.export.export(type("Branch", (torch.nn.Module,), names)(), (torch.ones(3),))
        except Exception as e:
            return type(e).__name__, type(e).__module__, str(e)
    ours, theirs = error(torchlike), error(torch)
    assert ours[0] == theirs[0] == "GuardOnDataDependentSymNode"
    assert form in ours[2] and "line 2" in ours[2]


@pytest.mark.parametrize("wrong", [lambda t: (t.nn.Linear(2, 2), t.ones(2)), lambda t: (lambda x: x, (t.ones(2),)),
                                   lambda t: (t.nn.Linear(2, 2), (t.ones(2), t.ones(2)))], ids=["tensor", "function", "arguments"])
def test_wrong_calls(wrong):
    def error(torch):
        try:
            torch.export.export(*wrong(torch))
        except Exception as e:
            return type(e).__name__, str(e).partition("\n")[0].replace("torchlike", "torch")
    assert error(torchlike) == error(torch)


# -- files --------------------------------------------------------------------------------------------------------------------------

BUILDERS = {"mlp": models.mlp, "cnn": models.cnn, "transformer": models.transformer, "block": models.block, "recurrent": models.recurrent}
SHAPES = {"mlp": lambda D: {"x": {0: D("b", max=50)}}, "block": lambda D: {"x": {0: D("b"), 1: D("t")}}}


def program_of(torch, name):
    torch.manual_seed(0)
    m, args = BUILDERS[name](torch)
    m.eval()
    shapes = SHAPES.get(name, lambda D: None)(torch.export.Dim)
    return torch.export.export(m, args, dynamic_shapes=shapes), args


def first(made):
    return (made if hasattr(made, "detach") else made[0]).detach().numpy()


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("writer, reader", [(torch, torchlike), (torchlike, torch), (torchlike, torchlike)], ids=["torch's", "for torch", "own"])
def test_files(name, writer, reader, tmp_path):
    program, args = program_of(writer, name)
    want = first(program.module()(*args))
    writer.export.save(program, tmp_path / "p.pt2", extra_files={"notes": "hello"})
    extra = {"notes": ""}
    read = reader.export.load(tmp_path / "p.pt2", extra_files=extra)
    got = first(read.module()(*[reader.from_numpy(a.numpy()) for a in args]))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert extra == {"notes": "hello"}
    assert [n.name for n in read.graph.nodes] == [n.name for n in program.graph.nodes]
    assert modules_of(read) == modules_of(program)
    assert str(read.range_constraints) == str(program.range_constraints)
    assert str(read.graph_signature) == str(program.graph_signature)


@pytest.mark.parametrize("writer, reader", [(torch, torchlike), (torchlike, torch)], ids=["torch's", "for torch"])
def test_a_file_of_many_kinds_of_arguments(writer, reader):
    class Kinds(writer.nn.Module):
        def forward(self, x, k=2):
            v = writer.where(x > 0, x, float("inf")).to(writer.float64) + writer.zeros(2)
            i = x[:, writer.tensor([0, 1])]
            q, (a, b) = x.max(0), x.unbind()
            return {"o": v * k, "p": (i, None, 3), "l": [q.values, writer.einsum("ij->i", x), x.clamp(None, 1.), a + b, x.sum(dim=(0, 1), dtype=writer.float64)]}

    stream = io.BytesIO()
    x = writer.linspace(-1, 2, 4).reshape(2, 2)
    writer.export.save(writer.export.export(Kinds(), (x, 5)), stream)
    stream.seek(0)
    want, got = Kinds()(x, 5), reader.export.load(stream).module()(reader.from_numpy(x.numpy()), 5)
    assert list(got) == list(want) and got["p"][1:] == (None, 3)
    for a, b in zip([got["o"], got["p"][0], *got["l"]], [want["o"], want["p"][0], *want["l"]]):
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        np.testing.assert_allclose(a.numpy(), b.numpy())


def test_files_that_are_none(tmp_path):
    program, _ = program_of(torchlike, "mlp")
    whole = tmp_path / "whole.pt2"
    torchlike.export.save(program, whole)
    data = whole.read_bytes()
    text, cut, other = tmp_path / "text.pt2", tmp_path / "cut.pt2", tmp_path / "other.pt2"
    text.write_text("print('hello')")
    cut.write_bytes(data[:len(data) // 2])
    torchlike.save({"a": torchlike.ones(2)}, other)
    for path in (text, cut, other):
        with pytest.raises(RuntimeError, match=path.name):
            torchlike.export.load(path)


@pytest.mark.parametrize("old, new", [(b"aten.relu.default", b"aten.exec.default"), (b"torch.ops.aten.relu.default", b"_operator.__import__"),
                                      (b'"as_tensor"', b'"as_nothing"'), (b"L__self__,,", b"L__self__;"), (b'"major": 8', b'"major": 99'), (b'"p_a_weight"}', b'"p_b_wrong"}')])
def test_files_with_something_else_in_them(old, new, tmp_path):
    program, _ = program_of(torchlike, "mlp")
    path, changed = tmp_path / "p.pt2", tmp_path / "changed.pt2"
    torchlike.export.save(program, path)
    with zipfile.ZipFile(path) as a, zipfile.ZipFile(changed, "w") as b:
        for name in a.namelist():
            b.writestr(name, a.read(name).replace(old, new))
    with pytest.raises(RuntimeError, match="changed.pt2"):
        torchlike.export.load(changed)


# -- what exported programs rely on ---------------------------------------------------------------------------------------------------


@same
def test_attention_lies_in_memory_as_its_query(torch):
    f = torch.nn.functional.scaled_dot_product_attention
    q, k = torch.ones(2, 5, 3, 4).transpose(1, 2), torch.ones(2, 7, 3, 4).transpose(1, 2)
    made = [f(q, k, k), f(q, k, k, torch.zeros(5, 7)), f(q, q, q, is_causal=True), f(q, k, k, torch.zeros(3, 5, 7)), f(q.contiguous(), k, k), f(q[0], k[0], k[0]),
            f(q, k, k, dropout_p=0.5), f(q, k, torch.ones(2, 3, 7, 6))]
    return [x.stride() for x in made], made[0].transpose(1, 2).view(2, 5, 12)


@same
def test_losses_as_operators_are_means(torch):
    x, y = torch.linspace(0.1, 0.9, 6).reshape(2, 3), torch.linspace(0.8, 0.2, 6).reshape(2, 3)
    one = torch.ones(2)
    aten = torch.ops.aten
    return (aten.kl_div(x, y), aten.binary_cross_entropy_with_logits(x, y), aten.hinge_embedding_loss(x, y.sign()), aten.margin_ranking_loss(x, y, y.sign()),
            aten.triplet_margin_loss(x, y, x + 1), aten.cosine_embedding_loss(x, y, one), aten.mse_loss(x, y, 2), aten.mse_loss(x, y), torch.kl_div(x, y),
            aten.kl_div(x, y, 2))


def test_operators_of_a_program_of_its_own():
    @torchlike.library.custom_op("exported::twice", mutates_args=())
    def twice(x: torchlike.Tensor, k: float = 2.0) -> torchlike.Tensor:
        return x * k

    class Calls(torchlike.nn.Module):
        def forward(self, x):
            return twice(x, 3.0) + torchlike.ops.exported.twice(x)

    program = torchlike.export.export(Calls(), (torchlike.ones(2),))
    assert "torch.ops.exported.twice.default(x, 3.0)" in str(program)
    stream = io.BytesIO()
    torchlike.export.save(program, stream)
    stream.seek(0)
    assert torchlike.export.load(stream).module()(torchlike.ones(2)).tolist() == program.module()(torchlike.ones(2)).tolist() == [5.0, 5.0]


def test_a_program_learns():
    m, args = models.cnn(torchlike, training=True)
    module = torchlike.export.export(m, args).module()
    torchlike.manual_seed(0)
    module(*args).sum().backward()
    got = [p.grad.clone() for p in m.parameters()]
    m.zero_grad()
    torchlike.manual_seed(0)
    m(*args).sum().backward()
    for a, p in zip(got, m.parameters()):
        torchlike.testing.assert_close(a, p.grad)


@same
def test_dataclasses(torch):
    import dataclasses

    @dataclasses.dataclass
    class Pair:
        a: torch.Tensor
        b: torch.Tensor

    torch.export.register_dataclass(Pair, serialized_type_name=f"exported.{torch.__name__}.Pair")

    class Swaps(torch.nn.Module):
        def forward(self, p):
            return Pair(p.b + 1, p.a)

    one = torch.ones(2)
    program = torch.export.export(Swaps(), (Pair(one, one * 2),))
    made = program.module()(Pair(one, one * 3))
    return described(program)["nodes"], made.a, made.b


@pytest.mark.parametrize("build", [models.mutable, models.cnn, models.transformer], ids=lambda f: f.__name__)
def test_files_of_graphs_without_writes(build):
    m, args = build(torch)
    kwargs = {"z": {"q": torch.ones(1)}} if build is models.mutable else {}
    stream = io.BytesIO()
    torch.export.save(torch.export.export(m.eval(), args, kwargs).run_decompositions(), stream)
    stream.seek(0)
    module = torchlike.export.load(stream).module()
    ours = [torchlike.from_numpy(a.numpy().copy()) for a in args]
    want, got = m(*args, **kwargs), module(*ours, **{"z": {"q": torchlike.ones(1)}} if kwargs else {})
    for a, b in zip([got["a"], *got["b"], *ours] if kwargs else [got], [want["a"], *want["b"], *args] if kwargs else [want]):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)
    if kwargs:
        assert module.n.tolist() == m.n.tolist()
