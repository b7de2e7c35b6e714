"""float16 and float32 into each other in the NumPy tier, held against PyTorch: every half, and floats at and beside every rounding."""
import numpy as np
import pytest
import torch

import torchlike as tl
from torchlike._core import executor, halves

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FINITE = HALVES[np.isfinite(HALVES)]


def near_ties() -> np.ndarray:
    """Halves, the middles between neighbours, and the floats next to each."""
    ordered = np.sort(FINITE.astype(np.float64))
    middles = np.concatenate([ordered, (ordered[1:] + ordered[:-1]) / 2, [65520, -65520]]).astype(np.float32)
    return np.concatenate([middles, np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, -np.float32(np.inf))])


def same(made: np.ndarray, x: np.ndarray, dtype) -> None:
    with executor.tier("numpy"):
        given = tl.from_numpy(x).to(getattr(tl, dtype)).numpy()
    want = torch.from_numpy(x).to(getattr(torch, dtype)).numpy()
    for r in (made, given):
        assert r.dtype == want.dtype
        np.testing.assert_array_equal(np.isnan(r), np.isnan(want))
        kind = f"u{want.dtype.itemsize}"
        np.testing.assert_array_equal(r.view(kind)[~np.isnan(want)], want.view(kind)[~np.isnan(want)])


@pytest.mark.parametrize("x", [HALVES, FINITE, FINITE[::3], FINITE[:halves.MANY - 1]], ids=["all", "finite", "strided", "few"])
def test_widened(x):
    same(halves.converted(x, np.dtype(np.float32)), x, "float32")


@pytest.mark.parametrize("large", [False, True])
def test_narrowed(large):
    x = near_ties()
    x = x if large else x[np.abs(x) < 65520]
    same(halves.converted(x, np.dtype(np.float16)), x, "float16")


def test_any_bits(monkeypatch):
    """Also once XLA converts whole pieces."""
    x = np.random.default_rng(0).integers(0, 1 << 32, 700_001, dtype=np.uint32).view(np.float32)
    same(halves.converted(x, np.dtype(np.float16)), x, "float16")
    kernel = halves.KeptKernel("halves", halves._KERNEL.function, halves._KERNEL.structs, {})
    monkeypatch.setattr(halves, "_KERNEL", kernel)
    kernel.spent(1.0)
    assert kernel.call is not None
    same(halves.converted(x, np.dtype(np.float16)), x, "float16")


