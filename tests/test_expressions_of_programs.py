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


POSITIONS = """
nn.Embedding(5, 2)(torch.arange(6)) and None
nn.Embedding(5, 2)(torch.arange(-1, 3)) and None
nn.Embedding(5, 2)(torch.arange(6).unsqueeze(0).expand(3, -1)) and None
b = torch.tensor([[0, 1, 2, 3, 9]]); nn.Embedding(5, 2)(b[:, :4]).shape
b = torch.tensor([[0, 1, 2, 3, 9]]); nn.Embedding(5, 2)(b[:, 2:]) and None
x = torch.arange(5.0); x[torch.arange(4, 7)] and None
x = torch.arange(5.0); x[torch.arange(-3, 0)], x[torch.arange(4, -1, -1)], x[torch.arange(3) - 2], x[torch.arange(0)]
x = torch.arange(5.0); x[torch.arange(5, -1, -1)] and None
x = torch.arange(5.0); x.index_select(0, torch.arange(6)) and None
x = torch.arange(5.0); x.gather(0, torch.arange(-1, 1)) and None
torch.zeros(3).scatter(0, torch.arange(4), 1.0) and None
i = torch.arange(6); i[5] = 0; torch.arange(5.0)[i]
i = torch.arange(6); i.clamp_(max=4); torch.arange(5.0)[i]
i = torch.arange(4); j = i[1:]; i += 1; torch.arange(5.0)[j]
x = torch.zeros(5); x[torch.arange(3)] = 7.0; x[torch.arange(-2, 0)] = 9; x
torch.arange(5.0)[torch.tensor([7, -8])]
"""


@pytest.mark.parametrize("program", lines(POSITIONS))
def test_positions_known_without_looking(subject, oracle, program):
    """Nothing of these is observed: an error for a wrong position comes on its line."""
    assert outcome(subject, program) == outcome(oracle, program)
