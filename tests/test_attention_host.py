"""Attention of long sequences in the first tier, which computes it some rows at a time: results and gradients are torch's."""
from __future__ import annotations

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core.program import tier
from torchlike.nn._functional import attention_host

# name: shapes of query, key and value, what the mask is, further arguments
CASES = {
    "plain": ((2, 3, 230, 8), (2, 3, 230, 8), None, {}),
    "causal": ((2, 3, 230, 8), (2, 3, 230, 8), None, {"is_causal": True}),
    "causal, more queries": ((1, 4, 400, 8), (1, 4, 200, 8), None, {"is_causal": True}),
    "causal, more keys": ((1, 4, 200, 8), (1, 4, 400, 8), None, {"is_causal": True}),
    "few queries": ((1, 4, 3, 8), (1, 4, 40000, 8), None, {}),
    "negative scale": ((1, 6, 256, 8), (1, 6, 256, 8), None, {"scale": -0.7}),
    "bool mask, some rows see nothing": ((2, 3, 230, 8), (2, 3, 230, 8), "bool", {}),
    "added mask": ((2, 3, 230, 8), (2, 3, 230, 8), "float", {}),
    "groups": ((2, 6, 210, 8), (2, 2, 210, 8), None, {"enable_gqa": True, "is_causal": True}),
    "shared keys": ((2, 4, 210, 8), (2, 1, 210, 8), None, {}),
    "three dimensions": ((6, 230, 8), (6, 230, 8), None, {}),
    "dropout": ((2, 3, 230, 8), (2, 3, 230, 8), None, {"dropout_p": 0.3}),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case, dtype, monkeypatch):
    queries, keys, kind, arguments = CASES[case]
    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal(shape) for shape in (queries, keys, keys)]
    given = None if kind is None else numbers.standard_normal((queries[0], 1, queries[-2], keys[-2]))
    if kind == "bool":
        given = given > 0
        given[0, 0, 5] = False
    calls = []
    monkeypatch.setattr(attention_host, "_Heads", lambda *args, cls=attention_host._Heads: calls.append(1) or cls(*args))

    def run(torch):
        torch.manual_seed(0)
        q, k, v = (torch.tensor(a).to(getattr(torch, dtype)).requires_grad_() for a in arrays)
        mask = None if given is None else torch.tensor(given)
        if kind == "float":
            mask = mask.to(q.dtype).requires_grad_()
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, **arguments)
        (out.double() * torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape)).sum().backward()
        return [t.detach().double().numpy() for t in (out, *(x.grad for x in (q, k, v, mask) if x is not None and x.requires_grad))]
    with tier("numpy"):
        ours = run(torchlike)
    assert len(calls) == 2
    near = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 0.03}[dtype]
    for a, b in zip(ours, run(torch)):
        np.testing.assert_allclose(a, b, rtol=near, atol=near * max(1, np.abs(b).max()))


def test_what_a_causal_mask_hides_may_be_anything():
    """Keys that no query has come to yet: not numbers, or infinite."""
    numbers = np.random.default_rng(0)
    q, k, v = (numbers.standard_normal((1, 6, 260, 8)).astype("f") for _ in range(3))
    k[..., 200, :], k[..., 250, :] = np.nan, np.inf

    def run(torch):
        return torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), is_causal=True)[..., :200, :].numpy()
    with tier("numpy"):
        ours = run(torchlike)
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, run(torch), rtol=2e-5, atol=2e-5)
