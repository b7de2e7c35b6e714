"""Layers with quantized weights, observers and configurations against real torch."""
import copy
import io
import pickle

import numpy as np
import pytest
import torch as oracle
from same import outcomes, same

import torchlike as subject

BOTH = (oracle, subject)
pytestmark = pytest.mark.filterwarnings("ignore")


def _twins(make):
    """A model of both libraries with the same parameters."""
    oracle.manual_seed(0)
    a, b = (make(t.nn) for t in BOTH)
    b.load_state_dict({name: subject.from_numpy(x.detach().numpy().copy()) for name, x in a.state_dict().items()})
    return a, b


def _quantized(make, *spec):
    """Both after quantize_dynamic; `spec` is made for each library."""
    return [t.ao.quantization.quantize_dynamic(m, *(s(t) for s in spec)) for t, m in zip(BOTH, _twins(make))]


def _numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _mlp(nn):
    return nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 10, bias=False))


@pytest.mark.parametrize("spec", ["default", "channels"])
def test_linear_layers_to_the_bit(spec):
    a, b = _quantized(_mlp, *([] if spec == "default" else [lambda t: {t.nn.Linear: t.ao.quantization.per_channel_dynamic_qconfig}]))
    assert repr(a) == repr(b)
    for k in range(12):  # often enough to be compiled
        x = _numbers(k, 7, 40) * 10.0 ** (k % 5 - 2)
        np.testing.assert_array_equal(b(subject.from_numpy(x)).numpy(), a(oracle.from_numpy(x)).numpy())
    x = _numbers(3, 2, 5, 40)
    np.testing.assert_array_equal(b(subject.from_numpy(x)).numpy(), a(oracle.from_numpy(x)).numpy())
    np.testing.assert_array_equal(b[0].weight().int_repr().numpy(), a[0].weight().int_repr().numpy())


@pytest.mark.parametrize("inputs", [1500, 2100])
@pytest.mark.parametrize("reduce_range", [True, False])
@pytest.mark.parametrize("channels", [True, False])
def test_wide_products_to_the_bit(inputs, reduce_range, channels):
    """Partial sums would not fit float32. The pairs of products that torch adds in 16 bits, on processors without an instruction for four, do fit those."""
    rng, most = np.random.default_rng(1), 128 if reduce_range else 64
    w, x, bias = rng.integers(-most, most, (9, inputs)).astype(np.int8), (rng.random((4, inputs)) * 3 - 0.5).astype(np.float32), _numbers(2, 9)
    scales, zero_points = (rng.random(9) * 0.1 + 0.01).astype(np.float32), rng.integers(-10, 10, 9)

    def run(t):
        q = (t._make_per_channel_quantized_tensor(t.from_numpy(w), t.from_numpy(scales), t.from_numpy(zero_points), 0) if channels else
             t._make_per_tensor_quantized_tensor(t.from_numpy(w), float(scales[0]), int(zero_points[0])))
        packed = t.ops.quantized.linear_prepack(q, t.from_numpy(bias))
        return [f(t.from_numpy(x), packed, reduce_range=reduce_range).numpy() for f in (t.ops.quantized.linear_dynamic, t.ops.quantized.linear_relu_dynamic)]
    for want, got in zip(*map(run, BOTH)):
        np.testing.assert_array_equal(got, want)


