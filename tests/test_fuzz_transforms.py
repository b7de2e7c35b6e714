"""A fixed budget of random functions under random transforms, and proof that a difference is found."""
import fuzz_transforms
import pytest
from fuzz import Wrong

FUNCTIONS, CHUNK = 80, 20


@pytest.mark.parametrize("first", range(0, FUNCTIONS, CHUNK))
def test_random_transforms(oracle, subject, first):
    for seed in range(first, first + CHUNK):
        assert not (found := fuzz_transforms.check(oracle, subject, seed)), f"seed {seed}: {found}"


def test_a_wrong_function_is_found(oracle):
    wrong = Wrong(oracle, "stack", lambda *args: oracle.stack(*args) * 1.001)
    assert any(fuzz_transforms.check(oracle, wrong, seed) for seed in range(10))