def test_transposed():
    x = np.random.default_rng(0).standard_normal((70, 90)).astype(np.float32)
    for view in (x.T, x[:, ::2], np.broadcast_to(x[0], x.shape)):
        np.testing.assert_array_equal(halves.converted(view, np.dtype(np.float16)), view.astype(np.float16))


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
@pytest.mark.parametrize("n", [3, 30_000])
def test_doubles_round_twice(tier, n):
    """As PyTorch's do: through float32."""
    def program(t):
        x = t.tensor([1 + 2.0 ** -11 + 2.0 ** -30, 65519.9999999999, 1e300], dtype=t.float64).repeat(n // 3)
        i = t.tensor([2049, 2051, 65519]).repeat(n // 3)
        return [r.tolist() for r in (x.half(), i.half(), x.half().double(), x.half().bfloat16(), x.bfloat16().half(), i.half().long(), i.half().bool())]
    want = program(torch)
    with executor.tier(tier):
        assert program(tl) == want


@pytest.mark.parametrize("tier", ["numpy", "compiled"])
def test_arithmetic(tier):
    def program(t):
        x = t.arange(40_000).remainder(997).sub(400).half() / 64
        y = x.flip(0)
        return [r.tolist() for r in (x + y, x * y, x.relu(), x * 3, x.sqrt(), x > y, x.sum(), x.mean(), x.reshape(200, 200).sum(0), x.var(), x.abs().max(), -x, y.abs(),
                                     x.reshape(200, 200).amin(0))]
    want = program(torch)
    with executor.tier(tier):
        made = program(tl)
    for a, b in zip(made, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3)
        if np.ndim(b) and len(b) == 40_000:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_signs_and_extremes(dtype):
    """Bits of zeros, infinities and NaN too; gradients of extremes are shared in float32."""
    def program(t):
        kind = getattr(t, dtype)
        x = t.tensor([0.0, -0.0, float("inf"), -float("inf"), 6e-8, -1.5], dtype=kind).repeat(2000)
        y = t.arange(12_000).remainder(7).to(kind).requires_grad_()
        grads = t.autograd.grad(y.amax() + y.reshape(100, 120).amin(1).sum() + y.max(), y)
        return [r.view(t.int16).tolist() for r in (-x, x.abs(), *grads)] + [(-x.add(float("nan"))).isnan().all().item()]
    want = program(torch)
    with executor.tier("numpy"):
        assert program(tl) == want


def test_gradients_of_halves_too_small_for_them():
    """Most of a softmax's, of many classes; torch keeps a whole float32 in between."""
    def program(t):
        x = (t.arange(60_000).remainder(89).reshape(60, 1000) / 8).half().requires_grad_()
        (grad,) = t.autograd.grad(t.nn.functional.cross_entropy(x, t.arange(60)), x)
        return [grad.float().numpy(), t.nn.functional.rms_norm(x.detach(), (1000,)).float().numpy()]
    want = program(torch)
    with executor.tier("numpy"):
        made = program(tl)
    np.testing.assert_allclose(made[0], want[0], rtol=1e-2, atol=2.0 ** -22)  # torch rounds the logarithms too
    np.testing.assert_allclose(made[1], want[1], rtol=2e-3)


BY_NUMBERS = {
    "add": lambda t, x, y, v: x + v, "sub": lambda t, x, y, v: x - v, "rsub": lambda t, x, y, v: v - x, "mul": lambda t, x, y, v: x * v,
    "mul by 0-dim": lambda t, x, y, v: x * t.tensor(v), "add 0-dim": lambda t, x, y, v: x + t.tensor(v), "remainder": lambda t, x, y, v: x % v,
    "of a number": lambda t, x, y, v: v % y, "fmod": lambda t, x, y, v: t.fmod(x, v), "floor": lambda t, x, y, v: x // v,
    "floor by 0-dim": lambda t, x, y, v: x // t.tensor(v), "number's floor": lambda t, x, y, v: v // y, "floor of tensors": lambda t, x, y, v: x // y,
    "broadcast": lambda t, x, y, v: t.div(x[:64, None], y[None, :32], rounding_mode="floor"), "trunc": lambda t, x, y, v: t.div(x, v, rounding_mode="trunc"),
    "scaled": lambda t, x, y, v: t.add(x, y, alpha=v), "less": lambda t, x, y, v: t.sub(x, y, alpha=v), "in place": lambda t, x, y, v: x.add_(y, alpha=v),
}


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", BY_NUMBERS)
def test_arithmetic_with_numbers_is_torch_s_to_the_bit(name, dtype, kind):
    """Which numbers are rounded to 16 bits before, and where results are. 3200 elements: whole vectors on every CPU."""
    draw = np.random.default_rng(3)
    a, b = draw.normal(size=(2, 3200)) * np.exp(draw.normal(size=(2, 3200)))

    def run(t):
        made = []
        for v in (0.3, 2.7, -1.1):
            x, y = (t.tensor(z).to(getattr(t, dtype)) for z in (a, b))
            r = BY_NUMBERS[name](t, x, y, v)
            assert r.dtype is getattr(t, dtype)
            repr(r)  # looked at in 16 bits
            made.append(r.float().numpy())
        return np.stack([m.reshape(-1) for m in made])
    with executor.tier(kind):
        got = run(tl)
    np.testing.assert_array_equal(got, run(torch))


@pytest.mark.parametrize("kind", ["numpy", "compiled"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_index_reduce_rounds_at_each_step(dim, dtype, kind):
    draw = np.random.default_rng(4)
    a, b, index = draw.random((5, 6, 7)) + 0.5, draw.random((40, 40, 40)) + 0.6, draw.integers(0, 5, 40)

    def run(t):
        x, source = (t.tensor(z).to(getattr(t, dtype)) for z in (a, b[tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(a.shape))]))
        return np.stack([x.index_reduce(dim, t.tensor(index), source, how, include_self=own).float().numpy()
                         for how in ("mean", "prod", "amax") for own in (True, False)])
    with executor.tier(kind):
        got = run(tl)
    np.testing.assert_array_equal(got, run(torch))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_thresholds_are_rounded_as_what_they_are_compared_with(dtype):
    def run(t):
        found = []
        for limit in (0.3, 0.1, 1 / 3, 2.7, 1e-3):
            for f in (t.nn.functional.hardshrink, lambda x, b: x.clamp(-b, b), lambda x, b: x.clamp(min=b), lambda x, b: x.clamp(max=-b)):
                x = t.tensor([limit, -limit, limit * 2, -limit * 2, limit / 2, 0.0], dtype=getattr(t, dtype), requires_grad=True)
                y = f(x, limit)
                y.sum().backward()
                found += [y.detach().float().numpy(), x.grad.float().numpy()]
        return np.stack(found)
    np.testing.assert_array_equal(run(tl), run(torch))
