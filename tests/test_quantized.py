"""Quantized tensors against real torch: integers and numbers to the bit, printing, views, copies, comparisons, files, errors."""
import io
import pickle
import warnings

import numpy as np
import pytest
import torch as oracle
from same import outcomes, same

import torchlike as subject

BOTH = (oracle, subject)
KINDS = ("qint8", "quint8", "qint32")
pytestmark = pytest.mark.filterwarnings("ignore")


def _samples(seed, ties=True):
    """Numbers around the integers of a random scale and zero point, with many halfway between two."""
    rng = np.random.default_rng(seed)
    scale, zero_point = float(rng.random() * 10.0 ** rng.integers(-4, 3) + 1e-5), int(rng.integers(0, 100))
    x = (rng.integers(-150, 350, (2, 4, 6)) + (rng.choice([0, 0.5, 0.25], (2, 4, 6)) if ties else rng.random((2, 4, 6))) - zero_point) * scale
    return x.astype(np.float32), scale, zero_point, rng


def _both(make):
    """What both libraries make, as arrays or numbers."""
    made = [make(t) for t in BOTH]
    return [m.numpy() if hasattr(m, "numpy") else m for m in made]


def _same(make):
    want, got = _both(make)
    np.testing.assert_array_equal(got, want)
    assert getattr(got, "dtype", None) == getattr(want, "dtype", None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_integers_and_numbers(kind, seed):
    x, scale, zero_point, rng = _samples(seed)
    if seed == 0:
        x.ravel()[:4] = [np.nan, np.inf, -np.inf, -0.0]

    def whole(t):
        return t.quantize_per_tensor(t.from_numpy(x), scale, zero_point, getattr(t, kind))
    _same(lambda t: whole(t).int_repr())
    _same(lambda t: whole(t).dequantize())
    for dtype in (np.float32, np.float64):
        scales, zero_points = (rng.random(4) * scale + 1e-5).astype(dtype), rng.integers(0, 100, 4)

        def channels(t, scales=scales, zero_points=zero_points):
            return t.quantize_per_channel(t.from_numpy(x), t.from_numpy(scales), t.from_numpy(zero_points), 1, getattr(t, kind))
        _same(lambda t: channels(t).int_repr())
        _same(lambda t: t.dequantize(channels(t)))
        _same(lambda t: channels(t).q_per_channel_scales())


@pytest.mark.parametrize("seed", range(4))
def test_zero_points_that_are_no_integers(seed):
    x, scale, _, rng = _samples(seed)
    scales, zero_points = (rng.random(4) * scale + 1e-5).astype(np.float32), (rng.random(4) * 50).astype(np.float32)

    def make(t):
        return t.quantize_per_channel(t.from_numpy(x), t.from_numpy(scales), t.from_numpy(zero_points), 1, t.quint8)
    _same(lambda t: make(t).int_repr())
    _same(lambda t: make(t).dequantize())
    assert str(make(subject)) == str(make(oracle))


@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_scales_that_fit(kind, reduce_range):
    rng = np.random.default_rng(1)
    for t in range(60):
        x = (rng.standard_normal(rng.integers(1, 20)) * 10.0 ** rng.integers(-9, 5) + rng.choice([0, 0, 1, -1, 100]) * rng.random()).astype(np.float32)
        if t % 20 == 0:
            x[:] = 0
        a, b = (t.quantize_per_tensor_dynamic(t.from_numpy(x), getattr(t, kind), reduce_range) for t in BOTH)
        assert (a.q_scale(), a.q_zero_point()) == (b.q_scale(), b.q_zero_point())
        np.testing.assert_array_equal(a.int_repr().numpy(), b.int_repr().numpy())


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("seed", range(3))
def test_functions(kind, seed):
    x, scale, zero_point, _ = _samples(seed)
    for name, *args in (("relu",), ("relu6",), ("hardtanh", -scale * 10, scale * 20), ("hardsigmoid",), ("max_pool2d", 2), ("avg_pool2d", 2), ("avg_pool2d", 2, 1, 1),
                        ("adaptive_avg_pool2d", 2), ("interpolate", None, 2), ("pad", (1, 2))):
        a, b = (getattr(t.nn.functional, name)(t.quantize_per_tensor(t.from_numpy(x)[None], scale, zero_point, getattr(t, kind)), *args) for t in BOTH)
        np.testing.assert_array_equal(b.int_repr().numpy(), a.int_repr().numpy(), err_msg=name)
        assert (a.q_scale(), a.q_zero_point()) == (b.q_scale(), b.q_zero_point())
    for name in ("sigmoid", "tanh", "mean", "std", "max", "min"):
        a, b = (getattr(t, name)(t.quantize_per_tensor(t.from_numpy(x), scale, zero_point, getattr(t, kind))) for t in BOTH)
        np.testing.assert_array_equal(b.int_repr().numpy(), a.int_repr().numpy(), err_msg=name)
        assert (a.q_scale(), a.q_zero_point()) == (b.q_scale(), b.q_zero_point())


def _seen(x):
    """What the comparison of `same` can look at."""
    if isinstance(x, (tuple, list)):
        return [_seen(y) for y in x]
    return str(x) if getattr(x, "is_quantized", False) or "schem" in type(x).__name__ else x


def _outcomes(torch, *expressions):
    x = torch.tensor([[1.0, 2, -3.3], [0.5, 100, 7]])
    q = torch.quantize_per_tensor
    names = {"torch": torch, "x": x, "q": q(x, 0.1, 10, torch.quint8), "i": q(x, 0.1, 10, torch.qint32), "F": torch.nn.functional, "seen": _seen,
             "c": torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0, 3]), 0, torch.qint8), "qt": q, "pickle": pickle}
    return outcomes(names, [f"seen({e})" for e in expressions])


