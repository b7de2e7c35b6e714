"""flex_attention and its masks beside real torch; gradients, which torch refuses on the CPU, beside plain attention."""
import importlib
import warnings

import numpy as np
import pytest


def flex(torch):
    return importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")


def causal(b, h, q, k):
    return q >= k


def window(b, h, q, k):
    return (q - k).abs() < 3


def inputs(torch, heads=2, shared=2, batch=2):
    torch.manual_seed(0)
    return torch.randn(batch, heads, 10, 8), torch.randn(batch, shared, 12, 8), torch.randn(batch, shared, 12, 6)


def scores(torch):
    slope, table = torch.tensor([0.3, -0.2]), torch.arange(24.0).view(12, 2).sin()
    return {"bias": lambda s, b, h, q, k: s + slope[h] * (q - k), "gate": lambda s, b, h, q, k: torch.where(q >= k, s, -float("inf")),
            "cap": lambda s, b, h, q, k: 2 * torch.tanh(s / 2), "table": lambda s, b, h, q, k: s * table[k, 0] + (table[q] * table[k]).sum() + b}


@pytest.mark.parametrize("name", ["bias", "gate", "cap", "table"])
@pytest.mark.parametrize("masked", [False, True])
def test_scores(subject, oracle, name, masked):
    found = []
    for torch in (subject, oracle):
        f = flex(torch)
        mask = f.create_block_mask(f.or_masks(causal, window), 2, None, 10, 12, device="cpu", BLOCK_SIZE=4) if masked else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out, aux = f.flex_attention(*inputs(torch), scores(torch)[name], mask, return_aux=f.AuxRequest(lse=True))
        found.append((out, aux.lse))
    for mine, real in zip(*found):
        np.testing.assert_allclose(mine.numpy(), real.numpy(), rtol=2e-5, atol=2e-6)


def test_options(subject, oracle):
    """Shared heads, a scale, rows for which nothing is allowed."""
    found = []
    for torch in (subject, oracle):
        f = flex(torch)
        mask = f.create_block_mask(lambda b, h, q, k: (q > 3) & (k < 7), None, None, 10, 12, device="cpu", BLOCK_SIZE=(4, 8))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(f.flex_attention(*inputs(torch, 4), block_mask=mask, scale=0.7, enable_gqa=True))
    np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=2e-5, atol=2e-6)


def test_block_masks(subject, oracle):
    def facts(torch):
        f = flex(torch)
        m = f.create_block_mask(f.and_masks(causal, f.or_masks(window, lambda b, h, q, k: k < 2 + h)), 1, 2, 20, 24, device="cpu", BLOCK_SIZE=4)
        one = f.create_block_mask(causal, None, None, 16, 16, "cpu", 4, separate_full_blocks=False)
        part, small = m[:, 1], one._adjust(7, 9)
        lists = [getattr(x, n) for x in (m, one, part, small) for n in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "q_num_blocks", "q_indices")]
        return ([None if x is None else (x.tolist(), str(x.dtype)) for x in lists], str(m), repr(one), m.shape, m.numel(), m.sparsity(), m.to_dense().tolist(),
                f.create_mask(causal, 1, 1, 3, 4, "cpu").tolist(), f.create_mask(lambda s, b, h, q, k: torch.where(q > k, s, -float("inf")), 1, 1, 3, 4, "cpu").tolist(),
                part.shape, small.shape, one.to_string(2), len(m.as_tuple(False)) >= 11)
    assert facts(subject) == facts(oracle)


def test_refusals(subject, oracle):
    def found(torch):
        f, (q, k, v) = flex(torch), inputs(torch)
        mask, out = f.create_block_mask(causal, None, None, 8, 8, "cpu"), []
        calls = (lambda: f.flex_attention(q, k, v, block_mask=mask), lambda: f.flex_attention(q, k[..., :4], v), lambda: f.flex_attention(q[:, :1], k, v),
                 lambda: f.create_block_mask(lambda s, b, h, q, k: s, 1, 1, 4, 4, "cpu"), lambda: f.and_masks(3),
                 lambda: f.flex_attention(q[0], k[0], v[0]), lambda: f.flex_attention(q, k, v, block_mask=mask[0]))
        for call in calls:
            with pytest.raises(Exception) as error:
                call()
            out.append(type(error.value).__name__)
        return out
    assert found(subject) == found(oracle)


def test_gradients(subject):
    """Those of plain attention with the same bias; the bias gets one too."""
    torch, found = subject, []
    for plain in (False, True):
        q, k, v = (x.requires_grad_() for x in inputs(torch))
        slope = torch.tensor([0.3, -0.2], requires_grad=True)
        if plain:
            distance = torch.arange(10).view(-1, 1) - torch.arange(12)
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, torch.where(distance >= 0, slope.view(2, 1, 1) * distance, -float("inf")))
        else:
            f = flex(torch)
            out = f.flex_attention(q, k, v, lambda s, b, h, i, j, slope=slope: s + slope[h] * (i - j), f.create_block_mask(causal, None, None, 10, 12, BLOCK_SIZE=4))
        out.sin().sum().backward()
        found.append([x.grad.numpy() for x in (q, k, v, slope)])
    for mine, wanted in zip(*found):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-5)
