"""Every tuple of up to three indices of sixteen kinds, read and written: what real torch gives, or its error, word for word."""
import itertools

import numpy as np
import pytest


def _indices(torch) -> list:
    return [..., None, slice(None), slice(1, None), slice(None, None, 2), 0, -1, 5, True, False, torch.tensor(1), torch.tensor([0, 1]), [0, -1],
            torch.tensor([True, False]), np.int64(1), np.array([1, 0])]


def _outcome(work) -> tuple:
    try:
        made = work()
        return tuple(made.shape), made.tolist()
    except Exception as error:
        return type(error).__name__, str(error)


def _written(x, index):
    x = x.clone()
    x[index] = 9
    return x


@pytest.mark.parametrize("shape", [(), (2,), (2, 3), (2, 3, 2)], ids=str)
def test_every_tuple_of_indices(oracle, subject, shape):
    start = np.arange(np.prod(shape, dtype=int)).reshape(shape).tolist()
    sides = [(torch, torch.tensor(start), _indices(torch)) for torch in (oracle, subject)]
    found = []
    for length in (1, 2, 3):
        for chosen in itertools.product(range(16), repeat=length):
            if chosen.count(0) > 1:
                continue  # two ellipses skip dimensions twice
            theirs, ours = [[(_outcome(lambda: x[index]), _outcome(lambda: _written(x, index)))  # noqa: B023  (called at once)
                             for index in [tuple(indices[k] for k in chosen)]] for _, x, indices in sides]
            if theirs != ours:
                found.append((tuple(sides[0][2][k] for k in chosen), theirs, ours))
    assert not found, f"{len(found)}, among them\n" + "\n".join(map(str, found[:10]))


def test_what_is_no_tuple(oracle, subject):
    for shape in ((), (2,)):
        for k in range(16):
            outcomes = [_outcome(lambda: torch.ones(shape)[_indices(torch)[k]]) for torch in (oracle, subject)]  # noqa: B023
            assert outcomes[0] == outcomes[1], (shape, _indices(oracle)[k])
            outcomes = [_outcome(lambda: _written(torch.ones(shape), _indices(torch)[k])) for torch in (oracle, subject)]  # noqa: B023
            assert outcomes[0] == outcomes[1], (shape, _indices(oracle)[k])


@pytest.mark.parametrize("shape, first, second", [((3, 4), 5, [0, 1, 2]), ((3, 4), 5, [0, 1, 2, 0, 9]), ((0, 4), 5, [0, 1]), ((3, 0), 5, [0, 1]), ((3, 4), 2, [0, 9])])
def test_shapes_of_indices_are_compared_before_their_values(oracle, subject, shape, first, second):
    def said(torch):
        x = torch.zeros(shape)
        try:
            return x[torch.arange(first), torch.tensor(second)].shape
        except IndexError as e:
            return str(e)
    assert said(subject) == said(oracle)
