"""Where torch takes a number it takes a tensor of one element too: every number of the case table, given so."""
import pytest
from case import Sample, call, function_of, inputs, lit
from cases import CASES
from checks import forward, outcome
from compare import Raised, differences

# what torch decides by the place of the argument: max(dim=tensor) reduces, max(tensor) compares; new(tensor, tensor) is a size
EXCEPT = {("torch.max", "dim"), ("torch.min", "dim"), ("Tensor.new", 1), ("Tensor.new", 2)}
GROUPS = 8


def _as_tensor(value, learnable=False):
    if type(value) is float:
        return lit(value, grad=learnable)
    if learnable:
        return None
    if type(value) is int:
        return lit(value, "int64")
    if isinstance(value, (tuple, list)) and value and all(type(x) is int for x in value):
        return type(value)([lit(value[0], "int64"), *value[1:]])
    return None


def _samples(row, learnable=False):
    """The row's first sample with a number at each place, and that number as a tensor."""
    seen = set()
    for sample in row.samples:
        places = [*enumerate(sample.args), *sample.kwargs.items()]
        for place, value in places:
            made = None if place in seen or (row.id, place) in EXCEPT else _as_tensor(value, learnable)
            if made is not None:
                seen.add(place)
                if isinstance(place, int):
                    yield Sample((*sample.args[:place], made, *sample.args[place + 1:]), sample.kwargs)
                else:
                    yield Sample(sample.args, {**sample.kwargs, place: made})


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_number(oracle, subject, group):
    found, count = [], 0
    for row in CASES[group::GROUPS]:
        for sample in _samples(row):
            want = outcome(oracle, forward, row, sample)
            if isinstance(want, Raised):  # torch takes no tensor there
                continue
            count += 1
            found += [f"{row.id} {sample}: {d}" for d in differences(want, outcome(subject, forward, row, sample), values=row.values, tol=10)]
    assert count > 30
    assert not found, "\n".join(found)


@pytest.mark.parametrize("call", [lambda torch, n: torch.full((2,), n), lambda torch, n: torch.zeros(2).new_full((2,), n)])
def test_a_tensor_that_requires_gradients_is_no_number(oracle, subject, call):
    for torch in (oracle, subject):
        with pytest.raises(TypeError, match="Number"):
            call(torch, torch.tensor(2.0, requires_grad=True))


def test_a_tensor_of_floats_is_no_int(subject):
    with pytest.raises(TypeError, match="int"):
        subject.ones(4).narrow(0, 0, subject.tensor(2.0))


def _with_gradients(torch, row, sample):
    return call(torch, function_of(torch, row), sample, inputs(torch, row, sample, requires_grad=True))


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_learnable_number_is_refused(oracle, subject, group):
    """Its gradient would be lost: wherever torch raises for a tensor that requires one, so does the library under test."""
    found = []
    for row in CASES[group::GROUPS]:
        for sample in () if "_foreach_" in row.id else _samples(row, learnable=True):
            there, here = (outcome(torch, _with_gradients, row, sample) for torch in (oracle, subject))
            if isinstance(there, Raised) and there.kind == "TypeError" and not isinstance(here, Raised):
                found.append(f"{row.id}{sample.args}{sample.kwargs}: {there.message[:100]}")
    assert not found, "\n".join(found)