@same
def test_printing(torch):
    return _outcomes(torch, "q", "c", "i", "q[0, 0]", "qt(torch.tensor([]), 0.1, 0, torch.quint8)", "qt(torch.arange(2000.0), 3.0, 0, torch.qint8)",
                     "torch.nn.Parameter(q, requires_grad=False)", "f'{q[0, 0]:.2f}'", "torch.per_tensor_affine", "c.qscheme()", "c.view(2, 3, 1)")


@same
def test_facts(torch):
    return _outcomes(torch, "q.is_quantized", "x.is_quantized", "str(q.dtype)", "q.shape", "q.stride()", "q.element_size()", "q.itemsize", "q.nbytes", "q.numel()",
                     "q.layout", "str(q.device)", "q.requires_grad", "q.is_leaf", "q.grad", "q.type()", "q.is_floating_point()", "q.is_complex()", "q.is_signed()",
                     "len(q)", "q.dim()", "q.q_scale()", "q.q_zero_point()", "q.qscheme()", "q.int_repr()", "c.int_repr()", "torch.int_repr(q)", "torch.q_scale(q)",
                     "c.q_scale()", "c.q_zero_point()", "q.q_per_channel_axis()", "c.q_per_channel_axis()", "c.q_per_channel_zero_points()", "x.q_scale()",
                     "x.int_repr()", "x.qscheme()", "torch.is_tensor(q)", "isinstance(q, torch.ByteTensor)", "q[0, 0].item()", "float(q[0, 0])", "q.item()",
                     "x.to_sparse().q_scale()", "bool(q)", "bool(q[0, 0])", "q.tolist()", "q.numpy()", "q.data_ptr() == q.view(6).data_ptr()",
                     "q.untyped_storage().nbytes()", "str(q.storage().dtype)", "torch.result_type(q, x)",
                     "torch.iinfo(torch.qint8).max", "torch.iinfo(torch.qint32).min", "torch.iinfo(torch.quint8).dtype", "repr(torch.iinfo(torch.qint8))",
                     "hash(q) == hash(q)", "q.requires_grad_()")


@same
def test_views_and_indices(torch):
    return _outcomes(torch, "q[0]", "q[:, 1]", "q[q.dequantize() > 1]", "q[torch.tensor([1, 0])]", "c[0]", "c[:, 1:]", "c[1:]", "c[torch.tensor([0])]", "q.t()", "q.T",
                     "c.t()", "q.permute(1, 0)", "c.permute(1, 0)", "q.view(6)", "c.view(6)", "q.reshape(3, 2)", "q.t().reshape(6)", "q.t().contiguous().stride()",
                     "q.flatten()", "c.flatten()", "q.unsqueeze(0)", "c.unsqueeze(0)", "c[None].squeeze(0)", "q.expand(2, 2, 3)", "torch.split(q, 1)", "q.chunk(2)",
                     "q.unbind()", "list(q)", "q.flip(0)", "q.repeat(2, 1)", "torch.cat([q, q])", "torch.cat([q, qt(x, 0.2, 0, torch.quint8)])", "torch.cat([q, i])",
                     "torch.cat([c, c])", "torch.stack([q, q])", "q.index_select(0, torch.tensor([1]))", "torch.narrow(q, 0, 0, 1)", "q.as_strided((2,), (1,))",
                     "torch.dequantize([q, c])", "torch.dequantize(x)", "q.sort()[1]", "q.topk(1)", "q.max(0)[1]",
                     "q.view_as(q)", "q.view_as(x.t())", "x.view_as(q.t().contiguous())", "q.t().reshape_as(q)", "q[:, :1].expand_as(q)", "x[:1].expand_as(q)",
                     "c[:, :1].expand_as(c)", "torch.mean(input=q)")


