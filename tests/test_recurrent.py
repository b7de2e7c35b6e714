"""Recurrent layers against real torch: second derivatives, gradients that reach only some results, rows of hx, packed input."""
import numpy as np
import pytest

from torchlike._core import program

KINDS = ("LSTM", "GRU", "RNN", "projected")


def gradients(torch, kind, packed=False, reads=("out", "h", "c"), second=False, start=False, hidden=4, **options):
    torch.manual_seed(0)
    if kind == "projected":
        kind, options = "LSTM", {"proj_size": hidden - 1, **options}
    layer = getattr(torch.nn, kind)(3, hidden, 2, **options).double()
    x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    widths = (options.get("proj_size", hidden), hidden)[:2 if kind == "LSTM" else 1]
    states = [torch.randn((4 if options.get("bidirectional") else 2, 2, n), dtype=torch.float64, requires_grad=True) for n in widths] if start else []
    hx = (tuple(states) if kind == "LSTM" else states[0]) if start else None
    out, last = layer(torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3]) if packed else x, hx)
    results = dict(zip(("out", "h", "c"), (out.data if packed else out, *(last if kind == "LSTM" else (last,)))))
    loss = sum((results[name] ** (2 + k)).sum() for k, name in enumerate(("out", "h", "c")) if name in reads and name in results)
    leaves = [x, *states, *layer.parameters()]
    found = list(torch.autograd.grad(loss, leaves, create_graph=second))
    if second:
        found += torch.autograd.grad(sum((g ** 2).sum() for g in found), leaves)
    return [g.detach().numpy() for g in found]


def agree(subject, oracle, *args, **options):
    for ours, theirs in zip(gradients(subject, *args, **options), gradients(oracle, *args, **options), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind,packed", [(kind, packed) for kind in KINDS for packed in (False, True)])
def test_second_derivatives(subject, oracle, kind, packed):
    agree(subject, oracle, kind, packed, second=True, bidirectional=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reads", [("out",), ("h",), ("c",), ("h", "c")])
def test_gradients_of_some_results(subject, oracle, kind, reads):
    if reads == ("c",) and kind in ("GRU", "RNN"):
        reads = ("h", "out")
    agree(subject, oracle, kind, reads=reads, second=True)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_initial_states(subject, oracle, kind):
    agree(subject, oracle, kind, start=True, bidirectional=True)
    agree(subject, oracle, kind, True, start=True, bias=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [4, 300])  # with long rows, a step's result replaces what it read
def test_compiled_tier(subject, oracle, kind, hidden):
    """The same numbers once the program is compiled."""
    with program.tier("compiled"):
        agree(subject, oracle, kind, True, start=True, second=True, bidirectional=True, hidden=hidden)


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers_of_packed_input(subject, oracle, kind):
    """torch draws for the rows of a packed sequence, not for its padding: the same numbers, and as many."""
    def found(torch):
        torch.manual_seed(0)
        more = {"proj_size": 2} if kind == "projected" else {}
        layer = getattr(torch.nn, "LSTM" if more else kind)(3, 4, 2, dropout=0.5, bidirectional=True, **more)
        packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 3), [5, 3, 1])
        return np.concatenate([layer(packed)[0].data.detach().numpy().ravel(), torch.rand(3).numpy()])
    np.testing.assert_allclose(found(subject), found(oracle), rtol=1e-5, atol=1e-6)


def test_packed_sequences_where_another_device_is_the_default():
    import torch

    import torchlike

    seen = []
    for library in (torch, torchlike):
        with library.device("meta"):
            packed = library.nn.utils.rnn.pack_padded_sequence(library.ones(2, 5, 8), [5, 3], batch_first=True)
            out, _ = library.nn.LSTM(8, 6, batch_first=True)(packed)
            padded, lengths = library.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        seen.append((str(packed.data.device), packed.batch_sizes.tolist(), tuple(padded.shape), str(padded.device), lengths.tolist()))
    assert seen[0] == seen[1]
