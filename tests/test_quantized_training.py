"""Training that knows of quantization against real torch: fake quantizations, prepare_qat, and what models become afterwards."""
import numpy as np
import pytest
import torch as oracle
from same import outcomes, same

import torchlike as subject

BOTH = (oracle, subject)
pytestmark = pytest.mark.filterwarnings("ignore")


def _net(t):
    nn, q = t.nn, t.ao.quantization
    return nn.Sequential(q.QuantStub(), nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 3, 1), nn.Flatten(), nn.Linear(108, 10), nn.ReLU(), nn.Linear(10, 2),
                         q.DeQuantStub())


CONFIGURATIONS = {"plain": lambda q: q.default_qat_qconfig, "fused": lambda q: q.default_qat_qconfig_v2, "x86": lambda q: q.get_default_qat_qconfig("x86"),
                  "qnnpack": lambda q: q.get_default_qat_qconfig("qnnpack"), "older": lambda q: q.get_default_qat_qconfig("x86", 0),
                  "onednn": lambda q: q.get_default_qat_qconfig("onednn")}


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_model_in_training(monkeypatch, configuration):
    for t in BOTH:  # torch's other engines add pairs of products in 16 bits on some processors, which activations of all 8 bits can leave
        monkeypatch.setattr(t.backends.quantized, "engine", "qnnpack")
    oracle.manual_seed(0)
    nets = [_net(t) for t in BOTH]
    nets[1].load_state_dict({k: subject.from_numpy(x.detach().numpy().copy()) for k, x in nets[0].state_dict().items()})
    results = []
    for t, net in zip(BOTH, nets):
        q = t.ao.quantization
        net = q.fuse_modules(net.eval(), [["1", "2"], ["5", "6"]]).train()
        net.qconfig = CONFIGURATIONS[configuration](q)
        prepared = q.prepare_qat(net)
        optimizer, losses = t.optim.SGD(prepared.parameters(), 0.05), []
        for k in range(6):
            x = t.from_numpy(np.random.default_rng(k).standard_normal((8, 1, 6, 6)).astype(np.float32))
            loss = (prepared(x) - x.mean((1, 2, 3))[:, None]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        converted = q.convert(prepared.eval())
        results.append((losses, list(prepared.state_dict()), [type(m).__name__ for m in prepared.modules()], [type(m).__name__ for m in converted.modules()],
                        [m.weight().int_repr().numpy() for m in (converted[1], converted[5], converted[7])], converted(x).numpy(), converted[7].scale))
    a, b = results
    np.testing.assert_allclose(b[0], a[0], rtol=1e-5)
    assert a[1:4] == b[1:4]
    for want, got in zip(a[4], b[4]):
        assert abs(want.astype(int) - got).max() <= 1
    assert abs(a[5] - b[5]).max() <= 2.01 * a[6]


@pytest.mark.parametrize("signs", [(0, 0, 0), (1, 1, 1), (-1, -1, -1), (1, 0, -1)])  # of channels; 0: both
@pytest.mark.parametrize("name", ["default_fake_quant", "default_weight_fake_quant", "default_per_channel_weight_fake_quant", "default_fused_act_fake_quant",
                                  "default_fused_wt_fake_quant", "default_fused_per_channel_wt_fake_quant"])
def test_fake_quantizations(name, signs):
    made, signs = [getattr(t.ao.quantization, name)() for t in BOTH], np.array(signs, np.float32)[:, None]
    for k in range(4):
        x = np.random.default_rng(k).standard_normal((3, 40)).astype(np.float32) * (k + 1)
        x = np.where(signs == 0, x, abs(x) * signs)
        out = []
        for t, m in zip(BOTH, made):
            y = t.from_numpy(x.copy()).requires_grad_()
            z = m(y)
            z.sum().backward()
            out.append((z.detach().numpy(), y.grad.numpy(), m.scale.numpy().copy(), m.zero_point.numpy().copy()))
        for want, got in zip(*out):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    assert str(made[0]) == str(made[1]) and list(made[0].state_dict()) == list(made[1].state_dict())
    for t, m in zip(BOTH, made):
        m.apply(t.ao.quantization.disable_fake_quant)
        m.apply(t.ao.quantization.disable_observer)
        before, y = m.scale.clone(), t.ones(3, 40) * 50
        assert m(y).equal(y) and m.scale.equal(before)
        m.apply(t.ao.quantization.enable_fake_quant)
        assert not m(y).equal(y)


@same
def test_errors(torch):
    q, nn = torch.ao.quantization, torch.nn
    return outcomes({"q": q, "nn": nn, "torch": torch, "qat": torch.ao.nn.qat}, [
        "q.prepare_qat(nn.Sequential(nn.Linear(1, 1)).eval())", "q.FakeQuantize(quant_min=5, quant_max=2)", "q.FakeQuantize(quant_min=-1, quant_max=2)",
        "q.FakeQuantize(quant_min=0, quant_max=256)", "qat.Linear(2, 2)", "qat.Linear.from_float(nn.Linear(2, 2))", "qat.Linear.from_float(nn.Tanh())",
        "q.FusedMovingAvgObsFakeQuantize(q.MinMaxObserver)", "q.get_default_qat_qconfig('none')", "q.get_default_qat_qconfig('x86', 2)"])