@same
def test_copies_and_comparisons(torch):
    return _outcomes(torch, "q.clone()", "c.clone()", "q.detach()", "q.cpu()", "q.to('cpu')", "q.to(torch.quint8)", "q.to(torch.float32)", "q.to(torch.qint8)", "q.float()",
                     "q.int()", "x.clone().copy_(q)", "q.clone().copy_(x)", "c.clone().copy_(x)", "q.clone().copy_(c)", "q.clone().fill_(3.0)", "q.clone().copy_(q).q_scale()",
                     "q.clone().copy_(qt(x, 0.2, 0, torch.quint8))", "q == q", "q == c", "q == 1.0", "q > 1", "q < q", "q != x", "torch.ge(q, x)", "torch.equal(q, q.clone())",
                     "q.equal(i)", "q.equal(x)", "torch.equal(c, c.clone())", "torch.allclose(q, q)", "torch.empty_like(q).shape", "torch.ones_like(q)", "torch.full_like(q, 1)",
                     "q.masked_fill(x > 1, 0)", "q.sum()", "torch.exp(q)", "-q", "q + q", "torch.where(x > 1, q, q)", "torch.isnan(q)", "torch.testing.assert_close(q, q)",
                     "torch.zeros_like(q)", "F.softmax(q, -1)", "torch.clamp(q, 0, 1)")


@same
def test_making(torch):
    return _outcomes(torch, "qt(x, 0.1, 0, torch.float32)", "qt(x, 0.1, 0, torch.int8)", "qt(x.double(), 0.1, 0, torch.qint8)", "qt(x.half(), 0.1, 0, torch.qint8)",
                     "qt(q, 0.1, 0, torch.qint8)", "qt(x, -0.1, 0, torch.qint8)", "qt(x, 0.0, 0, torch.qint8)", "qt(x, 0.1, 300, torch.quint8)", "qt(x, 0.1, -1, torch.quint8)",
                     "qt(x, 0.1, 1.5, torch.qint8)", "qt(x, torch.tensor(0.1), torch.tensor(3), torch.qint8)", "qt(x, 0.1, 0)",
                     "qt([x, x], torch.tensor([0.1, 0.2]), torch.tensor([3, 0]), torch.qint8)", "qt(x, scale=0.1, zero_point=0, dtype=torch.quint8)",
                     "qt(x.t(), 0.1, 0, torch.quint8).stride()", "torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0, 3]), 1, torch.qint8)",
                     "torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0, 3]), 2, torch.qint8)",
                     "torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0, 3, 1]), 0, torch.qint8)",
                     "torch.quantize_per_channel(x, torch.tensor([[0.1, 0.2]]), torch.tensor([[0, 3]]), 0, torch.qint8)",
                     "torch.quantize_per_channel(x, torch.tensor([1, 2]), torch.tensor([0, 3]), 0, torch.qint8)",
                     "torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0, 300]), 0, torch.qint8)",
                     "torch.quantize_per_tensor_dynamic(x, torch.float16, False)", "torch.quantize_per_tensor_dynamic(x, torch.qint32, False)",
                     "torch.quantize_per_tensor_dynamic(x[:0], torch.qint8, False)", "torch._make_per_tensor_quantized_tensor(x.to(torch.uint8), 0.1, 3)",
                     "torch._make_per_tensor_quantized_tensor(x.long(), 0.1, 3)", "torch._empty_affine_quantized([2], scale=0.1, zero_point=1, dtype=torch.quint8).shape",
                     "torch.empty_quantized([2, 2], q).q_scale()", "torch.tensor([1], dtype=torch.qint8)", "torch.empty(2, dtype=torch.qint8)", "x.to(torch.qint8)",
                     "qt(x.clone().requires_grad_(), 0.1, 0, torch.quint8).dequantize().requires_grad", "torch.nn.Parameter(q)")


@same
def test_writes_into_views(torch):
    q = torch.quantize_per_tensor(torch.arange(6.0).reshape(2, 3), 0.5, 1, torch.quint8)
    row = q[1]
    q[0] = 2.26
    q[1, 1] = torch.tensor(9.0)
    row[2] = 1.0
    other = q.clone()
    other[0, 0] = 100.0
    return q.int_repr(), row.int_repr(), q.t().int_repr(), other.int_repr(), str(q)


