"""torch.nested beside real torch."""
import copy
import pickle
import re

import numpy as np
import pytest
import torch as oracle

import torchlike as subject

pytestmark = pytest.mark.filterwarnings("ignore")


def flat(x):
    """Numbers, texts and shapes of a result; a nested tensor as its layout and parts."""
    if hasattr(x, "is_nested") and x.is_nested:
        return ["nested", str(x.layout), *[y for p in x.unbind() for y in flat(p)]]
    if hasattr(x, "detach"):
        return [str(x.dtype), tuple(x.shape), x.requires_grad, x.detach().numpy()]
    if isinstance(x, (list, tuple)):
        return [z for y in x for z in flat(y)]
    return [x]


def check(program):
    theirs, mine = flat(program(oracle)), flat(program(subject))
    assert len(theirs) == len(mine), (theirs, mine)
    for a, b in zip(theirs, mine):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
        else:
            assert a == b


def batch(t, layout, **options):
    a, b = t.arange(6.0).view(2, 3), t.arange(12.0).view(4, 3) / 4
    return t.nested.nested_tensor([a, b], layout=getattr(t, layout), **options)


BOTH = """n*2; n+n; t.relu(n); n.tanh(); n.contiguous(); n.detach(); n.clone(); n.to(t.float64); n.double(); n.half(); n > 1; n.masked_fill(n > 2, 0.0)
t.nn.functional.linear(n, t.ones(2, 3), t.ones(2)); t.nn.functional.softmax(n, -1); t.softmax(n, dim=2); t.nn.functional.dropout(n, 0.0); n.transpose(1, 2)
t.nn.functional.layer_norm(n, (3,), t.ones(3), t.zeros(3)); n.unsqueeze(-1); n.unsqueeze(2).squeeze(2); n.chunk(3, -1); n.split([1, 2], -1); t.cat([n, n * 2], -1)
n.view(2, -1, 3, 1); n.reshape(2, -1, 3, 1); n.unbind(); n[0]; n[-1]; n[1, 2]; n.numel(); n.dim(); n.ndim; n.size(0); n.size(2); n.size(-1); n.is_nested; n.is_contiguous()
n.requires_grad; n.to_padded_tensor(0.0); t.nested.to_padded_tensor(n, -1.0); t.nested.to_padded_tensor(n, 9.0, (2, 5, 3)); n.is_leaf; n.is_cuda; t.is_tensor(n)
t.nested.as_nested_tensor(t.arange(6.0).view(2, 3)); t.nested.as_nested_tensor([t.ones(2), t.zeros(3)]); t.nested.nested_tensor([[1.0, 2.0], [3.0]])
n.transpose(1, 2).transpose(1, 2).to_padded_tensor(0.0); str(n.dtype); n.device.type; n.mul_(2); n.add_(1)"""
JAGGED = """2-n; n.sigmoid(); list(n)
n.offsets(); n.values(); n.lengths() is None; len(n); n.sum(); n.max(); n.sum(-1); n.mean(-1); n.sum(1); n.mean(1); n.amax(1); n.sum(1, keepdim=True)
n @ t.ones(3, 2); n == n; t.where(n > 2, n, -n); n.unflatten(-1, [3, 1]); t.nn.functional.layer_norm(n, (3,)); n.sum((1,)); n.prod(1); n.shape[0]; n.shape[2]
t.nn.functional.embedding(n.long(), t.arange(40.0).view(20, 2)); t.nested.nested_tensor_from_jagged(t.arange(12.0).view(6, 2), t.tensor([0, 1, 6]))
t.nested.nested_tensor_from_jagged(t.arange(12.0).view(6, 2), lengths=t.tensor([2, 4])).unbind()
t.nested.narrow(t.arange(12.0).view(3, 4), 1, 0, t.tensor([1, 2, 4]), layout=t.jagged)
t.nested.masked_select(t.arange(6.0).view(2, 3), t.tensor([[True, False, True], [False, True, True]]))
t.nn.functional.scaled_dot_product_attention(*[n.unflatten(-1, [1, 3]).transpose(1, 2)] * 3).transpose(1, 2); t.cat([n.sum(1), n.mean(1)])
n.sum((0, 1)); n.mean((0, 1)); n.sum((0, 1), keepdim=True); n.amax((0, 1)); t.nn.functional.rms_norm(n, (3,))
n.expand(2, -1, 3); n.select(0, 1); n.select(2, 0)"""
STRIDED = """t.bmm(n, t.ones(2, 3, 2)); t.bmm(n, t.nested.nested_tensor([t.ones(3, 2), t.ones(3, 5)])); n.select(0, 1); n.select(0, -1); n.select(1, 0); n.select(2, 1)
t.matmul(n, n.transpose(1, 2)); n._nested_tensor_size(); n.values(); n.sum(-1, keepdim=True); n.to_padded_tensor(0.0, (2, 5, 4))
t.nested.nested_tensor([t.ones(3, 2, 4), t.ones(3, 5, 1)]).to_padded_tensor(0.0); t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 3)]).transpose(1, 2)"""


