"""Stacks of recurrent layers against real torch, and the packing of weights for cuDNN."""

import jax
import kernel_oracle as oracle
import numpy as np
import pytest
import torch
from jax.experimental import rnn

import pallas_kernels
from pallas_kernels.recurrent import cudnn


@pytest.mark.parametrize("mode", ["lstm", "gru"])
def test_stack_matches_torch(mode):
    torch.manual_seed(0)
    steps, batch, size, hidden = 5, 4, 3, 6
    module = getattr(torch.nn, mode.upper())(size, hidden, num_layers=2, bidirectional=True)
    x, lengths = torch.randn(steps, batch, size), torch.tensor([5, 1, 3, 4])
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    out, states = module(packed)
    want = torch.nn.utils.rnn.pad_packed_sequence(out, total_length=steps)[0]
    flat = [p.detach().numpy() for p in module.parameters()]
    weights = [flat[i : i + 4] for i in range(0, len(flat), 4)]
    zero = np.zeros((4, batch, hidden), "float32")
    call = lambda x, h, c, lengths: pallas_kernels.recurrent(mode, x, h, c, weights, bidirectional=True, lengths=lengths)
    y, *got = oracle.jit(call)(
        x.numpy(), zero, zero if mode == "lstm" else None, lengths.numpy().astype("int32")
    )
    assert oracle.error(y, want.detach().numpy()) < 2e-6
    for a, b in zip(got, states if mode == "lstm" else [states], strict=True):
        assert oracle.error(a, b.detach().numpy()) < 2e-6


def test_dropout_acts_between_layers_only():
    rng = np.random.default_rng(0)
    make = lambda *shape: rng.standard_normal(shape).astype("float32")
    x, zero = make(3, 2, 8), np.zeros((2, 2, 8), "float32")
    weights = [[make(8, 8), make(8, 8)] for _ in range(2)]
    stack = lambda n, options: oracle.jit(
        lambda x: pallas_kernels.recurrent("rnn_tanh", x, zero[:n], None, weights[:n], **options)[0]
    )
    run = lambda n, **options: stack(n, options)(x)
    assert np.array_equal(run(1), run(1, dropout=0.5, seed=1))
    assert not np.array_equal(run(2), run(2, dropout=0.5, seed=1))
    assert np.array_equal(run(2, dropout=0.5, seed=1), run(2, dropout=0.5, seed=1))
    with pytest.raises(ValueError, match="dropout needs a seed"):
        run(2, dropout=0.5)


@pytest.mark.parametrize("reverse", [False, True])
def test_weights_are_packed_as_cudnn_wants(reverse, monkeypatch):
    """cuDNN itself needs a card; JAX's definition of what it computes, fed through its own unpacking, does not."""

    def stand_in(x, h, c, weights, lengths, size, hidden, layers, dropout, bidirectional, precision):
        assert precision == jax.lax.Precision.HIGHEST
        parts = rnn.unpack_lstm_weights(weights, size, hidden, layers, bidirectional)
        return rnn.lstm_ref(x, h, c, *parts, lengths, size, hidden, layers, dropout, bidirectional)

    monkeypatch.setattr(rnn, "lstm", stand_in)
    rng = np.random.default_rng(0)
    x, h, c, w_ih, w_hh, b_ih, b_hh = (
        rng.standard_normal(s).astype("float32")
        for s in ((4, 3, 5), (3, 6), (3, 6), (24, 5), (24, 6), (24,), (24,))
    )
    both = oracle.jit(
        lambda *a: (cudnn.lstm(*a, reverse), pallas_kernels.recurrent_layer("lstm", *a, reverse=reverse))
    )
    for a, b in zip(*both(x, h, c, w_ih, w_hh, b_ih, b_hh), strict=True):
        assert oracle.error(a, b) < 1e-6


@pytest.mark.parametrize(
    ("error", "words", "changes"),
    [
        (ValueError, "mode must be one of lstm, gru", {"mode": "mgu"}),
        (ValueError, "c0 is for lstm, and lstm needs it", {"c0": None}),
        (
            ValueError,
            r"w_hh must have shape \(24, 6\) to fit x \(4, 3, 5\) and h0 \(3, 6\), got \(18, 6\)",
            {"w_hh": np.ones((18, 6), "float32")},
        ),
        (TypeError, "one floating dtype, got w_ih bfloat16, x float32", {"w_ih": np.ones((24, 5), "bfloat16")}),
        (ValueError, r"lengths must have shape \(3,\) to fit .* got \(4,\)", {"lengths": np.ones(4, "int32")}),
        (
            pallas_kernels.KernelUnavailable,
            "hidden size 200 is over 128",
            {
                "mode": "rnn_relu",
                "h0": np.ones((3, 200), "float32"),
                "c0": None,
                "w_ih": np.ones((200, 5), "float32"),
                "w_hh": np.ones((200, 200), "float32"),
                "impl": "interpret",
            },
        ),
    ],
)
def test_bad_input(error, words, changes):
    plain = {
        "mode": "lstm",
        "x": np.ones((4, 3, 5), "float32"),
        "h0": np.ones((3, 6), "float32"),
        "c0": np.ones((3, 6), "float32"),
        "w_ih": np.ones((24, 5), "float32"),
        "w_hh": np.ones((24, 6), "float32"),
    }
    with pytest.raises(error, match=words):
        pallas_kernels.recurrent_layer(**{**plain, **changes})
