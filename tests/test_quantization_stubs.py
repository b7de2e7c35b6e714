"""The marks that float models have for quantization, beside real torch."""
import torch as oracle

import torchlike as subject


def build(t):
    q = t.ao.quantization

    class Net(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.fc, self.dequant = q.QuantStub(), t.nn.Linear(2, 2), q.DeQuantStub()

        def forward(self, x):
            return self.dequant(self.fc(self.quant(x)))
    t.manual_seed(0)
    return q, Net()


def test_they_hand_on_what_they_get():
    def program(t):
        q, net = build(t)
        wrapped = q.QuantWrapper(net.eval())
        marked = t.nn.Linear(2, 2)
        marked.qconfig = "mine"
        again = q.QuantWrapper(marked)
        return (repr(net), repr(wrapped), list(wrapped.state_dict()), wrapped.training, net(t.ones(1, 2)).tolist() == wrapped(t.ones(1, 2)).tolist(),
                q.QuantStub(7).qconfig, hasattr(q.QuantStub(), "qconfig"), again.quant.qconfig, again.dequant.qconfig, again.training,
                isinstance(q.DeQuantStub(), q.QuantStub), t.quantization.QuantStub is q.QuantStub, q.QuantStub()("x"))
    assert program(subject) == program(oracle)