def lines(text):
    return [x.strip() for x in re.split(r";|\n", text)]


@pytest.mark.parametrize("layout, text", [(layout, x) for layout, own in (("strided", STRIDED), ("jagged", JAGGED)) for x in lines(BOTH) + lines(own)])
def test_functions(layout, text):
    check(lambda t: eval(text, {"t": t, "n": batch(t, layout), "list": list, "str": str, "len": len}))


ERRORS = {"strided": "t.nested.as_nested_tensor(n); t.nested.as_nested_tensor(n, layout=t.jagged); "
                     "t.nested.as_nested_tensor(t.ones(3)); t.nested.as_nested_tensor(t.tensor(1.0)); n[5]; n[-3]; n.shape; n.size(1); n.sum(); n.sum(-1); n.mean(-1); "
                     "n @ t.ones(3, 2); t.nn.functional.layer_norm(n, (3,)); n.unbind(1); len(n); n.amax(1)",
          "jagged": "t.nested.as_nested_tensor(n); n[2]; n.select(1, 0); t.nested.as_nested_tensor(t.ones(3), layout=t.jagged); n.unbind(1); "
                    "t.nested.nested_tensor([t.ones(1, 2), t.ones(2, 3)], layout=t.jagged); t.nested.nested_tensor([t.ones(1), t.ones(2, 3)]); "
                    "t.nested.nested_tensor_from_jagged(t.ones(2, 3)); t.nested.nested_tensor(t.ones(2)); t.nested.as_nested_tensor(3); n + batch2; "
                    "n.transpose(0, 1); t.nested.narrow(t.ones(2, 2), 1, 0, 1)"}


@pytest.mark.parametrize("layout, text", [(layout, x) for layout, text in ERRORS.items() for x in lines(text)])
def test_errors(layout, text):
    kinds = []
    for t in (oracle, subject):
        names = {"t": t, "n": batch(t, layout), "batch2": t.nested.nested_tensor([t.ones(1, 3), t.ones(2, 3)], layout=t.jagged)}
        with pytest.raises(Exception) as error:
            eval(text, names)
        kinds.append(error.type.__name__)
    assert kinds[0] == kinds[1], kinds


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_gradients(layout):
    def leaf(t):
        n = batch(t, layout, requires_grad=True)
        w = t.ones(2, 3, requires_grad=True)
        (t.nn.functional.linear(n * n, w).to_padded_tensor(0.0) * t.arange(16.0).view(2, 4, 2)).sum().backward()
        return n.is_leaf, n.requires_grad, n.grad, w.grad

    def through(t):
        a, b = t.ones(2, 3, requires_grad=True), t.full((4, 3), 2.0, requires_grad=True)
        n = t.nested.as_nested_tensor([a, b], layout=getattr(t, layout))
        total = sum((p * p).sum() for p in (n * 3).unbind())
        total.backward()
        return n.is_leaf, a.grad, b.grad
    check(leaf)
    check(through)


def test_jagged_values_pass_gradients_on():
    def program(t):
        v = t.arange(12.0).view(6, 2).requires_grad_()
        n = t.nested.nested_tensor_from_jagged(v, t.tensor([0, 1, 6]))
        sum((k + 1) * p.sum() for k, p in enumerate((n * n).unbind())).backward()
        return v.grad
    check(program)


def test_printing():
    def text(t):
        return [repr(batch(t, "strided")), repr(batch(t, "strided").half()), re.sub(r"j\d+", "j", repr(batch(t, "jagged"))),
                re.sub(r"j\d+", "j", str(batch(t, "jagged").size())), re.sub(r"j\d+", "j", repr(batch(t, "jagged").transpose(1, 2)))]
    assert text(subject) == text(oracle)


