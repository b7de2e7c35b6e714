"""nn.functional.grouped_mm against real torch's plain products, with gradients, empty groups and bad input."""
import numpy as np
import pytest
import torch as real

import torchlike
from torchlike._core import registry

ENDS = np.array([3, 3, 8, 10], np.int32)  # one empty group
SPANS = list(zip([0, *ENDS], ENDS))
FORMS = {
    "rows": ((10, 4), (4, 4, 5), lambda t, a, b: t.cat([a[s:e] @ b[g] for g, (s, e) in enumerate(SPANS)])),
    "columns": ((4, 6, 5), (5, 10), lambda t, a, b: t.cat([a[g] @ b[:, s:e] for g, (s, e) in enumerate(SPANS)], 1)),
    "summed": ((6, 10), (10, 5), lambda t, a, b: t.stack([a[:, s:e] @ b[s:e] for s, e in SPANS])),
    "batch": ((4, 6, 5), (4, 5, 3), lambda t, a, b: a @ b),
}


@pytest.mark.parametrize("form", FORMS)
def test_values_and_gradients(form):
    shape_a, shape_b, plain = FORMS[form]
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(s).astype(np.float32) for s in (shape_a, shape_b)]
    x, y = (torchlike.tensor(a, requires_grad=True) for a in arrays)
    offs = None if form == "batch" else torchlike.tensor(ENDS)
    out = torchlike.nn.functional.grouped_mm(x, y, offs=offs)
    a, b = (real.tensor(v, requires_grad=True) for v in arrays)
    want = plain(real, a, b)
    np.testing.assert_allclose(out.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)
    (out * out).sum().backward()
    (want * want).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), a.grad.numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y.grad.numpy(), b.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_refusals():
    t = torchlike
    with pytest.raises(RuntimeError, match="offsets"):
        t.nn.functional.grouped_mm(t.ones(4, 3), t.ones(2, 3, 5))
    with pytest.raises(RuntimeError, match="contraction"):
        t.nn.functional.grouped_mm(t.ones(2, 4, 3), t.ones(2, 4, 5))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_without_a_trace(monkeypatch, dtype):
    """The first tier multiplies group by group in NumPy, forward and backward: tracing the kernel took longer than a small model's step. Rows past the last
    group belong to none."""
    def refuse(plan):
        raise AssertionError(f"{plan} was traced")
    monkeypatch.setattr(registry, "_interpreted", refuse)
    draw = np.random.default_rng(1)
    arrays = [draw.standard_normal(s).astype(np.float32) for s in ((13, 16), (4, 16, 8))]
    x, w = (torchlike.tensor(a, dtype=getattr(torchlike, dtype), requires_grad=True) for a in arrays)
    out = torchlike.nn.functional.grouped_mm(x, w, offs=torchlike.tensor(ENDS))
    (out * out).sum().backward()
    a, b = (real.tensor(v, dtype=getattr(real, dtype), requires_grad=True) for v in arrays)
    want = FORMS["rows"][2](real, a, b)
    (want * want).sum().backward()
    near = 2e-2 if dtype == "bfloat16" else 1e-5
    for have, wanted in ((out[:10], want), (x.grad, a.grad), (w.grad, b.grad)):
        np.testing.assert_allclose(have.detach().float().numpy(), wanted.detach().float().numpy(), rtol=near, atol=near)
    assert not out[10:].any()
