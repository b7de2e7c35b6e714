"""torch.fx.experimental.symbolic_shapes on the numbers that sizes are, beside real torch."""
import pytest
import torch as oracle
from torch.fx.experimental import symbolic_shapes as theirs

import torchlike as subject
from torchlike.fx.experimental import symbolic_shapes as ours

NAMES = ["free_symbols", "free_unbacked_symbols", "has_free_symbols", "guard_or_false", "guard_or_true", "statically_known_true", "statically_known_false",
         "guard_int", "guard_float", "guard_scalar", "optimization_hint", "guarding_hint_or_throw", "is_concrete_int", "is_concrete_bool", "is_nested_int", "sym_eq"]


@pytest.mark.parametrize("name", NAMES)
def test_known_numbers(name):
    def answers(torch, module):
        found = []
        for x in (True, False, 3, 0, 2.5, "x", None, [1, 2], [], (torch.ones(2), 3), torch.ones(2)):
            try:
                answer = getattr(module, name)(*([x, x] if name == "sym_eq" else [x]))
                found.append(list(answer) if "symbols" in name and "has" not in name else answer)
            except Exception as error:
                found.append((type(error).__name__, str(error).replace("torchlike", "torch")))
        return found
    assert answers(subject, ours) == answers(oracle, theirs)


def test_unequal():
    pairs = [(1, 2), ([1, 2], (1, 2)), ([1], [1, 2]), ((2, 3), (2, 4))]
    assert [ours.sym_eq(*p) for p in pairs] == [theirs.sym_eq(*p) for p in pairs]


def test_the_error():
    for module in (ours, theirs):
        error = module.GuardOnDataDependentSymNode("u0 > 3", "message")
        assert isinstance(error, RuntimeError) and error.cond == "u0 > 3" and str(error) == "message"