def test_same_lengths_share_their_symbol():
    for t in (oracle, subject):
        n = batch(t, "jagged")
        assert (n * 2).size(1) is n.size(1) or (n * 2).size(1) == n.size(1)
        assert repr((n * 2).shape) == repr(n.shape) != repr(batch(t, "jagged").shape)


def test_modules():
    def program(t):
        t.manual_seed(0)
        n = batch(t, "jagged")
        net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.GELU(), t.nn.LayerNorm(4), t.nn.Dropout(0.0), t.nn.Linear(4, 2))
        return net(n).to_padded_tensor(0.0)
    check(program)


@pytest.mark.parametrize("layout", ["strided", "jagged"])
@pytest.mark.parametrize("program", """n.isposinf(); n.isneginf(); n.tanh_(); n.split_with_sizes([1, 2], -1); t.split(n, [1, 2], -1)
n.unsqueeze(-1).squeeze(-1); t.nn.functional.embedding(t.nested.nested_tensor([t.tensor([1, 2]), t.tensor([0])], layout=l), t.arange(6.).view(3, 2))
t.bmm(n, t.nested.nested_tensor([t.ones(3, 2), t.ones(3, 4)])) if l is t.strided else t.bmm(n, t.ones(2, 3, 2)); t.is_same_size(n, n) or l is t.jagged
n.unflatten(-1, [3, 1]).flatten(-2) if l is t.jagged else n; n.narrow(0, 1, 1) if l is t.strided else n
n.to(t.float32) is n; n.cpu() is n; n.contiguous() is n; n.to(n.dtype) is n; n.to(t.float64) is n; t.nested.as_nested_tensor(n, layout=l) is n
t.nested.as_nested_tensor(n, t.float64, layout=l); t.matmul(n.unsqueeze(-1), t.arange(4.).view(1, 4))""".replace("\n", "; ").split("; "))
def test_more_functions(layout, program):
    check(lambda t: eval(program, {"t": t, "l": getattr(t, layout), "n": batch(t, layout)}))


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_gradient_of_one_part(layout):
    """What nothing reached has zeros in the nested gradient."""
    def program(t):
        n = batch(t, layout, requires_grad=True)
        n[1].sum().backward()
        return n.grad
    check(program)


def test_maximum_along_a_dimension_has_names():
    check(lambda t: [batch(t, "jagged").max(-1).values, batch(t, "jagged").max(-1).indices])


def test_squeeze_needs_a_dimension():
    for t in (oracle, subject):
        with pytest.raises(RuntimeError, match="squeeze without the dim argument"):
            batch(t, "strided").squeeze()


def test_padding_a_plain_tensor():
    for t in (oracle, subject):
        for call in (t.nested.to_padded_tensor, t.Tensor.to_padded_tensor):
            with pytest.raises(NotImplementedError, match="Could not run 'aten::to_padded_tensor' with arguments from the 'CPU' backend"):
                call(t.ones(2, 3), 0.0)
        parts = t.nested.nested_tensor([t.ones(2), t.ones(1)])
        assert t.Tensor.to_padded_tensor(parts, 0.0).tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize("kind", ["strided", "jagged"])
def test_copies_and_pickles(kind):
    x = subject.nested.nested_tensor([subject.ones(2, 3), subject.zeros(4, 3)], layout=getattr(subject, kind), requires_grad=True)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is type(x) and y.layout is x.layout and y.requires_grad and [t.tolist() for t in y.unbind()] == [t.tolist() for t in x.unbind()]
    if kind == "jagged":
        assert copy.deepcopy(x).shape == x.shape


@pytest.mark.parametrize("sizes", [[[2, 3], [1, 3]], [[4], [0], [5]], [[1, 2, 3], [2, 0, 1], [1, 1, 3]]])
def test_views_of_a_flat_tensor(sizes):
    """What torchrl makes of trajectories one after the other."""
    def program(t):
        table = t.tensor(sizes)
        where = t._nested_compute_contiguous_strides_offsets(table)
        buffer = t.arange(9.0).requires_grad_()
        made = t._nested_view_from_buffer(buffer * 2, table, *where)
        (made.unbind()[-1] * 3).sum().backward()
        return *where, made, buffer.grad
    check(program)


