"""torch.testing.assert_close and assert_allclose beside real torch's: which inputs are compared, how closely, in which words."""
import warnings

import numpy as np
import pytest

PAIRS = """
coo([0, 1], [1, 2]), coo([0, 1], [1, 2])
coo([0, 1], [1, 2]), coo([0, 1], [1, 2.5])
coo([0, 1], [1, 2]), coo([0, 2], [1, 2])
coo([0, 1], [1, 2]), coo([0], [1])
coo([1, 0], [1, 2]), coo([1, 0], [1, 2]).coalesce()
coo([0], [1]), torch.tensor([1.0, 0, 0])
coo([0], [1]), torch.tensor([1.0, 0, 0]), dict(check_layout=False)
torch.tensor([1.0, 0, 1]), coo([0], [1]), dict(check_layout=False)
torch.eye(2).to_sparse_csr(), torch.eye(2).to_sparse_csr()
torch.eye(2).to_sparse_csr(), (torch.eye(2) * 2).to_sparse_csr()
torch.eye(2).to_sparse_csr(), torch.eye(2).flip(0).to_sparse_csr()
torch.eye(2).to_sparse_csr(), torch.ones(2, 2).to_sparse_csr()
torch.eye(2).to_sparse_csr(), torch.tensor([[1.0, 1], [0, 0]]).to_sparse_csr()
torch.eye(2).to_sparse_csr(), torch.eye(2).to_sparse_csc()
torch.eye(2).to_sparse_csc(), (torch.eye(2) * 2).to_sparse_csc()
torch.eye(2).to_sparse_csc(), torch.eye(2).flip(0).to_sparse_csc()
torch.ones(1), np.ones(1, np.float32)
np.ones(1, np.float32), torch.ones(1)
np.ones(2), np.ones(2) * 2
np.ones(2, np.float32), np.ones(2)
np.array(["a"]), np.array(["a"])
np.float64(1), 1.0
np.bool_(True), True
np.float32(1), 2.0
"ab", ["a", "b"]
"ab", "ab"
{1}, {1}
1 + 0j, 1.0
torch.tensor(2**53), torch.tensor(2**53 + 1)
torch.tensor([2**62, 1]), torch.tensor([2**62 - 1, 1])
torch.tensor([2**62, 1]), torch.tensor([2**62 - 1, 1]), dict(rtol=0, atol=1)
torch.ones(2, 2, device="meta"), torch.zeros(2, 2, device="meta")
torch.ones(2, 2, device="meta"), torch.zeros(2, 3, device="meta")
[torch.ones(2, 2, device="meta")], [torch.zeros(2, 2, device="meta", dtype=torch.int64)]
torch.ones(2, device="meta"), torch.zeros(2)
torch.ones(2, 3).to_sparse(), torch.ones(2, 3).to_sparse(1)
"""


def told(call, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(*args, **options)
        except Exception as error:
            return type(error).__name__, str(error).replace("torchlike", "torch")


def pair(torch, source):
    def coo(places, values):
        return torch.sparse_coo_tensor([places], [float(v) for v in values], (3,))
    actual, expected, *options = eval(source, {"torch": torch, "np": np, "coo": coo})
    return actual, expected, (options or [{}])[0]


@pytest.mark.parametrize("source", PAIRS.strip().splitlines())
def test_pairs(subject, oracle, source):
    def outcome(torch):
        actual, expected, options = pair(torch, source)
        return told(torch.testing.assert_close, actual, expected, **options)
    assert outcome(subject) == outcome(oracle)


@pytest.mark.parametrize("tolerances", [{"rtol": 0, "atol": -1}, {"rtol": -1, "atol": 0}])
@pytest.mark.parametrize("size", [0, 2])
def test_a_tolerance_below_zero_is_refused(subject, oracle, tolerances, size):
    for torch in (subject, oracle):
        with pytest.raises(RuntimeError):
            torch.testing.assert_close(torch.ones(size), torch.ones(size), **tolerances)


@pytest.mark.parametrize("source", ["torch.ones(2), torch.ones(2) * 2", "1.0, 1.00005", "torch.ones(2).half(), torch.ones(2).half() * 2",
                                    "torch.ones(2, dtype=torch.bfloat16), torch.ones(2) * 2", "torch.ones(2).double(), torch.ones(2) * 2",
                                    "torch.ones(2).long(), torch.ones(2).int() * 2", "1j, 2j", "torch.tensor([1j]), torch.tensor([2j])"])
def test_assert_allclose_has_tolerances_of_its_own(subject, oracle, source):
    assert told(subject.testing.assert_allclose, *pair(subject, source)[:2]) == told(oracle.testing.assert_allclose, *pair(oracle, source)[:2])


@pytest.mark.parametrize("shape", [(5000,), (3, 4000), (9000, 1), (), (0, 3)])
def test_equal_of_large_tensors(subject, oracle, shape):
    """They are compared from the start, then whole: a difference is found wherever it is, and NaN equals nothing."""
    x = np.random.default_rng(0).standard_normal(shape)
    for place, number in [(None, 0), (0, 9.0), (-1, 9.0), (0, np.nan), (-1, np.nan)]:
        y = x.copy()
        if place is not None and y.size:
            y.reshape(-1)[place] = number
        said = [torch.equal(torch.from_numpy(x), torch.from_numpy(y)) and torch.equal(torch.from_numpy(y), torch.from_numpy(y)) for torch in (subject, oracle)]
        assert said[0] is said[1]
