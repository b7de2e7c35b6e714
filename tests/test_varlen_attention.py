"""torch.nn.attention.varlen against attention of each sequence by itself in real torch, whose own function runs on GPUs only; its checks against its own."""
import math

import numpy as np
import pytest
import torch as oracle
from same import caught, same

import torchlike as subject

LENGTHS = [(3, 3), (1, 4), (5, 2), (0, 3)]


def _mask(n, m, window):
    apart = np.arange(m)[None, :] - np.arange(n)[:, None] - (m - n)
    return ((window[0] < 0) | (apart >= -window[0])) & ((window[1] < 0) | (apart <= window[1]))


def _expected(q, k, v, lengths, window, scale, groups):
    out, lse, a, b = [], [], 0, 0
    for n, m in lengths:
        qs, ks, vs = (t.transpose(0, 1).repeat_interleave(g, 0) for t, g in ((q[a:a + n], 1), (k[b:b + m], groups), (v[b:b + m], groups)))
        mask = oracle.from_numpy(_mask(n, m, window))
        scores = (qs @ ks.transpose(1, 2) * scale).masked_fill(~mask, -math.inf)
        out.append((scores.softmax(-1).nan_to_num() @ vs).transpose(0, 1))
        lse.append(scores.logsumexp(-1).masked_fill(~mask.any(-1), math.inf))
        a, b = a + n, b + m
    return oracle.cat(out), oracle.cat(lse, 1)


@pytest.mark.parametrize(("window", "scale", "groups"), [((-1, -1), None, 1), ((-1, 0), 0.3, 2), ((1, 0), None, 1), ((2, 1), None, 2)])
def test_each_sequence_by_itself(window, scale, groups):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((9, 4, 8)), rng.standard_normal((12, 4 // groups, 8)), rng.standard_normal((12, 4 // groups, 8))]
    weight = rng.standard_normal((9, 4, 8)).astype(np.float32)
    theirs = [oracle.tensor(a, dtype=oracle.float32, requires_grad=True) for a in arrays]
    want, want_lse = _expected(*theirs, LENGTHS, window, scale or 8 ** -0.5, groups)
    (want * oracle.tensor(weight)).sum().backward()
    from torchlike.nn.attention import varlen
    ours = [subject.tensor(a, dtype=subject.float32, requires_grad=True) for a in arrays]
    starts = [subject.tensor(np.cumsum([0, *(pair[i] for pair in LENGTHS)]), dtype=subject.int32) for i in (0, 1)]
    options = {"window_size": window, "scale": scale, "enable_gqa": groups > 1}
    made, lse = varlen.varlen_attn(*ours, *starts, 5, 4, return_aux=varlen.AuxRequest(lse=True), **options)
    (made * subject.tensor(weight)).sum().backward()
    np.testing.assert_allclose(made.detach().numpy(), want.detach().numpy(), atol=2e-6)
    np.testing.assert_allclose(lse.numpy(), want_lse.detach().numpy(), atol=2e-6)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), atol=5e-6)
    out = subject.zeros(9, 4, 8)
    written = varlen.varlen_attn_out(out, *ours, *starts, 5, 4, **options)
    assert written is out
    np.testing.assert_array_equal(out.numpy(), made.detach().numpy())
    half = varlen.varlen_attn(*(t.detach().bfloat16() for t in ours), *starts, 5, 4, **options)
    assert half.dtype is subject.bfloat16
    np.testing.assert_allclose(half.float().numpy(), want.detach().numpy(), atol=0.1)


def test_pages_and_parts_of_keys():
    """Keys in pages in any order, of which a part is used: the same as those keys one behind the other."""
    from torchlike.nn.attention import varlen
    rng = np.random.default_rng(1)
    pool = [rng.standard_normal((5, 2, 1, 4)).astype(np.float32) for _ in range(2)]
    table, used = np.array([[3, 1, 0], [4, 2, 0]], np.int32), np.array([3, 2], np.int32)
    query = subject.tensor(rng.standard_normal((4, 1, 4)), dtype=subject.float32)
    starts = subject.tensor([0, 3, 4], dtype=subject.int32)
    paged = varlen.varlen_attn(query, *map(subject.tensor, pool), starts, None, 3, 6, window_size=(-1, 0), seqused_k=subject.tensor(used),
                               block_table=subject.tensor(table))
    flat = [subject.tensor(np.concatenate([p[table[n]].reshape(-1, 1, 4)[:used[n]] for n in range(2)])) for p in pool]
    plain = varlen.varlen_attn(query, *flat, starts, subject.tensor([0, 3, 5], dtype=subject.int32), 3, 3, window_size=(-1, 0))
    np.testing.assert_allclose(paged.numpy(), plain.numpy(), atol=1e-6)
    whole = [subject.tensor(np.concatenate([p[table[n]].reshape(-1, 1, 4) for n in range(2)])) for p in pool]
    part = varlen.varlen_attn(query, *whole, starts, subject.tensor([0, 6, 12], dtype=subject.int32), 3, 6, window_size=(-1, 0), seqused_k=subject.tensor(used))
    np.testing.assert_allclose(part.numpy(), plain.numpy(), atol=1e-6)
    with pytest.raises(RuntimeError, match="seqused_k is an inference-only parameter."):
        varlen.varlen_attn(query.clone().requires_grad_(), *whole, starts, starts, 3, 6, seqused_k=subject.tensor(used))


@same
def test_refusals(torch):
    varlen = __import__(torch.__name__ + ".nn.attention.varlen", fromlist=["x"])
    q, starts = torch.randn(5, 4, 8), torch.tensor([0, 2, 5], dtype=torch.int32)
    words = []
    for heads, options in ((1, {}), (3, {"enable_gqa": True}), (4, {"window_size": (1,)})):
        try:
            varlen.varlen_attn(q, q[:, :heads], q[:, :heads], starts, starts, 3, 3, **options)
        except ValueError as e:
            words.append(str(e))
    return words, varlen.AuxRequest(), sorted(varlen.__all__), caught(varlen.varlen_attn, q, q)
