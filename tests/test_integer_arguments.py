"""Arguments that are integers: tensors of one stay as they were, and what is no integer is torch's TypeError."""
from __future__ import annotations

import pytest
import torch

import torchlike

CALLS = {
    "matrix_power": lambda t, x, n: t.matrix_power(x[:, :3], n),
    "linalg.matrix_power": lambda t, x, n: t.linalg.matrix_power(x[:, :3], n),
    "rot90": lambda t, x, n: t.rot90(x, n),
    "diag": lambda t, x, n: t.diag(x, n),
    "diag_embed": lambda t, x, n: t.diag_embed(x, n),
    "diagflat": lambda t, x, n: t.diagflat(x, n),
    "diagonal": lambda t, x, n: x.diagonal(n),
    "diagonal_scatter": lambda t, x, n: t.diagonal_scatter(x, x.diagonal(2), n),
    "tril": lambda t, x, n: x.tril(n),
    "triu": lambda t, x, n: x.triu(n),
    "kthvalue": lambda t, x, n: x.kthvalue(n)[0],
    "vander": lambda t, x, n: t.vander(x[0], n),
    "cov": lambda t, x, n: t.cov(x, correction=n),
    "combinations": lambda t, x, n: t.combinations(x[0], n),
    "multinomial": lambda t, x, n: t.multinomial(x, n).ge(0),
    "round": lambda t, x, n: t.round(x / 7, decimals=n),
    "histc": lambda t, x, n: t.histc(x, n),
    "softmax": lambda t, x, n: x[None].softmax(n),
    "embedding_bag": lambda t, x, n: t.nn.functional.embedding_bag(t.tensor([[0, 2]]), x, padding_idx=n),
    "embedding": lambda t, x, n: t.nn.functional.embedding(t.tensor([[0, 2]]), x, padding_idx=n),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_of_one_integer_is_a_number_and_stays_as_it_was(name):
    made = []
    for t in (torch, torchlike):
        x, n = t.arange(12.0).reshape(3, 4), t.tensor(2)
        made.append(CALLS[name](t, x, n).tolist())
        assert n.item() == 2
    assert made[0] == pytest.approx(made[1]) if not isinstance(made[0][0], list) else torch.allclose(*map(torch.tensor, made))


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"embedding"}))  # torch's Python compares that one's first
@pytest.mark.parametrize("wrong", [1.0, 2.5, True, "tensor of a float"])
def test_no_integer(name, wrong):
    for t in (torch, torchlike):
        with pytest.raises(TypeError, match="must be int, not |invalid combination of arguments"):
            CALLS[name](t, t.arange(12.0).reshape(3, 4), t.tensor(1.0) if wrong == "tensor of a float" else wrong)


@pytest.mark.parametrize("window", ["bartlett", "blackman", "cosine", "exponential", "gaussian", "hamming", "hann", "kaiser", "nuttall"])
@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_windows_of_a_length_in_a_tensor(window, sym, length):
    made = [getattr(t.signal.windows, window)(t.tensor(length), sym=sym).tolist() for t in (torch, torchlike)]
    assert made[1] == pytest.approx(made[0], abs=1e-6)


def test_windows_of_one_point_in_a_float():
    for t in (torch, torchlike):
        assert t.signal.windows.hann(t.tensor(1.0)).tolist() == [1.0]
        assert t.signal.windows.bartlett(t.tensor(1, dtype=t.bfloat16)).tolist() == [1.0]
        with pytest.raises(TypeError):
            t.signal.windows.hann(t.tensor(3.0))
