"""A fixed budget of random lives of models, and proof that a difference is found."""
import fuzz_training
import pytest
from fuzz import Wrong

LIVES, CHUNK = 60, 15
COMPILED = range(5000, 5006)  # each compiles some steps


@pytest.mark.parametrize("first", range(0, LIVES, CHUNK))
def test_random_lives(oracle, subject, first):
    for seed in range(first, first + CHUNK):
        assert not (found := fuzz_training.check(oracle, subject, seed)), found


@pytest.mark.parametrize("seed", COMPILED)
def test_random_lives_of_compiled_steps(oracle, subject, seed):
    assert not (found := fuzz_training.check(oracle, subject, seed, compiled=True)), found


def test_a_wrong_function_is_found(oracle):
    wrong = Wrong(oracle, "sigmoid", lambda x: oracle.sigmoid(x) * 1.001)
    assert "loss" in fuzz_training.check(oracle, wrong, 0)
