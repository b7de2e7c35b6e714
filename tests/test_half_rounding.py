"""Rounding to float16 as the hardware does, by float32 arithmetic, on every float32 near and between float16 numbers."""
import jax
import numpy as np
import pytest
from same import same

from torchlike._core import half_rounding


def test_rounds_as_the_hardware():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        near = np.concatenate([halves, np.nextafter(halves, np.float32(np.inf)), np.nextafter(halves, np.float32(-np.inf)), halves * np.float32(1 + 2 ** -11),
                               halves * np.float32(1 + 3 * 2 ** -12), np.random.default_rng(0).integers(0, 1 << 32, 200000, np.uint32).view(np.float32)])
        want = near.astype(np.float16)
    got = np.asarray(jax.jit(half_rounding._on_cpu)(near))
    differ = (got.view(np.uint16) != want.view(np.uint16)) & ~(np.isnan(got) & np.isnan(want)) & (near != 0)
    tiny = np.abs(near) < 2.0 ** -25  # XLA takes float32's smallest numbers for 0
    assert not (differ & ~tiny).any(), (near[differ & ~tiny][:5], got[differ & ~tiny][:5], want[differ & ~tiny][:5])
    assert (got[near == 0] == 0).all()


def test_derivative():
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    got = jax.vjp(half_rounding.rounded, x)[1](np.full(7, 2, np.float16))[0]
    assert got.dtype == np.float32 and (np.asarray(got) == 2).all()


def test_doubles_are_rounded_twice(subject, oracle):
    """As in torch, whose doubles go through float32: those nearest to the middle between two float16 numbers show it."""
    halves = np.random.default_rng(0).standard_normal(500).astype(np.float16)
    middle = (halves.astype(np.float64) + np.nextafter(halves, np.float16(np.inf))) / 2
    near = np.concatenate([middle * (1 + part) for part in (0, 1e-9, -1e-9)])
    for make in (lambda t: t.tensor(near, dtype=t.float16), lambda t: t.tensor(near.tolist(), dtype=t.float16), lambda t: t.tensor(near[700], dtype=t.float16),
                 lambda t: t.tensor([*near.tolist(), True], dtype=t.float16), lambda t: t.tensor(near).half(), lambda t: t.HalfTensor(near)):
        np.testing.assert_array_equal(make(subject).numpy(), make(oracle).numpy())


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@same
def test_gradients_of_the_larger_one_beside_a_wider_number(torch, name, half):
    """A float64 number without dimensions is rounded to 16 bits before it is compared, so it may tie."""
    found = []
    for number in (1.0002, 1.0, 0.99999, 1.004):
        x = torch.tensor([1.0, 1.0009765625, 0.5], dtype=getattr(torch, half), requires_grad=True)
        y = torch.tensor(number, dtype=torch.float64, requires_grad=True)
        getattr(torch, name)(x, y).sum().backward()
        getattr(torch, name)(y, x).sum().backward()
        found += [x.grad, y.grad]
    return found
