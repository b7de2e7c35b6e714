"""Programs that an enumeration found: all combinations of a small grammar were run on both libraries, and these differed. And the
enumerations themselves, where they take seconds."""
import pytest
from test_expressions import lines, outcome

WRITTEN_VIEWS = """
a = torch.ones(3, requires_grad=True); x = torch.zeros(2, 3); v = x[0]; x[0] = a * 2; v.requires_grad_(); v.sum().backward(); a.grad, v.requires_grad, v.is_leaf
"""

NARROW_NUMBERS = """
[torch.trapezoid(torch.tensor([1, 2, 100, 100], dtype=d)) for d in (torch.int8, torch.uint8, torch.int64, torch.float16)]
[torch.trapezoid(torch.tensor([1, 2, 100, 100], dtype=d), dx=2) for d in (torch.int8, torch.uint8, torch.int64)]
[torch.cumulative_trapezoid(torch.tensor([1, 2, 100, 100], dtype=d), dx=2) for d in (torch.int8, torch.uint8, torch.int64)]
torch.cumulative_trapezoid(torch.tensor([1, 2, 100], dtype=torch.int8), torch.tensor([1, 2, 100], dtype=torch.int8))
torch.trapezoid(torch.zeros(2, 0, dtype=torch.int8)), torch.trapezoid(torch.zeros(2, 0, dtype=torch.bool), torch.zeros(0))
x = torch.ones(2, 3, requires_grad=True); torch.trapezoid(x, dx=3).sum().backward(); x.grad
torch.floor_divide(torch.tensor([5, 100], dtype=torch.int8), 256)
torch.remainder(torch.tensor([5, 100], dtype=torch.uint8), torch.tensor(512))
torch.fmod(torch.tensor([5, 100], dtype=torch.int8), 256)
torch.div(torch.tensor([5, 100], dtype=torch.int8), -256, rounding_mode="trunc")
torch.floor_divide(torch.tensor([5, 100], dtype=torch.int8), 300), torch.remainder(torch.tensor([5, 100], dtype=torch.int16), 256)
torch.isin(torch.tensor([1.0, float("nan"), 2.0], dtype=torch.bfloat16), torch.tensor([float("nan"), 2.0, 3.0, 4.0] * 5, dtype=torch.bfloat16))
torch.inner(torch.tensor(2), 7)
torch.inner(torch.ones(2), 7.0)
"""

CLOSE = """
torch.isclose(torch.tensor(0j), torch.tensor(3e38 + 3e38j)), torch.isclose(torch.tensor(3e38 + 3e38j), torch.tensor(3e38 + 3e38j))
torch.isclose(torch.tensor(16777216), torch.tensor(16777217), 0, 0.5), torch.isclose(torch.tensor(16777216), torch.tensor(16777217), 0, 0)
torch.isclose(torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(1.0078, dtype=torch.bfloat16), 0.0078125, 0)
torch.isclose(torch.zeros(1, dtype=torch.bfloat16), torch.tensor([1e-8], dtype=torch.bfloat16))
torch.allclose(torch.ones(1), torch.ones(1), float("nan"))
torch.allclose(torch.ones(1), torch.ones(1), 0, float("nan"))
"""

ONE_ELEMENT_NORMS = """
x = torch.tensor([[1e30, -1e-30, 0.0]]); [torch.linalg.vector_norm(x, p, dim=0).tolist() for p in (0, 0.5, 1, 2, 3, -1, float("inf"), -float("inf"))]
x = torch.tensor([[1e30, -1e-30, 0.0]]); [x.norm(p, 0, keepdim=True).tolist() for p in (1, 2, 3)]
x = torch.tensor([[1e30, -1e-30, 0.0]], requires_grad=True); x.norm(dim=0).sum().backward(); x.grad
x = torch.tensor(1e30 + 1e30j); torch.linalg.vector_norm(x), torch.linalg.vector_norm(x[None, None], 3, (0, 1), True)
torch.nn.functional.normalize(torch.tensor([[1e30, -1e30, 2.0]]), dim=0)
"""


@pytest.mark.parametrize("program", lines(WRITTEN_VIEWS, NARROW_NUMBERS, CLOSE, ONE_ELEMENT_NORMS))
def test_same_outcome(oracle, subject, program):
    assert outcome(subject, program) == outcome(oracle, program)
