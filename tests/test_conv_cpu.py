"""The CPU's own convolution kernels, compiled, against real torch: every form (all offsets, last axis, depthwise, groups,
bands of large images, small images together, windows that tile), strides, paddings and dilations, result and both gradients."""
import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from torchlike._core import program, program_info
from torchlike.nn._functional import conv_cpu, conv_library, conv_patches
from torchlike.nn._functional.conv_cpu import Geometry

# name, input, weight, keywords
CASES = [(f"conv{n}d", (3, 4, *size), (8, 4 // groups, *kernel), {"stride": s, "padding": p, "dilation": d, "groups": groups})
         for (n, size, kernel), (s, p, d, groups) in itertools.product(
             ((1, (17,), (3,)), (2, (11, 13), (3, 2)), (3, (7, 6, 8), (2, 3, 2))),
             ((1, 0, 1, 1), (1, 2, 2, 1), (2, 1, 1, 1), (3, 0, 2, 1), (1, 1, 1, 2), (2, 2, 2, 2), (1, 1, 1, 4), (2, 1, 2, 4)))]
CASES += [("conv_transpose2d", (3, 8, 5, 6), (8, 4 // groups, 3, 2), {"stride": s, "padding": p, "dilation": d, "groups": groups, "output_padding": o})
          for s, p, d, o, groups in ((1, 0, 1, 0, 1), (2, 1, 1, 1, 1), (3, 0, 2, 2, 2), (1, 1, 2, 1, 1), (2, 1, 1, 0, 4))]
LARGE = [((2, 40, 30, 30), (20, 40, 5, 5), {"padding": 2}), ((2, 40, 60, 60), (60, 40, 3, 3), {"padding": (2, 1)}),
         ((1, 24, 12, 14, 16), (24, 24, 3, 3, 3), {"padding": (2, 1, 1), "dilation": (1, 2, 1)}), ((1, 64, 60, 120), (16, 64, 3, 3), {"padding": 1}),
         ((16, 32, 3, 3), (16, 32, 3, 3), {"padding": 1}), ((1, 128, 7, 7), (128, 128, 3, 3), {"padding": 1}), ((1, 64, 260, 260), (4, 64, 3, 3), {"padding": 1}),
          ((2, 6, 12, 17), (12, 1, 3, 5), {"padding": (1, 4), "groups": 6, "dilation": (2, 1), "stride": (1, 2)}),
         ((2, 6, 12, 17), (6, 1, 7, 7), {"padding": 3, "groups": 6}), ((2, 6, 12, 17), (6, 1, 3, 2), {"padding": (4, 0), "groups": 6}),
         ((2, 3, 5, 44), (6, 1, 3, 3), {"padding": 1, "groups": 3}), ((3, 6, 14, 11), (6, 1, 5, 5), {"padding": 2, "groups": 6, "stride": 2}),
         ((3, 6, 14, 11), (6, 1, 3, 5), {"padding": (1, 4), "groups": 6, "stride": (2, 1), "dilation": (2, 1)}),
         ((3, 6, 34, 7), (6, 1, 3, 3), {"padding": (0, 1), "groups": 6, "stride": 2}),
         ((3, 6, 9, 16), (6, 1, 3, 3), {"padding": 1, "groups": 6, "dilation": 2}), ((3, 6, 9, 16), (6, 1, 2, 5), {"groups": 6, "stride": (1, 4)}),
         ((2, 3, 7, 85), (3, 1, 3, 2), {"padding": 1, "groups": 3, "stride": (1, 2)})]
CASES += [(f"conv{len(x) - 2}d", x, w, k) for x, w, k in LARGE]
# many elements in a window: taken in a loop
CASES += [("conv1d", (2, 3, 90), (4, 3, 40), {"stride": s, "padding": p, "dilation": d}) for s, p, d in ((1, 5, 2), (4, 0, 1), (3, 7, 2))]
CASES += [("conv2d", (2, 3, 23, 26), (5, 3, 6, 7), {"stride": (3, 2), "padding": (2, 3)}), ("conv2d", (2, 4, 23, 26), (6, 2, 5, 5), {"stride": 2, "groups": 2}),
          ("conv3d", (2, 2, 9, 8, 11), (3, 2, 3, 4, 5), {"stride": (2, 1, 3), "padding": 1}), ("conv_transpose2d", (2, 4, 6, 5), (4, 3, 5, 6), {"stride": (3, 2)})]
# windows that tile the input, or what padding below zero leaves of it
CASES += [("conv1d", (3, 4, 21), (5, 4, 4), {"stride": 4}), ("conv2d", (3, 4, 12, 20), (6, 4, 3, 5), {"stride": (3, 5)}), ("conv2d", (2, 3, 17, 18), (4, 3, 4, 4), {"stride": 4}),
          ("conv3d", (2, 3, 5, 6, 7), (4, 3, 2, 2, 3), {"stride": (2, 2, 3)}), ("conv_transpose1d", (3, 4, 6), (4, 5, 3), {"stride": 3}),
          ("conv_transpose2d", (3, 4, 5, 6), (4, 5, 2, 3), {"stride": (2, 3), "padding": 1}), ("conv_transpose2d", (3, 4, 5, 6), (4, 5, 2, 2), {"stride": 2, "output_padding": 1})]
# single positions: more or fewer features than channels, and more than positions
CASES += [("conv1d", (3, 4, 21), (6, 4, 1), {}), ("conv2d", (3, 7, 5, 6), (4, 7, 1, 1), {}), ("conv3d", (2, 3, 4, 3, 5), (6, 3, 1, 1, 1), {"dilation": 2}),
          ("conv2d", (2, 3, 4, 4), (20, 3, 1, 1), {}), ("conv2d", (2, 4, 7, 7), (6, 4, 1, 1), {"stride": 2}), ("conv_transpose2d", (2, 4, 5, 6), (4, 7, 1, 1), {})]


def results(torch, name, x, w, g, keywords):
    x, w = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    y = getattr(torch.nn.functional, name)(x, w, **keywords)
    return [t.detach().numpy() for t in (y, *torch.autograd.grad(y, (x, w), torch.tensor(g)))]


@pytest.mark.parametrize("part", range(4))
def test_compiled_convolutions(oracle, subject, part):
    rng = np.random.default_rng(part)
    for name, x_shape, w_shape, keywords in CASES[part::4]:
        x, w = rng.standard_normal(x_shape, np.float32), rng.standard_normal(w_shape, np.float32)
        shape = getattr(oracle.nn.functional, name)(oracle.tensor(x), oracle.tensor(w), **keywords).shape
        g = rng.standard_normal(tuple(shape), np.float32)
        want = results(oracle, name, x, w, g, keywords)
        with program.tier("compiled"):
            got = results(subject, name, x, w, g, keywords)
        for a, b in zip(want, got):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4 * max(1.0, float(abs(a).max())), err_msg=f"{name} {x_shape} {w_shape} {keywords}")


def rounded_results(torch, dtype, wide, name, arrays, keywords):
    """The same of numbers of 16 bits; `wide`: computed of the same numbers in float32, and rounded then."""
    dtype = getattr(torch, dtype)
    x, w, g = [t.float() if wide else t for t in (torch.tensor(a).to(dtype) for a in arrays)]
    y = getattr(torch.nn.functional, name)(x.requires_grad_(), w.requires_grad_(), **keywords)
    return [t.detach().to(dtype).float().numpy() for t in (y, *torch.autograd.grad(y, (x, w), g))]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bit_convolutions_are_those_of_float32_rounded_once(oracle, subject, dtype):
    rng = np.random.default_rng(0)
    for name, x_shape, w_shape, keywords in CASES[::5]:
        shape = getattr(oracle.nn.functional, name)(oracle.zeros(x_shape), oracle.zeros(w_shape), **keywords).shape
        arrays = [rng.standard_normal(s, np.float32) for s in (x_shape, w_shape, tuple(shape))]
        with program.tier("compiled"):
            for a, b in zip(*(rounded_results(subject, dtype, wide, name, arrays, keywords) for wide in (True, False))):
                np.testing.assert_array_equal(a, b, err_msg=f"{name} {x_shape} {w_shape} {keywords}")


def test_a_wide_depthwise_convolution_is_added_up_once():
    """However often it is read: by a norm over its channels XLA would compute it three times."""
    geo = Geometry(2, 8, (6, 6), 8, (7, 7), (1, 1), ((3, 3), (3, 3)), (1, 1), 8)

    def normalised(x, w):
        y = jnp.moveaxis(conv_cpu.convolve(x, w, geo), 1, -1)
        centered = y - y.mean(-1, keepdims=True)
        return centered / jnp.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-6)
    lowered = jax.jit(normalised).lower(jnp.zeros((2, 8, 6, 6)), jnp.zeros((8, 1, 7, 7)))
    assert geo.taps <= lowered.compile().as_text().count(" multiply(") < 2 * geo.taps + 10  # one element is read to choose a branch


def test_weight_gradients_of_long_rows_are_added_up_by_rows(monkeypatch):
    """Which of both forms a depthwise convolution's weight gradient takes."""
    asked = []
    monkeypatch.setattr(conv_cpu.Depthwise, "_by_row", lambda self, rows, image: asked.append(self.geo.outs) or jnp.zeros(self.weights_shape))
    for side in (28, 56):
        geo = Geometry(2, 8, (side, side), 8, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 8)
        x = jnp.zeros((2, 8, side, side))
        conv_cpu.gradients(x, None, x, geo, (False, True))
    assert set(asked) == {(56, 56)}


def test_depthwise_gradients_of_low_images_are_formulas_of_whole_rows():
    """Strided ones too: a loop that spreads each offset's products takes some five times as long, one that adds up element by element as much."""
    geo, x, w, g = geometry(2, 8, 15, 8, 5, 2, 2, 8), jnp.zeros((2, 8, 15, 15)), jnp.zeros((8, 1, 5, 5)), jnp.zeros((2, 8, 8, 8))
    text = jax.jit(lambda w, g: conv_cpu.gradients(None, w, g, geo, (True, False))).lower(w, g).compile().as_text()
    assert " while(" not in text and text.count(" multiply(") >= geo.taps
    text = jax.jit(lambda x, g: conv_cpu.gradients(x, None, g, geo, (False, True))).lower(x, g).compile().as_text()
    assert text.count(" multiply(") >= 5 * 8


def test_convolutions_of_single_positions_are_products_of_all_images():
    geo = geometry(4, 6, 5, 8, 1, 1, 0, 1)
    x, w, g = jnp.zeros((4, 6, 5, 5)), jnp.zeros((8, 6, 1, 1)), jnp.zeros((4, 8, 5, 5))
    for f, arrays in ((lambda x, w: conv_cpu.convolve(x, w, geo), (x, w)), (lambda x, w, g: conv_cpu.gradients(x, w, g, geo, (True, True)), (x, w, g))):
        text = jax.jit(f).lower(*arrays).compile().as_text()
        assert " while(" not in text and " dot(" in text


def test_what_a_depthwise_convolution_reads_is_computed_in_vectors():
    """Padding is a choice per element, in which LLVM leaves exponentials one by one."""
    geo, x, w = geometry(2, 8, 9, 8, 3, 1, 1, 8), jnp.zeros((2, 8, 9, 9)), jnp.zeros((8, 1, 3, 3))
    text = jax.jit(lambda x, w: conv_cpu.convolve(jnp.exp(x), w, geo)).lower(x, w).compile().as_text()
    assert " pad(" not in text and " dynamic-update-slice(" in text


def second(torch, name, x, w, b, keywords, asked):
    """What a penalty on the gradients that are `asked` for has as gradients, by input, weight and bias."""
    leaves = x, w, b = [torch.tensor(a, requires_grad=True) for a in (x, w, b)]
    y = getattr(torch.nn.functional, name)(x, w, b, **keywords).sin()
    found = torch.autograd.grad(y.sum(), [leaves[i] for i in asked], create_graph=True)
    total = sum((t ** 2).sum() for t in found)
    return [t.numpy() for t in torch.autograd.grad(total, leaves)]


@pytest.mark.parametrize("asked", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("name, x, w, keywords", [
    ("conv2d", (3, 4, 9, 8), (6, 4, 3, 2), {"stride": (2, 1), "padding": 1}), ("conv1d", (2, 4, 17), (4, 1, 3), {"groups": 4, "dilation": 2}),
    ("conv2d", (3, 4, 9, 8), (6, 2, 3, 2), {"stride": 2, "groups": 2}), ("conv2d", (2, 3, 8, 8), (4, 3, 2, 2), {"stride": 2}),
    ("conv_transpose2d", (3, 6, 4, 5), (6, 4, 3, 2), {"stride": 2, "padding": 1, "output_padding": 1}),
    ("conv_transpose2d", (3, 6, 4, 5), (6, 2, 3, 2), {"groups": 2, "dilation": 2})])
def test_compiled_second_derivatives(oracle, subject, name, x, w, keywords, asked):
    rng = np.random.default_rng(0)
    filters = w[0] if "transpose" not in name else w[1] * keywords.get("groups", 1)
    x, w, b = (rng.standard_normal(shape, np.float32) for shape in (x, w, (filters,)))
    want = second(oracle, name, x, w, b, keywords, asked)
    with program.tier("compiled"):
        got = second(subject, name, x, w, b, keywords, asked)
    for a, b in zip(want, got):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-4 * max(1.0, float(abs(a).max())))


def test_second_derivatives_are_made_of_the_same_kernels(subject):
    """JAX's derivative of the gradients has a convolution of the dilated input, for which XLA's CPU backend takes ten times as long."""
    def penalty():
        x, w = subject.randn(4, 3, 16, 16, requires_grad=True), subject.randn(8, 3, 4, 4, requires_grad=True)
        g, = subject.autograd.grad(subject.nn.functional.conv2d(x, w, None, 2, 1).sin().sum(), x, create_graph=True)
        return subject.autograd.grad(g.square().sum(), w)[0].numpy()
    before = len(program_info.infos)
    with program.tier("compiled"):
        penalty()
    texts = [exe.call.as_text() for info in program_info.infos[before:] for exe in info.executables]
    assert texts and not any("base-dilated" in text for text in texts)


def geometry(n, c, side, o, k, stride=1, padding=0, groups=1):
    return Geometry(n, c, (side, side), o, (k, k), (stride, stride), ((padding, padding),) * 2, (1, 1), groups)


@pytest.fixture(params=[1, 8])
def cores(request, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(request.param)))
    return request.param


def test_every_form_is_among_the_cases():
    patches = [geometry(2, 3, side, 4, 4, 4) for side in (16, 17)]
    assert all(map(conv_patches.serves, patches)) and not conv_patches.serves(geometry(2, 3, 16, 4, 4, 4, 1)) and not conv_patches.serves(geometry(2, 3, 16, 4, 1))
    geometries = [Geometry(x[0], x[1], x[2:], w[0], w[2:], (1,) * (len(x) - 2), ((1, 1),) * (len(x) - 2), (1,) * (len(x) - 2)) for x, w, _ in LARGE]
    assert {g.gathers_last for g in geometries} == {True, False}
    assert max(g.bands for g in geometries) > 1 and max(g.together for g in geometries) > 1


def test_what_is_left_to_xla(oracle, subject, cores, monkeypatch):
    """Convolutions that XLA's library does, and those that it does slowly."""
    single = np.dtype(np.float32)
    assert conv_library.serves(geometry(8, 32, 16, 32, 3, 2, 1), single)
    small, wide = geometry(8, 32, 16, 32, 3, padding=1), geometry(8, 128, 28, 128, 3, padding=1)
    assert [conv_library.serves(g, single) for g in (small, small.adjoint(), wide)] == ([True, True, False] if cores == 1 else [False, False, True])
    assert not conv_library.serves(small, np.dtype(np.float64)) and geometry(8, 32, 16, 32, 3).adjoint() is None
    for other in (geometry(8, 32, 16, 32, 3, groups=4), geometry(8, 16, 32, 16, 3, padding=1), geometry(8, 32, 16, 32, 1), geometry(1, 512, 7, 512, 3, padding=1)):
        assert not conv_library.serves(other, single), other
    rng = np.random.default_rng(0)
    monkeypatch.setattr(conv_library, "UNPADDED", 1 << 10)  # where there is none, an image at a time
    for padding, stride in ((0, 1), (1, 1), (2, 1), (3, 1), (0, 2), (1, 2)):
        x, w = rng.standard_normal((3, 32, 9, 8), np.float32), rng.standard_normal((40, 32, 3, 2), np.float32)
        g = rng.standard_normal((3, 40, (9 + 2 * padding - 3) // stride + 1, (8 + 2 * padding - 2) // stride + 1), np.float32)
        keywords = {"padding": padding, "stride": stride}
        with program.tier("compiled"):
            got = results(subject, "conv2d", x, w, g, keywords)
        for a, b in zip(results(oracle, "conv2d", x, w, g, keywords), got):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4 * float(abs(a).max()))
