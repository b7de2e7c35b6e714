"""Stacks of recurrent layers against real torch, what the kernel is picked for, and bad input."""

import kernel_oracle as oracle
import numpy as np
import pytest
import torch

import pallas_kernels
from pallas_kernels import _dispatch, _tune
from pallas_kernels.recurrent import api, cells, gpu


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


A40 = _dispatch.Device("cuda", "NVIDIA A40", 86, 84)
UNKNOWN = _dispatch.Device("cuda", "Imaginary GPU 7", 999, 1)


@pytest.mark.parametrize(
    ("device", "mode", "most", "refusal"),
    [
        (_dispatch.H200, "lstm", 64, "lstm of hidden size 65 wants 589824 bytes of shared memory, over 232448"),
        (_dispatch.H200, "gru", 64, "gru of hidden size 65 wants 442368 bytes of shared memory, over 232448"),
        (_dispatch.H200, "rnn_tanh", 128, "hidden size 129 is over 128"),
        (A40, "lstm", 32, "lstm of hidden size 33 wants 163840 bytes of shared memory, over 101376"),
        (A40, "gru", 32, "gru of hidden size 33 wants 122880 bytes of shared memory, over 101376"),
        (A40, "rnn_tanh", 64, "rnn_tanh of hidden size 65 wants 147456 bytes of shared memory, over 101376"),
        (UNKNOWN, "lstm", 32, "lstm of hidden size 33 wants 163840 bytes of shared memory, over 49152"),
    ],
)
def test_hidden_sizes_that_fit_shared_memory(device, mode, most, refusal):
    def choose(hidden):
        case = cells.Case(mode, 9, 40, hidden, "float32", True, False)
        with _dispatch.assumed_device(device):
            return _dispatch.choose("recurrent_layer", api.IMPLEMENTATIONS, case)

    assert choose(1).impl and choose(most).impl
    assert choose(most + 1).reasons == (f"triton: {refusal}",)


def test_shared_memory_goes_by_the_configuration():
    case = cells.Case("lstm", 9, 40, 64, "float32", True, False)
    choose = lambda: _dispatch.choose("recurrent_layer", api.IMPLEMENTATIONS, case)
    with _dispatch.assumed_device(_dispatch.Device("cuda", "NVIDIA A100", 80, 108)):
        assert choose().impl
        with _tune.forced(recurrent_backward=gpu.Config(32, 4)):
            assert "wants 196608 bytes of shared memory, over 166912" in choose().reasons[0]


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
