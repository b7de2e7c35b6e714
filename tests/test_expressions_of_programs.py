"""Lines out of long programs (training, search, simulation), in both libraries: the same text, the same errors."""
import pytest
from test_expressions import lines, outcome

INDEX_TYPES = """
torch.ones(3).index_add(0, torch.tensor([0.0]), torch.ones(1))
torch.ones(3).index_reduce_(0, torch.tensor([0], dtype=torch.int16), torch.ones(1), "mean")
torch.ones(3).index_copy(0, torch.tensor([True]), torch.ones(1))
"""


@pytest.mark.parametrize("program", lines(INDEX_TYPES))
def test_both_print_it(subject, oracle, program):
    assert outcome(subject, program) == outcome(oracle, program)
