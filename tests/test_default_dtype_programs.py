"""Programs under a default dtype that changes and returns, as Lightning changes it around every step with precision="64-true"."""
import pytest

import torchlike as torch
from torchlike._core import program, program_info, registry
from torchlike._core.trie import keep_only


@pytest.fixture(autouse=True)
def _back():
    yield
    torch.set_default_dtype(torch.float32)


def step(n):
    """Integers and Python floats meet: what dtype results have, and what they are computed in, is the default."""
    made = [(n / 3)[1], (n * 0.1).sum(), (torch.ones(3) * n[:3]).sum(), torch.sqrt(n).sum()]
    return [(t.dtype, t.item()) for t in made]


def rounds(times: int) -> list:
    torch.set_default_dtype(torch.float32)
    n, found = torch.arange(40000) + 1, []
    for _ in range(times):
        for d in (torch.float32, torch.float64):
            torch.set_default_dtype(d)
            found.append(step(n))
    return found


def test_each_keeps_its_own():
    with program.tier("compiled"):
        found = rounds(3)
    assert [d for d, _ in found[0]] == [torch.float32] * 4 and [d for d, _ in found[1]] == [torch.float64] * 4
    assert found[2:4] == found[:2] and found[4:] == found[:2]
    assert [found[0][0][1], found[1][0][1]] == [pytest.approx(2 / 3, rel=1e-7), 2 / 3] and found[0][0][1] != 2 / 3


def test_programs_and_plans_are_found_again(monkeypatch):
    for _ in range(2):  # what comes before the first step is another program than between two
        rounds(3)
    size, infos, made, new_plan = program.trie.size, len(program_info.infos), [], registry.Op._new_plan
    monkeypatch.setattr(registry.Op, "_new_plan", lambda *args: made.append(args) or new_plan(*args))
    rounds(3)
    assert size and (program.trie.size, len(program_info.infos), made) == (size, infos, [])


def test_those_set_aside_may_be_forgotten(recorded):
    torch.set_default_dtype(torch.float64)
    step(torch.arange(5))
    torch.set_default_dtype(torch.float32)
    assert program.trie.set_aside[torch.float64].child is not None
    keep_only([])
    assert program.trie.set_aside[torch.float64].child is None and program.trie.size == 0
    program.forget_programs()
    assert not program.trie.set_aside
