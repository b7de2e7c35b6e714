"""NumPy arrays beside tensors: what comes out of operators and of NumPy's functions, and warnings that scripts show."""
import warnings

import numpy as np
import pytest
from same import same

CALLS = ["x + n", "x - n", "x / n", "x // n", "x % n", "x ** n", "i + k", "i * n", "x @ n", "x * np.array(2.0)", "x + np.ones((2, 3))", "n + x", "n - x", "n / x",
         "n * x", "n ** x", "n < x", "x < n",
         "x == n", "n == i", "i == k", "x != n", "b == m", "b & m", "m & b", "g + n", "n * g", "x * np.float32(2)", "np.float64(2) * x", "np.int64(2) + x", "np.sin(x)",
         "np.square(x)", "np.isnan(x)",
         "np.abs(x)", "np.clip(x, 0, 1)", "np.argmax(x)", "np.add(x, x)", "np.multiply(x, 2)", "np.add(n, x)", "np.equal(x, x)", "np.maximum(x, 2)",
         "np.sqrt(x.double())", "np.log(x.int())",
         "np.add.reduce(x)", "np.cumsum(x)", "np.transpose(torch.ones(2, 3))", "np.concatenate([x, x])", "np.stack([x, x])", "np.array(x)", "np.sort(x)", "np.mean(x)",
         "np.sin(g)", "torch.add(x, n)",
         "x.mul_(n)", "x.numpy() * 2",
         # truth values are floats
         *[call.replace("T", "np.True_") for call in ("x - T", "1 - T + x", "T * i", "i // T", "b + T", "b * T", "b & T", "i.add_(T)", "torch.full((2,), T)",
                                                      "torch.where(b, T, i)", "b.fill_(T)", "i.masked_fill(b, T)", "torch.result_type(i, T) == torch.float32",
                                                      "torch.tensor([T, False])", "torch.add(x, x, alpha=T)", "torch.add(i, i, alpha=T)")]]


def outcome(torch, call):
    x = torch.tensor([1.0, 0.5, 2.0])
    names = {"torch": torch, "np": np, "x": x, "i": torch.arange(3), "b": torch.tensor([True, False, True]), "g": torch.ones(3, requires_grad=True),
             "n": np.array([1.0, 2.0, 3.0]), "k": np.arange(3),
             "m": np.array([True, True, False])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = eval(call, names)
        except Exception as error:
            return type(error).__name__
    return type(found).__name__, str(getattr(found, "dtype", "")), np.round(np.asarray(found).astype(float), 5).tolist()


@pytest.mark.parametrize("call", CALLS)
def test_as_torch(subject, oracle, call):
    assert outcome(subject, call) == outcome(oracle, call)


@pytest.mark.parametrize("call", ["torch.tensor(torch.ones(2))", "torch.ones(2, 2, 2).T", "float(torch.ones(1, requires_grad=True))"])
def test_warnings(subject, monkeypatch, call):
    import torchlike.ops.shape_views
    from torchlike._core import history
    monkeypatch.setattr(torchlike.ops.shape_views, "_warned", [])
    monkeypatch.setattr(history, "_said", set())
    with pytest.warns(UserWarning, match="copy construct|dimension other than 2|requires_grad=True"):
        eval(call, {"torch": subject})


@pytest.mark.parametrize("call", ["torch.tensor([np.ones(2), np.zeros(2)])", "torch.FloatTensor([np.ones(2)])", "torch.tensor([1, np.float32(2)])",
                                  "torch.tensor([[np.ones(1)], [np.ones(1)]])", "torch.LongTensor([[1, 2]])", "torch.tensor(np.ones((2, 2)))"])
def test_a_list_of_arrays_warns(subject, oracle, call):
    said = []
    for torch in (subject, oracle):
        torch.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                eval(call, {"torch": torch, "np": np})
        finally:
            torch.set_warn_always(False)
        said.append({str(w.message).split(" (Triggered")[0] for w in found})
    assert said[0] == said[1]


class Column:
    """A sequence of objects that NumPy takes for an array of them, as pandas' are."""

    def __init__(self, values, labels=None):
        self.values = dict(zip(range(len(values)) if labels is None else labels, values))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, label):
        return self.values[label]

    def __iter__(self):
        return iter(self.values.values())

    def __array__(self, dtype=None, copy=None):
        made = np.empty(len(self), object)
        made[:] = list(self)
        return made


@same
def test_columns_of_objects(torch):
    found = []
    for column in (Column([[1, 2], [3, 4]]), Column([1, 2.5]), Column(["a"]), Column([1, "a"]), Column([1, None]), Column([]), Column([1, 2], "ab"), np.float32):
        for make in (torch.tensor, torch.as_tensor, torch.Tensor, torch.LongTensor):
            try:
                made = make(column)
                found += [made, str(made.dtype)]
            except Exception as error:
                found.append((type(error).__name__, str(error)))
    return found
