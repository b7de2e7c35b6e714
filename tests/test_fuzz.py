"""A fixed budget of random programs, and proof that the fuzzer finds and shrinks what is wrong."""
import fuzz
import pytest
from checks import execution_modes
from fuzz import Wrong

PROGRAMS, CHUNK = 400, 20


@pytest.mark.parametrize("first", range(0, PROGRAMS, CHUNK))
def test_random_programs(oracle, subject, first):
    for seed in range(first, first + CHUNK):
        found, lines = fuzz.check(oracle, subject, seed, shrinking=False)
        assert not found, f"seed {seed}\n" + fuzz.script(lines, found)


@pytest.mark.parametrize("mode", range(3), ids=("numpy", "compiled", "immediate"))
def test_random_programs_in_every_mode(oracle, subject, mode):
    modes = execution_modes(subject)
    for seed in range(10_000, 10_012):
        found, lines = fuzz.check(oracle, subject, seed, modes[mode % len(modes)], shrinking=False)
        assert not found, f"seed {seed}\n" + fuzz.script(lines, found)


def test_programs_are_deterministic_and_varied(oracle):
    programs = [fuzz.program(oracle, seed) for seed in range(30)]
    assert programs == [fuzz.program(oracle, seed) for seed in range(30)]
    text = "\n".join(line for lines in programs for line in lines)
    assert all(part in text for part in ("backward(", "autograd.grad(", "_(", "] = ", "no_grad"))


def _first_failing(oracle, wrong):
    return next(seed for seed in range(300) if fuzz.check(oracle, wrong, seed, shrinking=False)[0])


def test_a_wrong_function_is_found_and_shrunk(oracle):
    wrong = Wrong(oracle, "sin", lambda x: oracle.sin(x) * 1.01)
    found, lines = fuzz.check(oracle, wrong, _first_failing(oracle, wrong))
    assert found and len(lines) <= 5 and any("torch.sin" in line for line in lines)


def test_a_wrong_gradient_is_found(oracle):
    def wrong(x):
        return oracle.tanh(x) + (x - x.detach()) * 0.1
    assert _first_failing(oracle, Wrong(oracle, "tanh", wrong)) is not None


def test_an_error_of_another_class_is_found(oracle):
    def where(*args):
        raise ValueError("not torch's")
    assert any(fuzz.check(oracle, Wrong(oracle, "where", where), seed, shrinking=False)[0] for seed in range(200))
