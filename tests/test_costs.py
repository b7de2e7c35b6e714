"""What compiling saves, by estimate: it decides how long a loop of one operation waits."""

import pytest

import torchlike
from torchlike._core import costs, program, program_info
from torchlike._core.registry import OPS


def _gain(f) -> tuple[float, float]:
    """Of a program of f(x): what it saves, and of as many units of work."""
    x = torchlike.rand(1 << 20)
    x.sum().item()
    with program.tier("numpy"):
        for _ in range(3):
            f(x)._current()
            program.flush("test")
    info = next(i for i in reversed(program_info.infos) if i.work >= 1 << 20)
    return info.gain, costs.NUMPY_WORK * info.work


@pytest.mark.parametrize(("name", "more"), [("erfc", True), ("gelu", True), ("log1p", True), ("cumsum", True), ("abs", False)])
def test_dear_operations_are_compiled_sooner(name, more):
    of = getattr(torchlike, name, None) or getattr(torchlike.nn.functional, name)
    f = of if name != "cumsum" else lambda x: of(x, 0)
    gain, usual = _gain(f)
    assert (gain > 1.5 * usual) == more


def test_bilinear_interpolation_is_no_product():
    gain, usual = _gain(lambda x: torchlike.nn.functional.interpolate(x.reshape(1, 1, 1024, 1024), scale_factor=1.5, mode="bilinear"))
    assert gain > 0.9 * usual > 1e-3


@pytest.mark.parametrize("backward", [False, True])
def test_depthwise_convolutions_are_compiled_sooner(backward):
    """NumPy takes longer for each of their multiply-adds than for those of a product."""
    def gain(groups):
        weight = torchlike.rand(64, 64 // groups, 3, 3, requires_grad=backward)

        def f(x):
            y = torchlike.nn.functional.conv2d(x.reshape(1, 64, 128, 128), weight, padding=1, groups=groups)
            return torchlike.autograd.grad(y.sum(), weight)[0] if backward else y
        return _gain(f)[0]
    assert gain(64) > gain(1) > 0  # which makes 64 times as many


def test_what_xla_does_no_quicker_is_not_compiled():
    assert _gain(lambda x: torchlike.special.gammainc(x, x))[0] <= 0
    assert _gain(lambda x: x.sort()[0])[0] <= 0


@pytest.mark.usefixtures("recorded")
def test_a_program_of_many_small_parameters_saves_little():
    """An executable takes time for each of its arguments, NumPy hardly any."""
    gains = []
    for n in (1, 30):
        tensors = [torchlike.rand(4) for _ in range(n)]
        with program.immediate(False), program.tier("numpy"):
            for _ in range(2):
                out = sum(tensors[i % n] for i in range(31))
                out.tolist()
        gains.append(next(i for i in reversed(program_info.infos) if len(i.steps) == 31).gain)
    assert gains[0] - gains[1] == pytest.approx(29 * costs.PASSED)


def test_the_table_names_operations():
    assert {name.removesuffix("_backward") for name in costs._SAVED} <= OPS.keys()
