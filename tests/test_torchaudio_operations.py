"""The operations that torchaudio has in C++ (_torchaudio/), against their definitions: recursions in NumPy, all paths, PyTorch's own autograd."""
import itertools

import numpy as np
import pytest
import torch

import torchlike
from torchlike._core import program

torchlike.ops.load_library("/somewhere/torchaudio/lib/_torchaudio.so")
torchlike.ops.load_library("/somewhere/torchaudio/lib/libtorchaudio.abi3.so")
OPS = torchlike.ops.torchaudio


def test_what_the_library_says_of_itself():
    assert torchlike.ops._torchaudio.is_align_available() is True and torchlike.ops._torchaudio.cuda_version() is None
    with pytest.raises(OSError, match="torchaudio_prefixctc"):
        torchlike.ops.load_library("/somewhere/torchaudio/lib/torchaudio_prefixctc.so")


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_recursive_filters(order, dtype, tier):
    rng = np.random.default_rng(order)
    x, a = rng.standard_normal((2, 3, 50)).astype(dtype), (rng.standard_normal((3, order + 1)) * 0.3).astype(dtype)
    a[:, -1] = 1
    padded = np.zeros((2, 3, 50 + order), dtype)
    padded[:, :, :order] = rng.standard_normal((2, 3, order))
    want = padded.copy()
    for n in range(50):
        want[:, :, n + order] = x[:, :, n] - (want[:, :, n:n + order] * a[:, :order]).sum(-1)
    with program.tier(tier):
        out = torchlike.tensor(padded)
        view = out[:, :, order:]
        OPS._lfilter_core_loop(torchlike.tensor(x), torchlike.tensor(a), out)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5 if dtype == "float32" else 0)
        assert view.tolist() == out[:, :, order:].tolist()
    with pytest.raises(RuntimeError):
        OPS._lfilter_core_loop(torchlike.tensor(x), torchlike.tensor(a), torchlike.zeros(2, 3, 7))


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
def test_overdrive(tier):
    rng = np.random.default_rng(0)
    wave, temp = rng.standard_normal((2, 2, 40))
    last_in, last_out = rng.standard_normal((2, 2))
    want, before, came = np.empty_like(wave), last_in, last_out
    for n in range(40):
        came = temp[:, n] - before + 0.995 * came
        before = temp[:, n]
        want[:, n] = wave[:, n] * 0.5 + came * 0.75
    with program.tier(tier):
        out = torchlike.zeros(2, 40, dtype=torchlike.float64)
        OPS._overdrive_core_loop(*map(torchlike.tensor, (wave, temp, last_in, last_out)), out)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-10)


def collapsed(path, blank):
    return [label for label, _ in itertools.groupby(path) if label != blank]


@pytest.mark.parametrize("targets", [[1, 2], [2, 2], [1], [1, 2, 1], []])
@pytest.mark.parametrize("blank", [0, 3])
def test_the_best_path_of_all(targets, blank):
    targets = [(t + blank + 1) % 4 if t != blank else t for t in targets] if blank else targets
    rng = np.random.default_rng(len(targets))
    scores = rng.standard_normal((5, 4)).astype(np.float32)
    paths = [p for p in itertools.product(range(4), repeat=5) if collapsed(p, blank) == targets]
    best = max(paths, key=lambda p: sum(scores[t, label] for t, label in enumerate(p)))
    made, given = OPS.forced_align(torchlike.tensor(scores)[None], torchlike.tensor([targets], dtype=torchlike.int32), torchlike.tensor([5]),
                                   torchlike.tensor([len(targets)]), blank)
    assert made.tolist() == [list(best)] and made.dtype is torchlike.int32 and given.shape == (1, 5, 4)


def test_what_cannot_be_aligned():
    scores, one, five = torchlike.zeros(1, 5, 4), torchlike.tensor([3]), torchlike.tensor([5])
    with pytest.raises(RuntimeError, match="too long for CTC"):
        OPS.forced_align(scores, torchlike.tensor([[1, 1, 1, 1]]), five, torchlike.tensor([4]), 0)
    for arguments in ((scores[0], torchlike.tensor([[1, 2, 1]]), five, one, 0), (scores, torchlike.ones(1, 3), five, one, 0),
                      (scores, torchlike.tensor([[1, 2, 1]]), five, one, 4), (scores.expand(2, 5, 4), torchlike.tensor([[1, 2, 1]]), five, one, 0)):
        with pytest.raises(RuntimeError):
            OPS.forced_align(*arguments)


def costs_by_definition(logits, targets, times, lengths, blank, normalize):
    """By torch's autograd, cell by cell."""
    scores = logits.log_softmax(-1) if normalize else logits
    costs = []
    for b in range(len(times)):
        cells = {}
        for t, u in itertools.product(range(times[b]), range(lengths[b] + 1)):
            ways = [cells[t - 1, u] + scores[b, t - 1, u, blank]] if t else []
            ways += [cells[t, u - 1] + scores[b, t, u - 1, targets[b][u - 1]]] if u else []
            cells[t, u] = torch.stack(ways).logsumexp(0) if ways else torch.zeros((), dtype=torch.float64)
        costs.append(-(cells[times[b] - 1, lengths[b]] + scores[b, times[b] - 1, lengths[b], blank]))
    return torch.stack(costs)


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("normalize", [True, False])
def test_transducer_loss(normalize, tier):
    rng = np.random.default_rng(3)
    logits, targets, times, lengths, blank = rng.standard_normal((3, 5, 4, 6)).astype(np.float32), rng.integers(1, 6, (3, 3)), [5, 3, 1], [2, 3, 0], 0
    exact = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    costs = costs_by_definition(exact, targets, times, lengths, blank, normalize)
    costs.sum().backward()
    ints = [torchlike.tensor(x, dtype=torchlike.int32) for x in (targets, times, lengths)]
    for clamp in (-1.0, 0.25):
        with program.tier(tier):
            made, gradient = OPS.rnnt_loss_forward(torchlike.tensor(logits), *ints, blank, clamp, normalize)
            np.testing.assert_allclose(made.numpy(), costs.detach(), rtol=1e-5)
            want = exact.grad if clamp < 0 else exact.grad.clip(-clamp, clamp)
            np.testing.assert_allclose(gradient.numpy(), want, rtol=1e-4, atol=1e-6)


def test_what_a_transducer_refuses():
    logits, targets, times, lengths = torchlike.zeros(2, 5, 4, 6), *(torchlike.tensor(x, dtype=torchlike.int32) for x in ([[1, 2, 3]] * 2, [5, 4], [3, 2]))
    OPS.rnnt_loss_forward(logits, targets, times, lengths, 0, -1.0, True)
    for arguments in ((logits.double(), targets, times, lengths, 0), (logits, targets.long(), times, lengths, 0), (logits[0], targets, times, lengths, 0),
                      (logits, targets, times - 1, lengths, 0), (logits, targets, times, lengths - 1, 0), (logits, targets, times, lengths, 6),
                      (logits, targets[:1], times, lengths, 0)):
        with pytest.raises(RuntimeError):
            OPS.rnnt_loss_forward(*arguments, -1.0, True)