def test_products_with_half_weights():
    a, b = [t.ao.quantization.quantize_dynamic(m, dtype=t.float16) for t, m in zip(BOTH, _twins(_mlp))]
    assert repr(a) == repr(b)
    x = _numbers(0, 7, 40)
    np.testing.assert_allclose(b(subject.from_numpy(x)).numpy(), a(oracle.from_numpy(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["qint8", "float16"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}])
@pytest.mark.parametrize("mode", ["LSTM", "GRU"])
def test_recurrent_layers(mode, options, kind):
    made = [t.ao.quantization.quantize_dynamic(m, dtype=getattr(t, kind))[0]
            for t, m in zip(BOTH, _twins(lambda nn: nn.Sequential(getattr(nn, mode)(6, 10, **options))))]
    assert repr(made[0]) == repr(made[1])
    x, lengths = _numbers(0, 7, 4, 6), [3, 7, 5, 5]
    results = []
    for t, m in zip(BOTH, made):
        y, state = m(t.from_numpy(x))
        again, last = m(t.from_numpy(x), state)
        parts = [y, again, *(state if mode == "LSTM" else [state]), *(last if mode == "LSTM" else [last])]
        if not options.get("batch_first"):
            packed, state = m(t.nn.utils.rnn.pack_padded_sequence(t.from_numpy(x), t.tensor(lengths), enforce_sorted=False))
            parts += [packed.data, *(state if mode == "LSTM" else [state])]
        results.append([p.detach().numpy() for p in parts])
    for want, got in zip(*results):
        np.testing.assert_allclose(got, want, atol=2e-6)
    a, b = (m.get_weight() for m in made)
    assert list(a) == list(b)
    if kind == "qint8":
        assert all(np.array_equal(a[k].int_repr().numpy(), b[k].int_repr().numpy()) for k in a)
    assert list(made[0].get_bias()) == list(made[1].get_bias())


@pytest.mark.parametrize("kind", ["qint8", "float16"])
@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "RNNCell", "relu"])
def test_cells(cell, kind):
    def make(nn):
        return nn.Sequential(nn.RNNCell(6, 10, nonlinearity="relu") if cell == "relu" else getattr(nn, cell)(6, 10))
    made = [t.ao.quantization.quantize_dynamic(m, dtype=getattr(t, kind))[0] for t, m in zip(BOTH, _twins(make))]
    assert repr(made[0]) == repr(made[1])
    results = []
    for t, m in zip(BOTH, made):
        state = None
        for k in range(3):
            state = m(t.from_numpy(_numbers(k, 4, 6)), state)
        results.append([s.detach().numpy() for s in (state if cell == "LSTMCell" else [state])])
    for want, got in zip(*results):
        np.testing.assert_allclose(got, want, atol=2e-6)


@same
def test_which_layers_are_exchanged(torch):
    nn, q = torch.nn, torch.ao.quantization
    names = {"nn": nn, "q": q, "torch": torch, "D": q.quantize_dynamic}
    return outcomes(names, [f"str({e})" for e in (
        "D(nn.Linear(3, 2))", "D(nn.Sequential(nn.Linear(3, 2)), {'0'})", "D(nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)), {'0': q.per_channel_dynamic_qconfig})",
        "D(nn.Sequential(nn.Linear(3, 2), nn.Tanh()), {'': q.default_dynamic_qconfig})", "D(nn.Sequential(nn.MultiheadAttention(4, 2)))",
        "D(nn.TransformerEncoderLayer(4, 2, 8))", "D(nn.Sequential(nn.Linear(3, 2)), dtype=torch.int8)", "D(nn.Sequential(nn.RNN(3, 4)))",
        "D(nn.Sequential(nn.LSTM(3, 2, bias=False)))", "D(nn.Sequential(nn.LSTM(3, 4, 2, dropout=0.5)))", "D(nn.Sequential(nn.Linear(3, 2)).train()).training",
        "hasattr(D(nn.Sequential(nn.Linear(3, 2)))[0], 'qconfig')", "D(nn.Sequential(nn.Linear(3, 2)), {nn.Linear}, dtype=torch.float16)",
        "D(nn.Sequential(nn.LSTM(3, 2)), {nn.Linear})", "torch.nn.quantized.dynamic.Linear(3, 2)", "torch.ao.nn.quantized.dynamic.Linear(3, 2, dtype=torch.float16)",
        "list(D(nn.Sequential(nn.Linear(3, 2), nn.LSTM(3, 2), nn.GRUCell(3, 2))).state_dict())", "D(nn.Sequential(nn.Linear(3, 2))).state_dict()._metadata",
        "list(D(nn.Sequential(nn.Linear(3, 2))).parameters())")])