def test_refused_buffers():
    for t in (oracle, subject):
        with pytest.raises(RuntimeError, match="expected scalar type Long but found Float"):
            t._nested_compute_contiguous_strides_offsets(t.ones(1, 2))
        with pytest.raises(RuntimeError, match="must be flat"):
            t._nested_view_from_buffer(t.ones(1, 2), t.ones(1, 1, dtype=t.int64), t.ones(1, 1, dtype=t.int64), t.zeros(1, dtype=t.int64))


def refusal(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]


@pytest.mark.parametrize("kind", ["strided", "jagged"])
def test_files(kind, tmp_path):
    """What one library writes both read, as it was: also beside other things, twice, and with another jagged dimension."""
    def made(t):
        n = batch(t, kind, requires_grad=True)
        return [n, [n], n.detach().transpose(1, 2) if kind == "jagged" else None, t.ones(2)]
    for writer in (oracle, subject):
        writer.save(made(writer), tmp_path / "n.pt")
        for reader in (oracle, subject):
            for weights_only in (False, True):
                if reader is oracle and kind == "jagged" and weights_only and writer is oracle:
                    continue  # it asks for an import of torch._dynamo first
                found = reader.load(tmp_path / "n.pt", weights_only=weights_only)
                assert found[0] is found[1][0]
                check(lambda t, found=found: made(t) if t is oracle else found)
    n = subject.load(tmp_path / "n.pt")[0]
    (n * 2).unbind()[0].sum().backward()
    assert n.grad.unbind()[0].tolist() == [[2.0] * 3] * 2


def test_offsets_of_files_are_checked(tmp_path):
    n = batch(subject, "jagged")
    n._offsets = subject.tensor([0, 2, 9])
    subject.save(n, tmp_path / "n.pt")
    with pytest.raises(RuntimeError, match="offsets"):
        subject.load(tmp_path / "n.pt")


@pytest.mark.parametrize("kind", ["strided", "jagged"])
def test_what_the_batch_dimension_refuses(kind):
    def said(t):
        n = batch(t, kind)
        return [refusal(f) for f in (lambda: n.softmax(0), lambda: n.transpose(0, 1), lambda: n.squeeze(0), lambda: n.unsqueeze(0), lambda: bool(n),
                                     lambda: t.nested.nested_tensor([t.ones(2), t.ones(2), t.ones(2, 2)], layout=getattr(t, kind)))]
    theirs, mine = said(oracle), said(subject)
    assert theirs[:5] == mine[:5]
    assert kind == "jagged" or theirs[5] == mine[5]
    check(lambda t: [batch(t, kind).is_pinned()])
    assert bool(subject.nested.nested_tensor([subject.ones(1, 1)], layout=getattr(subject, kind)))


def test_whole_index_and_permutation():
    check(lambda t: batch(t, "strided")[...])
    check(lambda t: [batch(t, "jagged").unsqueeze(-1).permute(0, 2, 3, 1), batch(t, "jagged").permute(0, -1, 1).transpose(1, 2),
                     refusal(lambda: batch(t, "jagged").permute(1, 0, 2)), refusal(lambda: batch(t, "jagged").permute(0, 1))])


def test_writes_by_index():
    def written(t):
        n = batch(t, "jagged")
        n[0] = t.ones(2, 3) * 7
        n[1] = 5
        n[1, 2] = t.ones(3)
        return n
    found = written(subject)
    assert [p.tolist() for p in found.unbind()] == [[[7.0] * 3] * 2, [[5.0] * 3, [5.0] * 3, [1.0] * 3, [5.0] * 3]]


@pytest.mark.parametrize("kind", ["strided", "jagged"])
def test_as_nested_tensor_shares_memory(kind):
    def program(t):
        x = t.arange(12.0).view(3, 4)
        n = t.nested.as_nested_tensor(x, layout=getattr(t, kind))
        n.mul_(2)
        y = t.arange(12.0).view(3, 4)
        t.nested.as_nested_tensor(y, layout=getattr(t, kind), dtype=t.float64).mul_(2)
        w = t.ones(3, 4, requires_grad=True)
        sum(p.sum() for p in (t.nested.as_nested_tensor(w, layout=getattr(t, kind)) * 3).unbind()).backward()
        return x, n, y, w.grad
    check(program)


@pytest.mark.parametrize("lengths", [[0], [0, 0], [0, 3]])
def test_encoder_layers_of_empty_sequences(lengths):
    def program(t):
        t.manual_seed(3)
        layer = t.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
        with t.no_grad():
            return layer(t.nested.nested_tensor([t.rand(n, 4) for n in lengths]))
    check(program)