@same
def test_writes_at_indices(torch):
    def put(q, index, value):
        q = q.clone()
        q[index] = value
        return q
    places = torch.tensor([0, 1])
    names = {"torch": torch, "put": put, "i": places, "x": torch.arange(6.0).reshape(2, 3), "seen": _seen,
             "q": torch.quantize_per_tensor(torch.arange(6.0).reshape(2, 3), 0.5, 1, torch.quint8),
             "wide": torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.qint32),
             "c": torch.quantize_per_channel(torch.ones(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 3]), 0, torch.qint8)}
    calls = ["put(q, (i, i), torch.tensor([2.5, 1]))", "put(q, (i, i), torch.tensor(2.5))", "put(q, (i, i), 2.5)", "put(q, x > 2, 9.0)", "put(q, x > 3, torch.arange(2.0))",
             "put(q, [1, 0], x)",
             "put(q, (slice(None), i), x[:, :2])", "put(q, (slice(None), i), q[:, :2])", "put(q, (slice(None), 0), torch.arange(2.0))", "put(q, 0, x[None, None, 1])",
             "put(q, slice(0, 1), torch.tensor(1e9))", "put(c, i, x)", "put(c, 0, x[1])", "q.clone().index_put_((i,), x)", "torch.index_put(q, (i,), x)",
             "q.clone().index_put_((i,), x, accumulate=True)", "q.clone().masked_fill_(x > 2, 2**32)", "wide.clone().masked_fill_(wide.dequantize() > 0, 2**32).int_repr()",
             "c.clone().masked_fill_(x > 2, 2)", "q.resize(3, 2)", "q.t().resize(6).int_repr()", "torch.empty_like(q, dtype=torch.qint8)",
             "torch.empty_like(q, dtype=torch.float32)",
             "torch._choose_qparams_per_tensor(x - 2)", "torch._choose_qparams_per_tensor(x - 2, True)", "torch._choose_qparams_per_tensor(torch.zeros(3))",
             "(lambda w: (torch._saturate_weight_to_fp16(w), w))(torch.tensor([[1e9, -1e9, 65505, 1.00001]]))", "torch._saturate_weight_to_fp16(x.double())"]
    return outcomes(names, [f"seen({call})" for call in calls])


@same
def test_programs_compiled_and_not(torch):
    """The same program often enough that it is compiled."""
    out = []
    for k in range(12):
        x = torch.linspace(-3, 3, 40).reshape(4, 10) * (1 + k / 7)
        q = torch.quantize_per_tensor(x, 0.037 + k / 1000, k, torch.quint8)
        c = torch.quantize_per_channel(x, torch.linspace(0.01, 0.05, 4), torch.arange(4), 0, torch.qint8)
        out.append((q.int_repr(), q.dequantize() * 2 + c.dequantize(), c.int_repr()))
    return out


def test_files_of_torch_load_and_are_written_alike():
    def made(t):
        x = t.arange(12.0).reshape(3, 4)
        q = t.quantize_per_tensor(x, 0.1, 3, t.quint8)
        return {"q": q, "view": q[1:], "c": t.quantize_per_channel(x, t.tensor([0.1, 0.2, 0.3]), t.tensor([0, 1, 2]), 0, t.qint8), "t": q.t(),
                "i": t.quantize_per_tensor(x, 0.1, 3, t.qint32), "scheme": t.per_tensor_affine, "kind": t.qint8}
    for a, b in ((oracle, subject), (subject, oracle)):
        file = io.BytesIO()
        a.save(made(a), file)
        file.seek(0)
        loaded = b.load(file)
        want = made(b)
        assert loaded["scheme"] is b.per_tensor_affine and loaded["kind"] is b.qint8
        for name in ("q", "view", "c", "t", "i"):
            assert str(loaded[name]) == str(want[name]) and loaded[name].stride() == want[name].stride()
        assert loaded["q"].data_ptr() == loaded["t"].data_ptr()


def test_pickles_and_deep_copies():
    import copy
    x = subject.arange(12.0).reshape(3, 4)
    for q in (subject.quantize_per_tensor(x, 0.1, 3, subject.quint8), subject.quantize_per_channel(x, subject.ones(3), subject.arange(3), 0, subject.qint8)):
        for other in (pickle.loads(pickle.dumps(q)), copy.deepcopy(q)):
            assert other.equal(q) and other.data_ptr() != q.data_ptr() and str(other) == str(q)
        assert copy.copy(q).data_ptr() == q.data_ptr()
    assert pickle.loads(pickle.dumps(subject.per_tensor_affine)) is subject.per_tensor_affine
    assert copy.deepcopy(subject.per_tensor_affine) is subject.per_tensor_affine


def test_it_is_said_once_that_they_are_deprecated():
    subject._core.history._said.clear()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            subject.quantize_per_tensor(subject.ones(2), 0.1, 0, subject.quint8)
    assert [w.category for w in said] == [UserWarning] and "deprecated" in str(said[0].message)


@same
def test_engines(torch):
    engines = torch.backends.quantized
    before = engines.engine
    try:
        out = outcomes({"e": engines}, ["setattr(e, 'engine', 'no')", "setattr(e, 'engine', 'none')", "setattr(e, 'supported_engines', [])", "e.supported_engines"])
        engines.engine = "fbgemm"
        return before, engines.engine, out
    finally:
        engines.engine = before