@same
def test_errors(torch):
    D = torch.ao.quantization.quantize_dynamic
    m, lstm, cell = D(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LSTM(4, 3), torch.nn.GRUCell(4, 3)))
    return outcomes({"m": m, "torch": torch, "x": torch.ones(2, 4), "lstm": lstm, "cell": cell}, [
        "m(x.double())", "m(x.half())", "m(x[0])", "m(torch.ones(2, 5))", "m(x[:0]).shape", "m(torch.ones(2, 3, 4)).shape", "lstm(x)", "lstm(torch.ones(2, 1, 5))",
        "lstm(x[None], (torch.ones(1, 2, 2), torch.ones(1, 2, 3)))", "cell(torch.ones(2, 5))", "cell(x, torch.ones(3, 3))", "cell(x, torch.ones(2, 4))",
        "torch.ops.quantized.linear_prepack(x, None)", "torch.ao.nn.quantized.dynamic.Linear.from_float(torch.nn.Linear(2, 2))",
        "torch.ao.nn.quantized.dynamic.Linear.from_float(torch.nn.Tanh())", "torch.ao.nn.quantized.dynamic.Linear(2, 3, dtype=torch.int8)", "m.bias().shape"])


def test_hooks_stay_and_the_model_is_a_copy():
    seen = []
    net = subject.nn.Sequential(subject.nn.Linear(3, 2))
    net[0].register_forward_hook(lambda *a: seen.append("after"))
    net[0].register_forward_pre_hook(lambda *a: seen.append("before"))
    made = subject.ao.quantization.quantize_dynamic(net)
    made(subject.ones(1, 3))
    assert seen == ["before", "after"] and type(net[0]) is subject.nn.Linear and net.training
    assert subject.quantization.quantize_dynamic(net, inplace=True) is net and type(net[0]) is subject.nn.quantized.dynamic.Linear


def test_state_dicts_between_libraries():
    a, b = _quantized(_mlp, lambda t: {"0": t.ao.quantization.per_channel_dynamic_qconfig, "2": t.ao.quantization.default_dynamic_qconfig})
    x = _numbers(5, 3, 40)
    want = a(oracle.from_numpy(x)).numpy()
    for source, t in ((a, oracle), (b, subject)):
        for other in BOTH:
            file = io.BytesIO()
            t.save(source.state_dict(), file)
            file.seek(0)
            target = other.ao.quantization.quantize_dynamic(_mlp(other.nn), {"0": other.ao.quantization.per_channel_dynamic_qconfig,
                                                                             "2": other.ao.quantization.default_dynamic_qconfig})
            target.load_state_dict(other.load(file))
            np.testing.assert_array_equal(target(other.from_numpy(x)).numpy(), want)


def test_copies_and_pickles_of_whole_models():
    q = subject.ao.quantization
    net = q.quantize_dynamic(subject.nn.Sequential(subject.nn.Linear(6, 5), subject.nn.GRUCell(5, 4)))
    lstm = q.quantize_dynamic(subject.nn.Sequential(subject.nn.LSTM(5, 4)))
    x, s = subject.ones(2, 6), subject.ones(3, 1, 5)
    for n, argument in ((net, x), (lstm, s)):
        def run(m, n=n, argument=argument):
            out = m(argument)
            return out[0] if n is lstm else out
        file = io.BytesIO()
        subject.save(n, file)
        file.seek(0)
        for made in (copy.deepcopy(n), pickle.loads(pickle.dumps(n)), subject.load(file, weights_only=False)):
            assert run(made).equal(run(n)) and repr(made) == repr(n)
        file = io.BytesIO()
        subject.save(n.state_dict(), file)
        file.seek(0)
        fresh = q.quantize_dynamic(subject.nn.Sequential(subject.nn.Linear(6, 5), subject.nn.GRUCell(5, 4)) if n is net else subject.nn.Sequential(subject.nn.LSTM(5, 4)))
        fresh.load_state_dict(subject.load(file))
        assert run(fresh).equal(run(n))


