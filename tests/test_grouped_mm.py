"""nn.functional.grouped_mm against real torch's plain products, with gradients, empty groups and bad input."""
import numpy as np
import pytest
import torch as real

import torchlike

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
