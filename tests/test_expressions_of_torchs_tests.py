"""Lines that PyTorch's own tests led to: numbers, errors, warnings and strides of operations, in both libraries."""
import pytest
from test_expressions import lines, outcome

COUNTS = """
torch.histc(torch.tensor([1.0, float("inf")])) and None
torch.histc(torch.tensor([3e38, 1.0, -float("inf")])) and None
torch.histc(torch.tensor([1.0, float("inf")]) * 2)
torch.histc(torch.tensor([1.0, 2]), min=float("nan"), max=2.0)
torch.histogram(torch.tensor([1.0, float("inf")]), 5) and None
torch.histogram(torch.tensor([1.0, 2]), 5, range=(0, float("inf")))
torch.histogramdd(torch.tensor([[1.0, float("nan")]]), 5) and None
torch.histogram(torch.tensor([1.0, 2]), torch.tensor([1.0, 2]), range=(0, 1))
torch.histogram(torch.tensor([1.0, 2]), torch.tensor([2]), range=(0, 1))
torch.histogram(torch.tensor([1.0, 2]), torch.tensor(2), range=(0, 1))
torch.histogram(torch.tensor([1.0, 2]), 3.5)
torch.histogram(torch.tensor([1.0, 2]), [1.0, 2])
torch.histogram(torch.tensor(1.0), torch.tensor(1.0, dtype=torch.float64))
torch.histogram(torch.tensor([1.0, 2]), torch.tensor([1.0, 9, 2, 9])[::2])
torch.histogramdd(torch.zeros(0, 2), [2, 3])
torch.histogramdd(torch.zeros(3, 0), [])
torch.histogramdd(torch.zeros(0, 0), [], density=True)
torch.histogramdd(torch.zeros(2, 0), [], weight=torch.tensor([1.0, 2]))
torch.set_warn_always(True); x = torch.tensor([[1.0, 2], [3, 4]]).T; r = torch.searchsorted(x, x, sorter=torch.tensor([[0, 0], [1, 1]]).T); torch.set_warn_always(False); r
torch.set_warn_always(True); x = torch.tensor([[1.0, 2], [3, 4]]); r = torch.bucketize(x.T, x.view(-1)[::2]); torch.set_warn_always(False); r
"""


@pytest.mark.parametrize("program", lines(COUNTS))
def test_both_print_it(subject, oracle, program):
    assert outcome(subject, program) == outcome(oracle, program)