@same
def test_observers(torch):
    q = torch.ao.quantization
    out = []
    batches = [torch.linspace(-1, 3, 24).reshape(2, 3, 4) * k + 0.1 for k in (1, 2, 0.5)]
    for kind in (torch.qint8, torch.quint8, torch.qint32):
        for make in (q.MinMaxObserver, q.MovingAverageMinMaxObserver):
            for scheme in (torch.per_tensor_affine, torch.per_tensor_symmetric):
                o = make(dtype=kind, qscheme=scheme)
                for x in batches:
                    assert o(x) is x
                out += [o.calculate_qparams(), o.min_val, o.max_val, o.quant_min, o.quant_max, str(o)]
        for make in (q.PerChannelMinMaxObserver, q.MovingAveragePerChannelMinMaxObserver):
            for scheme in (torch.per_channel_affine, torch.per_channel_symmetric, torch.per_channel_affine_float_qparams):
                for axis in (0, 1):
                    o = make(ch_axis=axis, dtype=kind, qscheme=scheme)
                    for x in batches:
                        o(x)
                    out += [o.calculate_qparams(), o.min_val, list(o.state_dict())]
    for options in ({"reduce_range": True}, {"quant_min": -8, "quant_max": 7, "dtype": torch.qint8}, {"quant_min": 0, "quant_max": 100, "eps": 0.5}):
        o = q.MinMaxObserver(**options)
        o(batches[0])
        out += [o.calculate_qparams(), o.quant_min, o.quant_max, o.eps]
    o.reset_min_max_vals()
    return [*out, o.min_val, o.calculate_qparams()]


@same
def test_errors_of_observers(torch):
    q = torch.ao.quantization
    return outcomes({"q": q, "torch": torch}, [
        "q.MinMaxObserver(qscheme=torch.per_channel_affine)", "q.PerChannelMinMaxObserver(qscheme=torch.per_tensor_affine)", "q.MinMaxObserver(dtype=torch.float32)",
        "q.MinMaxObserver(quant_min=1, quant_max=5)", "q.MinMaxObserver(quant_min=0, quant_max=0)", "q.MovingAverageMinMaxObserver(is_dynamic=True)",
        "q.MinMaxObserver(dtype=torch.qint8, quant_min=-300, quant_max=300)", "q.MinMaxObserver(qscheme=torch.per_tensor_symmetric, reduce_range=True)",
        "q.PlaceholderObserver().calculate_qparams()", "q.NoopObserver().calculate_qparams()", "q.FixedQParamsObserver(0.5, 3).calculate_qparams()",
        "q.ObserverBase(torch.qint8)", "str(q.PlaceholderObserver())", "q.RecordingObserver()(torch.ones(2))", "q.QConfig(activation=q.MinMaxObserver(), weight=None)",
        "q.qconfig_equals(q.default_dynamic_qconfig, q.default_dynamic_qconfig)", "q.qconfig_equals(q.default_qconfig, q.default_dynamic_qconfig)",
        "q.qconfig_equals(q.default_qconfig, None)", "str(q.default_dynamic_qconfig.weight())", "str(q.default_dynamic_qconfig.activation())",
        "q.default_weight_observer().quant_min", "q.default_observer().quant_max", "q.weight_observer_range_neg_127_to_127().eps",
        "torch.quantization.qconfig.per_channel_dynamic_qconfig is q.per_channel_dynamic_qconfig", "torch.quantization.observer.MinMaxObserver is q.MinMaxObserver"])


def test_observers_load_what_others_saved():
    for make in (lambda q: q.MinMaxObserver(), lambda q: q.PerChannelMinMaxObserver(1)):
        a, b = (make(t.ao.quantization) for t in BOTH)
        a(oracle.from_numpy(_numbers(0, 3, 4)))
        b.load_state_dict({k: subject.from_numpy(np.array(v)) for k, v in a.state_dict().items()})
        np.testing.assert_array_equal(b.calculate_qparams()[0].numpy(), a.calculate_qparams()[0].numpy())


def test_weights_observed_within_fewer_integers():
    def spec(t):
        q = t.ao.quantization
        return {t.nn.Linear: q.QConfig(activation=q.default_dynamic_quant_observer, weight=q.MinMaxObserver.with_args(
            dtype=t.qint8, qscheme=t.per_tensor_symmetric, quant_min=-8, quant_max=7))}
    a, b = _quantized(_mlp, spec)
    np.testing.assert_array_equal(b[0].weight().int_repr().numpy(), a[0].weight().int_repr().numpy())
    x = _numbers(1, 3, 40)
    np.testing.assert_array_equal(b(subject.from_numpy(x)).numpy(), a(oracle.from_numpy(x)).numpy())
