"""torch.func.functional_call and stack_module_state, against real torch."""

import numpy as np
import torch

import torchlike


def outcome(f):
    try:
        return f()
    except Exception as error:
        return type(error).__name__, str(error)


def calls(t):
    call = t.func.functional_call
    t.manual_seed(0)
    m = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.BatchNorm1d(3))
    own = dict(m.named_parameters())
    x = t.arange(8.0).reshape(4, 2).sin()
    other = {name: (p * 0.5).detach().requires_grad_() for name, p in own.items()}
    y = call(m, other, (x,))
    y.square().sum().backward()
    yield y.tolist(), [p.grad.tolist() for p in other.values()], [p.grad for p in own.values()]
    yield call(m, ({"0.weight": other["0.weight"]}, {"0.bias": other["0.bias"]}), (x,)).tolist()
    yield call(m, other, None, {"input": x}).tolist()
    yield m[1].running_mean.tolist()
    one = {"0.weight": other["0.weight"]}
    yield outcome(lambda: call(m, (one, one), x))
    yield outcome(lambda: call(m, 3, x))
    yield outcome(lambda: call(m, (3,), x))
    yield outcome(lambda: call(m, {"0.weight": 3}, x))[0]
    yield outcome(lambda: call(m, one, x, strict=True))[0]
    class Extended(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.number = t.nn.Linear(3, 2), 0.5
            self.register_parameter("absent", None)

        def forward(self, x):
            seen.append((len(self._parameters), len(self._buffers), "extra" in self.__dict__))
            out = self.layer(x) if self.absent is None else self.layer(x) + self.absent
            return out + self.extra if hasattr(self, "extra") else out

    seen = []
    module = Extended()
    module.load_state_dict({"layer.weight": t.ones(2, 3), "layer.bias": own["0.bias"][:2]})
    x, one = t.arange(6.0).reshape(2, 3), t.ones(2)
    for given in ({"extra": one}, {"absent": one, "layer.bias": None}, {"extra": t.nn.Parameter(one)}):
        yield call(module, given, x).tolist(), seen, hasattr(module, "extra"), module.absent, module.layer.bias is None
    for given in ({"number": one}, {"number": None}, {"layer": one}, {"other.extra": one}, {"layer.weight": 3}, {"layer.": one}, {"": one}):
        yield outcome(lambda given=given: call(module, given, x)), module.number
    t.manual_seed(0)
    normed = t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 2))  # its weight is computed; given one, it is taken apart
    yield call(normed, {"weight": t.arange(6.0).reshape(2, 3)}, x).tolist(), normed(x).tolist()
    models = [t.nn.Linear(2, 2) for _ in range(3)]
    parameters, buffers = t.func.stack_module_state(models)
    yield [(n, tuple(p.shape), p.requires_grad, p.is_leaf, p.tolist()) for n, p in parameters.items()], buffers
    yield outcome(lambda: t.func.stack_module_state([]))
    yield outcome(lambda: t.func.stack_module_state([t.nn.ReLU(), t.nn.Tanh()]))
    yield outcome(lambda: t.func.stack_module_state([t.nn.ReLU(), t.nn.ReLU().eval()]))


def close(a, b):
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))
    return bool(np.isclose(a, b, rtol=1e-4, atol=1e-5)) if isinstance(a, float) else a == b


def test_modules_as_functions():
    for ours, real in zip(calls(torchlike), calls(torch), strict=True):
        assert close(ours, real), (ours, real)
